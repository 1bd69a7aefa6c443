"""R2: search finds. The demo's programme, queries as people type them, and the events they want."""

from dataclasses import replace

import pytest

from holdfast.app import App
from holdfast.demo.repertoire import EVENTS
from holdfast.search.errors import NoSuchPostalCode, SearchTooSlow
from holdfast.search.query import EventSearchQuery, Sort, parse_search
from holdfast.search.store import SearchStore
from holdfast.search.words import split_words
from tests.support.search_demo import titles

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


def test_there_are_forty() -> None:
    assert len(FORTY) == len({typed for typed, _ in FORTY}) == 40
    assert {title for _, title in FORTY} <= {event.title for event in EVENTS}


@pytest.mark.parametrize("typed, wanted", FORTY, ids=[typed for typed, _ in FORTY])
async def test_the_wanted_event_is_among_the_first_three(demo: App, typed: str, wanted: str) -> None:
    assert wanted in (await titles(demo, EventSearchQuery(q=typed)))[:3]


async def test_a_correction_is_reported(demo: App) -> None:
    meaning = await demo.search.interpret(("monsson", "aritmetic"))

    assert (meaning.words, meaning.match, meaning.is_corrected) == (("monsoon", "arithmetic"), "all", True)


async def test_correct_spelling_is_left_alone(demo: App) -> None:
    meaning = await demo.search.interpret(("monsoon", "arithmetic"))

    assert not meaning.is_corrected


async def test_when_nothing_has_all_the_words_some_are_enough(demo: App) -> None:
    meaning = await demo.search.interpret(("tokyo", "nachtzug"))
    found = await titles(demo, EventSearchQuery(q="tokyo nachtzug"))

    assert meaning.match == "any"
    assert "Nachtzug nach Norden" in found
    assert "Ame no Jikokuhyo" in found


async def test_a_query_without_similar_words_finds_nothing(demo: App) -> None:
    assert await titles(demo, EventSearchQuery(q="xqzwvj")) == []


async def test_only_punctuation_finds_all(demo: App) -> None:
    everything = await titles(demo, EventSearchQuery(size=50))

    assert len(everything) >= 30
    assert await titles(demo, EventSearchQuery(q="?!… --", size=50)) == everything


@pytest.mark.parametrize(
    "typed", ["' OR 1=1 --", "a':*A | 'b", "\\", "%_%", "(((", "a & !b", "<->", "$1", ":*"]
)
async def test_search_engine_syntax_raises_no_error(demo: App, typed: str) -> None:
    assert isinstance(await titles(demo, EventSearchQuery(q=typed)), list)


async def test_near_a_point_the_nearest_come_first(demo: App) -> None:
    query = EventSearchQuery(near="48.8566,2.3522", radius_km=10, sort=Sort.DISTANCE, size=50)
    search = parse_search(query)
    near = (await demo.search.at(search, await demo.search.point(search))).filters

    found = await titles(demo, query)

    assert list(near.distances_km) == sorted(near.distances_km)
    assert {"Les Heures Bleues", TRAM} <= set(found)
    assert KADAL not in found


async def test_a_radius_excludes_places_beyond_it(demo: App) -> None:
    """Regal Court Cinemas and Sagar Concert Hall in Mumbai are 7.7 km apart."""
    cinema = EventSearchQuery(near="18.9432,72.8236", radius_km=7.5)
    search = parse_search(cinema)
    within = await demo.search.at(search, search.near)
    beyond = await demo.search.at(replace(search, radius_km=8.0), search.near)

    assert len(within.filters.venues or ()) + 1 == len(beyond.filters.venues or ())


async def test_a_postal_code_is_where_its_venues_are(demo: App) -> None:
    exact = await demo.search.point(parse_search(EventSearchQuery(postal_code="SE1 9PD")))
    beside = await demo.search.point(parse_search(EventSearchQuery(postal_code="10997")))

    assert exact is not None
    assert (round(exact.lat, 4), round(exact.lon, 4)) == (51.5081, -0.1070)
    assert beside is not None
    assert round(beside.lat, 2) == 52.50
    with pytest.raises(NoSuchPostalCode):
        await demo.search.point(parse_search(EventSearchQuery(postal_code="99999")))


async def test_filters_are_of_one_and_the_same_show(demo: App) -> None:
    """A film that plays in Tokyo and costs rupees elsewhere does not play in Tokyo for rupees."""
    tokyo = await titles(demo, EventSearchQuery(city="tokyo", size=50))

    assert tokyo
    assert await titles(demo, EventSearchQuery(city="tokyo", currency="INR", size=50)) == []
    assert set(await titles(demo, EventSearchQuery(city="tokyo", currency="JPY", size=50))) == set(tokyo)


@pytest.mark.parametrize(
    "typed, title", [("mons", ARITHMETIC), ("keep", LIGHTHOUSE), ("ingr", LIGHTHOUSE), ("स्ट", STATION)]
)
async def test_a_partly_typed_word_is_completed(demo: App, typed: str, title: str) -> None:
    rows = await demo.search.suggested_events(split_words(typed), 8)

    assert title in [row["title"] for row in rows]


async def test_venues_are_suggested_by_any_word_of_their_name(demo: App) -> None:
    rows = await demo.search.suggested_venues(split_words("quai"), 4)

    assert [row["name"] for row in rows] == ["Cinéma des Quais"]


async def test_a_search_that_takes_too_long_is_stopped(demo: App) -> None:
    finder = SearchStore(replace(demo.config, search_timeout_ms=20))
    try:
        with pytest.raises(SearchTooSlow):
            await finder._fetch("SELECT pg_sleep(5)")
    finally:
        await finder.close()
