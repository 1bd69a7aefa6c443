"""A scanner at the door: sends scans to the box office, decides with its pack while offline, uploads later.

    scan ─► box office ─┬─ answer ──► shown, and recorded
                        └─ silence ─► the pack decides ─► written to disk ─► uploaded when the network is back

A scan is on disk before the light turns green. After a time-out, scans do not wait for the network
again: the pack decides until the server answers and has received all scans. So the server gets the scans of
this device in their order.
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
    describe_verdict,
    open_pack,
)
from holdfast.engines.errors import OperatorError
from holdfast.scanner.client import ANSWER_WITHIN_S, BoxOfficeClient, Denied, NoAnswer
from holdfast.scanner.journal import Journal, JournalEntry, ScannerDevice

PACK_WITHIN_S = 30.0
REFRESH_S = 60.0
SYNC_S = 2.0
KNOWN_VERDICTS = frozenset(Verdict)

Answer = TypeVar("Answer")


class Me(Struct):
    account_id: int


class CheckInAnswer(Struct):
    """CheckInPage as an older program reads it: a reason that it does not know is a refusal all the same."""

    verdict: str
    words: str
    check_in_id: str
    reason: str | None = None
    seat: str | None = None
    first_at: datetime | None = None
    first_gate: str | None = None
    other_show: str | None = None
    is_suspended: bool = False

    @property
    def known_verdict(self) -> Verdict | None:
        name = self.reason or self.verdict
        return Verdict(name) if name in KNOWN_VERDICTS else None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What the light shows."""

    verdict: Verdict | None  # None: no network and no pack, or a refusal that this program does not know
    seat: str = ""
    title: str = ""
    first_at: datetime | None = None
    first_gate: str = ""
    is_offline: bool = False
    is_suspended: bool = False  # void, and not given back: its payment is disputed
    refusal: str = ""  # in the words of the box office, where the verdict is not known here

    @property
    def is_open(self) -> bool:
        return self.verdict in OPENING_VERDICTS

    @property
    def is_decided(self) -> bool:
        return self.verdict is not None or bool(self.refusal)

    @property
    def words(self) -> str:
        if self.verdict is not None:
            return describe_verdict(self.verdict, is_suspended=self.is_suspended)
        return self.refusal or "Unknown: no network, and the pack has expired"


