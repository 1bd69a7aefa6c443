"""R2: search finds. The demo's programme, questions as people type them, and what they meant."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.app import Box, box_office
from holdfast.catalogue import Kind
from holdfast.catalogue.schedule.store import PlannedShow, add_shows
from holdfast.catalogue.show import Times
from holdfast.config import Config
from holdfast.demo.repertoire import EVENTS
from holdfast.demo.seed import populate
from holdfast.engines.checks import connect
from holdfast.engines.migrate import migrate
from holdfast.search.query import SearchAsked, Sort, understood
from holdfast.search.refusals import NoSuchPostalCode, SearchTooSlow
from holdfast.search.store import REST_FROM, Finder
from holdfast.search.word import words_of

LIGHTHOUSE, ARITHMETIC = "The Lighthouse Keeper's Daughter", "Monsoon Arithmetic"
KADAL, BIRDS, TRAM = "Kadal Paadum Paadal", "Les Oiseaux Mécaniques", "Le Dernier Tram"
STATION, RAIN, UMBRELLA, TRAIN = "आख़िरी स्टेशन", "बारिश का गणित", "நீலக் குடை", "மழைக்கால ரயில்"
SUMMER, HEART = "L'Été à Saint-Malo", "Le Cœur à l'ouvrage"

FORTY = [
    # as it is, in any case
    ("monsoon arithmetic", ARITHMETIC),
    ("THE QUIET ALGORITHM", "The Quiet Algorithm"),
    ("neelam", "Neelam"),
    ("tabla & tape", "Tabla & Tape"),
    # misspelt
    ("monsson aritmetic", ARITHMETIC),
    ("lighthose keeper", LIGHTHOUSE),
    ("lighthouse kepers", LIGHTHOUSE),
    ("nachtzgu nach norden", "Nachtzug nach Norden"),
    ("quite algoritm", "The Quiet Algorithm"),
    ("orkestra ninth", "Orchestra of the Ninth Hour"),
    ("velvt tramlines", "The Velvet Tramlines"),
    ("kadal padum", KADAL),
    ("zimer mit kran", "Zimmer mit Kran"),
    ("dhop chhaon", "Dhoop Chhaon"),
    # accents, or none
    ("mecaniques", BIRDS),
    ("oiseaux mécaniques", BIRDS),
    ("ete a saint malo", SUMMER),
    ("l'été", SUMMER),
    ("coeur ouvrage", HEART),
    ("etoile du sud", "Monsoon City v Étoile du Sud"),
    # unfinished, joined, apart
    ("lighth", LIGHTHOUSE),
    ("orbit of sm", "Orbit of Small Things"),
    ("cartog", "La Cartographe"),
    ("dernier tr", TRAM),
    ("chaifor two", "Chai for Two"),
    ("tin robots dont cry", "Tin Robots Don't Cry"),
    ("bass ment theory", "Bassment Theory"),
    # Hindi and Tamil, whole, unfinished, misspelt, without the dot beneath
    ("आख़िरी स्टेशन", STATION),
    ("आखिरी", STATION),
    ("स्टेश", STATION),
    ("बारीश गणित", RAIN),
    ("நீலக் குடை", UMBRELLA),
    ("மழைக்கா", TRAIN),
    ("மழைகால ரயில்", TRAIN),
    # by place and sort
    ("comedy mumbai", ARITHMETIC),
    ("berlin thriller german", "Nachtzug nach Norden"),
    # by people
    ("ingrid solheim", LIGHTHOUSE),
    ("lemaitre", "Les Heures Bleues"),
    ("ananya krishnamurti", "Ritu Collective"),
    ("मीरा कुलकर्णी", STATION),
]


@pytest.fixture(scope="module")
async def demo(config: Config) -> AsyncIterator[Box]:
    """The demo in a database of its own: nobody else's events are found in it."""
    name = f"search_{secrets.token_hex(4)}"
    connection = await connect(config.database_url)
    await connection.execute(f"CREATE DATABASE {name}")
    url = config.database_url.replace("/holdfast?", f"/{name}?")
    own = await connect(url)
    await migrate(own)
    await own.close()
    async with box_office(replace(config, database_url=url)) as box:
        await populate(box, lambda _what, _done, _of: None)
        await play_the_rest(box)
        await box.index.reindex()
        yield box
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


