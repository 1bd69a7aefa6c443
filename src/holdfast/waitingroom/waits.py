"""Estimates of waits: a range from the measured rate, and how often it was right. No I/O."""

from collections.abc import Sequence

from msgspec import Struct

from holdfast.waitingroom.place import WaitRange

SLACK = 1.3  # rates change: what was measured may be off by this factor in both directions
POLL_S_MIN, POLL_S_MAX = 2, 60
POLL_NEAR_S = 30  # people whose turn is nearer than this look every POLL_S_MIN seconds
POLLS_PER_SECOND = 1_000  # that all waiting people together should cause
POINTS_MAX = 200  # of a log that are compared with each other


class LogPoint(Struct, frozen=True):
    """Where the queue was at a moment."""

    at_s: float
    serving: int


class Calibration(Struct, frozen=True):
    """How good the estimates were: of so many, so many held."""

    estimates: int
    within: int


def measure_rates(now: LogPoint, earlier: Sequence[LogPoint]) -> list[float]:
    """People per second since each of these moments; moments without progress say nothing."""
    return [
        (now.serving - then.serving) / (now.at_s - then.at_s)
        for then in earlier
        if now.at_s > then.at_s and now.serving > then.serving
    ]


def estimate_wait(ahead: int, rates: Sequence[float]) -> WaitRange | None:
    """None: no person was called yet, and any number would be made up."""
    if not rates:
        return None
    return WaitRange(int(ahead / (max(rates) * SLACK)), int(ahead / min(rates) * SLACK) + 1)


def choose_poll_s(wait: WaitRange | None) -> int:
    """When a person looks again: soon near the front, rarely far from it."""
    if wait is None:
        return POLL_S_MAX // 4
    if wait.low_s <= POLL_NEAR_S:
        return POLL_S_MIN
    return max(POLL_S_MIN, min(POLL_S_MAX, wait.low_s // 4))


def spread_polls_s(waiting: int) -> int:
    """How often everybody may look, so that all of them together stay below POLLS_PER_SECOND."""
    return max(5, min(POLL_S_MAX, waiting // POLLS_PER_SECOND))


def calibrate(points: Sequence[LogPoint]) -> Calibration:
    """Compares estimates that people were shown with what happened.

    At each moment of the log, a person whose position was called later has seen the range that the rates of
    that moment gave.
    """
    step = max(1, len(points) // POINTS_MAX)
    sampled = points[::step]
    estimates = within = 0
    for index, then in enumerate(sampled[1:], 1):
        rates = measure_rates(then, _moments_before(sampled, index))
        for later in sampled[index + 1 :]:
            if later.serving <= then.serving:
                continue
            wait = estimate_wait(later.serving - 1 - then.serving, rates)
            if wait is not None:
                estimates += 1
                within += wait.low_s <= later.at_s - then.at_s <= wait.high_s
    return Calibration(estimates, within)


def _moments_before(points: Sequence[LogPoint], index: int) -> list[LogPoint]:
    """A minute and five minutes before that point, and the beginning."""
    now = points[index].at_s
    found = [points[0]]
    for ago_s in (60, 300):
        older = [point for point in points[:index] if point.at_s <= now - ago_s]
        found += older[-1:]
    return found
