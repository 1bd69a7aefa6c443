"""Passkeys (WebAuthn) in the ledger: added, used to sign in, renamed, removed.

    options ─► a challenge, stored as a step ─► the browser's authenticator signs it ─► verified once

A challenge is the token of a step (sign_in_steps.py): 32 random bytes that work once, for minutes. The
library checks challenge, origin, relying party, user verification, signature and counter.
"""

import json
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import structlog

from holdfast.accounts.account import Account, build_account
from holdfast.accounts.errors import BadPasskey, NoSuchPasskey, PasskeysMax
from holdfast.accounts.second_factor import FirstStep, Passkey, SecondStep, SignInStep, StepPurpose
from holdfast.accounts.second_factors import SecondFactors
from holdfast.accounts.store import Accounts
from holdfast.config import Config
from holdfast.engines.postgres import Postgres, Queries, require_row

Q = Queries("holdfast.accounts", "passkeys")
PASSKEYS_MAX = 20  # per account
TIMEOUT_MS = 300_000
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """Whom a passkey is for. The browser uses it on this origin only."""

    rp_id: str
    origin: str

    @classmethod
    def at(cls, url: str) -> "RelyingParty":
        parts = urlsplit(url)
        return cls(parts.hostname or "", f"{parts.scheme}://{parts.netloc}")


