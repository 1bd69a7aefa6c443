"""What the templates of the browsing pages can use: availability, prices and dates in words. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.catalogue import EventCard, SaleState, ShowCard, choose_palette, poster_srcset, poster_url
from holdfast.site.i18n import Localiser, country_name, genre_name, language_name, weekday_name

FEW_SHARE, FEW_MAX = 0.1, 40  # "only n left" is shown below both limits
SHOWS_IN_CARD_MAX = 4
WEEK = timedelta(days=6)  # within it a weekday says enough


@dataclass(frozen=True, slots=True)
class SeatsLeft:
    """`tone` is the shape and the colour: many, few, none, opens, off, over. `left` counts only the few."""

    tone: str
    left: int = 0


# From the best news to the worst: a card of several shows tells the best.
TONES = ("many", "few", "opens", "none", "over", "off")
TONE_BY_STATE = {
    SaleState.UPCOMING: "opens",
    SaleState.SOLD_OUT: "none",
    SaleState.CANCELLED: "off",
    SaleState.PAST: "over",
}


def seats_left(show: ShowCard) -> SeatsLeft:
    """Without a count of free seats a show on sale is shown as available: the hold decides."""
    if show.sale_state is not SaleState.ON_SALE:
        return SeatsLeft(TONE_BY_STATE[show.sale_state])
    if show.availability is None:
        return SeatsLeft("many")
    available = show.availability.available
    few = available <= FEW_MAX and available <= max(4, show.availability.seats * FEW_SHARE)
    return SeatsLeft("few", available) if few else SeatsLeft("many")


def is_open(show: ShowCard) -> bool:
    return seats_left(show).tone in ("many", "few")


def best_show(shows: Sequence[ShowCard]) -> ShowCard | None:
    """The one that a card of several tells how it stands."""
    return min(shows, key=lambda show: TONES.index(seats_left(show).tone), default=None)


@dataclass(frozen=True, slots=True)
class FromPrice:
    price_minor: int
    currency: str


def cheapest(shows: Sequence[ShowCard]) -> FromPrice | None:
    """The lowest price in the currency of the first show with seats: two currencies are not compared."""
    prices = [(show.currency, show.from_price_minor) for show in shows if show.from_price_minor is not None]
    if not prices:
        return None
    currency = prices[0][0]
    return FromPrice(min(price for each, price in prices if each == currency), currency)


def upcoming_shows(events: Sequence[EventCard], now: datetime) -> list[tuple[EventCard, list[ShowCard]]]:
    """Events with the shows that have not begun, those with seats first."""
    coming = [(event, [show for show in event.shows if show.starts_at > now]) for event in events]
    upcoming = [(event, shows) for event, shows in coming if shows]
    return sorted(upcoming, key=lambda pair: not any(is_open(show) for show in pair[1]))


def today_in(timezone: str, now: datetime) -> date:
    return now.astimezone(ZoneInfo(timezone)).date()


class RelativeDates:
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
        day_text = self.day(day, show.timezone, "MMMEd", within=True)
        if timedelta(days=1) < day - today_in(show.timezone, self._now) <= WEEK:
            day_text = weekday_name(day, self._l10n.locale)
        return self._l10n.t("browse.opens", day=day_text, time=time)

    def status(self, show: ShowCard) -> str:
        """The words that go with left_of()."""
        left = seats_left(show)
        if left.tone == "opens":
            return self.opens(show)
        if left.tone == "few":
            return self._l10n.t("browse.left_few", count=left.left)
        return self._l10n.t(f"browse.left_{left.tone}")


STRONG_INKS = (0, 3, 5, 2, 7)  # those that white posters and dark ones stand out from


def ground_ink(cards: Sequence[EventCard]) -> int:
    """An ink for the ground behind these posters: one that none of them has, if there is one."""
    used = [choose_palette(card.kind, card.title) for card in cards]
    return min(STRONG_INKS, key=used.count)


def build_template_context(l10n: Localiser, now: datetime) -> dict[str, Any]:
    return {
        "dates": RelativeDates(l10n, now),
        "seats_left": seats_left,
        "best_show": best_show,
        "cheapest": cheapest,
        "ink_of": choose_palette,
        "poster_url": poster_url,
        "poster_srcset": poster_srcset,
        "genre_name": lambda genre: genre_name(genre, l10n),
        "language_name": lambda language: language_name(language, l10n.locale),
        "country_name": lambda code: country_name(code, l10n.locale),
    }