async def play_the_rest(box: Box) -> None:
    """The timetable of a fortnight leaves some events out, others on another day: give those a show, too."""
    rows = await box.postgres.fetch(
        "SELECT DISTINCT ON (event.id) event.id AS event_id, other.hall_id, other.layout_hash,"
        "       other.starts_at + interval '40 days' AS starts_at, other.currency,"
        "       array(SELECT category FROM price WHERE show_id = other.id) AS categories"
        "  FROM event"
        "  JOIN (SELECT show.*, kind FROM show JOIN event ON event.id = event_id) AS other USING (kind)"
        " WHERE event.id NOT IN (SELECT event_id FROM show WHERE starts_at > now())"
    )
    two_hours, now = timedelta(hours=2), datetime.now(UTC)
    planned = [
        PlannedShow(
            event_id=row["event_id"],
            hall_id=row["hall_id"],
            layout_hash=row["layout_hash"],
            times=Times(
                starts_at=row["starts_at"],
                ends_at=row["starts_at"] + two_hours,
                opens_at=now,
                closes_at=row["starts_at"],
            ),
            currency=row["currency"],
            prices=dict.fromkeys(row["categories"], 50_000),
        )
        for row in rows
    ]
    if planned:
        async with box.postgres.transaction() as tx:
            await add_shows(tx, planned)


async def titles(box: Box, asked: SearchAsked) -> list[str]:
    """What is found, in order."""
    search = understood(asked)
    search = await box.search.at(search, await box.search.point(search))
    meaning = await box.search.meaning(search.words)
    hits = [] if meaning.is_hopeless else await box.search.hits(search, meaning)
    events = await box.catalogue.events([hit.event_id for hit in hits[: search.size]])
    return [events[hit.event_id].title for hit in hits[: search.size]]


def test_there_are_forty() -> None:
    assert len(FORTY) == len({typed for typed, _ in FORTY}) == 40
    assert {title for _, title in FORTY} <= {event.title for event in EVENTS}


@pytest.mark.parametrize("typed, meant", FORTY, ids=[typed for typed, _ in FORTY])
async def test_what_was_meant_is_among_the_first_three(demo: Box, typed: str, meant: str) -> None:
    assert meant in (await titles(demo, SearchAsked(q=typed)))[:3]


async def test_what_is_misspelt_is_said(demo: Box) -> None:
    meaning = await demo.search.meaning(("monsson", "aritmetic"))

    assert (meaning.words, meaning.match, meaning.is_corrected) == (("monsoon", "arithmetic"), "all", True)


async def test_what_is_spelt_right_is_left_alone(demo: Box) -> None:
    meaning = await demo.search.meaning(("monsoon", "arithmetic"))

    assert not meaning.is_corrected


async def test_when_nothing_has_all_the_words_some_are_enough(demo: Box) -> None:
    meaning = await demo.search.meaning(("tokyo", "nachtzug"))
    found = await titles(demo, SearchAsked(q="tokyo nachtzug"))

    assert meaning.match == "any"
    assert "Nachtzug nach Norden" in found
    assert "Ame no Jikokuhyo" in found


async def test_what_nothing_comes_near_finds_nothing(demo: Box) -> None:
    assert await titles(demo, SearchAsked(q="xqzwvj")) == []


async def test_only_punctuation_finds_all(demo: Box) -> None:
    everything = await titles(demo, SearchAsked(size=50))

    assert len(everything) >= 30
    assert await titles(demo, SearchAsked(q="?!… --", size=50)) == everything


@pytest.mark.parametrize(
    "typed", ["' OR 1=1 --", "a':*A | 'b", "\\", "%_%", "(((", "a & !b", "<->", "$1", ":*"]
)
async def test_what_means_something_to_engines_means_nothing_here(demo: Box, typed: str) -> None:
    assert isinstance(await titles(demo, SearchAsked(q=typed)), list)


async def test_near_a_point_the_nearest_come_first(demo: Box) -> None:
    asked = SearchAsked(near="48.8566,2.3522", radius_km=10, sort=Sort.DISTANCE, size=50)
    search = understood(asked)
    near = (await demo.search.at(search, await demo.search.point(search))).filters

    found = await titles(demo, asked)

    assert list(near.distances_km) == sorted(near.distances_km)
    assert {"Les Heures Bleues", TRAM} <= set(found)
    assert KADAL not in found


async def test_a_radius_ends_where_it_says(demo: Box) -> None:
    """Regal Court Cinemas and Sagar Concert Hall in Mumbai are 7.7 km apart."""
    cinema = SearchAsked(near="18.9432,72.8236", radius_km=7.5)
    search = understood(cinema)
    within = await demo.search.at(search, search.near)
    beyond = await demo.search.at(replace(search, radius_km=8.0), search.near)

    assert len(within.filters.venues or ()) + 1 == len(beyond.filters.venues or ())


async def test_a_postal_code_is_where_its_venues_are(demo: Box) -> None:
    exact = await demo.search.point(understood(SearchAsked(postal_code="SE1 9PD")))
    beside = await demo.search.point(understood(SearchAsked(postal_code="10997")))

    assert exact is not None
    assert (round(exact.lat, 4), round(exact.lon, 4)) == (51.5081, -0.1070)
    assert beside is not None
    assert round(beside.lat, 2) == 52.50
    with pytest.raises(NoSuchPostalCode):
        await demo.search.point(understood(SearchAsked(postal_code="99999")))


