"""Second factors: codes of authenticator apps (TOTP, RFC 6238), recovery codes, steps of a sign-in. No I/O.

    password, link, service ─► has a second factor? ─ no ────────────────────────► session
                                    └ yes ─► SecondFactorRequired(token) ─► code ─► session
    passkey ─────────────────────────────────────────────────────────────────────► session

A passkey verifies its user by itself (a PIN, a finger), so it is both factors at once.
"""

import hashlib
import hmac
import struct
from base64 import b32encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from urllib.parse import quote, urlencode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Meta

PERIOD_S = 30
DIGITS = 6
DRIFT_STEPS = 1  # the clock of a phone may be so far off
SECRET_BYTES = 20
RECOVERY_CODES = 10
RECOVERY_BYTES = 10  # 80 bits: a hash of it cannot be guessed
STEP_TTL_S = 300
STEP_TRIES_MAX = 5  # wrong codes per sign-in; the limits of wrong passwords hold as well
TOKEN_BYTES = 32
NONCE_BYTES = 12
PLAIN, SEALED = b"\x00", b"\x01"

SecondCode = Annotated[str, Meta(min_length=1, max_length=40, examples=["492039"])]
StepToken = Annotated[str, Meta(min_length=20, max_length=64, pattern=r"^[A-Za-z0-9_-]+$(?!\n)")]
PasskeyName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=60,
        pattern=r"^[^\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$(?!\n)",
        examples=["My phone"],
    ),
]


class FirstStep(StrEnum):
    PASSWORD = "password"
    LINK = "link"  # in a mail
    SERVICE = "service"  # signed in elsewhere, by OpenID Connect
    PASSKEY = "passkey"  # needs no second step


class SecondStep(StrEnum):
    TOTP = "totp"
    RECOVERY = "recovery"
    PASSKEY = "passkey"


class StepPurpose(StrEnum):
    SECOND = "second"  # the first step was right, the second one is open
    PASSKEY_SIGN_IN = "passkey_sign_in"  # a challenge; without an account the passkey names it
    PASSKEY_ADD = "passkey_add"


@dataclass(frozen=True, slots=True)
class SignInStep:
    account_id: int | None
    first: str

    def signed_in_by(self, second: SecondStep) -> str:
        return f"{self.first}+{second}"


def is_complete(signed_in_by: str) -> bool:
    """Whether a sign-in of this kind is enough for an account with a second factor."""
    return "+" in signed_in_by or signed_in_by == FirstStep.PASSKEY


@dataclass(frozen=True, slots=True)
class Passkey:
    passkey_id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class FactorStatus:
    totp_since: datetime | None
    passkeys: Sequence[Passkey]
    recovery_codes_left: int

    @property
    def is_on(self) -> bool:
        return self.totp_since is not None or bool(self.passkeys)


# ── codes ─────────────────────────────────────────────────────────────────────────────


def secret_as_text(secret: bytes) -> str:
    return b32encode(secret).decode()


def code_at(secret: bytes, step: int) -> str:
    """The code of the half minute `step` (seconds since 1970, divided by 30)."""
    mac = hmac.digest(secret, struct.pack(">Q", step), "sha1")
    (number,) = struct.unpack_from(">I", mac, mac[-1] & 15)
    return f"{(number & 0x7FFFFFFF) % 10**DIGITS:0{DIGITS}}"


def find_step(secret: bytes, code: str, now_step: int, last_step: int) -> int | None:
    """The half minute that this code belongs to, if it is about now and no code of it was used yet."""
    for step in range(now_step - DRIFT_STEPS, now_step + DRIFT_STEPS + 1):
        if step > last_step and hmac.compare_digest(code_at(secret, step), code):
            return step
    return None


def enrolment_uri(secret: bytes, issuer: str, email: str) -> str:
    """What the QR code says to the app: https://github.com/google/google-authenticator/wiki/Key-Uri-Format"""
    label = quote(f"{issuer}:{email}", safe="@")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret_as_text(secret), 'issuer': issuer})}"


def is_totp(code: str) -> bool:
    return len(code) == DIGITS and code.isascii() and code.isdigit()


def normal_code(typed: str) -> str:
    """Without what people type to read a code better."""
    return "".join(typed.split()).replace("-", "").upper()


def recovery_code(random: bytes) -> str:
    """As people see it: ABCD-EFGH-IJKL-MNOP."""
    code = b32encode(random).decode()
    return "-".join(code[at : at + 4] for at in range(0, len(code), 4))


# ── secrets in the ledger ─────────────────────────────────────────────────────────────


class Seal:
    """Encrypts secrets of apps with the setting `totp_key`; without one they are stored as they are."""

    def __init__(self, keys: str) -> None:
        texts = [text.strip() for text in keys.split(",") if text.strip()]
        self._keys = [AESGCM(hashlib.sha256(text.encode()).digest()) for text in texts]

    def close(self, secret: bytes, account_id: int, nonce: bytes) -> bytes:
        if not self._keys:
            return PLAIN + secret
        return SEALED + nonce + self._keys[0].encrypt(nonce, secret, str(account_id).encode())

    def open(self, stored: bytes, account_id: int) -> bytes | None:
        """None: sealed with a key that the setting does not have."""
        if stored[:1] == PLAIN:
            return stored[1:]
        nonce, sealed = stored[1 : 1 + NONCE_BYTES], stored[1 + NONCE_BYTES :]
        for key in self._keys:
            try:
                return key.decrypt(nonce, sealed, str(account_id).encode())
            except InvalidTag:
                continue
        return None
