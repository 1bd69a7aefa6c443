"""Passes: who may ask at which door, on which day. One is for one device, and ends when its maker says."""

import hashlib
import secrets
from base64 import b32encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.accounts import Accounts, NewAccount, normal_email
from holdfast.catalogue import BadWindow, NoSuchShow
from holdfast.checkin.errors import BadPassCode, DeviceTaken, NoSuchPass, NotAGateAccount
from holdfast.checkin.passes import UPLOAD_GRACE_S, NewPass, PassPage
from holdfast.checkin.verdict import in_utc
from holdfast.engines.postgres import Postgres, require_row
from holdfast.engines.sql import Queries
from holdfast.web.caller import Caller, Role

Q = Queries("holdfast.checkin", "passes")

EARLY, LATE = timedelta(hours=6), timedelta(hours=2)  # doors open before the show, and close after it
PASS_LIFE_MAX = timedelta(days=7)
PASSES_LISTED_MAX = 200
CODE_BYTES = 20


@dataclass(frozen=True, slots=True)
class Device:
    """Somebody who signed in with a pass."""

    pass_id: int
    access_token: str


class Passes:
    def __init__(self, postgres: Postgres, people: Accounts) -> None:
        self._postgres = postgres
        self._people = people

    async def make(self, organiser_id: int | None, new: NewPass) -> tuple[PassPage, str | None]:
        """The pass, and its code, which is told once; None: an account signs in with its password."""
        times = require_row(await self._postgres.fetchrow(Q.show_times, new.shows, organiser_id))
        if times["known"] != len(set(new.shows)):
            raise NoSuchShow
        starts_at = in_utc(new.starts_at or times["starts_at"] - EARLY)
        ends_at = in_utc(new.ends_at or times["ends_at"] + LATE)
        _refuse_odd(starts_at, ends_at)
        code = None if new.email is not None else b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        account_id = await self._account(new)
        async with self._postgres.transaction() as tx:
            pass_id = await tx.fetchval(
                Q.add_pass,
                account_id,
                organiser_id,
                new.gate,
                new.name,
                _digest(code) if code else None,
                starts_at,
                ends_at,
            )
            await tx.execute(Q.add_shows, pass_id, sorted(set(new.shows)))
        return await self.find(pass_id, organiser_id), code

    async def find(self, pass_id: int, organiser_id: int | None) -> PassPage:
        rows = await self._postgres.fetch(Q.passes, organiser_id, None, pass_id, 1)
        if not rows:
            raise NoSuchPass
        return _page(rows[0])

    async def of(self, organiser_id: int | None, show_id: int | None) -> list[PassPage]:
        rows = await self._postgres.fetch(Q.passes, organiser_id, show_id, None, PASSES_LISTED_MAX)
        return [_page(row) for row in rows]

    async def revoke(self, pass_id: int, organiser_id: int | None) -> PassPage:
        """At once, for every process: each scan asks for its pass."""
        if await self._postgres.fetchval(Q.revoke, pass_id, organiser_id) is None:
            raise NoSuchPass
        return await self.find(pass_id, organiser_id)

    async def sign_in(self, code: str, device_key: bytes) -> Device:
        row = await self._postgres.fetchrow(Q.sign_in, _digest(code), device_key, UPLOAD_GRACE_S)
        if row is None:
            raise BadPassCode
        caller = Caller(row["account_id"], Role.GATE, session_id=0)
        return Device(row["id"], self._people.access_token(caller))

    async def bind_device(self, pass_id: int, device_key: bytes) -> None:
        if await self._postgres.fetchval(Q.bind_device, pass_id, device_key) is None:
            raise DeviceTaken

    async def _account(self, new: NewPass) -> int:
        """Of the person, or one of the device's own, which nobody can log in to with a password."""
        if new.email is not None:
            known = await self._postgres.fetchval(Q.gate_account, normal_email(new.email))
            if known is None:
                raise NotAGateAccount
            return int(known)
        email = f"{secrets.token_hex(12)}@gate.invalid"
        (account_id,) = await self._people.add_many([NewAccount(email, new.name, Role.GATE)])
        return account_id


def _refuse_odd(starts_at: datetime, ends_at: datetime) -> None:
    if not starts_at < ends_at:
        raise BadWindow(field="ends_at", detail="A pass ends after it starts.")
    if ends_at - starts_at > PASS_LIFE_MAX:
        raise BadWindow(field="ends_at", detail=f"A pass lasts at most {PASS_LIFE_MAX.days} days.")


def _page(row: Any) -> PassPage:
    return PassPage(
        pass_id=row["id"],
        gate=row["gate"],
        name=row["name"],
        shows=list(row["shows"]),
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        revoked_at=row["revoked_at"],
        has_device=row["device_key"] is not None,
    )


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.strip().upper().encode()).digest()
