"""R2, R4: search over HTTP without an account: words, filters, places, orders, pages, facets, suggestions."""

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.app import App
from tests.support.organiser import Organiser, Stage, a_stage, an_event, show_of, sign_in_organiser
from tests.support.searchable_events import a_word, add_show, index_event
from tests.support.shows import API, Fan, problem
from tests.support.wait import until


async def searches(api: httpx2.AsyncClient, **params: Any) -> dict[str, Any]:
    """The page with its counts: on a busy machine the first answer may come without."""
    page: dict[str, Any] = {}

    async def is_whole() -> bool:
        nonlocal page
        answer = await api.get(f"{API}/search", params=params)
        assert answer.status_code == 200, answer.text
        page = msgspec.json.decode(answer.content, type=dict[str, Any])
        return page["facets"] is not None or page["total"] == 0

    await until(is_whole, within_s=10)
    return page


def titles(page: dict[str, Any]) -> list[str]:
    return [event["title"] for event in page["events"]]


async def test_a_result_has_shows_price_and_seats(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    show = await add_show(app, organiser, stage, title="The Paper Boats")
    await alice.holds(show["id"], "A-1", "A-2")

    page = await searches(api, q="papper boats", city=stage.city)

    [event] = page["events"]
    [card] = event["shows"]
    assert (page["total"], page["q_used"], page["match"]) == (1, "paper boats", "all")
    assert (event["title"], event["shows_total"], card["venue"]) == ("The Paper Boats", 1, "The Shed")
    assert (card["from_price_minor"], card["currency"]) == (20_000, "INR")
    assert sum(card["from_lines"][line] for line in ("base_minor", "fee_minor", "tax_minor")) == 20_000
    assert card["availability"] == {"seats": 40, "available": 38, "held": 2, "booked": 0, "blocked": 0}


async def test_filters_narrow_results_and_facets_list_alternatives(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    await add_show(app, organiser, stage, 1, title="Blue Hour", kind="film", genre="Drama", language="हिन्दी")
    await add_show(app, organiser, stage, 2, title="Red Hour", kind="film", genre="Comedy", language="Tamil")
    await add_show(
        app, organiser, stage, 3, title="Loud Hour", kind="concert", genre="Rock", language="Tamil"
    )

    films = await searches(api, city=stage.city, kind="film")
    tamil = await searches(api, city=stage.city, language="tamil", sort="showtime")
    hindi = await searches(api, city=stage.city, language="हिन्दी")
    drama = await searches(api, city=stage.city, genre="DRAMA")

    assert titles(films) == ["Blue Hour", "Red Hour"]
    assert titles(tamil) == ["Red Hour", "Loud Hour"]
    assert titles(hindi) == titles(drama) == ["Blue Hour"]
    kinds = {kind["value"]: kind["events"] for kind in films["facets"]["kind"]}
    assert kinds == {"film": 2, "concert": 1}
    assert {one["name"]: one["events"] for one in films["facets"]["language"]} == {"हिन्दी": 1, "Tamil": 1}
    assert [one["events"] for one in films["facets"]["date"]] == [1, 1]
    assert films["facets"]["city"] == [{"value": stage.city, "name": "Testpur", "events": 2}]
    [price] = films["facets"]["price"]
    assert (price["currency"], price["price_min_minor"], price["price_max_minor"]) == ("INR", 20_000, 49_999)


async def test_a_date_is_in_the_citys_time_zone(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    """Half past midnight in India is the evening before in UTC."""
    await organiser.create("/shows", show_of(stage, starts_at="2031-05-01T00:30:00+05:30"))
    await index_event(app, stage.event_id)

    may = await searches(api, city=stage.city, date_from="2031-05-01", date_to="2031-05-01")
    april = await searches(api, city=stage.city, date_from="2031-04-01", date_to="2031-04-30")

    assert [event["shows"][0]["local_date"] for event in may["events"]] == ["2031-05-01"]
    assert (april["total"], april["events"]) == (0, [])


async def test_only_shows_that_pass_the_filters_are_listed(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    full = await add_show(app, organiser, stage, 1, title="Twice Upon")
    event_id, starts_at = full["event_id"], (datetime.now(UTC) + timedelta(days=5)).isoformat()
    free = await organiser.create("/shows", show_of(stage, event_id=event_id, starts_at=starts_at))
    for row in ("A", "B", "Y", "Z"):
        fan = (await sign_in_organiser(app, api)).who
        held = await fan.holds(full["id"], *(f"{row}-{seat}" for seat in range(1, 11)))
        assert held.status_code == 201, held.text
    await index_event(app, event_id)

    both = await searches(api, q="twice upon", city=stage.city)
    left = await searches(api, q="twice upon", city=stage.city, only_available="true")

    assert [card["show_id"] for card in both["events"][0]["shows"]] == [full["id"], free["id"]]
    assert [card["show_id"] for card in left["events"][0]["shows"]] == [free["id"]]
    assert left["events"][0]["shows_total"] == 1
    assert titles(await searches(api, city=stage.city, price_max_minor=19_999)) == []


async def test_near_a_point_or_a_postal_code(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    code = f"{random.randrange(10**9):09}"
    far = await organiser.create(
        "/venues",
        {"city_id": stage.city_id, "name": "The Barn", "postal_code": code, "lat": 19.09, "lon": 72.8},
    )
    hall = {"venue_id": far["id"], "name": "Small", "layout_hash": stage.layout_hash}
    there = await organiser.create("/halls", hall)
    await add_show(app, organiser, stage, title="Here")
    event = await organiser.create("/events", an_event(title="There"))
    show = await organiser.create("/shows", show_of(stage, event_id=event["id"], hall_id=there["id"]))
    await index_event(app, event["id"])

    within = {"city": stage.city, "sort": "distance", "near": "19.0,72.8"}
    near = await searches(api, **within, radius_km=9)
    both = await searches(api, **within, radius_km=11)
    code_page = await searches(api, city=stage.city, postal_code=code, radius_km=1)

    assert titles(near) == ["Here"]
    assert titles(both) == ["Here", "There"]
    assert both["distances_km"][str(show["id"])] == pytest.approx(10.0, abs=0.1)
    assert titles(code_page) == ["There"]
    assert code_page["near"] == {"lat": 19.09, "lon": 72.8, "radius_km": 1.0}


async def test_a_show_at_the_named_place_is_listed_first(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    other = await a_stage(app, api, organiser)
    show = await add_show(app, organiser, stage, 1, title="Wandering Lights")
    await organiser.send("PATCH", f"/venues/{other.venue_id}", {"name": "Moonlit Pavilion"})
    later = [(datetime.now(UTC) + timedelta(days=day)).isoformat() for day in (2, 3, 4)]
    for starts_at in later:
        await organiser.create("/shows", show_of(stage, event_id=show["event_id"], starts_at=starts_at))
    named = await organiser.create("/shows", show_of(other, event_id=show["event_id"], starts_at=later[-1]))
    await index_event(app, show["event_id"])

    page = await searches(api, q="wandering lights moonlit pavilion")

    assert named["id"] in [card["show_id"] for card in page["events"][0]["shows"]]


async def test_orders(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    good = await add_show(app, organiser, stage, 3, title="Good Night", rating=9.0)
    wanted = await add_show(app, organiser, stage, 2, title="Bad Night", rating=2.0)
    some = await add_show(app, organiser, stage, 1, title="Some Night")
    for show, price_minor in ((good, 45_000), (some, 30_000)):
        await organiser.send(
            "PATCH", f"/shows/{show['id']}", {"prices": {"Gold": 50_000, "Silver": price_minor}}
        )
        await index_event(app, show["event_id"])
    await alice.holds(wanted["id"], "A-1")
    await index_event(app, wanted["event_id"])
    city = {"city": stage.city, "q": "night"}

    assert titles(await searches(api, **city, sort="showtime")) == ["Some Night", "Bad Night", "Good Night"]
    assert titles(await searches(api, **city, sort="rating")) == ["Good Night", "Bad Night", "Some Night"]
    assert titles(await searches(api, **city, sort="popularity"))[0] == "Bad Night"
    assert titles(await searches(api, **city, sort="price")) == ["Bad Night", "Some Night", "Good Night"]
    assert titles(await searches(api, **city, sort="relevance"))[0] == "Bad Night"


async def test_pages_have_totals_and_a_cursor_stays_put_while_something_is_added(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    for day in range(1, 6):
        await add_show(app, organiser, stage, day, title=f"Evening {day}")
    params = {"city": stage.city, "sort": "showtime", "size": 2}

    first = await searches(api, **params)
    await add_show(app, organiser, stage, at=datetime.now(UTC) + timedelta(hours=2), title="Added before")
    second = await searches(api, **params, cursor=first["next_cursor"])
    third = await searches(api, **params, cursor=second["next_cursor"])
    by_number = await searches(api, city=stage.city, sort="showtime", size=4, page=2)

    assert (first["total"], first["page"], titles(first)) == (5, 1, ["Evening 1", "Evening 2"])
    assert (titles(second), second["page"]) == (["Evening 3", "Evening 4"], None)
    assert (titles(third), third["next_cursor"]) == (["Evening 5"], None)
    assert titles(by_number) == ["Evening 4", "Evening 5"]


async def test_suggestions_match_the_typed_text(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    word = a_word()
    show = await add_show(app, organiser, stage, title=f"The {word.title()} Affair", people=["Zora Quill"])
    await organiser.send("PATCH", f"/venues/{stage.venue_id}", {"name": f"{word.title()} Rooms"})
    await index_event(app, show["event_id"])

    page = (await api.get(f"{API}/search/suggestions", params={"q": f"the {word[:6]}"})).json()
    places = (await api.get(f"{API}/search/suggestions", params={"q": word[:6]})).json()
    cities = (await api.get(f"{API}/search/suggestions", params={"q": "testp"})).json()
    nothing = (await api.get(f"{API}/search/suggestions", params={"q": " "})).json()

    assert [event["event_id"] for event in page["events"]] == [show["event_id"]]
    assert [venue["venue_id"] for venue in places["venues"]] == [stage.venue_id]
    assert "Testpur" in {city["name"] for city in cities["cities"]}
    assert nothing == {"q_used": None, "events": [], "venues": [], "cities": []}


async def test_suggestions_forgive_what_search_forgives(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    word = a_word()
    show = await add_show(app, organiser, stage, title=f"Quiet {word}")
    await organiser.send("PATCH", f"/venues/{stage.venue_id}", {"name": f"{word[::-1]} Rooms"})
    await index_event(app, show["event_id"])
    misspelt, swapped = word[:4] + word[5:], word[:3] + word[4] + word[3] + word[5:]

    for typed in (misspelt, swapped, f"quiet {misspelt}", f"quite {misspelt}", misspelt[:-1]):
        page = (await api.get(f"{API}/search/suggestions", params={"q": typed})).json()
        assert [event["event_id"] for event in page["events"]] == [show["event_id"]], typed
        assert word in page["q_used"], typed
    venue = (await api.get(f"{API}/search/suggestions", params={"q": misspelt[::-1]})).json()
    strange = (await api.get(f"{API}/search/suggestions", params={"q": "zzxxqqvvww"})).json()

    assert [found["venue_id"] for found in venue["venues"]] == [stage.venue_id]
    assert strange == {"q_used": None, "events": [], "venues": [], "cities": []}


async def test_a_suggested_event_has_the_day_of_its_next_show(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    word = a_word()
    half_past_midnight = datetime.fromisoformat("2031-05-01T00:30:00+05:30")  # April in UTC
    show = await add_show(app, organiser, stage, at=half_past_midnight, title=word)
    later = show_of(stage, event_id=show["event_id"], starts_at="2031-06-01T20:00:00+05:30")
    await organiser.create("/shows", later)
    await index_event(app, show["event_id"])

    page = (await api.get(f"{API}/search/suggestions", params={"q": word[:8]})).json()

    assert [event["next_date"] for event in page["events"]] == ["2031-05-01"]


async def test_an_answer_that_is_known_is_not_sent_again(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage
) -> None:
    await add_show(app, organiser, stage)
    first = await api.get(f"{API}/search", params={"city": stage.city})

    again = await api.get(
        f"{API}/search", params={"city": stage.city}, headers={"If-None-Match": first.headers["etag"]}
    )

    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "params, status, code, field",
    [
        ({"q": "x" * 201}, 422, "invalid", "q"),
        ({"q": "a\0b"}, 422, "invalid", "q"),
        ({"kind": "opera"}, 422, "invalid", "kind"),
        ({"date_from": "tomorrow"}, 422, "invalid", "date_from"),
        ({"date_from": "2031-02-02", "date_to": "2031-02-01"}, 422, "invalid", "date_to"),
        ({"near": "48.86"}, 422, "invalid", "near"),
        ({"near": "1,1", "radius_km": 501}, 422, "invalid", "radius_km"),
        ({"near": "1,1", "radius_km": 0}, 422, "invalid", "radius_km"),
        ({"price_min_minor": -1}, 422, "invalid", "price_min_minor"),
        ({"sort": "luck"}, 422, "invalid", "sort"),
        ({"sort": "distance"}, 422, "invalid", "sort"),
        ({"size": 51}, 422, "invalid", "size"),
        ({"page": 0}, 422, "invalid", "page"),
        ({"page": 51, "size": 20}, 422, "page_too_deep", "page"),
        ({"cursor": "nonsense"}, 422, "invalid", "cursor"),
        ({"colour": "red"}, 422, "invalid", "colour"),
        ({"city": "atlantis"}, 404, "no_such_city", "city"),
        ({"postal_code": "QQQ-000"}, 404, "no_such_postal_code", "postal_code"),
    ],
)
async def test_an_invalid_parameter_is_refused_with_its_field(
    api: httpx2.AsyncClient, params: dict[str, Any], status: int, code: str, field: str
) -> None:
    answer = await api.get(f"{API}/search", params=params)

    refused = problem(answer)
    assert (answer.status_code, refused["code"], refused["field"]) == (status, code, field)


@pytest.mark.parametrize(
    "typed", ["'; DROP TABLE listing; --", "a' & 'b", "((", "\\'", "%", "*:*", "…", "\u200d"]
)
async def test_strange_letters_are_only_letters(api: httpx2.AsyncClient, typed: str) -> None:
    for path in ("/search", "/search/suggestions"):
        answer = await api.get(API + path, params={"q": typed})
        assert answer.status_code == 200, answer.text


async def test_a_venue_without_shows_has_no_results(api: httpx2.AsyncClient) -> None:
    page = await searches(api, venue=2**62, date_from=date(2031, 1, 1).isoformat())

    assert (page["total"], page["events"], page["next_cursor"]) == (0, [], None)
