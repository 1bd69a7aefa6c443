"""Shows of an event or a venue, by city, day and place. No I/O."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from holdfast.catalogue import SaleState, ShowCard, VenuePage

AGENDA_MAX = 10  # so few shows are listed_day all at once; more by the day
DAYS_MAX = 60  # of the row


@dataclass(frozen=True, slots=True)
class VenueShows:
    venue_id: int
    venue: str
    shows: list[ShowCard]


@dataclass(frozen=True, slots=True)
class DayShows:
    day: date
    timezone: str
    places: list[VenueShows]


@dataclass(frozen=True, slots=True)
class DayOrCity:
    """A day of the row, or a city."""

    value: str
    shows: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Timetable:
    cities: list[DayOrCity]
    here: list[ShowCard]  # in the city that is listed_day
    days: list[tuple[date, DayOrCity]]  # none: all shows are listed_day at once
    listed: list[DayShows]


def build_timetable(
    shows: Sequence[ShowCard], preferred_cities: Sequence[str], day: date | None
) -> Timetable:
    """What of an event's shows is listed_day: those of one city, and of one day when there are many.

    The city is the first preferred one with a show, else the one with the next show.
    """
    by_city = Counter(show.city for show in shows)
    chosen = next((slug for slug in preferred_cities if slug in by_city), shows[0].city if shows else None)
    here = [show for show in shows if show.city == chosen]
    by_day = Counter(show.local_date for show in here)
    cities = [DayOrCity(slug, count, slug == chosen) for slug, count in by_city.items()]
    if len(here) <= AGENDA_MAX:
        return Timetable(cities, here, [], group_by_day(here))
    days = sorted(by_day)[:DAYS_MAX]
    listed_day = day if day in by_day else first_day(here)
    row = [(each, DayOrCity(each.isoformat(), by_day[each], each == listed_day)) for each in days]
    return Timetable(
        cities, here, row, group_by_day([show for show in here if show.local_date == listed_day])
    )


def first_day(shows: Sequence[ShowCard]) -> date:
    """The first with a show that one can go to, else the first."""
    going = [show for show in shows if show.sale_state not in (SaleState.CANCELLED, SaleState.PAST)]
    return (going or shows)[0].local_date


def group_by_day(shows: Iterable[ShowCard]) -> list[DayShows]:
    """Day by day, venue by venue; the order of the shows stays."""
    days: dict[tuple[date, str], dict[int, VenueShows]] = {}
    for show in shows:
        places = days.setdefault((show.local_date, show.timezone), {})
        places.setdefault(show.venue_id, VenueShows(show.venue_id, show.venue, [])).shows.append(show)
    return [DayShows(day, zone, list(places.values())) for (day, zone), places in days.items()]


@dataclass(frozen=True, slots=True)
class VenueEvent:
    """An event at a venue on a day."""

    event_id: int
    title: str
    shows: list[ShowCard]


def group_by_event(shows: Iterable[ShowCard]) -> list[VenueEvent]:
    """What is on at a venue on a day: an event once, with its times."""
    events: dict[int, VenueEvent] = {}
    for show in shows:
        events.setdefault(show.event_id, VenueEvent(show.event_id, show.title, [])).shows.append(show)
    return list(events.values())


def venue_days(venue: VenuePage, day: date | None) -> tuple[list[tuple[date, DayOrCity]], date | None]:
    """The row of a venue's days, and which of them is listed_day."""
    by_day = Counter(show.local_date for show in venue.shows)
    if not by_day:
        return [], None
    listed_day = day if day in by_day else first_day(venue.shows)
    days = sorted(by_day)[:DAYS_MAX]
    return [
        (each, DayOrCity(each.isoformat(), by_day[each], each == listed_day)) for each in days
    ], listed_day
