"""API keys of organisations: machines use the routes of organisers with them (R31, R32).

    Authorization: Bearer hfk_… ─► well formed? ─► limit ─► ledger: hash, not ended ─► organisation, rights

A key is looked up in the ledger at every request: once it is revoked, no process accepts it. It speaks for
its organisation and not for the person who created it, and stays when that person leaves.
"""

import secrets
from dataclasses import replace
from typing import Any

from holdfast.accounts import digest
from holdfast.engines.postgres import Postgres, Queries, Transaction, require_row
from holdfast.errors import Invalid, TokenExpired, TokenInvalid
from holdfast.organisations.api_key import (
    ALPHABET,
    RANDOM_LENGTH,
    KeyPage,
    KeyRotation,
    KeySecret,
    ListedKey,
    NewKey,
    build_key,
    is_well_formed,
    shown_part,
)
from holdfast.organisations.errors import KeysMax, NoSuchKey
from holdfast.organisations.organisation import parse_rights, refuse_higher_rights
from holdfast.organisations.staff_log import record_api_key
from holdfast.organisations.store import Q as ORGANISATIONS
from holdfast.web.audit_log import find_origin
from holdfast.web.caller import Caller, Right, Role, Scope
from holdfast.web.rate_limits import RateLimits

Q = Queries("holdfast.organisations", "api_keys")
KEYS_MAX = 50  # per organisation
USE_NOTED_AFTER_S = 600
LISTED_MAX = 1000


class ApiKeys:
    def __init__(self, postgres: Postgres, limits: RateLimits) -> None:
        self._postgres = postgres
        self._limits = limits

    async def verify(self, key: str, address: str) -> tuple[Caller, Scope]:
        """Who sends this key, and what it may do in its organisation; TokenInvalid or TokenExpired."""
        if not is_well_formed(key):
            raise TokenInvalid
        hashed = digest(key)
        await self._limits.take("api-key", account=hashed.hex(), address=address)
        row = await self._postgres.fetchrow(Q.find, hashed, USE_NOTED_AFTER_S)
        if row is None:
            raise TokenInvalid
        if row["is_expired"]:
            raise TokenExpired
        if row["is_to_note"]:
            await self._note_use(row, hashed)
        caller = Caller(row["created_by"], Role.ORGANISER, session_id=0, key_id=row["id"])
        return caller, Scope(
            row["created_by"], False, row["organisation_id"], parse_rights(row["rights"]) - {Right.OWNER}
        )

    async def _note_use(self, row: Any, hashed: bytes) -> None:
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.note_use, row["id"], USE_NOTED_AFTER_S)
            if (prefix := await tx.fetchval(Q.note_first_use, hashed)) is not None:
                origin = replace(find_origin(), actor_id=None, via=f"key {row['id']}")
                key = (row["organisation_id"], row["id"])
                await record_api_key(tx, "api_key.first_used", key, after={"prefix": prefix}, origin=origin)

    async def create(self, scope: Scope, new: NewKey) -> tuple[KeyPage, str]:
        """The key and its secret. It can have only rights that its creator has."""
        organisation_id = _organisation_id(scope)
        refuse_higher_rights(scope, (), parse_rights(new.rights) - {Right.MEMBER})
        rights = list(dict.fromkeys(new.rights))
        async with self._postgres.transaction() as tx:
            await tx.execute(ORGANISATIONS.lock, organisation_id)
            if await tx.fetchval(Q.count, organisation_id) >= KEYS_MAX:
                raise KeysMax(limit=KEYS_MAX)
            values = (organisation_id, new.name, rights, scope.account_id, new.expires_at)
            key_id = await tx.fetchval(Q.add, *values)
            if key_id is None:
                raise Invalid(field="$.expires_at", detail="Expected a time in the future")
            page, secret = await self._add_secret(tx, organisation_id, key_id)
            after = {"rights": rights, "expires_at": new.expires_at, "prefix": page.secrets[0].prefix}
            await record_api_key(tx, "api_key.created", (organisation_id, key_id), name=new.name, after=after)
        return page, secret

    async def rotate(self, scope: Scope, key_id: int, wanted: KeyRotation) -> tuple[KeyPage, str]:
        """A new secret; the one before works for the overlap. It takes the rights of the key to get it."""
        organisation_id = _organisation_id(scope)
        async with self._postgres.transaction() as tx:
            row = await self._locked(tx, organisation_id, key_id)
            refuse_higher_rights(scope, (), parse_rights(row["rights"]) - {Right.MEMBER})
            await tx.execute(Q.drop_older_secrets, key_id)
            await tx.execute(Q.end_secrets, key_id, wanted.overlap_h)
            page, secret = await self._add_secret(tx, organisation_id, key_id)
            after = {"prefix": page.secrets[0].prefix, "overlap_h": wanted.overlap_h}
            key = (organisation_id, key_id)
            await record_api_key(tx, "api_key.rotated", key, name=row["name"], after=after)
        return page, secret

    async def revoke(self, organisation_id: int, key_id: int) -> None:
        """It ends at once, in every process. What it was, the audit log says."""
        async with self._postgres.transaction() as tx:
            row = await self._locked(tx, organisation_id, key_id)
            await tx.execute(Q.remove, organisation_id, key_id)
            key, before = (organisation_id, key_id), {"rights": list(row["rights"])}
            await record_api_key(tx, "api_key.revoked", key, name=row["name"], before=before)

    async def keys(self, organisation_id: int) -> list[KeyPage]:
        """Newest first."""
        return [_page(row) for row in await self._postgres.fetch(Q.keys, organisation_id, None)]

    async def list_all(self, prefix: str) -> list[ListedKey]:
        """Of all organisations, newest first: what begins so, for who runs the house."""
        rows = await self._postgres.fetch(Q.list_all, shown_part(prefix), LISTED_MAX)
        return [ListedKey(**row) for row in rows]

    async def _locked(self, tx: Transaction, organisation_id: int, key_id: int) -> Any:
        row = await tx.fetchrow(Q.lock, organisation_id, key_id)
        if row is None:
            raise NoSuchKey
        return row

    async def _add_secret(self, tx: Transaction, organisation_id: int, key_id: int) -> tuple[KeyPage, str]:
        secret = new_key()
        await tx.execute(Q.add_secret, digest(secret), key_id, shown_part(secret))
        return _page(require_row(await tx.fetchrow(Q.keys, organisation_id, key_id))), secret


def new_key() -> str:
    return build_key(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))


def _organisation_id(scope: Scope) -> int:
    assert scope.organisation_id is not None, "the route names the organisation in its path"
    return scope.organisation_id


def _page(row: Any) -> KeyPage:
    return KeyPage(
        key_id=row["id"],
        name=row["name"],
        rights=list(row["rights"]),
        created_by=row["created_by"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        secrets=[
            KeySecret(prefix=prefix, created_at=created_at, ends_at=ends_at)
            for prefix, created_at, ends_at in row["secrets"]
        ],
    )