async def test_filters_are_of_one_and_the_same_show(demo: Box) -> None:
    """A film that plays in Tokyo and costs rupees elsewhere does not play in Tokyo for rupees."""
    tokyo = await titles(demo, SearchAsked(city="tokyo", size=50))

    assert tokyo
    assert await titles(demo, SearchAsked(city="tokyo", currency="INR", size=50)) == []
    assert set(await titles(demo, SearchAsked(city="tokyo", currency="JPY", size=50))) == set(tokyo)


@pytest.mark.parametrize("sort", [sort for sort in Sort if sort is not Sort.DISTANCE])
async def test_pages_by_cursor_are_the_whole_list_in_order(demo: Box, sort: Sort) -> None:
    search = understood(SearchAsked(q="", sort=sort, size=7))
    meaning = await demo.search.meaning(())
    whole = await demo.search.hits(replace(search, size=200), meaning)

    read, page = [], await demo.search.hits(search, meaning)
    while page:
        read += page[:7]
        page = await demo.search.hits(replace(search, after=read[-1].place), meaning)

    assert read == whole
    assert len({hit.event_id for hit in read}) == len(read) >= 30
    assert [hit.key for hit in read] == sorted(hit.key for hit in read)


async def test_words_of_a_title_count_more_than_those_of_a_description(demo: Box) -> None:
    found = await titles(demo, SearchAsked(q="night", size=50))

    assert found[0] == "Aurora String Quartet: Farewell Night"
    assert "The Velvet Tramlines" in found  # "Late-night quintet with two double basses and no drummer."


@pytest.mark.parametrize("city", [None, "mumbai"])
async def test_pages_of_one_search_go_from_titles_to_descriptions(demo: Box, city: str | None) -> None:
    search = understood(SearchAsked(q="the", size=3, city=city, only_available=city is not None))
    meaning = await demo.search.meaning(("the",))
    whole = await demo.search.hits(replace(search, size=200), meaning)

    by_cursor, page = [], await demo.search.hits(search, meaning)
    while page:
        by_cursor += page[:3]
        page = await demo.search.hits(replace(search, after=by_cursor[-1].place), meaning)
    by_number = [
        hit
        for offset in range(0, len(whole), 3)
        for hit in (await demo.search.hits(replace(search, offset=offset), meaning))[:3]
    ]

    assert whole[0].key < REST_FROM < whole[-1].key
    assert by_cursor == by_number == whole


async def test_counts_by_facet_add_up_and_do_not_narrow_themselves(demo: Box) -> None:
    meaning = await demo.search.meaning(())
    whole = await demo.search.tally(understood(SearchAsked()).filters, meaning)
    films = await demo.search.tally(understood(SearchAsked(kind=Kind.FILM)).filters, meaning)
    mumbai = await demo.search.tally(understood(SearchAsked(city="mumbai")).filters, meaning)

    assert whole is not None
    assert films is not None
    assert mumbai is not None
    assert whole.total == sum(kind.events for kind in whole.facets.kind)
    assert films.facets.kind == whole.facets.kind
    assert films.total == {kind.value: kind.events for kind in whole.facets.kind}["film"]
    in_mumbai = {city.value: city.events for city in whole.facets.city}["mumbai"]
    assert mumbai.total == in_mumbai == len(await titles(demo, SearchAsked(city="mumbai", size=50)))
    assert {price.currency for price in mumbai.facets.price} == {"INR"}


async def test_a_price_facet_is_a_filter_that_finds_as_many(demo: Box) -> None:
    meaning = await demo.search.meaning(())
    paris = await demo.search.tally(understood(SearchAsked(city="paris")).filters, meaning)
    assert paris is not None

    bucket = paris.facets.price[0]
    asked = SearchAsked(
        city="paris",
        currency=bucket.currency,
        price_min_minor=bucket.price_min_minor,
        price_max_minor=bucket.price_max_minor,
        size=50,
    )

    assert len(await titles(demo, asked)) >= bucket.events > 0


@pytest.mark.parametrize(
    "typed, title", [("mons", ARITHMETIC), ("keep", LIGHTHOUSE), ("ingr", LIGHTHOUSE), ("स्ट", STATION)]
)
async def test_what_is_being_typed_is_suggested(demo: Box, typed: str, title: str) -> None:
    rows = await demo.search.suggested_events(words_of(typed), 8)

    assert title in [row["title"] for row in rows]


async def test_venues_are_suggested_by_any_word_of_their_name(demo: Box) -> None:
    rows = await demo.search.suggested_venues(words_of("quai"), 4)

    assert [row["name"] for row in rows] == ["Cinéma des Quais"]


async def test_a_search_that_takes_too_long_is_stopped(demo: Box) -> None:
    finder = Finder(replace(demo.config, search_timeout_ms=20))
    try:
        with pytest.raises(SearchTooSlow):
            await finder._fetch("SELECT pg_sleep(5)")
    finally:
        await finder.close()
