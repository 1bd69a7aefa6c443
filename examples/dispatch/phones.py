"""The phones of the drivers: each shows one offer at a time, and its driver answers it, or does not.

A phone speaks with the ledger alone, as a request to any web server would: no answer depends on the worker
that made the offer.
"""

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from examples.dispatch.ledger import Ledger, OpenOffer


class Manner(Enum):
    """How a driver treats an offer."""

    ACCEPT = "accept"
    DECLINE = "decline"
    IGNORE = "ignore"  # the offer lapses
    LATE = "late"  # accepts after the offer has ended: the ledger refuses it
    TWICE = "twice"  # accepts, and the network sends it again: the second one changes nothing


@dataclass(frozen=True)
class Habits:
    """How often drivers do what, as weights, and how long they think, as a share of the offer's time."""

    weights: dict[Manner, float]
    thinks: tuple[float, float] = (0.05, 0.4)
    seed: int = 1

    def choose(self, offer_id: str) -> tuple[Manner, float]:
        """The same offer is always treated in the same way."""
        dice = random.Random(f"{self.seed} {offer_id}")
        (manner,) = dice.choices(list(self.weights), list(self.weights.values()))
        return manner, dice.uniform(*self.thinks)


@dataclass
class Shown:
    """An offer on a phone's screen."""

    offer: OpenOffer
    manner: Manner
    answers_at: float  # by this process' clock


@dataclass
class Phones:
    ledger: Ledger
    habits: Habits
    offline: set[int] = field(default_factory=set)  # drivers whose phone is switched off: they do not answer
    shown: dict[str, Shown] = field(default_factory=dict)
    _afterwards: list[Shown] = field(default_factory=list)  # late and second answers

    async def step(self) -> list[OpenOffer]:
        """Read the open offers and send the answers that are due; one that is not taken is sent again."""
        offers = await self.ledger.read_open_offers()
        now = time.monotonic()
        self._show(offers, now)
        due = [one for one in self.shown.values() if one.answers_at <= now]
        due += [one for one in self._afterwards if one.answers_at <= now]
        self._afterwards = [one for one in self._afterwards if one.answers_at > now]
        await self._send([one for one in due if one.offer.driver_id not in self.offline])
        return offers

    def _show(self, offers: Iterable[OpenOffer], now: float) -> None:
        before, self.shown = self.shown, {}
        for offer in offers:
            self.shown[offer.offer_id] = before.get(offer.offer_id) or self._open(offer, now)

    def _open(self, offer: OpenOffer, now: float) -> Shown:
        manner, share = self.habits.choose(offer.offer_id)
        waits_s = share * offer.whole_s
        if manner is Manner.LATE:
            self._afterwards.append(Shown(offer, manner, now + offer.left_s + waits_s))
        elif manner is Manner.TWICE:
            self._afterwards.append(Shown(offer, manner, now + 2 * waits_s))
        return Shown(offer, manner, now + waits_s)

    async def _send(self, due: list[Shown]) -> None:
        accepts = [one.offer.offer_id for one in due if self._accepts(one)]
        declines = [one.offer.offer_id for one in due if one.manner is Manner.DECLINE]
        if accepts:
            await self.ledger.accept_offers(accepts)
        if declines:
            await self.ledger.decline_offers(declines)

    def _accepts(self, one: Shown) -> bool:
        is_late = one.manner is Manner.LATE and one.offer.offer_id not in self.shown
        return is_late or one.manner in (Manner.ACCEPT, Manner.TWICE)