class Scanner:
    def __init__(self, journal: Journal, device: ScannerDevice) -> None:
        self._journal = journal
        self._device = device
        self._client = BoxOfficeClient(device, journal.save_device)
        self._gate: OfflineGate | None = None
        self._entries: list[JournalEntry] = []
        self._last: JournalEntry | None = None  # the last one let in: what an undo takes back
        self._lock = asyncio.Lock()  # of the journal, and of what we know
        self._uploading = asyncio.Lock()
        # A letter first: one in three hundred has digits alone, and would pass for a card number, which the
        # box office refuses.
        self._run = f"s{secrets.token_hex(6)}"
        self._count = 0

    @classmethod
    def open(cls, folder: Path, server: str, code: str) -> "Scanner":
        """In this folder, as the device we were there before. Needs a running loop."""
        journal = Journal(folder)
        try:
            device = journal.device() or _new_device(server, code)
            if code and code != device.code:
                raise OperatorError(f"{folder} belongs to another pass: give another --folder, or remove it")
            if server:
                device.server = server.rstrip("/")
            journal.save_device(device)
        except BaseException:
            journal.close()
            raise
        scanner = cls(journal, device)
        scanner._recall()
        return scanner

    async def close(self) -> None:
        await self._client.close()
        self._journal.close()

    @property
    def pending(self) -> int:
        return sum(not entry.is_uploaded for entry in self._entries)

    @property
    def is_online(self) -> bool:
        return self._client.is_up

    @property
    def has_pack(self) -> bool:
        return self._gate is not None and self._gate.is_good(time.time())

    async def scan(self, code: str, way: Way) -> ScanResult:
        scan_id = self._next_id()
        if self.has_pack and (self.pending or not self._client.is_up):
            return await self._decide(scan_id, code, way)
        try:
            body = {"scan_id": scan_id, "code": code, "way": way}
            answer = await self._ask(CheckInAnswer, "/gate/check-ins", body)
        except NoAnswer:
            return await self._decide(scan_id, code, way)
        place = self._gate.place_of(code) if self._gate is not None else None
        return await self._record_answer(answer, (scan_id, code, way), place)

    async def search(self, words: str) -> Sequence[FoundTicket]:
        """By booking reference, or by the beginning of a name."""
        return (await self._ask(FoundPage, f"/gate/search?q={quote(words)}")).tickets

    async def admit(self, ticket_id: str, way: Way) -> ScanResult:
        """By hand: a visitor found by search."""
        scan_id = self._next_id()
        body = {"scan_id": scan_id, "ticket": ticket_id, "way": way}
        answer = await self._ask(CheckInAnswer, "/gate/check-ins", body)
        return await self._record_answer(answer, (scan_id, "", way), from_public_id(ticket_id))

    async def undo(self) -> ScanResult:
        """Take the last admission at this gate back."""
        entry = self._last
        if entry is not None and not entry.is_uploaded:
            await self.upload()
        if entry is None or not entry.check_in_id:
            raise Denied("Nothing to undo", "nothing_to_undo")
        answer = await self._ask(
            CheckInAnswer, f"/gate/check-ins/{entry.check_in_id}/undo", {"scan_id": self._next_id()}
        )
        async with self._lock:
            self._last = None
            self._entries = [one for one in self._entries if one is not entry]
            self._journal.rewrite(self._entries)
        await self.refresh()
        return _result(answer)

    async def counts(self) -> Sequence[ShowCount]:
        return (await self._ask(CountPage, "/gate/counts")).shows

    async def upload(self) -> tuple[int, int]:
        """Upload scans that were decided offline; returns the numbers of scans and of conflicts."""
        done = conflicts = 0
        async with self._uploading:
            while pending := [entry for entry in self._entries if not entry.is_uploaded][:SCANS_MAX]:
                try:
                    conflicts += await self._upload_some(pending)
                except Denied as denied:
                    if denied.is_final:
                        raise
                    conflicts += await self._upload_each(pending)
                done += len(pending)
        return done, conflicts

    async def refresh(self) -> None:
        """Fetch a new pack, and drop the journal entries that it contains."""
        began = datetime.now(UTC)
        page = await self._ask(PackPage, "/gate/pack", within_s=PACK_WITHIN_S)
        raw = _bytes(page.pack)
        try:
            gate = await asyncio.to_thread(self._opened, raw)  # of a stadium: scans do not wait for it
        except BadPack:
            self._client.forget()  # signed with a key that is newer than our last sign-in, perhaps
            raise
        async with self._lock:
            self._gate = gate
            self._journal.save_pack(raw)
            self._entries = [
                entry for entry in self._entries if not entry.is_uploaded or entry.scan.scanned_at >= began
            ]
            self._journal.rewrite(self._entries)
            self._remember()

    async def stay_in_sync(self, note: Callable[[str], None]) -> None:
        """For as long as the scanner runs: tell, fetch a new pack now and then, and notice the network go."""
        next_pack, noted = time.monotonic() + REFRESH_S, ""
        while True:
            await asyncio.sleep(SYNC_S)
            state = ""
            if not self._client.is_up:
                next_pack = 0.0  # the pack may be outdated
            try:
                if not self.pending:
                    await self._ask(Me, "/me")  # the cheapest request, to detect the network
                done, conflicts = await self.upload()
                if done:
                    note(f"uploaded {done} scans: {conflicts} conflicts")
                if time.monotonic() >= next_pack:
                    await self.refresh()
                    next_pack = time.monotonic() + REFRESH_S
            except NoAnswer:
                state = "no network: the pack decides"
            except (Denied, BadPack) as trouble:
                state, next_pack = str(trouble), 0.0
            if state != noted:
                note(state or "the box office is back")
            noted = state

    async def _ask(
        self, kind: type[Answer], path: str, body: object = None, *, within_s: float = ANSWER_WITHIN_S
    ) -> Answer:
        try:
            return await self._client.ask(kind, path, body, within_s=within_s)
        except Denied as denied:
            if denied.is_final:  # a device that was reported stolen has no pack any more
                self._gate = None
                self._journal.save_pack(None)
            raise

    async def _record_answer(
        self, answer: CheckInAnswer, sent: tuple[str, str, Way], place: tuple[int, int] | None
    ) -> ScanResult:
        """`sent`: scan id, code and direction."""
        verdict, (scan_id, code, way) = answer.known_verdict, sent
        if verdict in OPENING_VERDICTS:
            scan = OfflineScan(scan_id, code, verdict, datetime.now(UTC), way)
            await self._record(JournalEntry(scan, True, place, answer.check_in_id))
        return _result(answer)

    async def _decide(self, scan_id: str, code: str, way: Way) -> ScanResult:
        if self._gate is None or not self.has_pack:
            return ScanResult(None, is_offline=True)
        decision = self._gate.decide(code, way, time.time())
        scan = OfflineScan(scan_id, code, decision.verdict, datetime.now(UTC), way)
        await self._record(JournalEntry(scan, False, decision.place))
        shown = (decision.verdict, decision.seat, decision.title, decision.first_at, decision.first_gate)
        return ScanResult(*shown, is_offline=True, is_suspended=decision.is_suspended)

    async def _record(self, entry: JournalEntry) -> None:
        """Writes to disk before the visitor is let through."""
        async with self._lock:
            self._journal.add(entry)
            self._entries.append(entry)
            if self._gate is not None:
                self._gate.remember(entry.scan, entry.place)
        if entry.scan.verdict is Verdict.ADMITTED:
            self._last = entry

    async def _upload_some(self, pending: Sequence[JournalEntry]) -> int:
        body = {"scans": [entry.scan for entry in pending]}
        page = await self._ask(UploadPage, "/gate/uploads", body, within_s=PACK_WITHIN_S)
        async with self._lock:
            for entry, scan in zip(pending, page.scans, strict=True):
                entry.is_uploaded, entry.check_in_id = True, scan.check_in_id or ""
            self._journal.rewrite(self._entries)
        return page.conflicts

    async def _upload_each(self, pending: Sequence[JournalEntry]) -> int:
        """One by one: a scan that the box office rejects is set aside and must not block the others."""
        conflicts = 0
        for entry in pending:
            try:
                conflicts += await self._upload_some([entry])
            except Denied as denied:
                if denied.is_final:
                    raise
                async with self._lock:
                    entry.is_uploaded = True
                    self._journal.set_aside(entry)
                    self._journal.rewrite(self._entries)
        return conflicts

    def _opened(self, raw: bytes) -> OfflineGate:
        trusted = {int(key_id): b64decode(key) for key_id, key in self._device.keys.items()}
        return OfflineGate(open_pack(raw, b64decode(self._device.private), trusted))

    def _recall(self) -> None:
        """Loads the pack and the journal from the previous run."""
        self._entries = self._journal.scans()
        raw = self._journal.pack()
        try:
            self._gate = self._opened(raw) if raw is not None else None
        except BadPack:
            self._gate = None
        self._remember()

    def _remember(self) -> None:
        if self._gate is not None:
            for entry in self._entries:
                self._gate.remember(entry.scan, entry.place)

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


def _result(answer: CheckInAnswer) -> ScanResult:
    verdict = answer.known_verdict
    return ScanResult(
        verdict,
        seat=answer.seat or "",
        title=answer.other_show or "",
        first_at=answer.first_at,
        first_gate=answer.first_gate or "",
        is_suspended=answer.is_suspended,
        refusal="" if verdict is not None else answer.words,
    )
