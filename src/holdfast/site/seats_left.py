"""How a show stands, as a reader wants to know it: seats left, few, none, or when the sale opens. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from holdfast.catalogue import EventCard, SaleState, ShowCard
from holdfast.site.i18n import Localiser
from holdfast.site.names import weekday_name

FEW_SHARE, FEW_MAX = 0.1, 40  # "only n left" is said of so few, and of no more than one can imagine
SHOWS_IN_CARD_MAX = 4
WEEK = timedelta(days=6)  # within it a weekday says enough


@dataclass(frozen=True, slots=True)
class Left:
    """`tone` is the shape and the colour: many, few, none, opens, off, over. `left` counts only the few."""

    tone: str
    left: int = 0


# From the best news to the worst: a card of several shows tells the best.
TONES = ("many", "few", "opens", "none", "over", "off")
TONE_OF = {
    SaleState.UPCOMING: "opens",
    SaleState.SOLD_OUT: "none",
    SaleState.CANCELLED: "off",
    SaleState.PAST: "over",
}


def left_of(show: ShowCard) -> Left:
    """While nobody knows the free seats, a show on sale is told as such: the hold decides."""
    if show.sale_state is not SaleState.ON_SALE:
        return Left(TONE_OF[show.sale_state])
    if show.availability is None:
        return Left("many")
    available = show.availability.available
    few = available <= FEW_MAX and available <= max(4, show.availability.seats * FEW_SHARE)
    return Left("few", available) if few else Left("many")


def is_open(show: ShowCard) -> bool:
    return left_of(show).tone in ("many", "few")


def best_show(shows: Sequence[ShowCard]) -> ShowCard | None:
    """The one that a card of several tells how it stands."""
    return min(shows, key=lambda show: TONES.index(left_of(show).tone), default=None)


@dataclass(frozen=True, slots=True)
class From:
    price_minor: int
    currency: str


def cheapest(shows: Sequence[ShowCard]) -> From | None:
    """The lowest price in the currency of the first show: two currencies are not compared."""
    told = [show for show in shows if show.sale_state is not SaleState.CANCELLED]
    if not told:
        return None
    currency = told[0].currency
    return From(min(show.from_price_minor for show in told if show.currency == currency), currency)


def still_to_come(events: Sequence[EventCard], now: datetime) -> list[tuple[EventCard, list[ShowCard]]]:
    """Events with the shows that have not begun, those with seats first."""
    coming = [(event, [show for show in event.shows if show.starts_at > now]) for event in events]
    kept = [(event, shows) for event, shows in coming if shows]
    return sorted(kept, key=lambda pair: not any(is_open(show) for show in pair[1]))


def today_in(timezone: str, now: datetime) -> date:
    return now.astimezone(ZoneInfo(timezone)).date()


class Moments:
    """Days and times as people say them, seen from now."""

    def __init__(self, l10n: Localiser, now: datetime) -> None:
        self._l10n = l10n
        self._now = now

    def day(self, day: date, timezone: str, style: str = "MMMMEEEEd", *, within: bool = False) -> str:
        """Today, Tomorrow, or Friday, 20 November; `within` a sentence: today."""
        away = (day - today_in(timezone, self._now)).days
        if away in (0, 1):
            return self._l10n.t(f"browse.{('today', 'tomorrow')[away]}{'_within' if within else ''}")
        return self._l10n.day(day, style=style)

    def opens(self, show: ShowCard) -> str:
        """Opens Friday 10:00."""
        day = show.opens_at.astimezone(ZoneInfo(show.timezone)).date()
        time = self._l10n.time(show.opens_at, show.timezone)
        told = self.day(day, show.timezone, "MMMEd", within=True)
        if timedelta(days=1) < day - today_in(show.timezone, self._now) <= WEEK:
            told = weekday_name(day, self._l10n.locale)
        return self._l10n.t("browse.opens", day=told, time=time)

    def standing(self, show: ShowCard) -> str:
        """The words that go with left_of()."""
        left = left_of(show)
        if left.tone == "opens":
            return self.opens(show)
        if left.tone == "few":
            return self._l10n.t("browse.left_few", count=left.left)
        return self._l10n.t(f"browse.left_{left.tone}")
