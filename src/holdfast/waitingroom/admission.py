"""How many people are called next. No I/O.

    called next = the least of   what the rate allows since the last call
                                 the cap on people inside, minus those who are inside or called
                                 twice the seats that are left, minus the same: more would come in vain
                                 the people who wait

The rate follows what is measured. It is halved every second while one of the brakes below is on, and grows
back by a tenth of its maximum every second when none is. Without a measurement it is halved, too: a sale that
is too busy to measure must not look like a calm one.
"""

from dataclasses import dataclass, field
from enum import StrEnum

PEOPLE_PER_SEAT = 2  # some leave without buying; more than this would come in for nothing
LEDGER_SLOW_MS = 250.0
HOLD_SLOW_S = 0.5  # one of the bounds of the meter's histograms
SLOW_SHARE_MAX = 0.1  # of holds
REFUSED_SHARE_MAX = 0.01  # of holds: each of them is a buyer who came in for nothing
EVENTS_MIN = 3  # one slow hold of two does not make a trend
PAYMENTS_SHARE_MAX = 0.8  # of the calls of the gateway that web processes make at once
RATE_SHARE_MIN = 0.05  # of the maximum: a slow sale still admits people
GROWTH_PER_S = 0.1  # of the maximum
BURST_S = 2.0  # after a pause, no more people at once than the rate gives in this time


class Brake(StrEnum):
    """Why the rate does not grow."""

    LEDGER = "ledger"  # it answers slowly
    UNMEASURED = "unmeasured"  # no web process reports
    REFUSALS = "refusals"  # buyers are answered 503
    HOLDS = "holds"  # they are slow
    PAYMENTS = "payments"  # too many wait for the gateway
    SILENCE = "silence"  # some web process reported a moment ago, and does not now: the rate stays


@dataclass(frozen=True, slots=True)
class WebLoad:
    """What all web processes together measured in the last seconds."""

    processes: int = 0  # that have reported
    silent: int = 0  # that reported a moment ago, and do not any more
    holds: int = 0
    slow_holds: int = 0  # longer than HOLD_SLOW_S
    refused: int = 0  # because we were too busy
    payments: int = 0  # calls of the gateway under way
    payments_max: int = 0  # that the processes make at once


@dataclass(frozen=True, slots=True)
class Measured:
    """A room at one moment."""

    inside: int  # called, inside, or gone a moment ago
    waiting: int
    seats_left: int
    since_call_s: float  # since the last call
    ledger_ms: float  # how long the ledger took to answer
    load: WebLoad = field(default_factory=WebLoad)


def find_brake(measured: Measured) -> Brake | None:
    """None: the sale has room for more people per minute."""
    load = measured.load
    if measured.ledger_ms > LEDGER_SLOW_MS:
        return Brake.LEDGER
    if load.processes == 0:
        return Brake.UNMEASURED
    if load.refused >= EVENTS_MIN and load.refused > REFUSED_SHARE_MAX * load.holds:
        return Brake.REFUSALS
    if load.slow_holds >= EVENTS_MIN and load.slow_holds > SLOW_SHARE_MAX * load.holds:
        return Brake.HOLDS
    if load.payments > PAYMENTS_SHARE_MAX * load.payments_max:
        return Brake.PAYMENTS
    return Brake.SILENCE if load.silent else None


def next_rate(rate: float, rate_max: float, brake: Brake | None, since_s: float = 1.0) -> float:
    """People per minute, from now on; never more than the maximum, which may have changed."""
    match brake:
        case None:
            wanted = rate + rate_max * GROWTH_PER_S * since_s
        case Brake.SILENCE:
            wanted = rate
        case _:
            wanted = rate / 2
    return min(rate_max, max(wanted, rate_max * RATE_SHARE_MIN))


def count_next(measured: Measured, rate: float, inside_max: int) -> int:
    """How many people to call now."""
    # A slow rate is not rounded down to 0: time adds up until it is one person.
    seconds = min(measured.since_call_s, max(BURST_S, 60 / rate)) if rate > 0 else 0.0
    by_rate = int(rate / 60 * seconds + 1e-9)
    by_cap = inside_max - measured.inside
    by_stock = PEOPLE_PER_SEAT * measured.seats_left - measured.inside
    return max(0, min(by_rate, by_cap, by_stock, measured.waiting))
