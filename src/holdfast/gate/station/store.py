"""A station at the door: asks the box office, decides alone while it cannot, and tells it later.

    scan ─► box office ─┬─ answer ──► said, and remembered
                        └─ silence ─► the pack decides ─► written to disk ─► told when the network is back

In its folder: `device.json` (who we are), `pack.bin` (sealed, as it came), `scans.jsonl` (what was decided
here). A scan is on disk before the light turns green.
"""

import asyncio
import os
import secrets
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from holdfast.engines.trouble import Trouble
from holdfast.gate.offline import Decision, OfflineGate
from holdfast.gate.pack import BadPack, opened
from holdfast.gate.verdict import OPEN, SCANS_MAX, CheckInPage, OfflineScan, Verdict, Way

API = "/api/v1/gate"
ANSWER_WITHIN_S = 2.0  # people are waiting: after that the pack decides
PACK_WITHIN_S = 30.0
REFRESH_S = 60.0
TELL_S = 2.0
SIGNED_IN_SPARE_S = 30


class Silence(Exception):
    """No answer, or none that helps: the network, a proxy, a server that restarts."""


class Denied(Exception):
    """The box office says that we may not ask. Then we do not decide alone either."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.title = title


class Device(Struct):
    """Who we are."""

    server: str
    code: str
    private: str
    keys: dict[str, str] = {}


class Kept(Struct):
    """A line of scans.jsonl."""

    scan: OfflineScan
    is_told: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What the light shows."""

    verdict: Verdict | None  # None: nobody can say
    seat: str = ""
    title: str = ""
    first_at: datetime | None = None
    first_gate: str = ""
    is_offline: bool = False
    check_in_id: str = ""

    @property
    def is_open(self) -> bool:
        return self.verdict in OPEN


