"""R2: the search page without scripts: words, filters as links and forms, pages, other places."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from holdfast.app import App
from tests.support.html_page import city_cookie, opens
from tests.support.organiser import Organiser, Stage, a_stage, an_event, show_of
from tests.support.searchable_events import a_word, add_show, index_event


async def test_a_misspelt_search_offers_a_correction_that_finds_results(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    show = await add_show(app, organiser, stage, title="Marmalade Skies")

    found = await opens(api, "/find?q=marmelade+skyes")

    assert "Did you mean marmalade skies ?" in found.text
    corrections = [
        link for link in found.links("/find?") if parse_qs(urlsplit(link).query) == {"q": ["marmalade skies"]}
    ]
    correction = corrections[0]
    again = await opens(api, correction)
    assert "Did you mean" not in again.text
    assert f"/shows/{show['id']}" in found.links("/shows/")
    assert f"/shows/{show['id']}" in again.links("/shows/")


async def test_every_link_of_a_search_leads_somewhere(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    for days, title in enumerate(("Blue Hour", "Red Hour", "Loud Hour"), 1):
        kind = "concert" if title == "Loud Hour" else "film"
        await add_show(
            app, organiser, stage, days, title=title, kind=kind, genre=title, language="Tamil", rating=days
        )
    page = await opens(api, f"/find?q=hour&city={stage.city}")

    links = page.links("/find?")

    for wish in ("kind=film", "genre=red+hour", "date_from=", "sort=rating"):
        assert any(wish in link for link in links), wish
    for link in dict.fromkeys(links):
        await opens(api, link)
    [film] = [link for link in links if "kind=film" in link]
    narrowed = await opens(api, film)
    assert "2 events" in narrowed.text
    assert "Loud Hour" not in " ".join(narrowed.words)
    [away] = [
        link for link in narrowed.links("/find?") if "kind" not in link and "city=" + stage.city in link
    ][:1]
    assert "3 events" in (await opens(api, away)).text


async def test_a_price_is_chosen_as_a_link(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    for price in (9_000, 40_000):
        event = await organiser.create("/events", an_event(title=f"Kumquat {price}"))
        prices = {"Gold": 50_000, "Silver": price}
        starts_at = (datetime.now(UTC) + timedelta(days=price / 9_000)).isoformat()
        await organiser.create(
            "/shows", show_of(stage, event_id=event["id"], prices=prices, starts_at=starts_at)
        )
        await index_event(app, event["id"])

    page = await opens(api, f"/find?q=kumquat&city={stage.city}")
    [cheap] = [link for link in page.links("/find?") if "price_max_minor=10000&" in link + "&"]
    narrowed = await opens(api, cheap)

    assert "up to ₹100" in page.text
    assert "up to ₹500" in page.text
    assert "1 event" in narrowed.text
    assert "Kumquat 40000" not in narrowed.text


async def test_a_search_has_pages(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    for number in range(14):
        await add_show(app, organiser, stage, 1 + number, title=f"Zanzibar {number}")

    first = await opens(api, f"/find?q=zanzibar&city={stage.city}")
    [after] = [had["href"] for had in first.all("a", rel="next")]
    second = await opens(api, after)

    events = [set(page.links("/events/")) for page in (first, second)]
    assert (len(events[0]), len(events[1]), events[0] & events[1]) == (12, 2, set())
    assert "14 events" in first.text
    assert "Page 2 of 2" in second.text
    assert not second.all("a", rel="next")
    assert second.all("a", rel="prev")


async def test_empty_fields_and_unknown_parameters_are_ignored(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    await add_show(app, organiser, stage, title="Quixotry")

    page = await opens(
        api, "/find?q=quixotry&city=&kind=&date_from=&date_to=&postal_code=&utm_source=letter&page="
    )

    assert "1 event" in page.text


async def test_a_chosen_city_narrows_results_and_matches_elsewhere_are_mentioned(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    other = await a_stage(app, api, organiser)
    show = await add_show(app, organiser, other, title="Faraway Xylophones")

    here = await opens(api, "/find?q=xylophones", headers=city_cookie(stage.city))
    there = await opens(api, "/find?q=xylophones", headers=city_cookie(other.city))
    anywhere = await opens(api, "/find?q=xylophones&city=", headers=city_cookie(stage.city))

    assert "No results in Testpur" in here.text
    assert "1 event in other cities" in here.text
    for page in (here, there, anywhere):
        assert f"/shows/{show['id']}" in page.links("/shows/")
    assert "in other cities" not in there.text + anywhere.text


async def test_a_search_without_a_hit_helps(api: httpx2.AsyncClient) -> None:
    page = await opens(api, "/find?q=zzzzqqqqxxxx&city=")

    assert "No results" in page.text
    assert "remove a filter" in page.text


@pytest.mark.parametrize(
    "case",
    [
        ("date_from=yesterday", "date_from", "Enter a date"),
        ("date_from=2090-02-01&date_to=2090-01-01", "date_to", "This is before the first date, so we"),
        ("postal_code=QQQ999", "postal_code", "We couldn't find a venue near this postcode"),
    ],
)
async def test_a_mistake_in_a_filter_is_explained_beside_its_field_and_the_search_goes_on(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, case: tuple[str, str, str]
) -> None:
    mistake, field, words = case
    title = a_word()
    show = await add_show(app, organiser, stage, title=title)

    page = await opens(api, f"/find?q={title}&{mistake}")
    in_city = await opens(api, f"/find?q={title}&{mistake}", headers=city_cookie(stage.city))

    for found in (page, in_city):
        assert f"/shows/{show['id']}" in found.links("/shows/")
        [had] = found.all("input", id=field)
        assert (had["aria-invalid"], had["aria-describedby"]) == ("true", f"{field}-wrong")
        assert had["value"]  # what was typed stays
        assert [each for each in found.all("span") if each.get("id") == f"{field}-wrong"]
        assert words in found.text
    assert "Testpur" in in_city.text  # the chosen city still applies


@pytest.mark.parametrize(
    "mistake",
    [
        "kind=opera",
        "price_max_minor=-1",
        "near=north",
        "near=91,0",
        "sort=distance",
        "sort=luck",
        "city=Not+A+Slug",
        "city=atlantis",
        "venue=x",
        "radius_km=-3",
    ],
)
async def test_a_part_of_an_address_that_makes_no_sense_is_left_out_with_a_notice(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, mistake: str
) -> None:
    title = a_word()
    show = await add_show(app, organiser, stage, title=title)

    page = await opens(api, f"/find?q={title}&{mistake}")

    assert f"/shows/{show['id']}" in page.links("/shows/")
    assert "Part of this link no longer works" in page.text


@pytest.mark.parametrize("number", ["0", "2", "83", "84", "99", "100000", "last"])
async def test_a_page_that_does_not_exist_shows_the_first_one(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, number: str
) -> None:
    show = await add_show(app, organiser, stage, title="Periwinkle")

    page = await opens(api, f"/find?q=periwinkle&city={stage.city}&page={number}")

    assert f"/shows/{show['id']}" in page.links("/shows/")
    assert "That page of results doesn't exist. Here's the first one." in page.text


@pytest.mark.parametrize("address", ["q=%ff", "&".join(f"a{n}=1" for n in range(101))])
async def test_an_address_that_cannot_be_read_is_refused_on_a_page(
    api: httpx2.AsyncClient, address: str
) -> None:
    page = await opens(api, f"/find?{address}", status=422)

    assert page.all("a", href="/")


async def test_a_search_that_is_too_long_is_cut(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    title = a_word()
    show = await add_show(app, organiser, stage, title=title)

    page = await opens(api, f"/find?q={title}" + "+" * 300)
    cut = await opens(api, f"/find?q={f'{title}+' * 40}")

    for found in (page, cut):
        assert f"/shows/{show['id']}" in found.links("/shows/")
