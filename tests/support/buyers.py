"""Buyers of seats while engines fail, in a process of their own, as real clients.

    python -m tests.support.buyers PLAN        a line of progress now and then, the report as the last line

Each of them holds a seat and pays for it. Without an answer they ask again with the same key; after a 402
they try another card with another key; who has waited long enough gives up, some never pay, some change their
mind afterwards. Every answer is recorded: the test compares it with the ledger.
"""

import asyncio
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import uvloop
from msgspec import Struct, field

from tests.support.crowd import API, RECONNECT_S, Answer, Dropped, Line, keep, say

PROGRESS_S = 0.1
NOT_YET = {"still_processing", "payment_under_way"}


class Plan(Struct, kw_only=True):
    url: str
    tokens: list[str]  # one per account
    show: int
    seats: list[str]
    connections: int
    purchases: int
    patience_s: float  # how long a buyer polls for the result of a payment
    line_patience_s: float = 15.0  # a buyer disconnects after waiting this long for one answer
    abandons: float = 0.05  # the share of holds that are not paid for
    calls_off: float = 0.3  # the share of leaving buyers that cancel
    never: float = 0.02  # the share of methods the bank never decides on
    late: float = 0.02  # the share of those it decides on when it is too late
    cancels: float = 0.2  # the share of bookings that are given back
    cards_max: int = 3
    pause_s: float = 0.0  # of a buyer between two purchases
    seed: int = 1


class Deal(Struct, kw_only=True):
    """One purchase, as its owner saw it."""

    owner: int
    booking_id: str = ""
    answers: list[str] = field(default_factory=list)  # every answer: status and code
    confirmed: bool = False  # they got this answer
    cancelled: bool = False
    is_unsure: bool = False  # they wanted to cancel, and have no answer
    gone: bool = False
    sent_at: float = 0.0  # when the request was sent whose answer was "confirmed", and when that came
    sold_at: float = 0.0
    declined: list[int] = field(default_factory=list)  # attempts that were answered as declined
    end: str = ""


class Report(Struct, kw_only=True):
    began: float
    ended: float = 0.0
    deals: list[Deal] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  # a 5xx other than "not now, try again"
    dropped: int = 0
    ends: dict[str, int] = field(default_factory=dict)


class Progress(Struct):
    purchases: int
    confirmed: int


class AnswerFields(Struct):
    """What we read of an answer."""

    booking_id: str = ""
    state: str = ""
    code: str = ""
    attempt: int = 0


READ = msgspec.json.Decoder(AnswerFields).decode
NOTHING = AnswerFields()


