"""A bar chart of what was sold over time, for a template to draw. No I/O.

    minutes of the figures ─► steps of a round length, at most BARS_MAX ─► bars

Empty steps in between are bars without a height, so that the axis is a clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from holdfast.reports import Minute

BARS_MAX = 60
HEIGHT = 100
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
STEPS = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY)
EPOCH = datetime(2024, 1, 1)  # a Monday, so that weeks begin on one


@dataclass(frozen=True, slots=True)
class Bar:
    begins_at: datetime  # in the time zone of the show
    sold: int
    returned: int
    height: float  # of HEIGHT


@dataclass(frozen=True, slots=True)
class Chart:
    bars: tuple[Bar, ...]
    step: timedelta
    most: int

    @property
    def has_days(self) -> bool:
        return self.step >= DAY

    @property
    def filled(self) -> tuple[Bar, ...]:
        return tuple(bar for bar in self.bars if bar.sold or bar.returned)


def build_chart(minutes: Sequence[Minute], timezone: str) -> Chart | None:
    """None: nothing has happened."""
    if not minutes:
        return None
    zone = ZoneInfo(timezone)
    times = [one.begins_at.astimezone(zone).replace(tzinfo=None) for one in minutes]
    step = next((one for one in STEPS if (times[-1] - times[0]) / one < BARS_MAX - 1), STEPS[-1])
    start = _begin(times[0], step)
    count = min((times[-1] - start) // step + 1, BARS_MAX)
    sold, returned = [0] * count, [0] * count
    for at, one in zip(times, minutes, strict=True):
        place = min((at - start) // step, count - 1)
        sold[place] += one.sold
        returned[place] += one.returned
    most = max(1, *sold)
    bars = (
        Bar(
            (start + place * step).replace(tzinfo=zone),
            sold[place],
            returned[place],
            sold[place] * HEIGHT / most,
        )
        for place in range(count)
    )
    return Chart(tuple(bars), step, most)


def _begin(at: datetime, step: timedelta) -> datetime:
    return EPOCH + (at - EPOCH) // step * step
