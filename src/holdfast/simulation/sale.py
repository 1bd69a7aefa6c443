"""One on-sale as discrete events, in order of time. Exact: nothing is rounded to a time step.

    queue ──► admitted ──► choosing ──► request ──► held ──► paying ──► sold
                              ▲            │          │         │
                              └─ hunting ◄─┘          └─ lapsed ◄┘   seats are free again

Only people inside have events: the others are rows of arrays. Seats are counted, not placed: adjacency and
orphans are not simulated. Without a waiting room everybody is inside on arrival; their first requests are
one sorted array, merged with the events.
"""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from holdfast.simulation.hunters import Hunters
from holdfast.simulation.population import (
    BOT_CHECKOUT_S,
    BOT_CHOOSE_S,
    draw_choosing,
    draw_population,
    lognormal,
    seed_streams,
    uniform,
)
from holdfast.simulation.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from holdfast.simulation.scenario import Scenario

Progress = Callable[[str, int, int], None]
Act = Callable[[int], None]

OTHER_CARD_S = 20.0  # from a decline to the next card
PAYMENT_BUFFER_S = 120.0  # as HOLDFAST_PAYMENT_BUFFER_S: a payment may outlast its hold by this
REPORT_EVERY = 4096  # events


def run_sale(scenario: "Scenario", progress: Progress = lambda _what, _done, _total: None) -> Record:
    return OnSale(scenario).run(progress)


