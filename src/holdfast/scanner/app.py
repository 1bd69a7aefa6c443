"""A station at the door: asks the box office, decides alone while it cannot, and tells it later.

    scan ─► box office ─┬─ answer ──► said, and remembered
                        └─ silence ─► the pack decides ─► written to disk ─► told when the network is back

A scan is on disk before the light turns green. After a silence nobody waits for the network again: the pack
decides until the box office was heard, and was told everything. So it never hears of a scan before an earlier
one of ours.
"""

import asyncio
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from holdfast.bookings import from_public_id
from holdfast.checkin import (
    OPENING_VERDICTS,
    SCANS_MAX,
    BadPack,
    CheckInPage,
    CountPage,
    FoundPage,
    FoundTicket,
    OfflineGate,
    OfflineScan,
    PackPage,
    ShowCount,
    UploadPage,
    Verdict,
    Way,
    open_pack,
)
from holdfast.engines.errors import OperatorError
from holdfast.scanner.client import ANSWER_WITHIN_S, BoxOfficeClient, Denied, NoAnswer
from holdfast.scanner.journal import Journal, JournalEntry, ScannerDevice

PACK_WITHIN_S = 30.0
REFRESH_S = 60.0
TELL_S = 2.0

Answer = TypeVar("Answer")


class Me(Struct):
    account_id: int


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What the light shows."""

    verdict: Verdict | None  # None: nobody can say
    seat: str = ""
    title: str = ""
    first_at: datetime | None = None
    first_gate: str = ""
    is_offline: bool = False

    @property
    def is_open(self) -> bool:
        return self.verdict in OPENING_VERDICTS


class Scanner:
    def __init__(self, diary: Journal, device: ScannerDevice) -> None:
        self._diary = diary
        self._device = device
        self._wire = BoxOfficeClient(device, diary.save_device)
        self._gate: OfflineGate | None = None
        self._kept: list[JournalEntry] = []
        self._last: JournalEntry | None = None  # the last one let in: what an undo takes back
        self._lock = asyncio.Lock()  # of the diary, and of what we know
        self._telling = asyncio.Lock()
        self._run = secrets.token_hex(6)
        self._count = 0

    @classmethod
    def open(cls, folder: Path, server: str, code: str) -> "Scanner":
        """In this folder, as the device we were there before. Needs a running loop."""
        diary = Journal(folder)
        try:
            device = diary.device() or _new_device(server, code)
            if code and code != device.code:
                raise OperatorError(f"{folder} belongs to another pass: give another --folder, or remove it")
            if server:
                device.server = server.rstrip("/")
            diary.save_device(device)
        except BaseException:
            diary.close()
            raise
        station = cls(diary, device)
        station._recall()
        return station

    async def close(self) -> None:
        await self._wire.close()
        self._diary.close()

    @property
    def untold(self) -> int:
        return sum(not kept.is_told for kept in self._kept)

    @property
    def is_online(self) -> bool:
        return self._wire.is_up

    @property
    def has_pack(self) -> bool:
        return self._gate is not None and self._gate.is_good(time.time())

    async def scan(self, code: str, way: Way) -> ScanResult:
        scan_id = self._next_id()
        if self.has_pack and (self.untold or not self._wire.is_up):
            return await self._decide(scan_id, code, way)
        try:
            body = {"scan_id": scan_id, "code": code, "way": way}
            page = await self._ask(CheckInPage, "/gate/check-ins", body)
        except NoAnswer:
            return await self._decide(scan_id, code, way)
        place = self._gate.place_of(code) if self._gate is not None else None
        return await self._heard(
            page, OfflineScan(scan_id, code, _verdict(page), datetime.now(UTC), way), place
        )

    async def search(self, words: str) -> Sequence[FoundTicket]:
        """By booking reference, or by the beginning of a name."""
        return (await self._ask(FoundPage, f"/gate/search?q={quote(words)}")).tickets

    async def admit(self, ticket_id: str, way: Way) -> ScanResult:
        """By hand: somebody whom a search has found."""
        scan_id = self._next_id()
        body = {"scan_id": scan_id, "ticket": ticket_id, "way": way}
        page = await self._ask(CheckInPage, "/gate/check-ins", body)
        scan = OfflineScan(scan_id, "", _verdict(page), datetime.now(UTC), way)
        return await self._heard(page, scan, from_public_id(ticket_id))

    async def undo(self) -> ScanResult:
        """Take the last admission at this gate back."""
        kept = self._last
        if kept is not None and not kept.is_told:
            await self.tell()
        if kept is None or not kept.check_in_id:
            raise Denied("Nothing to undo", "nothing_to_undo")
        page = await self._ask(
            CheckInPage, f"/gate/check-ins/{kept.check_in_id}/undo", {"scan_id": self._next_id()}
        )
        async with self._lock:
            self._last = None
            self._kept = [one for one in self._kept if one is not kept]
            self._diary.rewrite(self._kept)
        await self.refresh()
        return _said(page)

    async def counts(self) -> Sequence[ShowCount]:
        return (await self._ask(CountPage, "/gate/counts")).shows

    async def tell(self) -> tuple[int, int]:
        """Tell the box office what was decided alone; (how many scans, how many conflicts that raised)."""
        done = conflicts = 0
        async with self._telling:
            while untold := [kept for kept in self._kept if not kept.is_told][:SCANS_MAX]:
                try:
                    conflicts += await self._tell_some(untold)
                except Denied as denied:
                    if denied.is_final:
                        raise
                    conflicts += await self._tell_each(untold)
                done += len(untold)
        return done, conflicts

    async def refresh(self) -> None:
        """A new pack. What it knows need not be remembered any longer."""
        began = datetime.now(UTC)
        page = await self._ask(PackPage, "/gate/pack", within_s=PACK_WITHIN_S)
        raw = _bytes(page.pack)
        try:
            gate = await asyncio.to_thread(self._opened, raw)  # of a stadium: scans do not wait for it
        except BadPack:
            self._wire.forget()  # signed with a key that is newer than our last sign-in, perhaps
            raise
        async with self._lock:
            self._gate = gate
            self._diary.save_pack(raw)
            self._kept = [kept for kept in self._kept if not kept.is_told or kept.scan.scanned_at >= began]
            self._diary.rewrite(self._kept)
            self._remember()

    async def keep_up(self, note: Callable[[str], None]) -> None:
        """For as long as the station runs: tell, fetch a new pack now and then, and notice the network go."""
        next_pack, said = time.monotonic() + REFRESH_S, ""
        while True:
            await asyncio.sleep(TELL_S)
            state = ""
            if not self._wire.is_up:
                next_pack = 0.0  # who knows what we have missed
            try:
                if not self.untold:
                    await self._ask(Me, "/me")  # the cheapest question there is: is anybody there?
                done, conflicts = await self.tell()
                if done:
                    note(f"told the box office of {done} scans: {conflicts} conflicts")
                if time.monotonic() >= next_pack:
                    await self.refresh()
                    next_pack = time.monotonic() + REFRESH_S
            except NoAnswer:
                state = "no network: the pack decides"
            except (Denied, BadPack) as trouble:
                state, next_pack = str(trouble), 0.0
            if state != said:
                note(state or "the box office is back")
            said = state

    async def _ask(
        self, kind: type[Answer], path: str, body: object = None, *, within_s: float = ANSWER_WITHIN_S
    ) -> Answer:
        try:
            return await self._wire.ask(kind, path, body, within_s=within_s)
        except Denied as denied:
            if denied.is_final:  # a device that was reported stolen has no pack any more
                self._gate = None
                self._diary.save_pack(None)
            raise

    async def _heard(self, page: CheckInPage, scan: OfflineScan, place: tuple[int, int] | None) -> ScanResult:
        if scan.verdict in OPENING_VERDICTS:
            await self._keep(JournalEntry(scan, True, place, page.check_in_id))
        return _said(page)

    async def _decide(self, scan_id: str, code: str, way: Way) -> ScanResult:
        if self._gate is None or not self.has_pack:
            return ScanResult(None, is_offline=True)
        decision = self._gate.decide(code, way, time.time())
        scan = OfflineScan(scan_id, code, decision.verdict, datetime.now(UTC), way)
        await self._keep(JournalEntry(scan, False, decision.place))
        told = (decision.verdict, decision.seat, decision.title, decision.first_at, decision.first_gate)
        return ScanResult(*told, is_offline=True)

    async def _keep(self, kept: JournalEntry) -> None:
        """On disk before anybody walks through."""
        async with self._lock:
            self._diary.add(kept)
            self._kept.append(kept)
            if self._gate is not None:
                self._gate.remember(kept.scan, kept.place)
        if kept.scan.verdict is Verdict.ADMITTED:
            self._last = kept

    async def _tell_some(self, untold: Sequence[JournalEntry]) -> int:
        body = {"scans": [kept.scan for kept in untold]}
        page = await self._ask(UploadPage, "/gate/uploads", body, within_s=PACK_WITHIN_S)
        async with self._lock:
            for kept, told in zip(untold, page.scans, strict=True):
                kept.is_told, kept.check_in_id = True, told.check_in_id or ""
            self._diary.rewrite(self._kept)
        return page.conflicts

    async def _tell_each(self, untold: Sequence[JournalEntry]) -> int:
        """What the box office will not take must not keep the others from it: a person looks at it."""
        conflicts = 0
        for kept in untold:
            try:
                conflicts += await self._tell_some([kept])
            except Denied as denied:
                if denied.is_final:
                    raise
                async with self._lock:
                    kept.is_told = True
                    self._diary.set_aside(kept)
                    self._diary.rewrite(self._kept)
        return conflicts

    def _opened(self, raw: bytes) -> OfflineGate:
        trusted = {int(key_id): b64decode(key) for key_id, key in self._device.keys.items()}
        return OfflineGate(open_pack(raw, b64decode(self._device.private), trusted))

    def _recall(self) -> None:
        """What we knew before we were switched off."""
        self._kept = self._diary.scans()
        raw = self._diary.pack()
        try:
            self._gate = self._opened(raw) if raw is not None else None
        except BadPack:
            self._gate = None
        self._remember()

    def _remember(self) -> None:
        if self._gate is not None:
            for kept in self._kept:
                self._gate.remember(kept.scan, kept.place)

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._run}-{self._count}"


def _new_device(server: str, code: str) -> ScannerDevice:
    if not (server and code):
        raise OperatorError("give --server and --code the first time")
    private = b64encode(X25519PrivateKey.generate().private_bytes_raw()).decode()
    return ScannerDevice(server, code, private)


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise BadPack("not a pack: no base 64") from None


def _verdict(page: CheckInPage) -> Verdict:
    return page.reason if page.reason is not None else Verdict(page.verdict)


def _said(page: CheckInPage) -> ScanResult:
    return ScanResult(
        _verdict(page),
        seat=page.seat or "",
        title=page.other_show or "",
        first_at=page.first_at,
        first_gate=page.first_gate or "",
    )
