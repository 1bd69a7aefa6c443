"""The only file in gate/ that asks the ledger about scans: check in, undo, tell later, count, look up, pack.

One row decides: check_in_now locks the ticket, a refund and a transfer do too. The second one finds
what the first one made of it (G1).
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.bookings import from_reference, public_id
from holdfast.catalogue import Catalogue
from holdfast.checkin.errors import NoDevice, NoGatePass, NothingToUndo, ScanIdUsed, SearchMax
from holdfast.checkin.offline import Pack, PackShow, PackTicket, seal_pack
from holdfast.checkin.passes import UPLOAD_GRACE_S
from holdfast.checkin.scan import GateCount, OfflineScan, ShowCount, UploadedScan, Verdict, Way
from holdfast.checkin.upload import record_upload
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries
from holdfast.tickets import BadCode, Code, IssuedTicket, Tickets, parse_ticket, show_secret

Q = Queries("holdfast.checkin")

UNDO_WITHIN_S = 600
SEARCHES_PER_MINUTE_MAX = 20
FOUND_MAX = 10
CONFLICTS_MAX = 500
PACK_GOOD_MAX_S = 12 * 3600
FoundHolder = tuple[IssuedTicket, str]  # a ticket, and the name of its holder
NO_BINDING = -1  # of no phone: a tag that is not of now


@dataclass(frozen=True, slots=True)
class CheckIn:
    """What was decided and written."""

    check_in_id: int
    show_id: int  # under which it was written
    verdict: Verdict
    gate: str
    scanned_at: datetime
    seat: int | None = None
    number: int | None = None
    first_at: datetime | None = None
    first_gate: str | None = None
    is_suspended: bool = False


@dataclass(frozen=True, slots=True)
class ActivePass:
    """What a pass opens."""

    pass_id: int
    gate: str
    device_key: bytes | None
    ends_at: datetime
    show_ids: tuple[int, ...]


class CheckInStore:
    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        tickets: Tickets,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._tickets = tickets
        self._wall = wall

    async def scan(self, account_id: int, scan_id: str, way: Way, text: str) -> tuple[CheckIn, Code | None]:
        """Check a code in, or out. Whatever was scanned, it is written down."""
        try:
            code = await self._tickets.read(text)
        except BadCode:
            return await self._check_in(account_id, scan_id, way, (None, None)), None
        binding = None if code.tag is None else await self._binding(code)
        place = (code.ticket.show_id, code.ticket.serial)
        signed = (code.ticket.edition, binding, code.key_id)
        return await self._check_in(account_id, scan_id, way, place, signed), code

    async def admit(self, account_id: int, scan_id: str, way: Way, place: tuple[int, int]) -> CheckIn:
        """By hand: the ticket was found by name or reference."""
        return await self._check_in(account_id, scan_id, way, place)

    async def _check_in(
        self,
        account_id: int,
        scan_id: str,
        way: Way,
        place: tuple[int | None, int | None],
        signed: tuple[int | None, ...] = (None, None, None),
    ) -> CheckIn:
        """`place`: show and serial. `signed`: the code's edition, binding and key id."""
        row = await self._postgres.fetchrow(Q.check_in, account_id, scan_id, way, *place, *signed)
        if row is None:
            raise NoGatePass
        if row["check_in_id"] is None:
            raise ScanIdUsed
        metrics.add("check_ins_total", verdict=row["verdict"])
        return CheckIn(**dict(row) | {"verdict": Verdict(row["verdict"])})

    async def _binding(self, code: Code) -> int:
        """The phone whose tag it is, if it is the one the ticket is bound to and the tag is of now."""
        known = await self._tickets.find(code.ticket.show_id, code.ticket.serial)
        if known is None or not await self._tickets.is_live(code, known.binding):
            return NO_BINDING
        return known.binding

    async def undo(self, account_id: int, show_id: int, check_in_id: int, scan_id: str) -> CheckIn:
        row = await self._postgres.fetchrow(Q.undo, account_id, show_id, check_in_id, scan_id, UNDO_WITHIN_S)
        if row is None:
            raise NothingToUndo
        if row["check_in_id"] is None:
            raise ScanIdUsed
        return CheckIn(show_id=show_id, verdict=Verdict.UNDONE, **dict(row))

    async def upload(self, account_id: int, scans: Sequence[OfflineScan]) -> list[UploadedScan]:
        """Offline scans of a device, in the order of its clock; results in the order of the scans."""
        await self._uploadable(account_id)
        done: dict[int, UploadedScan] = {}
        for place, scan in sorted(enumerate(scans), key=lambda one: one[1].scanned_at):
            done[place] = await self._tell_later(account_id, scan)
        return [done[place] for place in range(len(scans))]

    async def _uploadable(self, account_id: int) -> None:
        if not await self._postgres.fetchval(Q.may_upload, account_id, UPLOAD_GRACE_S):
            raise NoGatePass

    async def _tell_later(self, account_id: int, scan: OfflineScan) -> UploadedScan:
        try:
            ticket = (await self._tickets.read(scan.code)).ticket
        except BadCode:
            return UploadedScan(scan.scan_id, False)
        async with self._postgres.transaction() as tx:
            recorded = await record_upload(tx, account_id, scan, ticket, UPLOAD_GRACE_S)
        if recorded is None:
            return UploadedScan(scan.scan_id, False)
        check_in_id, why = recorded
        if why:
            metrics.add("door_conflicts_total", why=why)
        return UploadedScan(scan.scan_id, True, why, public_id(ticket.show_id, check_in_id))

    async def standby(self, account_id: int) -> ActivePass:
        """The newest pass of this account that is good now, and every show its passes open."""
        rows = await self._postgres.fetch(Q.shows_of_pass, account_id)
        if not rows:
            raise NoGatePass
        newest = rows[0]
        shows = tuple(dict.fromkeys(row["show_id"] for row in rows))
        return ActivePass(newest["pass_id"], newest["gate"], newest["device_key"], newest["ends_at"], shows)

    async def counts(self, show_ids: Sequence[int]) -> list[ShowCount]:
        tickets = {row["show_id"]: row for row in await self._postgres.fetch(Q.count_tickets, show_ids)}
        scans = await self._postgres.fetch(Q.count_scans, show_ids)
        conflicts = {row[0]: row[1] for row in await self._postgres.fetch(Q.count_conflicts, show_ids)}
        return [
            ShowCount(
                show_id=show_id,
                title=(await self._catalogue.show_on_sale(show_id)).title,
                tickets=tickets[show_id]["tickets"] if show_id in tickets else 0,
                used=tickets[show_id]["used"] if show_id in tickets else 0,
                inside=tickets[show_id]["inside"] if show_id in tickets else 0,
                conflicts=conflicts.get(show_id, 0),
                gates=[_gate_count(row) for row in scans if row["show_id"] == show_id],
            )
            for show_id in show_ids
        ]

    async def conflicts(self, show_id: int) -> list[Any]:
        return await self._postgres.fetch(Q.conflicts, show_id, CONFLICTS_MAX)

    async def show_of_scan(self, account_id: int, show_id: int | None) -> int | None:
        """Under which show a scan of a ticket of this show is written; None: the account has no pass."""
        found: int | None = await self._postgres.fetchval(Q.show_of_scan, account_id, show_id)
        return found

    async def note_search(self, standby: ActivePass) -> None:
        """Raises SearchMax."""
        noted = await self._postgres.fetchval(Q.note_search, standby.pass_id, SEARCHES_PER_MINUTE_MAX)
        if noted is None:
            raise SearchMax(limit=SEARCHES_PER_MINUTE_MAX, retry_after_s=60)

    async def find_by_reference(self, show_ids: Sequence[int], words: str) -> list[FoundHolder]:
        keys = [(show_id, number) for show_id in show_ids for number in from_reference(show_id, words)]
        rows = await self._postgres.fetch(
            Q.search_by_number, [key[0] for key in keys], [key[1] for key in keys], FOUND_MAX
        )
        return [_found(row) for row in rows]

    async def find_by_name(self, show_ids: Sequence[int], words: str) -> list[FoundHolder]:
        rows = await self._postgres.fetch(Q.search_by_name, list(show_ids), words.strip(), FOUND_MAX)
        return [_found(row) for row in rows]

    async def pack(
        self, standby: ActivePass, load_show: Callable[[int], Awaitable[PackShow]] | None = None
    ) -> bytes:
        """Everything the device needs to go on without a network, sealed for it.

        `load_show`: for shows of other databases than this one.
        """
        if standby.device_key is None:
            raise NoDevice
        now = self._wall()
        keys = await self._tickets.keys()
        pack = Pack(
            pass_id=standby.pass_id,
            gate=standby.gate,
            made_at_s=now,
            good_until_s=min(standby.ends_at.timestamp(), now + PACK_GOOD_MAX_S),
            keys={key.key_id: key.public for key in keys.values()},
            shows=[await (load_show or self.pack_show)(show_id) for show_id in standby.show_ids],
        )
        signing = await self._tickets.signing_key()
        return seal_pack(pack, signing, standby.device_key, secrets.token_bytes(32))

    async def pack_show(self, show_id: int) -> PackShow:
        door, rows = await self._tickets.door(show_id), await self._postgres.fetch(Q.pack_tickets, show_id)
        show = await self._catalogue.show_on_sale(show_id)
        keys = await self._tickets.keys()
        oldest = await self._postgres.fetchval(Q.oldest_key, show_id)
        return PackShow(
            show_id=show_id,
            title=show.title,
            starts_at_s=show.starts_at.timestamp(),
            codes=door.codes,
            reentry=door.reentry,
            secrets={k: show_secret(key.secret, show_id) for k, key in keys.items() if k >= oldest},
            tickets=[
                PackTicket(
                    row["serial"],
                    row["edition"],
                    row["binding"],
                    show.layout.labels[row["seat"]],
                    row["is_used"],
                    row["is_inside"],
                    row["since_s"],
                    row["gate"],
                )
                for row in rows
                if not row["is_void"]
            ],
            void=[row["serial"] for row in rows if row["is_void"]],
            newest=rows[-1]["serial"] if rows else 0,
            oldest_key=oldest,
            suspended=[row["serial"] for row in rows if row["is_suspended"]],
        )


def _found(row: Any) -> FoundHolder:
    return parse_ticket({k: v for k, v in row.items() if k != "name"}), row["name"] or ""


def _gate_count(row: Any) -> GateCount:
    return GateCount(row["gate"], row["admitted"], row["left"], row["undone"], row["refused"])
