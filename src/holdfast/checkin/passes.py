"""Gate passes: which device or person may scan tickets of which shows, and when."""

import hashlib
import secrets
from base64 import b32encode, b64decode
from binascii import Error
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec import Meta, Struct

from holdfast.accounts import Accounts, NewAccount, normal_email
from holdfast.catalogue import BadWindow, NoSuchShow
from holdfast.checkin.errors import BadPassCode, DeviceTaken, NoSuchPass, NotAGateAccount
from holdfast.checkin.offline import is_device_key
from holdfast.checkin.scan import Moment, to_utc
from holdfast.engines.postgres import Postgres, Queries, require_row
from holdfast.errors import Invalid
from holdfast.tickets import Codes
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.caller import Caller, Role

SHOWS_MAX = 20  # of one pass: a cinema's evening
UPLOAD_GRACE_S = 2 * 86_400  # a pass that is over may still tell what happened while it was not
ONE_LINE = r"^[^\x00-\x1f\x7f]*$(?!\n)"

ShowId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
GateName = Annotated[str, Meta(min_length=1, max_length=60, pattern=ONE_LINE, examples=["North"])]
PASSES_LISTED_MAX = 200
LAST_ID = 2**63 - 1
DeviceName = Annotated[
    str, Meta(min_length=1, max_length=120, pattern=r"^[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$(?!\n)")
]
DeviceKey = Annotated[str, Meta(min_length=44, max_length=44)]  # X25519, base 64


class NewPass(Struct, forbid_unknown_fields=True, frozen=True):
    shows: Annotated[list[ShowId], Meta(min_length=1, max_length=SHOWS_MAX)]
    gate: GateName
    name: DeviceName = "A device"
    starts_at: Moment | None = None  # default: six hours before the first of the shows
    ends_at: Moment | None = None  # default: two hours after the last
    email: Annotated[str, Meta(min_length=3, max_length=254)] | None = (
        None  # of a member with the right `door`
    )


class PassPage(Struct, frozen=True):
    pass_id: int
    gate: str
    name: str
    shows: list[int]
    starts_at: datetime
    ends_at: datetime
    revoked_at: datetime | None
    has_device: bool


class CreatedPass(Struct, frozen=True):
    gate_pass: PassPage
    code: str | None  # signs a device in; shown only once
    qr_svg: str | None


class PassList(Struct, frozen=True):
    passes: list[PassPage]
    next: int | None  # ask for `before` this to go on; null: that was all


class PassesQuery(Struct, forbid_unknown_fields=True, frozen=True):
    show: ShowId | None = None
    before: Annotated[int, Meta(ge=1, le=LAST_ID)] = LAST_ID  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PASSES_LISTED_MAX)] = PASSES_LISTED_MAX


class SignInBody(Struct, forbid_unknown_fields=True, frozen=True):
    code: Annotated[str, Meta(max_length=64)]
    device_key: DeviceKey


class DeviceBody(Struct, forbid_unknown_fields=True, frozen=True):
    device_key: DeviceKey


