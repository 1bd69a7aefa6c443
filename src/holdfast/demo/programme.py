"""What the demo box office plays: cities, venues, events and a timetable. Invented, all of it; no I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

import msgspec
from msgspec.structs import replace

from holdfast.catalogue.event import Kind
from holdfast.pricing.rules import DemandStep, EarlyStep, LateStep, PriceRule, PriceRules
from holdfast.pricing.terms import RefundPolicy, RefundStep, Terms

DAYS = 14
SALE_OPENS_DAYS = 11  # before the show: what plays later than that is not on sale yet


@dataclass(frozen=True, slots=True)
class DemoCity:
    slug: str
    name: str
    country: str
    timezone: str
    lat: float
    lon: float
    currency: str
    price_minor: int  # what an ordinary cinema seat costs there
    languages: tuple[str, ...]  # of the films that play there


@dataclass(frozen=True, slots=True)
class DemoVenue:
    city: str
    name: str
    address: str
    postal_code: str
    lat: float
    lon: float
    halls: tuple[tuple[str, str], ...]  # name, layout: see seed.py


@dataclass(frozen=True, slots=True)
class DemoEvent:
    kind: Kind
    title: str
    genre: str
    language: str
    duration_min: int
    rating: float
    description: str
    featured: bool = False
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduledShow:
    """A show of the timetable; its time is the clock on the wall of that city."""

    venue: str
    hall: str
    title: str
    starts_local: datetime


CITIES = (
    DemoCity(
        "mumbai",
        "Mumbai",
        "IN",
        "Asia/Kolkata",
        19.0760,
        72.8777,
        "INR",
        32_000,
        ("Hindi", "English", "Tamil"),
    ),
    DemoCity(
        "bengaluru",
        "Bengaluru",
        "IN",
        "Asia/Kolkata",
        12.9716,
        77.5946,
        "INR",
        28_000,
        ("English", "Hindi", "Tamil"),
    ),
    DemoCity(
        "chennai",
        "Chennai",
        "IN",
        "Asia/Kolkata",
        13.0827,
        80.2707,
        "INR",
        19_000,
        ("Tamil", "Hindi", "English"),
    ),
    DemoCity("paris", "Paris", "FR", "Europe/Paris", 48.8566, 2.3522, "EUR", 1_150, ("French", "English")),
    DemoCity(
        "berlin",
        "Berlin",
        "DE",
        "Europe/Berlin",
        52.5200,
        13.4050,
        "EUR",
        1_050,
        ("German", "English", "French"),
    ),
    DemoCity(
        "london",
        "London",
        "GB",
        "Europe/London",
        51.5074,
        -0.1278,
        "GBP",
        1_250,
        ("English", "Hindi", "French"),
    ),
    DemoCity("tokyo", "Tokyo", "JP", "Asia/Tokyo", 35.6762, 139.6503, "JPY", 1_900, ("Japanese", "English")),
)

TWO_SCREENS = (("Hall 1", "cinema"), ("Hall 2", "cinema"))

VENUES = (
    DemoVenue(
        "mumbai", "Regal Court Cinemas", "14 Marine Lines Road", "400020", 18.9432, 72.8236, TWO_SCREENS
    ),
    DemoVenue(
        "mumbai",
        "Sagar Concert Hall",
        "2 Worli Sea Face",
        "400018",
        19.0118,
        72.8153,
        (("Great Hall", "theatre"), ("Studio", "studio")),
    ),
    DemoVenue(
        "mumbai",
        "Monsoon Stadium",
        "Gate 4, Churchgate Maidan",
        "400020",
        18.9389,
        72.8258,
        (("Stadium", "stadium"),),
    ),
    DemoVenue(
        "bengaluru", "Banyan Picture House", "61 Church Street", "560001", 12.9750, 77.6050, TWO_SCREENS
    ),
    DemoVenue(
        "bengaluru", "Cubbon Hall", "9 Kasturba Road", "560001", 12.9763, 77.5929, (("Main Hall", "theatre"),)
    ),
    DemoVenue("chennai", "Marina Talkies", "88 Kamarajar Salai", "600005", 13.0500, 80.2824, TWO_SCREENS),
    DemoVenue("paris", "Cinéma des Quais", "37 quai de Valmy", "75010", 48.8709, 2.3660, TWO_SCREENS),
    DemoVenue(
        "paris",
        "Salle Verlaine",
        "120 avenue de la Villette",
        "75019",
        48.8911,
        2.3935,
        (("Grande salle", "theatre"),),
    ),
    DemoVenue("berlin", "Kino am Kanal", "Paul-Lincke-Ufer 22", "10999", 52.4955, 13.4301, TWO_SCREENS),
    DemoVenue(
        "london", "Thameside Picture Palace", "5 Upper Ground", "SE1 9PD", 51.5081, -0.1070, TWO_SCREENS
    ),
    DemoVenue(
        "london",
        "Old Foundry Theatre",
        "41 Southwark Street",
        "SE1 1RU",
        51.5049,
        -0.0952,
        (("Auditorium", "theatre"),),
    ),
    DemoVenue("tokyo", "Kawabe Eigakan", "3-14 Kagurazaka", "162-0825", 35.7017, 139.7410, TWO_SCREENS),
)

# What a seat of each category costs, in ordinary cinema seats.
PRICE_OF = {
    "Standard": 1.0,
    "Premium": 1.5,
    "Front stalls": 6.0,
    "Stalls": 4.5,
    "Circle": 3.5,
    "Balcony and choir": 2.5,
    "Standing": 1.5,
    "Floor": 2.5,
    "Mezzanine": 3.5,
    "Club": 9.0,
    "Category 1": 5.5,
    "Category 2": 3.5,
    "Category 3": 2.0,
}
ROUND_TO = {"INR": 1_000, "EUR": 50, "GBP": 50, "JPY": 100}

# Fee and tax as they are usual where the currency is; both are in the price.
TERMS = {
    "EUR": Terms(fee_minor=150, tax_bp=700),
    "GBP": Terms(fee_minor=125, tax_bp=2000),
    "INR": Terms(fee_bp=500, tax_bp=1800),
    "JPY": Terms(fee_minor=110, tax_bp=1000),
}
# What comes back, by what is seen: a cinema is full again by the evening, a concert hall is not.
POLICIES = {
    Kind.FILM: RefundPolicy(steps=(RefundStep(hours_before=2, percent=100),)),
    Kind.CONCERT: RefundPolicy(
        steps=(RefundStep(hours_before=48, percent=100), RefundStep(hours_before=2, percent=50))
    ),
    Kind.MATCH: RefundPolicy(
        steps=(RefundStep(hours_before=168, percent=100), RefundStep(hours_before=24, percent=50)),
        keep_fee=True,
    ),
}
MATCH_CARD_SEATS_MAX = 6  # against those who buy to sell again

# On the shows that the demo's welcome names first.
FREE_TITLE, FREE_AT = "Lunchtime Ragas", time(12, 30)
NEARLY_SOLD_OUT_TITLE = "Aurora String Quartet: Farewell Night"
OPENING_SOON_TITLE = "Paper Tigers: The Fold Tour"
FREE_HALL = ("Sagar Concert Hall", "Studio")
NEARLY_SOLD_OUT_HALL = FREE_HALL
OPENING_SOON_HALL = ("Cubbon Hall", "Main Hall")

FILM_TIMES = (time(18, 15), time(21, 0))
MATINEE = time(14, 45)
CONCERT_AT = time(20, 0)
MATCH_AT = time(19, 0)
WEEKEND = (5, 6)


def timetable(first: date, events: tuple[DemoEvent, ...]) -> Iterator[ScheduledShow]:
    """All shows of two weeks. A date always has the same shows."""
    for day in (first + timedelta(days=n) for n in range(DAYS)):
        for number, venue in enumerate(VENUES):
            for hall, layout in venue.halls:
                yield from _day(day, number, venue, hall, layout, events)


def _day(
    day: date, number: int, venue: DemoVenue, hall: str, layout: str, events: tuple[DemoEvent, ...]
) -> Iterator[ScheduledShow]:
    turn = day.toordinal() + number
    if (venue.name, hall) == FREE_HALL:
        yield ScheduledShow(venue.name, hall, FREE_TITLE, datetime.combine(day, FREE_AT))
    elif (venue.name, hall) == OPENING_SOON_HALL:
        return
    elif layout == "cinema":
        yield from _films(day, turn, venue, hall, events)
    elif layout in ("theatre", "club") and turn % 2 == 0:
        concerts = [e.title for e in events if e.kind is Kind.CONCERT and e.title not in NAMED]
        yield ScheduledShow(
            venue.name, hall, concerts[turn // 2 % len(concerts)], datetime.combine(day, CONCERT_AT)
        )
    elif layout == "stadium" and turn % 3 == 0:
        matches = [e.title for e in events if e.kind is Kind.MATCH]
        yield ScheduledShow(
            venue.name, hall, matches[turn // 3 % len(matches)], datetime.combine(day, MATCH_AT)
        )


def _films(
    day: date, turn: int, venue: DemoVenue, hall: str, events: tuple[DemoEvent, ...]
) -> Iterator[ScheduledShow]:
    languages = CITY[venue.city].languages
    films = [e.title for e in events if e.kind is Kind.FILM and e.language in languages]
    times = (MATINEE, *FILM_TIMES) if day.weekday() in WEEKEND else FILM_TIMES
    second = len(films) // 2 if hall == "Hall 2" else 0
    for place, at in enumerate(times):
        film = films[(turn + second + place * 3) % len(films)]
        yield ScheduledShow(venue.name, hall, film, datetime.combine(day, at))


def terms_for(city: DemoCity, kind: Kind) -> Terms:
    return msgspec.structs.replace(
        TERMS[city.currency],
        refund_policy=POLICIES[kind],
        card_seats_max=MATCH_CARD_SEATS_MAX if kind is Kind.MATCH else None,
    )


def price_minor(city: DemoCity, category: str) -> int:
    step = ROUND_TO[city.currency]
    return round(city.price_minor * PRICE_OF[category] / step) * step


CITY = {city.slug: city for city in CITIES}
NAMED = (FREE_TITLE, NEARLY_SOLD_OUT_TITLE, OPENING_SOON_TITLE)


FLOOR, CEILING = 60, 160  # percent of the base
EARLY = -15
DEMAND = ((30, 10), (60, 25), (85, 50))  # from so many percent sold on, so many percent more
LAST_HOURS, LAST = 6, -20
EARLY_ENDS = timedelta(days=2)  # before the show


def early_price(prices: Mapping[str, int], currency: str, starts_at: datetime, round_to: int) -> PriceRules:
    """Cheaper until two days before."""
    until = starts_at - EARLY_ENDS
    rules = [
        replace(
            _rule(name, base), early=(EarlyStep(until=until, change_minor=_share(base, EARLY, round_to)),)
        )
        for name, base in prices.items()
    ]
    return PriceRules(currency=currency, rules=tuple(rules))


def by_demand(prices: Mapping[str, int], currency: str, round_to: int) -> PriceRules:
    """Dearer the more is sold, and cheaper in the last hours."""
    rules = [
        replace(
            _rule(name, base),
            late=(LateStep(hours_before=LAST_HOURS, change_minor=_share(base, LAST, round_to)),),
            demand=tuple(
                DemandStep(sold_percent=percent, change_minor=_share(base, more, round_to))
                for percent, more in DEMAND
            ),
        )
        for name, base in prices.items()
    ]
    return PriceRules(currency=currency, rules=tuple(rules))


def _rule(name: str, base: int) -> PriceRule:
    return PriceRule(
        category=name,
        base_minor=base,
        floor_minor=base * FLOOR // 100,
        ceiling_minor=base * CEILING // 100,
    )


def _share(base: int, percent: int, round_to: int) -> int:
    return round(base * percent / 100 / round_to) * round_to
