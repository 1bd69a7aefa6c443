"""A crowd at the box office: hundreds of connections, in a process of its own, so that its work is not ours.

    python -m tests.support.crowd PLAN        a line of progress now and then, the report as the last line

Everybody asks, waits for the answer, and asks again, until the attempts or the time are used up or a
SIGTERM arrives. With keys, a client without an answer (a dropped connection, a 503) asks again with the same
key, as a good client does. What was promised is written down: the test compares it with the ledger.
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
EXAMPLES_MAX = 50  # of unexpected answers stored


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
    cancels: float = 0.0  # the share of holds that are released again
    ends_with: str = ""  # a connection that is refused with this code has had enough
    patience_s: float = 20.0  # a client disconnects after this wait
    seed: int = 1


class Promise(Struct, array_like=True):
    """A hold we were promised."""

    at: float  # on the clock all processes of a machine share
    show: int
    booking_id: str
    owner: int  # place of its token
    seats: list[str]
    state: str
    key: str


class Deed(Struct, array_like=True):
    """The answer to an extension or a release."""

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
    promises: list[Promise] = field(default_factory=list)
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


class ResponseSeat(Struct):
    label: str


class ResponseBody(Struct):
    """What we read of an answer: of a booking, or of a problem."""

    booking_id: str = ""
    seats: list[ResponseSeat] = []
    state: str = ""
    expires_at: str | None = None
    code: str = ""
    taken: list[str] = []


class Answer(Struct):
    status: int
    retry_after: bool
    body: bytes


READ = msgspec.json.Decoder(ResponseBody).decode


class Dropped(Exception):
    """The connection was lost before the answer: the outcome of the request is unknown."""


class Line(asyncio.Protocol):
    """One connection, one question at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None
        self.sent_at = 0.0

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
            self.sent_at = time.monotonic()
            self._transport.write(question)
        return self._waiting

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._received[:head_end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].partition(b"\r")[0]) if at >= 0 else 0
        if len(self._received) < head_end + 4 + length:
            return
        body, self._received = self._received[head_end + 4 : head_end + 4 + length], b""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Answer(int(head[9:12]), b"\r\nretry-after:" in head, body))


