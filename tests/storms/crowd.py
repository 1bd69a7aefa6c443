"""A crowd at the box office: hundreds of connections in a process of their own, so that their work is not ours.

    python -m tests.storms.crowd PLAN        a line of progress now and then, the report as the last line

Everybody asks, waits for the answer, and asks again, until the attempts or the time are used up or somebody
says SIGTERM. With keys, whoever gets no answer (a dropped connection, a 503) asks again with the same key, as a
good client does. What was promised is written down: the test compares it with the ledger.
"""

import asyncio
import random
import signal
import sys
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import uvloop
from msgspec import Struct, field

API = "/api/v1"
PROGRESS_S = 0.1
RECONNECT_S = 0.05
EXAMPLES_MAX = 50  # of strange answers kept


class Wish(Struct, array_like=True):
    show: int
    body: str  # of POST /shows/{show}/holds


class Plan(Struct, kw_only=True):
    url: str
    tokens: list[str]  # one an account; a connection has one at a time
    wishes: list[Wish]  # an attempt picks any of them
    connections: int
    attempts_max: int = 1_000_000_000
    seconds_max: float
    pause_s: float = 0.0  # between an answer and the next question on the same connection
    keyed: bool = False
    extends: float = 0.0  # the share of holds that get a heartbeat
    cancels: float = 0.0  # the share of holds that are let go again
    ends_with: str = ""  # a connection that is refused with this code has had enough
    patience_s: float = 20.0  # who has waited this long hangs up
    seed: int = 1


class Told(Struct, array_like=True):
    """A hold we were promised."""

    at: float  # on the clock all processes of a machine share
    show: int
    booking_id: str
    owner: int  # place of its token
    seats: list[str]
    state: str
    key: str
    expires_at: str | None


class Deed(Struct, array_like=True):
    """What we were told of an extension or a release."""

    at: float
    booking_id: str
    what: str
    status: int
    expires_at: str | None


class Report(Struct, kw_only=True):
    began: float
    ended: float = 0.0
    attempts: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    unfair: list[str] = field(default_factory=list)  # a refusal that says less than it should
    broken: list[str] = field(default_factory=list)  # a 5xx other than "not now, try again"
    dropped: int = 0  # connections lost before the answer
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def answers(self) -> int:
        return sum(self.statuses.values())


class Progress(Struct):
    answers: int
    held: int


class SeatSaid(Struct):
    label: str


class Said(Struct):
    """What we read of an answer: of a booking, or of a problem."""

    booking_id: str = ""
    seats: list[SeatSaid] = []
    state: str = ""
    expires_at: str | None = None
    code: str = ""
    taken: list[str] = []


class Answer(Struct):
    status: int
    retry_after: bool
    body: bytes


class Dropped(Exception):
    """The connection was lost before the answer: nobody knows what became of the question."""


class Line(asyncio.Protocol):
    """One connection, one question at a time."""

    def __init__(self) -> None:
        self._heard = b""
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None
        self.asked_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not of asyncio's classes

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Dropped())

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def waits(self) -> bool:
        return self._waiting is not None and not self._waiting.done()

    def ask(self, question: bytes) -> "asyncio.Future[Answer]":
        self._waiting = asyncio.get_running_loop().create_future()
        if self._transport is None or not self.is_open:
            self._waiting.set_exception(Dropped())
        else:
            self.asked_at = time.monotonic()
            self._transport.write(question)
        return self._waiting

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._heard = self._heard + data if self._heard else data
        head_end = self._heard.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._heard[:head_end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 : head.find(b"\r", at) if b"\r" in head[at:] else None]) if at >= 0 else 0
        if len(self._heard) < head_end + 4 + length:
            return
        body, self._heard = self._heard[head_end + 4 : head_end + 4 + length], b""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Answer(int(head[9:12]), b"\r\nretry-after:" in head, body))