class SignedInDevice(Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: int
    pass_id: int
    keys: dict[str, str]  # public keys by id, base 64: packs are signed with one of them


class DeviceBound(Struct, frozen=True):
    pass_id: int
    keys: dict[str, str]


class PackPage(Struct, frozen=True):
    pass_id: int
    pack: str  # sealed for the device, base 64


class DoorBody(Struct, forbid_unknown_fields=True, frozen=True):
    codes: Codes = Codes.FIXED
    reentry: bool = True


class ConflictPage(Struct, frozen=True, omit_defaults=True):
    """Two let in with one ticket, or one with a worthless one. First and second by the devices' clocks."""

    why: str
    raised_at: datetime
    second_gate: str
    second_at: datetime
    seat: str | None = None
    reference: str | None = None
    first_gate: str | None = None
    first_at: datetime | None = None


class ConflictList(Struct, frozen=True):
    conflicts: list[ConflictPage]


def parse_device_key(text: str) -> bytes:
    """The 32 bytes, or Invalid."""
    try:
        raw = b64decode(text, validate=True)
    except (Error, ValueError):
        raw = b""
    if not is_device_key(raw):
        raise Invalid(field="device_key", detail="Expected an X25519 public key in base 64.")
    return raw


Q = Queries("holdfast.checkin", "passes")

EARLY, LATE = timedelta(hours=6), timedelta(hours=2)  # doors open before the show, and close after it
PASS_LIFE_MAX = timedelta(days=7)
CODE_BYTES = 20


@dataclass(frozen=True, slots=True)
class SignedInPass:
    """A user or device that signed in with a pass."""

    pass_id: int
    access_token: str


class Passes:
    def __init__(self, postgres: Postgres, accounts: Accounts) -> None:
        self._postgres = postgres
        self._accounts = accounts

    async def make(self, organiser_id: int | None, new: NewPass) -> tuple[PassPage, str | None]:
        """The pass, and its code, which is shown only once; None: an account signs in with its password."""
        times = require_row(await self._postgres.fetchrow(Q.show_times, new.shows, organiser_id))
        if times["known"] != len(set(new.shows)):
            raise NoSuchShow
        starts_at = to_utc(new.starts_at or times["starts_at"] - EARLY)
        ends_at = to_utc(new.ends_at or times["ends_at"] + LATE)
        _check_window(starts_at, ends_at)
        code = None if new.email is not None else b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        owner_id = organiser_id or times["organiser_id"]
        account_id = await self._account(new, owner_id)
        async with self._postgres.transaction() as tx:
            pass_id = await tx.fetchval(
                Q.add_pass,
                account_id,
                owner_id,
                new.gate,
                new.name,
                _digest(code) if code else None,
                starts_at,
                ends_at,
            )
            await tx.execute(Q.add_shows, pass_id, sorted(set(new.shows)))
            entry = _entry("gate_pass.created", pass_id, new.gate, new.shows[0])
            given = {"gate": new.gate, "shows": new.shows, "starts_at": starts_at, "ends_at": ends_at}
            personal = {"name": new.name, "email": new.email}
            await record(tx, replace(entry, after=given, personal=personal, person_id=account_id))
        return await self.find(pass_id, organiser_id), code

    async def find(self, pass_id: int, organiser_id: int | None) -> PassPage:
        rows = await self._postgres.fetch(Q.passes, organiser_id, None, pass_id, LAST_ID, 1)
        if not rows:
            raise NoSuchPass
        return _page(rows[0])

    async def of(
        self,
        organiser_id: int | None,
        show_id: int | None,
        before: int = LAST_ID,
        size: int = PASSES_LISTED_MAX,
    ) -> PassList:
        """Newest first."""
        rows = await self._postgres.fetch(Q.passes, organiser_id, show_id, None, before, size + 1)
        found = [_page(row) for row in rows[:size]]
        return PassList(found, found[-1].pass_id if len(rows) > size else None)

    async def revoke(self, pass_id: int, organiser_id: int | None) -> PassPage:
        """Takes effect at once in every process: each scan checks its pass."""
        before = await self.find(pass_id, organiser_id)
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.revoke, pass_id, organiser_id) is None:
                raise NoSuchPass
            if before.revoked_at is None:
                await record(tx, _entry("gate_pass.revoked", pass_id, before.gate, before.shows[0]))
        return await self.find(pass_id, organiser_id)

    async def sign_in(self, code: str, device_key: bytes) -> SignedInPass:
        row = await self._postgres.fetchrow(Q.sign_in, _digest(code), device_key, UPLOAD_GRACE_S)
        if row is None:
            is_taken = await self._postgres.fetchval(Q.code_is_good, _digest(code), UPLOAD_GRACE_S)
            raise DeviceTaken if is_taken else BadPassCode
        caller = Caller(row["account_id"], Role.GATE, session_id=0)
        return SignedInPass(row["id"], self._accounts.access_token(caller))

    async def bind_device(self, account_id: int, device_key: bytes) -> None:
        """Every pass of a person that has no device yet: they may have some of several organisations."""
        if not await self._postgres.fetch(Q.bind_device, account_id, device_key):
            raise DeviceTaken

    async def _account(self, new: NewPass, organisation_id: int | None) -> int:
        """Of the person, or one of the device's own, which has no password.

        A person must be a member who may work at the door: they have accepted an invitation to that.
        """
        if new.email is not None:
            email = normal_email(new.email)
            known = await self._postgres.fetchval(Q.door_member, organisation_id, email)
            if known is None:
                raise NotAGateAccount
            return int(known)
        email = f"{secrets.token_hex(12)}@gate.invalid"
        (account_id,) = await self._accounts.add_many([NewAccount(email, new.name, Role.GATE)])
        return account_id


def _entry(action: str, pass_id: int, gate: str, show_id: int) -> AuditEntry:
    return AuditEntry(action=action, subject=("gate_pass", pass_id), name=gate, show_id=show_id)


def _check_window(starts_at: datetime, ends_at: datetime) -> None:
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
