"""How large a rehearsal is. No I/O."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.simulation.scenario import PARTY_MAX, find_faults, given, share


@dataclass(frozen=True, kw_only=True)
class RehearsalOptions:
    show: int = given(0, "a show on sale to buy from; 0: make one, which needs --organiser", most=2**63 - 1)
    admit_per_s: float = given(20.0, "people per second that the on-sale wants to admit", most=100_000)
    no_show: float = share(0.05, "share of the people who do not respond to their turn")
    abandon: float = share(0.05, "share of holds that are never paid")
    seats_per_order: int = given(1, "seats of a purchase", least=1, most=PARTY_MAX)
    tickets: bool = given(True, "buyers open their tickets after the payment")
    accounts: int = given(20, "test accounts that are made", least=1, most=1000)
    first: int = given(1, "buyers at the same time, to begin with", least=1, most=1000)
    at_once: int = given(64, "buyers at the same time, at most", least=1, most=1000)
    level_s: float = given(3, "seconds at each number of buyers", least=0.1, most=60)
    purchases: int = given(4000, "purchases in total, at most", least=1, most=100_000)
    seconds: float = given(60, "seconds of load in total, about", least=1, most=600)

    @property
    def seats(self) -> int:
        return self.purchases * self.seats_per_order

    @property
    def buying_share(self) -> float:
        """Of the people who are admitted, how many get to a payment."""
        return max(0.01, (1 - self.no_show) * (1 - self.abandon))

    def faults(self) -> Iterator[str]:
        yield from find_faults(self)
