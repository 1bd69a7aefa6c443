"""How many people are called next. No I/O.

    called next = the least of   what the rate allows since the last call
                                 the cap on people inside, minus those who are inside or called
                                 twice the seats that are left, minus the same: more would come in vain
                                 the people who wait

The rate follows the ledger: it is halved while the ledger answers slowly, and grows back by a tenth of its
maximum every second.
"""

from dataclasses import dataclass

PEOPLE_PER_SEAT = 2  # some leave without buying; more than this would come in for nothing
LEDGER_SLOW_MS = 250.0
RATE_SHARE_MIN = 0.05  # of the maximum: a slow ledger still admits people
GROWTH_PER_S = 0.1  # of the maximum
BURST_S = 2.0  # after a pause, no more people at once than the rate gives in this time


@dataclass(frozen=True, slots=True)
class Measured:
    """A room at one moment."""

    inside: int  # called, inside, or gone a moment ago
    waiting: int
    seats_left: int
    since_call_s: float  # since the last call
    ledger_ms: float  # how long the ledger took to answer


def next_rate(rate: float, rate_max: float, measured: Measured, since_s: float = 1.0) -> float:
    """People per minute, from now on."""
    if measured.ledger_ms > LEDGER_SLOW_MS:
        return max(rate / 2, rate_max * RATE_SHARE_MIN)
    return min(rate_max, rate + rate_max * GROWTH_PER_S * since_s)


def count_next(measured: Measured, rate: float, inside_max: int) -> int:
    """How many people to call now."""
    # A slow rate is not rounded down to 0: time adds up until it is one person.
    seconds = min(measured.since_call_s, max(BURST_S, 60 / rate)) if rate > 0 else 0.0
    by_rate = int(rate / 60 * seconds + 1e-9)
    by_cap = inside_max - measured.inside
    by_stock = PEOPLE_PER_SEAT * measured.seats_left - measured.inside
    return max(0, min(by_rate, by_cap, by_stock, measured.waiting))