class Crowd:
    """State shared by the crowd: the plan, whether it is over, and the answers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        place = urlsplit(plan.url)
        assert place.hostname == "127.0.0.1", "a storm stays on this machine"
        self.address = (place.hostname, place.port or 80)
        self.requested = [set(msgspec.json.decode(wish.body).get("seats", ())) for wish in plan.wishes]
        self.chance = random.Random(plan.seed)
        self.report = Report(began=time.monotonic())
        self.latencies = array("d")
        self.statuses: Counter[int] = Counter()
        self.codes: Counter[str] = Counter()
        self.is_over = False

    async def run(self) -> Report:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.end)
        people = [Person(self, place) for place in range(self.plan.connections)]
        watch = asyncio.create_task(self.watch(people))
        await asyncio.gather(*(person.live() for person in people))
        watch.cancel()
        report = self.report
        report.ended = time.monotonic()
        report.statuses = {str(status): n for status, n in self.statuses.items()}
        report.codes = dict(self.codes)
        report.p50_ms, report.p99_ms, report.max_ms = (self.within_ms(share) for share in (0.5, 0.99, 1.0))
        return report

    def end(self) -> None:
        self.is_over = True

    async def watch(self, people: "list[Person]") -> None:
        """Report progress, disconnect from servers that do not answer, and stop at the end."""
        while True:
            await asyncio.sleep(PROGRESS_S)
            now = time.monotonic()
            say(Progress(sum(self.statuses.values()), len(self.report.promises)))
            if now - self.report.began > self.plan.seconds_max:
                self.end()
            for person in people:
                if person.line.waits and now - person.line.sent_at > self.plan.patience_s:
                    person.line.hang_up()

    def within_ms(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0

    def note(self, answer: Answer, requested: set[str] | None = None) -> ResponseBody:
        self.statuses[answer.status] += 1
        body = READ(answer.body)
        if answer.status >= 400:
            self.codes[body.code] += 1
        is_unfair = answer.status == 503 and not answer.retry_after
        if body.code == "seats_taken" and requested is not None:
            is_unfair = not body.taken or bool(requested and not requested.issuperset(body.taken))
        if is_unfair:
            keep(self.report.unfair, answer)
        if answer.status >= 500 and answer.status != 503:
            keep(self.report.broken, answer)
        return body


class Person:
    """One connection, and the account it speaks for."""

    def __init__(self, crowd: Crowd, place: int) -> None:
        self.crowd = crowd
        self.plan = crowd.plan
        self.owner = place % len(self.plan.tokens)
        self.head = f"Host: storm\r\nAuthorization: Bearer {self.plan.tokens[self.owner]}\r\n".encode()
        self.line = Line()

    async def live(self) -> None:
        report = self.crowd.report
        while not self.crowd.is_over and report.attempts < self.plan.attempts_max:
            report.attempts += 1
            place = self.crowd.chance.randrange(len(self.plan.wishes))
            key = f"storm-{self.plan.seed}-{report.attempts}" if self.plan.keyed else ""
            if await self.hold(place, key) == self.plan.ends_with:
                break
            await self.pause()
        self.line.hang_up()

    async def hold(self, place: int, key: str) -> str:
        """The code of the refusal; or "held", or "unknown"."""
        wish = self.plan.wishes[place]
        question = self.question("POST", f"/shows/{wish.show}/holds", key, wish.body)
        answer = await self.answer(question, repeat=self.plan.keyed)
        if answer is None:
            return "unknown"
        body = self.crowd.note(answer, self.crowd.requested[place])
        if answer.status != 201:
            return body.code
        labels = [seat.label for seat in body.seats]
        promise = Promise(time.monotonic(), wish.show, body.booking_id, self.owner, labels, body.state, key)
        self.crowd.report.promises.append(promise)
        if self.crowd.chance.random() < self.plan.extends:
            await self.do("extend", body.booking_id)
        if self.crowd.chance.random() < self.plan.cancels:
            await self.do("cancel", body.booking_id)
        return "held"

    async def do(self, what: str, booking_id: str) -> None:
        await self.pause()
        method, path = ("POST", "/extend") if what == "extend" else ("DELETE", "")
        answer = await self.answer(self.question(method, f"/bookings/{booking_id}{path}"), repeat=False)
        if answer is not None:
            body = self.crowd.note(answer)
            deed = Deed(time.monotonic(), booking_id, what, answer.status, body.expires_at)
            self.crowd.report.deeds.append(deed)

    async def pause(self) -> None:
        if self.plan.pause_s:
            await asyncio.sleep(self.plan.pause_s * self.crowd.chance.uniform(0.5, 1.5))

    def question(self, method: str, path: str, key: str = "", body: str = "") -> bytes:
        head = b"%s %s%s HTTP/1.1\r\n%s" % (method.encode(), API.encode(), path.encode(), self.head)
        name = b"Idempotency-Key: %s\r\n" % key.encode() if key else b""
        kind = b"Content-Type: application/json\r\n" if body else b""
        return b"%s%s%sContent-Length: %d\r\n\r\n%s" % (head, name, kind, len(body), body.encode())

    async def answer(self, question: bytes, *, repeat: bool) -> Answer | None:
        """The first that is one; without `repeat`, the first. None: unknown, or it is over."""
        while True:
            if not self.line.is_open:
                await self.connect()
            began = time.monotonic()
            try:
                answer = await self.line.ask(question)
            except Dropped:
                self.crowd.report.dropped += 1
            else:
                self.crowd.latencies.append(time.monotonic() - began)
                if answer.status < 500:
                    return answer
                self.crowd.note(answer)
                await asyncio.sleep(self.crowd.chance.uniform(1.0, 1.3) if answer.retry_after else 0.1)
            if not repeat or self.crowd.is_over:
                return None

    async def connect(self) -> None:
        while not self.crowd.is_over:
            try:
                _, self.line = await asyncio.get_running_loop().create_connection(Line, *self.crowd.address)
            except OSError:
                await asyncio.sleep(RECONNECT_S)
            else:
                return


def keep(examples: list[str], answer: Answer) -> None:
    if len(examples) < EXAMPLES_MAX:
        examples.append(f"{answer.status} {answer.body.decode(errors='replace')[:500]}")


def say(what: Any) -> None:
    print(msgspec.json.encode(what).decode(), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        crowd = Crowd(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan))
        say(runner.run(crowd.run()))