class Passkeys:
    def __init__(
        self, postgres: Postgres, accounts: Accounts, factors: SecondFactors, config: Config
    ) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._factors = factors
        self._public_url = config.public_url

    def party(self, base_url: str) -> RelyingParty:
        """By the setting public_url; where there is none, by the address of the request."""
        return RelyingParty.at(self._public_url or base_url)

    # ── signing in ────────────────────────────────────────────────────────────────────

    async def begin_sign_in(self, party: RelyingParty, token: str | None, address: str) -> dict[str, Any]:
        """What the browser is given. With the token of a first step, passkeys of that account only."""
        from webauthn import generate_authentication_options, options_to_json
        from webauthn.helpers.structs import UserVerificationRequirement

        await self._accounts.limits.take("challenge", address=address)
        step = SignInStep(None, "")
        if token is not None:
            step = await self._accounts.steps.look(token, StepPurpose.SECOND)
        challenge = await self._accounts.steps.begin(StepPurpose.PASSKEY_SIGN_IN, step.account_id, step.first)
        options = generate_authentication_options(
            rp_id=party.rp_id,
            challenge=_decode(challenge),
            timeout=TIMEOUT_MS,
            allow_credentials=await self._descriptors(step.account_id),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return dict(json.loads(options_to_json(options)))

    async def sign_in(self, party: RelyingParty, credential: dict[str, Any]) -> tuple[Account, str]:
        """(The account, how it signed in)."""
        from webauthn import verify_authentication_response
        from webauthn.helpers.exceptions import WebAuthnException

        challenge, credential_id = _challenge(credential), _credential_id(credential)
        step = await self._accounts.steps.use(self._postgres, challenge, StepPurpose.PASSKEY_SIGN_IN)
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.lock_passkey, credential_id)
            if row is None or step.account_id not in (None, row["id"]):
                raise BadPasskey
            try:
                verified = verify_authentication_response(
                    credential=credential,
                    expected_challenge=_decode(challenge),
                    expected_rp_id=party.rp_id,
                    expected_origin=party.origin,
                    credential_public_key=row["public_key"],
                    credential_current_sign_count=row["sign_count"],
                    require_user_verification=True,
                )
            except (WebAuthnException, ValueError, TypeError, KeyError) as problem:
                log.warning("passkey refused", account_id=row["id"], reason=str(problem))
                raise BadPasskey from None
            await tx.execute(Q.note_use, row["passkey_id"], verified.new_sign_count)
        is_second = step.account_id is not None
        return build_account(row), step.signed_in_by(SecondStep.PASSKEY) if is_second else FirstStep.PASSKEY

    # ── adding ────────────────────────────────────────────────────────────────────────

    async def begin_adding(self, party: RelyingParty, account_id: int) -> dict[str, Any]:
        """What the browser is given. The caller has had the person prove who they are."""
        from webauthn import generate_registration_options, options_to_json
        from webauthn.helpers.structs import (
            AuthenticatorSelectionCriteria,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        person = require_row(await self._postgres.fetchrow(Q.person, account_id))
        known = await self._descriptors(account_id)
        if len(known) >= PASSKEYS_MAX:
            raise PasskeysMax(limit=PASSKEYS_MAX)
        account = build_account(person)
        challenge = await self._accounts.steps.begin(StepPurpose.PASSKEY_ADD, account_id)
        options = generate_registration_options(
            rp_id=party.rp_id,
            rp_name=party.rp_id,
            user_id=_user_handle(account_id),
            user_name=account.email,
            user_display_name=account.name,
            challenge=_decode(challenge),
            timeout=TIMEOUT_MS,
            exclude_credentials=known,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
        )
        return dict(json.loads(options_to_json(options)))

    async def add(
        self, party: RelyingParty, account_id: int, session_id: int, *, name: str, credential: dict[str, Any]
    ) -> tuple[Passkey, list[str]]:
        """(The passkey, recovery codes if it is the first factor of the account)."""
        from webauthn import verify_registration_response
        from webauthn.helpers.exceptions import WebAuthnException

        challenge = _challenge(credential)
        step = await self._accounts.steps.use(self._postgres, challenge, StepPurpose.PASSKEY_ADD)
        if step.account_id != account_id:
            raise BadPasskey
        try:
            verified = verify_registration_response(
                credential=credential,
                expected_challenge=_decode(challenge),
                expected_rp_id=party.rp_id,
                expected_origin=party.origin,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError) as problem:
            log.warning("passkey refused", account_id=account_id, reason=str(problem))
            raise BadPasskey from None
        key = (verified.credential_id, verified.credential_public_key, verified.sign_count)
        async with self._postgres.transaction() as tx:
            try:
                row = require_row(
                    await tx.fetchrow(Q.add_passkey, account_id, *key, _transports(credential), name)
                )
            except asyncpg.UniqueViolationError:
                raise BadPasskey from None
            codes, ended = await self._factors.after_first(tx, account_id, session_id)
            await self._factors.announce(tx, account_id, "account.passkey_added")
        self._accounts.refuse_sessions(ended)
        return _passkey(row), codes

    async def rename(self, account_id: int, passkey_id: int, name: str) -> Passkey:
        row = await self._postgres.fetchrow(Q.rename, account_id, passkey_id, name)
        if row is None:
            raise NoSuchPasskey
        return _passkey(row)

    async def remove(self, account_id: int, passkey_id: int) -> None:
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.remove, account_id, passkey_id) is None:
                raise NoSuchPasskey
            await self._factors.after_last(tx, account_id)
            await self._factors.announce(tx, account_id, "account.passkey_removed")

    async def _descriptors(self, account_id: int | None) -> list[Any]:
        from webauthn.helpers.structs import AuthenticatorTransport, PublicKeyCredentialDescriptor

        if account_id is None:
            return []
        return [
            PublicKeyCredentialDescriptor(
                id=row["credential_id"],
                transports=[AuthenticatorTransport(one) for one in row["transports"]] or None,
            )
            for row in await self._postgres.fetch(Q.credentials, account_id)
        ]


def _passkey(row: Any) -> Passkey:
    return Passkey(row["id"], row["name"], row["created_at"], row["last_used_at"])


def _user_handle(account_id: int) -> bytes:
    return str(account_id).encode()


def _decode(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (UnicodeEncodeError, ValueError):
        raise BadPasskey from None


def _challenge(credential: dict[str, Any]) -> str:
    """The challenge that a credential claims to have signed; the library checks the signature."""
    try:
        found = json.loads(_decode(credential["response"]["clientDataJSON"]))["challenge"]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise BadPasskey from None
    if not isinstance(found, str):
        raise BadPasskey
    return found


def _credential_id(credential: dict[str, Any]) -> bytes:
    found = credential.get("id")
    if not isinstance(found, str):
        raise BadPasskey
    return _decode(found)


def _transports(credential: dict[str, Any]) -> list[str]:
    from webauthn.helpers.structs import AuthenticatorTransport

    known, sent = {one.value for one in AuthenticatorTransport}, credential["response"].get("transports")
    return [one for one in sent if one in known] if isinstance(sent, list) else []
