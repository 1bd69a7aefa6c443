"""Accounts, their roles, languages and request fields, and password hashing. No I/O.

Passwords are hashed with argon2id, salted, slow on purpose: a hash takes about 30 ms of a core and 19 MB
(OWASP's first choice of parameters, July 2025). The 64 MB of RFC 9106 would take a sixth of the memory of the
whole demo for each concurrent login.
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from argon2 import PasswordHasher, Type
from argon2.exceptions import VerifyMismatchError
from msgspec import Meta

from holdfast.web.caller import Role

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row


LANGUAGES = ("en", "de", "hi")  # of messages and pages; the first is the default
WISHES_MAX = 20
WEIGHT = re.compile(r"[01](\.\d{1,3})?")


@dataclass(frozen=True, slots=True)
class Account:
    account_id: int
    email: str
    name: str
    role: Role
    version: int  # grows when every token of the account must die: a new role, a ban
    created_at: datetime
    locale: str = "en"  # the language notices are written in: one of LANGUAGES
    is_verified: bool = False  # a mailed link has proved that the address is theirs

    @property
    def proved_email(self) -> str | None:
        return self.email if self.is_verified else None


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account that the program itself adds. Without a password hash, logging in is impossible."""

    email: str
    name: str
    role: Role = Role.FAN
    password_hash: str | None = None
    is_verified: bool = True  # who runs the program answers for the address


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What a person gets for the right password, or for a refresh token."""

    account: Account
    access_token: str
    refresh_token: str


GUEST_HOST = "guest.invalid"  # RFC 2606: no mail can ever be sent there


def guest_email(name: str) -> str:
    """The e-mail of an account whose address is not proved. `name` is random."""
    return f"{name}@{GUEST_HOST}"


def build_account(row: "Row") -> Account:
    is_made_up = row["email"].endswith(f"@{GUEST_HOST}")
    return Account(
        account_id=row["id"],
        email=(row["contact_email"] if is_made_up else None) or row["email"],
        name=row["name"],
        role=Role(row["role"]),
        version=row["version"],
        created_at=row["created_at"],
        locale=row["locale"],
        is_verified=row["verified_at"] is not None,
    )


def normal_email(email: str) -> str:
    """One spelling an address: Ann@Example.org and ann@example.org are one person to us.

    Addresses are ASCII (the form refuses the rest), so lower() is all there is, and no look-alike letter
    can create a look-alike of another person's account.
    """
    return email.strip().lower()


def choose_language(accept_language: str | None) -> str:
    """The language of LANGUAGES that an Accept-Language header likes best; `hi-IN` is Hindi."""
    wishes: list[tuple[float, int, str]] = []
    for place, wish in enumerate((accept_language or "").split(",")[:WISHES_MAX]):
        tag, _, quality = wish.partition(";")
        name = tag.strip().split("-")[0].lower()
        share = quality.strip().removeprefix("q=")
        weight = 1.0 if not quality else float(share) if WEIGHT.fullmatch(share) else 0.0
        if name in LANGUAGES and weight > 0:
            wishes.append((-weight, place, name))
    return min(wishes)[2] if wishes else LANGUAGES[0]


def digest(secret: str) -> bytes:
    """The stored form of a secret that the client holds: enough to recognise it."""
    return hashlib.sha256(secret.encode()).digest()


# ASCII on purpose: see normal_email.
Email = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=254,
        pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$(?!\n)",
        examples=["ann@example.org"],
    ),
]
NewPassword = Annotated[str, Meta(min_length=8, max_length=128, examples=["correct horse battery staple"])]
Password = Annotated[str, Meta(min_length=1, max_length=128)]
OldPassword = Annotated[str, Meta(max_length=128)]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=120,
        pattern=r"^[^\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$(?!\n)",
        examples=["Ann"],
    ),
]
RefreshToken = Annotated[str, Meta(min_length=1, max_length=128)]


HASHER = PasswordHasher(
    type=Type.ID, time_cost=2, memory_cost=19_456, parallelism=1, hash_len=32, salt_len=16
)

# Checked when there is no such account, so that "no such account" takes as long as "wrong password".
# Made with HASHER of a password that was thrown away; a test compares the parameters.
DUMMY_HASH = (
    "$argon2id$v=19$m=19456,t=2,p=1$hk9djrhsIrRHxJsF/EFUxg$w65ktN8UdD4w3NWpSbHuj26e2SbQHrU20kDKAlfFRo0"
)


def hash_password(password: str) -> str:
    return HASHER.hash(_spelt_alike(password))


def matches_hash(password_hash: str, password: str) -> bool:
    try:
        return HASHER.verify(password_hash, _spelt_alike(password))
    except VerifyMismatchError:
        return False


def is_dated(password_hash: str) -> bool:
    """Made with other parameters than today's: rehash at the next login, while the password is at hand."""
    return HASHER.check_needs_rehash(password_hash)


def _spelt_alike(password: str) -> str:
    """The same password typed on another keyboard may come as other code points (NIST SP 800-63B)."""
    return unicodedata.normalize("NFKC", password)
