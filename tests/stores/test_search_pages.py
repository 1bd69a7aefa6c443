"""R2: pages of results, by cursor and by number, and counts by facet, on the demo's programme."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast.app import App
from holdfast.catalogue import Kind
from holdfast.search.query import ANYTHING, EventSearchQuery, Sort, parse_search
from holdfast.search.store import REST_FROM, SearchStore
from tests.support.search_demo import titles
from tests.support.wait import until


@pytest.mark.parametrize("sort", [sort for sort in Sort if sort is not Sort.DISTANCE])
async def test_pages_by_cursor_are_the_whole_list_in_order(demo: App, sort: Sort) -> None:
    search = parse_search(EventSearchQuery(q="", sort=sort, size=7))
    meaning = await demo.search.interpret(())
    whole = await demo.search.hits(replace(search, size=200), meaning)

    read, page = [], await demo.search.hits(search, meaning)
    while page:
        read += page[:7]
        page = await demo.search.hits(replace(search, after=read[-1].place), meaning)

    assert read == whole
    assert len({hit.event_id for hit in read}) == len(read) >= 30
    assert [hit.key for hit in read] == sorted(hit.key for hit in read)


@pytest.mark.parametrize("filters", [{"only_available": True}, {"kind": Kind.FILM, "accessible": True}])
@pytest.mark.parametrize("sort", [sort for sort in Sort if sort is not Sort.DISTANCE])
async def test_pages_of_what_is_everywhere_are_the_whole_list_too(
    demo: App, sort: Sort, filters: dict[str, Any]
) -> None:
    """Few of many shows are looked at for a page: none is skipped, and none is repeated."""
    search = parse_search(EventSearchQuery(sort=sort, size=3, **filters))
    whole = await demo.search.hits(replace(search, size=200), ANYTHING)

    read, page = [], await demo.search.hits(search, ANYTHING)
    while page:
        read += page[:3]
        page = await demo.search.hits(replace(search, after=read[-1].place), ANYTHING)
    third = await demo.search.hits(replace(search, offset=6), ANYTHING)

    assert read == whole
    assert len({hit.event_id for hit in read}) == len(read) >= 9
    assert third == whole[6:10]


async def test_events_are_ordered_by_their_soonest_show_that_passes_the_filters(demo: App) -> None:
    rows = await demo.postgres.fetch(
        "SELECT event_id, min(starts_at) FROM listing_show WHERE taken < seats AND opens_at <= now()"
        " AND closes_at > now() AND ends_at > now() GROUP BY event_id ORDER BY 2, 1 LIMIT 20"
    )

    hits = await demo.search.hits(parse_search(EventSearchQuery(only_available=True, size=20)), ANYTHING)

    assert [hit.event_id for hit in hits[:20]] == [row["event_id"] for row in rows]


async def test_for_a_common_word_the_most_popular_event_is_first(demo: App) -> None:
    search = parse_search(EventSearchQuery(q="the", size=4))
    plain = await demo.search.interpret(("the",))
    common = replace(plain, is_common=True)
    ranked = await demo.search.hits(replace(search, size=200), plain)

    read, page = [], await demo.search.hits(search, common)
    while page:
        read += page[:4]
        # A client with a cursor continues in its order, even if the word is less common by now.
        page = await demo.search.hits(replace(search, after=read[-1].place), plain)

    assert not plain.is_common
    assert len(read) == len(ranked)
    assert {hit.event_id for hit in read} == {hit.event_id for hit in ranked}
    assert [hit.key for hit in read] == sorted(hit.key for hit in read)


async def test_words_of_a_title_count_more_than_those_of_a_description(demo: App) -> None:
    found = await titles(demo, EventSearchQuery(q="night", size=50))

    assert found[0] == "Aurora String Quartet: Farewell Night"
    assert "The Velvet Tramlines" in found  # "Late-night quintet with two double basses and no drummer."


@pytest.mark.parametrize("city", [None, "mumbai"])
async def test_pages_of_one_search_go_from_titles_to_descriptions(demo: App, city: str | None) -> None:
    search = parse_search(EventSearchQuery(q="the", size=3, city=city, only_available=city is not None))
    meaning = await demo.search.interpret(("the",))
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


async def test_counts_by_facet_add_up_and_do_not_narrow_themselves(demo: App) -> None:
    meaning = await demo.search.interpret(())
    whole = await demo.search.tally(parse_search(EventSearchQuery()).filters, meaning)
    films = await demo.search.tally(parse_search(EventSearchQuery(kind=Kind.FILM)).filters, meaning)
    mumbai = await demo.search.tally(parse_search(EventSearchQuery(city="mumbai")).filters, meaning)

    assert whole is not None
    assert films is not None
    assert mumbai is not None
    assert whole.total == sum(kind.events for kind in whole.facets.kind)
    assert films.facets.kind == whole.facets.kind
    assert films.total == {kind.value: kind.events for kind in whole.facets.kind}["film"]
    in_mumbai = {city.value: city.events for city in whole.facets.city}["mumbai"]
    assert mumbai.total == in_mumbai == len(await titles(demo, EventSearchQuery(city="mumbai", size=50)))
    assert {price.currency for price in mumbai.facets.price} == {"INR"}


async def test_a_search_for_everything_does_not_wait_for_a_count(demo: App) -> None:
    """A job counts; a process without counts of its own returns the job's result."""
    everything, films = (
        parse_search(EventSearchQuery()).filters,
        parse_search(EventSearchQuery(kind=Kind.FILM)).filters,
    )
    before = await demo.search.tally(films, ANYTHING)
    await demo.search.count_all()
    written = await demo.postgres.fetchval("SELECT count(*) FROM listing_tally")
    await demo.postgres.execute("UPDATE listing_tally SET tally = regexp_replace(tally, ':\\d+', ':777')")
    finder = SearchStore(demo.config)
    try:
        total, of_films = await finder.tally(everything, ANYTHING), await finder.tally(films, ANYTHING)
    finally:
        await finder.close()
        await demo.search.count_all()

    assert written == 1 + len(Kind)
    assert before is not None
    assert total is not None
    assert of_films is not None
    assert (total.total, of_films.total) == (777, 777)
    assert of_films.facets == before.facets


async def test_a_slow_count_is_available_to_later_requests(demo: App) -> None:
    paris, finder = parse_search(EventSearchQuery(city="paris")).filters, SearchStore(demo.config)

    async def is_counted() -> bool:
        return await finder.tally(paris, ANYTHING) is not None

    try:
        async with demo.postgres.transaction() as tx:
            await tx.execute("LOCK TABLE listing_show")
            at_once = await finder.tally(paris, ANYTHING)
        await until(is_counted)
        stampede = await asyncio.gather(*(finder.tally(paris, ANYTHING) for _ in range(50)))
    finally:
        await finder.close()

    assert at_once is None
    assert len({id(tally) for tally in stampede}) == 1


async def test_a_price_facet_is_a_filter_that_finds_as_many(demo: App) -> None:
    meaning = await demo.search.interpret(())
    paris = await demo.search.tally(parse_search(EventSearchQuery(city="paris")).filters, meaning)
    assert paris is not None

    bucket = paris.facets.price[0]
    filters = EventSearchQuery(
        city="paris",
        currency=bucket.currency,
        price_min_minor=bucket.price_min_minor,
        price_max_minor=bucket.price_max_minor,
        size=50,
    )

    assert len(await titles(demo, filters)) >= bucket.events > 0