class Station:
    def __init__(self, folder: Path, device: Device) -> None:
        self._folder = folder
        self._device = device
        self._http = aiohttp.ClientSession()
        self._token, self._token_until = "", 0.0
        self._gate: OfflineGate | None = None
        self._kept: list[Kept] = []
        self._lock = asyncio.Lock()  # of scans.jsonl
        self._run = secrets.token_hex(6)
        self._count = 0
        self.is_online = False

    @classmethod
    def open(cls, folder: Path, server: str, code: str) -> "Station":
        """In this folder, as the device we were there before. Needs a running loop."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "device.json"
        if file.exists():
            device = msgspec.json.decode(file.read_bytes(), type=Device)
            if code and code != device.code:
                raise Trouble(f"{folder} belongs to another pass: give another --folder, or remove it")
        else:
            if not (server and code):
                raise Trouble("give --server and --code the first time")
            private = b64encode(X25519PrivateKey.generate().private_bytes_raw()).decode()
            device = Device(server, code, private)
        if server:
            device.server = server.rstrip("/")
        station = cls(folder, device)
        station._save_device()
        station._recall()
        return station

    async def close(self) -> None:
        await self._http.close()

    @property
    def untold(self) -> int:
        return sum(not kept.is_told for kept in self._kept)

    @property
    def has_pack(self) -> bool:
        return self._gate is not None and self._gate.is_good(time.time())

    async def scan(self, code: str, way: Way) -> Said:
        self._count += 1
        scan_id = f"{self._run}-{self._count}"
        try:
            page = await self._ask("/check-ins", {"scan_id": scan_id, "code": code, "way": way})
        except Silence:
            return await self._decide(scan_id, code, way)
        said = _said(msgspec.convert(page, CheckInPage))
        if said.verdict in OPEN:
            await self._keep(OfflineScan(scan_id, code, said.verdict, datetime.now(UTC), way), is_told=True)
        return said

    async def undo(self, check_in_id: str) -> Said:
        self._count += 1
        page = await self._ask(f"/check-ins/{check_in_id}/undo", {"scan_id": f"{self._run}-{self._count}"})
        await self.refresh()
        return _said(msgspec.convert(page, CheckInPage))

    async def counts(self) -> list[dict[str, Any]]:
        shows: list[dict[str, Any]] = (await self._ask("/counts"))["shows"]
        return shows

    async def tell(self) -> int:
        """Tell the box office what was decided alone; how many conflicts that raised."""
        async with self._lock:
            untold = [kept for kept in self._kept if not kept.is_told][:SCANS_MAX]
        if not untold:
            return 0
        body = {"scans": [msgspec.to_builtins(kept.scan) for kept in untold]}
        page = await self._ask("/uploads", body, within_s=PACK_WITHIN_S)
        async with self._lock:
            for kept in untold:
                kept.is_told = True
            self._rewrite()
        return int(page["conflicts"])

    async def refresh(self) -> None:
        """A new pack. What it knows need not be remembered any longer."""
        began = datetime.now(UTC)
        page = await self._ask("/pack", within_s=PACK_WITHIN_S)
        raw = b64decode(page["pack"])
        async with self._lock:
            self._gate = self._opened(raw)
            _write(self._folder / "pack.bin", raw)
            self._kept = [kept for kept in self._kept if not kept.is_told or kept.scan.scanned_at >= began]
            self._rewrite()
            self._remember()

    async def keep_up(self) -> None:
        """For as long as the station runs: tell, and fetch a new pack now and then."""
        next_pack = 0.0
        while True:
            try:
                await self.tell()
                if time.monotonic() >= next_pack:
                    await self.refresh()
                    next_pack = time.monotonic() + REFRESH_S
            except (Silence, Denied, BadPack):
                next_pack = 0.0
            await asyncio.sleep(TELL_S)

    async def _decide(self, scan_id: str, code: str, way: Way) -> Said:
        if self._gate is None or not self.has_pack:
            return Said(None, is_offline=True)
        async with self._lock:
            decision: Decision = self._gate.decide(code, way, time.time())
        await self._keep(OfflineScan(scan_id, code, decision.verdict, datetime.now(UTC), way), is_told=False)
        told = (decision.verdict, decision.seat, decision.title, decision.first_at, decision.first_gate)
        return Said(*told, is_offline=True)

    async def _keep(self, scan: OfflineScan, *, is_told: bool) -> None:
        """On disk before anybody walks through."""
        kept = Kept(scan, is_told)
        async with self._lock:
            self._kept.append(kept)
            if self._gate is not None and is_told:
                self._gate.remember(scan)
            with (self._folder / "scans.jsonl").open("ab") as file:
                file.write(msgspec.json.encode(kept) + b"\n")
                file.flush()
                os.fsync(file.fileno())

    async def _ask(self, path: str, body: object = None, *, within_s: float = ANSWER_WITHIN_S) -> Any:
        """Signed in, and once more if the token has just gone."""
        if time.monotonic() >= self._token_until:
            await self._sign_in()
        try:
            return await self._send(path, body, within_s)
        except Denied as denied:
            if denied.title != "401":
                raise
        await self._sign_in()
        return await self._send(path, body, within_s)

    async def _sign_in(self) -> None:
        private = X25519PrivateKey.from_private_bytes(b64decode(self._device.private))
        public = b64encode(private.public_key().public_bytes_raw()).decode()
        self._token = ""
        page = await self._send("/login", {"code": self._device.code, "device_key": public}, ANSWER_WITHIN_S)
        self._token = page["access_token"]
        self._token_until = time.monotonic() + page["expires_in"] - SIGNED_IN_SPARE_S
        if page["keys"] != self._device.keys:
            self._device.keys = page["keys"]
            self._save_device()

    async def _send(self, path: str, body: object, within_s: float) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        method = "GET" if body is None else "POST"
        try:
            async with self._http.request(
                method,
                f"{self._device.server}{API}{path}",
                data=None if body is None else msgspec.json.encode(body),
                headers={"Content-Type": "application/json", **headers},
                timeout=aiohttp.ClientTimeout(total=within_s),
            ) as answer:
                raw, status = await answer.read(), answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.is_online = False
            raise Silence(str(error)) from None
        if status >= 500 or status == 429:
            self.is_online = False
            raise Silence(f"HTTP {status}")
        self.is_online = True
        if status == 401 and path != "/login":
            raise Denied("401")
        if status != 200:
            raise Denied(_title(raw, status))
        return msgspec.json.decode(raw)

    def _opened(self, raw: bytes) -> OfflineGate:
        trusted = {int(key_id): b64decode(key) for key_id, key in self._device.keys.items()}
        return OfflineGate(opened(raw, b64decode(self._device.private), trusted))

    def _recall(self) -> None:
        """What we knew before we were switched off. Half a line at the end is of a scan nobody was shown."""
        scans, pack = self._folder / "scans.jsonl", self._folder / "pack.bin"
        for line in scans.read_bytes().splitlines() if scans.exists() else ():
            try:
                self._kept.append(msgspec.json.decode(line, type=Kept))
            except msgspec.DecodeError:
                continue
        if pack.exists():
            try:
                self._gate = self._opened(pack.read_bytes())
            except BadPack:
                self._gate = None
            self._remember()

    def _remember(self) -> None:
        if self._gate is not None:
            for kept in self._kept:
                self._gate.remember(kept.scan)

    def _rewrite(self) -> None:
        lines = b"".join(msgspec.json.encode(kept) + b"\n" for kept in self._kept)
        _write(self._folder / "scans.jsonl", lines)

    def _save_device(self) -> None:
        _write(self._folder / "device.json", msgspec.json.encode(self._device))


def _said(page: CheckInPage) -> Said:
    verdict = page.reason if page.reason is not None else Verdict(page.verdict)
    return Said(
        verdict,
        seat=page.seat or "",
        title=page.other_show or "",
        first_at=page.first_at,
        first_gate=page.first_gate or "",
        check_in_id=page.check_in_id,
    )


def _title(raw: bytes, status: int) -> str:
    try:
        return str(msgspec.json.decode(raw)["title"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"HTTP {status}"


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all, and for our eyes only."""
    draft = file.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