class OnSale:
    """The state of one sale. `run` it once."""

    def __init__(self, scenario: "Scenario") -> None:
        self.scenario = scenario
        streams = seed_streams(scenario.seed)
        self.people = draw_population(scenario, streams)
        self.record = Record(scenario, self.people)
        self.hunters = Hunters(scenario, self.people, streams)
        self.streams = streams
        self._choose_factor = lognormal(streams["choosing"], scenario.spread)
        self._checkout_factor = lognormal(streams["checkout"], scenario.spread)
        self._payment_factor = lognormal(streams["paying"], scenario.spread)
        self._abandoning = uniform(streams["abandoning"])
        self._declining = uniform(streams["declines"])
        self._missing_turns = uniform(streams["turns"])

        self.now = 0.0
        self.free = scenario.seats
        self._events: list[tuple[float, int, Act, int]] = []
        self._numbers = count()  # events at the same instant happen in the order in which they were planned
        self._next_place = self._inside = 0
        self._next_admission_at = self._server_free_at = 0.0
        self._admission_is_due = False
        self._hold_ends: dict[int, float] = {}
        self._tries: dict[int, int] = {}
        self._hunting: set[int] = set()  # of the people inside, with a waiting room
        self._hunt_plan = 0  # number of the plan that counts; earlier ones are void
        self._paying = 0
        self._payers: deque[int] = deque()  # wait for the gateway

    def run(self, progress: Progress) -> Record:
        seats = self.scenario.seats
        requests = None if self.scenario.waiting_room else FirstRequests(self)
        self._plan_admission()
        steps = 0
        while self.record.seats_sold < seats:
            if requests is not None:
                self._carry_out(requests)
            if not self._events or self._events[0][0] > self.scenario.until_s:
                break
            self.now, _, act, subject = heapq.heappop(self._events)
            act(subject)
            steps += 1
            if steps % REPORT_EVERY == 0:
                progress("seats sold", self.record.seats_sold, seats)
        progress("seats sold", self.record.seats_sold, seats)
        is_over = self.record.seats_sold == seats
        self.record.ended_s = self.now if is_over else self.scenario.until_s
        return self.record

    def _plan(self, at_s: float, act: Act, subject: int) -> None:
        heapq.heappush(self._events, (at_s, next(self._numbers), act, subject))

    # ── the waiting room ──────────────────────────────────────────────────────────────

    def _plan_admission(self) -> None:
        """The next turn: at the rate, if a place inside and a seat are free; not before its person came."""
        scenario = self.scenario
        if not scenario.waiting_room or self._admission_is_due or self._next_place >= len(self.people):
            return
        if self._inside >= scenario.inside_max or not self.free:
            return
        self._admission_is_due = True
        came_at = self.people.arrive_s.item(self._next_place)
        self._plan(max(self.now, self._next_admission_at, came_at), self._admit, self._next_place)

    def _admit(self, person: int) -> None:
        scenario = self.scenario
        self._admission_is_due = False
        if not self.free:  # since the turn was planned; the next lapse plans it again
            return
        self._next_place += 1
        self._inside += 1
        self.record.admit(person, self.now, self._inside)
        self._next_admission_at = self.now + 1 / scenario.admit_per_s
        if next(self._missing_turns) < scenario.no_show:
            self._plan(self.now + scenario.turn_s, self._leave, person)
        else:
            median_s = BOT_CHOOSE_S if self.people.is_bot.item(person) else scenario.choose_s
            self._plan(self.now + median_s * next(self._choose_factor), self._request, person)
        self._plan_admission()

    def _request(self, person: int) -> None:
        """Requests are decided one after the other."""
        self._server_free_at = max(self.now, self._server_free_at) + 1 / self.scenario.holds_per_s
        self._plan(self._server_free_at, self._decide, person)

    def _leave(self, _person: int) -> None:
        if self.scenario.waiting_room:
            self._inside -= 1
            self.record.left_at.append(self.now)
            self._plan_admission()

    def _end_window(self, person: int) -> None:
        if person in self._hunting:
            self._hunting.remove(person)
            self._leave(person)

    # ── without one ───────────────────────────────────────────────────────────────────

    def _carry_out(self, requests: "FirstRequests") -> None:
        """First requests up to the next event. While nothing is free, all of them are refused at once."""
        while requests.place < len(requests.at_s):
            at_s = requests.at_s.item(requests.place)
            next_event_s = self._events[0][0] if self._events else self.scenario.until_s
            if next_event_s <= at_s:
                return
            if self.free:
                self.now = at_s
                self._decide(requests.people.item(requests.place))
                requests.place += 1
            else:
                refused = requests.take_until(next_event_s)
                self.record.refused += len(refused)
                self.hunters.add_many(refused)

    # ── seats ─────────────────────────────────────────────────────────────────────────

    def _decide(self, person: int) -> None:
        if self.people.size.item(person) <= self.free:
            self._hold(person)
            self._plan_hunt()
            return
        self.record.refused += 1
        self.hunters.add(person)
        if self.scenario.waiting_room:
            self._hunting.add(person)
            self._plan(max(self.now, self._gives_up_at(person)), self._end_window, person)

    def _gives_up_at(self, person: int) -> float:
        if self.scenario.waiting_room:
            return float(self.record.admitted_at[person]) + self.scenario.window_s
        return float(self.people.arrive_s[person]) + self.scenario.patience_s

    def _plan_hunt(self) -> None:
        """After every change of the free seats: the earlier plan is void, which costs nothing, as pauses
        have no memory."""
        self._hunt_plan += 1
        if self.free and (wait_s := self.hunters.next_try_s(self.free)) is not None:
            self._plan(self.now + wait_s, self._try_again, self._hunt_plan)

    def _try_again(self, plan: int) -> None:
        if plan != self._hunt_plan:
            return
        person = self.hunters.pick(self.free)
        if self._gives_up_at(person) >= self.now:
            self._hunting.discard(person)
            self._hold(person)
        self._plan_hunt()

    def _hold(self, person: int) -> None:
        scenario, is_bot = self.scenario, self.people.is_bot.item(person)
        self.free -= self.people.size.item(person)
        self.record.hold(self.now, self.free)
        self._hold_ends[person] = ends_at = self.now + scenario.hold_s
        checkout_s = (BOT_CHECKOUT_S if is_bot else scenario.checkout_s) * next(self._checkout_factor)
        abandons = next(self._abandoning) < scenario.abandon and not is_bot
        if abandons or checkout_s > scenario.hold_s:
            self._plan(ends_at, self._lapse, person)
        else:
            self._plan(self.now + checkout_s, self._pay, person)

    def _lapse(self, person: int) -> None:
        self.free += self.people.size.item(person)
        self.record.lapse(self.now, self.free)
        del self._hold_ends[person]
        self._leave(person)
        self._plan_admission()
        self._plan_hunt()

    # ── money ─────────────────────────────────────────────────────────────────────────

    def _pay(self, person: int) -> None:
        if self._paying >= self.scenario.payments_at_once:
            self._payers.append(person)
            return
        self._paying += 1
        self.record.paying_most = max(self.record.paying_most, self._paying)
        self._plan(self.now + self.scenario.payment_s * next(self._payment_factor), self._end_payment, person)

    def _end_payment(self, person: int) -> None:
        self._paying -= 1
        while self._payers and self._paying < self.scenario.payments_at_once:
            payer = self._payers.popleft()
            if self.now > self._hold_ends[payer] + PAYMENT_BUFFER_S:
                self._lapse(payer)
            else:
                self._pay(payer)
        if next(self._declining) < self.scenario.decline:
            self._decline(person)
            return
        del self._hold_ends[person]
        self.record.sell(person, self.now)
        self._leave(person)

    def _decline(self, person: int) -> None:
        """Another card, while there is one and the hold lasts; else the hold lapses when it ends."""
        self.record.declined += 1
        tries = self._tries[person] = self._tries.get(person, 0) + 1
        again_at, ends_at = self.now + OTHER_CARD_S, self._hold_ends[person]
        if tries < self.scenario.cards and again_at <= ends_at:
            self._plan(again_at, self._pay, person)
        else:
            self._plan(max(self.now, ends_at), self._lapse, person)


class FirstRequests:
    """Without a waiting room: everybody's first request, in the order in which they are decided."""

    def __init__(self, sale: OnSale) -> None:
        people, scenario = sale.people, sale.scenario
        sent_s = people.arrive_s + draw_choosing(scenario, people.is_bot, sale.streams["choosing"])
        self.people = np.argsort(sent_s, kind="stable")
        # One after the other: d[i] = max(sent[i], d[i-1]) + s, so d[i] - i·s is a running maximum.
        took_s = 1 / scenario.holds_per_s
        turns_s = np.arange(len(sent_s)) * took_s
        self.at_s = np.maximum.accumulate(sent_s[self.people] - turns_s) + turns_s + took_s
        self.place = 0

    def take_until(self, at_s: float) -> "NDArray[np.int64]":
        first = self.place
        self.place = max(first + 1, int(np.searchsorted(self.at_s, at_s)))
        return self.people[first : self.place]