class Buyers:
    """What all of them share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        place = urlsplit(plan.url)
        assert place.hostname == "127.0.0.1", "a storm stays on this machine"
        self.address = (place.hostname, place.port or 80)
        self.chance = random.Random(plan.seed)
        self.report = Report(began=time.monotonic())
        self.begun = self.confirmed = 0
        self.is_over = False

    async def run(self) -> Report:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.end)
        people = [Buyer(self, place) for place in range(self.plan.connections)]
        watch = asyncio.create_task(self.watch(people))
        await asyncio.gather(*(person.live() for person in people))
        watch.cancel()
        self.report.ended = time.monotonic()
        self.report.ends = dict(Counter(deal.end for deal in self.report.deals))
        return self.report

    def end(self) -> None:
        self.is_over = True

    async def watch(self, people: "list[Buyer]") -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            say(Progress(len(self.report.deals), self.confirmed))
            for person in people:
                waited_s = time.monotonic() - person.line.sent_at
                if person.line.waits and waited_s > self.plan.line_patience_s:
                    person.line.hang_up()


class Buyer:
    """One connection: one purchase after the other, each for another account."""

    def __init__(self, buyers: Buyers, place: int) -> None:
        self.buyers = buyers
        self.plan = buyers.plan
        self.chance = buyers.chance
        self.line = Line()
        self.deal = Deal(owner=place)

    async def live(self) -> None:
        while not self.buyers.is_over and self.buyers.begun < self.plan.purchases:
            number = self.buyers.begun
            self.buyers.begun += 1
            self.deal = Deal(owner=number % len(self.plan.tokens))
            self.deal.end = await self.buy(f"storm-{self.plan.seed}-{number}")
            self.buyers.report.deals.append(self.deal)
            await asyncio.sleep(self.plan.pause_s * self.chance.uniform(0.5, 1.5))
        self.line.hang_up()

    async def buy(self, key: str) -> str:
        held = await self.hold(key)
        if held is None:
            return "no seat"
        self.deal.booking_id = held
        if self.chance.random() < self.plan.abandons:
            return "never paid"
        for card in range(self.plan.cards_max):
            end = await self.pay(held, f"{key}-{card}", card)
            if end != "declined":
                break
        if end == "gave up" and self.chance.random() < self.plan.calls_off:
            await self.ask("DELETE", f"/bookings/{held}/payment", patience_s=self.plan.patience_s)
            return "called off"
        if end == "confirmed" and self.chance.random() < self.plan.cancels:
            status, fields = await self.ask("DELETE", f"/bookings/{held}", patience_s=self.plan.patience_s)
            self.deal.cancelled = status == 200 and fields.state == "refunded"
            self.deal.is_unsure = status == 0
            return "given back" if self.deal.cancelled else "confirmed"
        return end

    async def hold(self, key: str) -> str | None:
        """The seat they like; if it is taken, any."""
        liked = msgspec.json.encode({"seats": [self.chance.choice(self.plan.seats)]}).decode()
        for n, wish in enumerate((liked, '{"best":{"count":1}}')):
            path = f"/shows/{self.plan.show}/holds"
            status, fields = await self.ask("POST", path, f"{key}-hold-{n}", wish, self.plan.patience_s)
            if status == 201:
                return fields.booking_id
        return None

    async def pay(self, booking: str, key: str, card: int) -> str:
        body = msgspec.json.encode({"method": self.method(card)}).decode()
        path = f"/bookings/{booking}/pay"
        status, fields = await self.ask("POST", path, key, body, self.plan.patience_s)
        match status:
            case 200:
                self.deal.confirmed = fields.state == "confirmed"
                self.deal.sent_at, self.deal.sold_at = self.line.sent_at, time.monotonic()
                self.buyers.confirmed += self.deal.confirmed
                return "confirmed"
            case 402:
                self.deal.declined.append(fields.attempt)
                return "declined"
            case 410:
                self.deal.gone = True
                return "too late"
        return "gave up" if status == 0 else f"{status} {fields.code}"

    def method(self, card: int) -> str:
        drawn = self.chance.random()
        if drawn < self.plan.never:
            return "tok_never"
        return "tok_late" if drawn < self.plan.never + self.plan.late else f"tok_ok:{self.deal.owner}-{card}"

    async def ask(
        self, method: str, path: str, key: str = "", body: str = "", patience_s: float = 10.0
    ) -> tuple[int, AnswerFields]:
        """Until there is an answer that is one; (0, nothing) when they have waited long enough."""
        question = self.question(method, path, key, body)
        give_up_at = time.monotonic() + patience_s
        while time.monotonic() < give_up_at and not self.buyers.is_over:
            answer = await self.answer(question)
            if answer is None:
                continue
            fields = READ(answer.body) if answer.body else NOTHING
            self.deal.answers.append(f"{answer.status} {fields.code or fields.state}")
            if answer.status >= 500 and answer.status != 503:
                keep(self.buyers.report.broken, answer)
            if answer.status < 500 and answer.status != 202 and fields.code not in NOT_YET:
                return answer.status, fields
            await asyncio.sleep(self.chance.uniform(0.3, 0.6))
        return 0, NOTHING

    async def answer(self, question: bytes) -> Answer | None:
        if not self.line.is_open:
            await self.connect()
        try:
            return await self.line.ask(question)
        except Dropped:
            self.buyers.report.dropped += 1
            self.deal.answers.append("dropped")
            return None

    def question(self, method: str, path: str, key: str, body: str) -> bytes:
        token = self.plan.tokens[self.deal.owner]
        lines = [f"{method} {API}{path} HTTP/1.1", "Host: storm", f"Authorization: Bearer {token}"]
        lines += [f"Idempotency-Key: {key}"] if key else []
        lines += ["Content-Type: application/json"] if body else []
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()

    async def connect(self) -> None:
        while True:
            try:
                _, self.line = await asyncio.get_running_loop().create_connection(Line, *self.buyers.address)
            except OSError:
                await asyncio.sleep(RECONNECT_S)
            else:
                return


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        buyers = Buyers(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan))
        say(runner.run(buyers.run()))