class Crowd:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        place = urlsplit(plan.url)
        assert place.hostname == "127.0.0.1", "a storm stays on this machine"
        self._address = (place.hostname, place.port or 80)
        self._asked = [set(msgspec.json.decode(wish.body).get("seats", ())) for wish in plan.wishes]
        self._heads = [f"Host: storm\r\nAuthorization: Bearer {token}\r\n".encode() for token in plan.tokens]
        self._random = random.Random(plan.seed)
        self._read = msgspec.json.Decoder(Said).decode
        self._latencies = array("d")
        self._statuses: Counter[int] = Counter()
        self._codes: Counter[str] = Counter()
        self._lines: set[Line] = set()
        self._is_over = False
        self.report = Report(began=time.monotonic())

    async def run(self) -> Report:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)
        watch = asyncio.create_task(self._watch())
        await asyncio.gather(*(self._fan(place) for place in range(self.plan.connections)))
        watch.cancel()
        report = self.report
        report.ended = time.monotonic()
        report.statuses = {str(status): n for status, n in self._statuses.items()}
        report.codes = dict(self._codes)
        ordered = sorted(self._latencies)
        if ordered:
            report.p50_ms, report.p99_ms, report.max_ms = (
                1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.99, 1.0)
            )
        return report

    def _end(self) -> None:
        self._is_over = True

    async def _watch(self) -> None:
        """Tells how far we are, hangs up on who does not answer, and calls it a day."""
        while True:
            await asyncio.sleep(PROGRESS_S)
            now = time.monotonic()
            say(Progress(sum(self._statuses.values()), len(self.report.told)))
            self._is_over = self._is_over or now - self.report.began > self.plan.seconds_max
            for line in self._lines:
                if line.waits and now - line.asked_at > self.plan.patience_s:
                    line.hang_up()

    async def _fan(self, place: int) -> None:
        line = Line()
        while not self._is_over and self.report.attempts < self.plan.attempts_max:
            self.report.attempts += 1
            wish = self._random.randrange(len(self.plan.wishes))
            owner = place % len(self.plan.tokens)
            key = f"storm-{self.plan.seed}-{self.report.attempts}" if self.plan.keyed else ""
            question = self._question(
                "POST", f"/shows/{self.plan.wishes[wish].show}/holds", owner, key, self.plan.wishes[wish].body
            )
            line, answer = await self._final(line, question, repeat=self.plan.keyed)
            if answer is None:
                continue
            said = self._note(answer, wish)
            if answer.status == 201:
                show = self.plan.wishes[wish].show
                labels = [seat.label for seat in said.seats]
                self.report.told.append(
                    Told(
                        time.monotonic(),
                        show,
                        said.booking_id,
                        owner,
                        labels,
                        said.state,
                        key,
                        said.expires_at,
                    )
                )
                line = await self._afterwards(line, said.booking_id, owner)
            elif self.plan.ends_with and said.code == self.plan.ends_with:
                break
            if self.plan.pause_s:
                await asyncio.sleep(self.plan.pause_s * self._random.uniform(0.5, 1.5))
        line.hang_up()
        self._lines.discard(line)

    async def _afterwards(self, line: Line, booking_id: str, owner: int) -> Line:
        for what, share in (("extend", self.plan.extends), ("cancel", self.plan.cancels)):
            if share and self._random.random() < share:
                await asyncio.sleep(self.plan.pause_s * self._random.uniform(0.5, 1.5))
                method, path = ("POST", "/extend") if what == "extend" else ("DELETE", "")
                question = self._question(method, f"/bookings/{booking_id}{path}", owner, "", "")
                line, answer = await self._final(line, question, repeat=False)
                if answer is not None:
                    said = self._note(answer, None)
                    self.report.deeds.append(
                        Deed(time.monotonic(), booking_id, what, answer.status, said.expires_at)
                    )
        return line

    def _question(self, method: str, path: str, owner: int, key: str, body: str) -> bytes:
        raw = body.encode()
        head = b"%s %s%s HTTP/1.1\r\n" % (method.encode(), API.encode(), path.encode())
        name = b"Idempotency-Key: %s\r\n" % key.encode() if key else b""
        kind = b"Content-Type: application/json\r\n" if raw else b""
        return b"%s%s%s%sContent-Length: %d\r\n\r\n%s" % (head, self._heads[owner], name, kind, len(raw), raw)

    async def _final(self, line: Line, question: bytes, *, repeat: bool) -> tuple[Line, Answer | None]:
        """The answer; with `repeat`, the first that is one. None: nobody knows, or it is over."""
        while True:
            if not line.is_open:
                line = await self._connected(line)
            began = time.monotonic()
            try:
                answer = await line.ask(question)
            except Dropped:
                self.report.dropped += 1
                answer = None
            else:
                self._latencies.append(time.monotonic() - began)
            if answer is not None and answer.status < 500:
                return line, answer
            if answer is not None:
                self._note(answer, None)
                await asyncio.sleep(self._random.uniform(1.0, 1.3) if answer.retry_after else 0.1)
            if not repeat or self._is_over:
                return line, None

    async def _connected(self, old: Line) -> Line:
        self._lines.discard(old)
        while True:
            try:
                _, line = await asyncio.get_running_loop().create_connection(Line, *self._address)
            except OSError:
                await asyncio.sleep(RECONNECT_S)
                if self._is_over:
                    return old
            else:
                self._lines.add(line)
                return line

    def _note(self, answer: Answer, wish: int | None) -> Said:
        self._statuses[answer.status] += 1
        said = self._read(answer.body)
        if answer.status < 400:
            return said
        self._codes[said.code] += 1
        if said.code == "seats_taken" and wish is not None:
            asked = self._asked[wish]
            if not said.taken or (asked and not asked.issuperset(said.taken)):
                keep(self.report.unfair, answer)
        if answer.status >= 500:
            if answer.status != 503:
                keep(self.report.broken, answer)
            elif not answer.retry_after:
                keep(self.report.unfair, answer)
        return said


def keep(examples: list[str], answer: Answer) -> None:
    if len(examples) < EXAMPLES_MAX:
        examples.append(f"{answer.status} {answer.body.decode(errors='replace')[:500]}")


def say(what: Any) -> None:
    print(msgspec.json.encode(what).decode(), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        crowd = Crowd(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan))
        say(runner.run(crowd.run()))
