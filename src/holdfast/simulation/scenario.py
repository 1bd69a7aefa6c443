"""What is known before an on-sale: people, seats, times, admission. No I/O.

Every field is an option of the commands (`--hold-s 600`), with its default and its meaning. Times are medians
unless they say otherwise; people differ from each other by a log-normal factor, as measured people do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PEOPLE_MAX = 20_000_000
SEATS_MAX = 1_000_000
PARTY_MAX = 10
DAY_S = 86_400.0


def given(default: Any, why: str, *, least: float = 0, most: float = DAY_S) -> Any:
    return field(default=default, metadata={"why": why, "least": least, "most": most})


def share(default: float, why: str) -> Any:
    return given(default, why, most=1)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    people: int = given(100_000, "people who want tickets, bots included", least=1, most=PEOPLE_MAX)
    seats: int = given(2_000, "seats on sale", least=1, most=SEATS_MAX)
    bots: float = share(0.0, "share of the people who are programs; all are there when the sale opens")
    early: float = share(0.5, "share of the people who are there when the sale opens")
    arrivals: str = given("exponential", "when the others come: exponential or uniform")
    arrive_s: float = given(600, "mean (exponential) or length (uniform) of the time in which they come")
    party: str = given("1:25,2:50,3:10,4:15", "seats per order and their weights; bots want the most")

    waiting_room: bool = given(True, "admit people from a waiting room, in the order of a draw")
    admit_per_s: float = given(20.0, "people admitted per second", least=0.001, most=100_000)
    inside_max: int = given(2_000, "people inside at the same time", least=1, most=PEOPLE_MAX)
    window_s: float = given(900, "shopping window: time to hold seats after admission", least=1)
    no_show: float = share(0.05, "share of the people who do not respond to their turn")
    turn_s: float = given(60, "a turn that is not used ends after this", least=0.001)

    spread: float = given(0.6, "how people differ: sigma of the log-normal factor; 0: not at all", most=3)
    choose_s: float = given(40, "time from the seat map to a choice")
    retry_s: float = given(10, "mean pause before another try of people who found no seats", least=0.001)
    patience_s: float = given(900, "without a waiting room, people stop trying after this", least=1)
    hold_s: float = given(600, "length of a hold", least=1)
    checkout_s: float = given(90, "time from the hold to the pay button")
    abandon: float = share(0.05, "share of holds that are never paid")
    payment_s: float = given(2.0, "time of a payment at the gateway", least=0.0001)
    payments_at_once: int = given(128, "payments at the gateway at the same time", least=1, most=1_000_000)
    decline: float = share(0.08, "share of payments that are declined")
    cards: int = given(2, "cards that a buyer tries", least=1, most=10)
    holds_per_s: float = given(8_000.0, "hold requests decided per second", least=0.01, most=10_000_000)
    until_s: float = given(7_200, "the simulation ends here if seats are left", least=1)
    seed: int = given(1, "the same seed gives the same sale", most=2**63 - 1)

    @property
    def sizes(self) -> dict[int, float]:
        """Seats per order → share of the orders."""
        weights = dict(_parse_party(self.party))
        total = sum(weights.values())
        return {size: weight / total for size, weight in sorted(weights.items())}

    def faults(self) -> Iterator[str]:
        """What cannot be simulated, one line each, in the words of the options."""
        yield from find_faults(self)
        if self.arrivals not in ("exponential", "uniform"):
            yield f"--arrivals {self.arrivals}: must be exponential or uniform"
        yield from _party_faults(self.party)


def find_faults(options: "DataclassInstance") -> Iterator[str]:
    """Numbers out of their range."""
    for each in fields(options):
        value = getattr(options, each.name)
        low, high = each.metadata["least"], each.metadata["most"]
        if isinstance(value, int | float) and not low <= value <= high:
            yield f"--{each.name.replace('_', '-')} {value}: must be between {low:g} and {high:g}"


def _parse_party(text: str) -> Iterator[tuple[int, float]]:
    for part in text.split(","):
        size, _, weight = part.partition(":")
        yield int(size), float(weight or 1)


def _party_faults(text: str) -> Iterator[str]:
    try:
        weights = dict(_parse_party(text))
    except ValueError:
        yield f"--party {text}: use for example 1:25,2:50,4:25 (seats:weight)"
        return
    if not all(1 <= size <= PARTY_MAX for size in weights):
        yield f"--party {text}: an order has 1 to {PARTY_MAX} seats"
    if not all(0 <= weight < float("inf") for weight in weights.values()) or not sum(weights.values()) > 0:
        yield f"--party {text}: weights must not be negative, and one must be more than 0"
