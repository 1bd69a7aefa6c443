"""R2, R3, R4, R5: browsing without scripts: home, search, events, venues."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.catalogue.store import store_layout
from holdfast.web.caller import Role
from tests.support.html_page import city_cookie, opens
from tests.support.organiser import Organiser, Stage, a_city, an_event, show_of, sign_in_organiser
from tests.support.searchable_events import index_event
from tests.support.shows import Fan, a_layout
from tests.support.wait import until


def at(**later: float) -> str:
    return (datetime.now(UTC) + timedelta(**later)).isoformat()


async def chooses(api: httpx2.AsyncClient, city: str, **more: Any) -> httpx2.Response:
    form = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    answer = await api.post("/city", content=urlencode({"city": city, **more}), headers=form)
    api.cookies.clear()  # all tests share the client
    return answer


async def test_a_city_is_chosen_once_without_a_script(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    show = await organiser.create("/shows", show_of(stage, starts_at=at(hours=2)))

    before = await opens(api, "/")
    chosen = await chooses(api, stage.city)
    home = await opens(api, "/", headers=city_cookie(stage.city))

    assert {"city", "back"} <= {had.get("name") for had in [*before.all("button"), *before.all("input")]}
    assert stage.city in [had.get("value") for had in before.all("button", name="city")]
    assert (chosen.status_code, chosen.headers["Location"]) == (303, "/")
    cookie = chosen.headers["Set-Cookie"]
    assert cookie.startswith(f"holdfast_city={stage.city};")
    assert "HttpOnly" in cookie
    assert "Lax" in cookie
    assert "What's on in Testpur" in home.text
    assert f"/shows/{show['id']}" in home.links("/shows/")
    assert "from ₹200" in home.text  # all-in, and of the cheapest seat


async def test_a_chosen_city_is_forgotten_and_a_strange_one_refused(
    api: httpx2.AsyncClient, stage: Stage
) -> None:
    none = await chooses(api, "", back="/find")
    strange = await chooses(api, "atlantis")
    named = await chooses(api, "TESTPUR")
    gone = await opens(api, "/", headers=city_cookie("atlantis"))
    elsewhere = await chooses(api, stage.city, back="//evil.example/")

    assert (none.headers["Location"], "Max-Age=0" in none.headers["Set-Cookie"]) == ("/find", True)
    assert strange.status_code == 422
    assert named.status_code == 303
    assert "What's on" in gone.text
    assert elsewhere.headers["Location"] == "/"


async def test_a_form_from_elsewhere_chooses_no_city(api: httpx2.AsyncClient, stage: Stage) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "cross-site"}

    answer = await api.post("/city", content=f"city={stage.city}", headers=headers)

    assert (answer.status_code, "Set-Cookie" in answer.headers) == (403, False)


async def test_a_city_with_nothing_on_says_where_something_is(
    app: App, api: httpx2.AsyncClient, stage: Stage
) -> None:
    admin = await sign_in_organiser(app, api, Role.ADMIN)
    far_south = {"lat": -77.8, "lon": 166.7}  # no other test has a city near it
    quiet, nearer, busy = [
        await admin.create("/cities", a_city(name=name, **far_south))
        for name in ("Silent Hill", "Sleepy Hollow", "Busytown")
    ]
    where = {"city_id": busy["id"], "name": "The Hut", "postal_code": "1", **far_south}
    venue = await admin.create("/venues", where)
    hall = await admin.create(
        "/halls", {"venue_id": venue["id"], "name": "Hall", "layout_hash": stage.layout_hash}
    )
    event = await admin.create("/events", an_event(title="Penguins"))
    await admin.create("/shows", show_of(stage, event_id=event["id"], hall_id=hall["id"]))

    home = await opens(api, f"/?city={quiet['slug']}")

    assert "No events in Silent Hill right now" in home.text
    assert f"/?city={busy['slug']}" in home.links("/?city=")
    assert f"/?city={nearer['slug']}" not in home.links("/?city=")  # nothing is on there either


async def test_an_announced_show_says_when_its_sale_opens(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    event = await organiser.create("/events", an_event(title="Not Yet"))
    opening = datetime.now(UTC) + timedelta(days=2)
    await organiser.create(
        "/shows",
        show_of(stage, event_id=event["id"], starts_at=at(days=9), opens_at=opening.isoformat()),
    )

    home = await opens(api, f"/?city={stage.city}")

    assert "On sale soon" in home.text
    assert f"On sale {(opening + timedelta(hours=5.5)):%A}" in home.text


async def test_an_event_page_shows_the_availability_of_each_show(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    full = await box_show(app, organiser, stage, a_layout(4), days=1)
    last = await box_show(app, organiser, stage, a_layout(5), days=2)
    few = await box_show(app, organiser, stage, a_layout(6), days=3)
    many = await organiser.create("/shows", show_of(stage, starts_at=at(days=4)))
    soon = await organiser.create("/shows", show_of(stage, starts_at=at(days=5), opens_at=at(days=3)))
    off = await organiser.create("/shows", show_of(stage, starts_at=at(days=6)))
    await organiser.send("PATCH", f"/shows/{off['id']}", {"cancelled": True})
    for show_id in (full, last):
        assert (await alice.holds(show_id, "A-1", "A-2", "A-3", "A-4")).status_code == 201
    assert (await alice.holds(few, "A-1", "A-2", "A-3")).status_code == 201

    page = await opens(api, f"/events/{stage.event_id}")

    tones = [
        had["class"].removeprefix("status is-")
        for had in page.all("span")
        if "status" in had.get("class", "")
    ]
    assert tones == ["none", "few", "few", "many", "opens", "off"]
    for words in ("Sold out", "Last ticket", "Only 3 left", "Available", "On sale ", "Cancelled"):
        assert words in page.text, words
    links = page.links("/shows/")
    assert [
        f"/shows/{show}" for show in (full, last, few, many["id"], soon["id"])
    ] == links  # not what is off


async def box_show(app: App, organiser: Organiser, stage: Stage, layout: Any, *, days: int) -> int:
    """A show of the stage's event in a small hall of its own."""
    await store_layout(app.postgres, layout)
    venue = await app.postgres.fetchval(
        "INSERT INTO hall (venue_id, name, layout_hash) VALUES ($1, $2, $3) RETURNING id",
        stage.venue_id,
        f"Hall of {layout.seat_count}",
        layout.hash,
    )
    wanted = show_of(stage, hall_id=venue, starts_at=at(days=days), prices={"Standard": 1000})
    return int((await organiser.create("/shows", wanted))["id"])


async def test_an_event_with_many_shows_has_its_days_in_a_row(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    shows = [await organiser.create("/shows", show_of(stage, starts_at=at(days=n))) for n in range(1, 13)]

    page = await opens(api, f"/events/{stage.event_id}")
    days = [had["href"] for had in page.all("a") if "day=" in had.get("href", "")]
    third = await opens(api, f"/events/{stage.event_id}{days[2]}")
    nonsense = await opens(api, f"/events/{stage.event_id}?day=someday&city=atlantis")

    assert (len(days), page.links("/shows/")) == (12, [f"/shows/{shows[0]['id']}"])
    assert third.links("/shows/") == [f"/shows/{shows[2]['id']}"]
    assert third.all("a", **{"aria-current": "date"})
    assert nonsense.links("/shows/") == [f"/shows/{shows[0]['id']}"]


async def test_times_are_those_of_the_venue(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    await organiser.create("/shows", show_of(stage, starts_at="2031-05-01T19:30:00+05:30"))

    page = await opens(api, f"/events/{stage.event_id}")

    [time] = page.all("time")
    assert time["data-zone"] == "Asia/Kolkata"
    assert datetime.fromisoformat(time["datetime"]) == datetime(2031, 5, 1, 14, tzinfo=UTC)
    assert "19:30" in page.text
    assert "1 May" in page.text


async def test_an_event_page_has_the_same_as_structured_data(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    show = await organiser.create("/shows", show_of(stage))

    page = await opens(api, f"/events/{stage.event_id}")

    [block] = page.data_blocks
    [linked] = msgspec.json.decode(block)["@graph"]
    assert (linked["@type"], linked["name"]) == ("MusicEvent", "The Paper Boats")
    assert linked["offers"]["price"] == "200.00"
    assert linked["offers"]["priceCurrency"] == "INR"
    assert linked["offers"]["availability"] == "https://schema.org/InStock"
    assert linked["url"] == f"http://box.office/shows/{show['id']}"
    assert page.all("link", rel="canonical") == [
        {"rel": "canonical", "href": f"http://box.office/events/{stage.event_id}"}
    ]
    assert page.all("meta", property="og:title")[0]["content"] == "The Paper Boats"


async def test_a_page_that_names_a_host_is_cached_for_that_host_only(
    api: httpx2.AsyncClient, stage: Stage
) -> None:
    evil = await opens(api, f"/events/{stage.event_id}", headers={"Host": "evil.example"})
    page = await opens(api, f"/events/{stage.event_id}")

    assert "evil.example" in evil.all("link", rel="canonical")[0]["href"]
    assert "evil.example" not in page.all("link", rel="canonical")[0]["href"]


async def test_a_venue_page_shows_its_address_and_events(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    show = await organiser.create("/shows", show_of(stage))

    page = await opens(api, f"/venues/{stage.venue_id}")

    assert "The Shed" in page.text
    assert "Testpur 400001" in page.text  # as addresses are written in India
    [way_there] = [had["href"] for had in page.all("a") if "19.0,72.8" in had.get("href", "")]
    assert way_there.startswith("https://")  # every computer and phone opens it
    assert "Big 40 seats" in page.text
    assert (page.links("/shows/"), f"/events/{stage.event_id}" in page.links()) == (
        [f"/shows/{show['id']}"],
        True,
    )


async def test_an_event_or_venue_without_shows_says_so(api: httpx2.AsyncClient, stage: Stage) -> None:
    event, venue = (
        await opens(api, f"/events/{stage.event_id}"),
        await opens(api, f"/venues/{stage.venue_id}"),
    )

    assert "No dates at the moment" in event.text
    assert "No events at The Shed right now" in venue.text


async def test_a_missing_page_offers_links_to_continue(api: httpx2.AsyncClient) -> None:
    for path in ("/events/999999999", "/venues/999999999", "/events/0"):
        page = await opens(api, path, status=404)
        assert page.all("a", href="/")


async def test_how_many_are_left_is_seconds_old(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    show_id = await box_show(app, organiser, stage, a_layout(4), days=1)
    assert "4 left" in (await opens(api, f"/events/{stage.event_id}")).text
    await alice.holds(show_id, "A-1", "A-2", "A-3", "A-4")

    async def is_shown() -> bool:
        return "Sold out" in (await opens(api, f"/events/{stage.event_id}")).text

    await until(is_shown)


async def test_a_public_page_is_the_same_for_all_and_cached_for_one_second(
    api: httpx2.AsyncClient, stage: Stage
) -> None:
    path, headers = f"/events/{stage.event_id}", {"Accept": "text/html"}
    first = await api.get(path, headers=headers)

    again = await api.get(path, headers=headers | {"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert "Set-Cookie" not in first.headers
    assert "max-age=1," in first.headers["Cache-Control"]
    assert "script-src 'self'" in first.headers["Content-Security-Policy"]


NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}{% if %}${7*7}#{7*7}",
    "</title></script><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)//]]>--><!--",
    "%s %(x)d {0} {name} {count}",
    "\N{RIGHT-TO-LEFT OVERRIDE}evil\N{ZERO WIDTH JOINER}\N{PILE OF POO}",
    "& &amp; &lt;b&gt;",
)


@pytest.mark.parametrize("nasty", NASTY)
async def test_no_name_breaks_a_page(app: App, api: httpx2.AsyncClient, stage: Stage, nasty: str) -> None:
    admin = await sign_in_organiser(app, api, Role.ADMIN)
    city = await admin.create("/cities", a_city(name=nasty))
    where = {"city_id": city["id"], "name": nasty, "address": nasty, "postal_code": nasty[:16]}
    venue = await admin.create("/venues", {**where, "lat": 19.0, "lon": 72.8})
    hall = await admin.create(
        "/halls", {"venue_id": venue["id"], "name": nasty, "layout_hash": stage.layout_hash}
    )
    words = {"genre": nasty[:60], "language": nasty[:60], "people": [nasty]}
    event = await admin.create("/events", an_event(title=nasty, description=nasty, featured=True, **words))
    show = show_of(stage, event_id=event["id"], hall_id=hall["id"], starts_at=at(hours=3))
    await admin.create("/shows", show)
    await index_event(app, event["id"])

    for path in (
        f"/?city={city['slug']}",
        f"/events/{event['id']}",
        f"/venues/{venue['id']}",
        f"/find?{urlencode({'q': nasty})}",
        f"/find?city={city['slug']}",
    ):
        page = await opens(api, path)
        for tag, had in page.elements:
            assert not [name for name in had if name.startswith("on")], (path, tag, had)
            assert not had.get("href", "").lower().startswith(("javascript:", "data:")), (path, had)
            assert tag != "img" or had["src"].startswith("/posters/"), (path, had)
            assert "style" not in had, (path, had)
            if tag == "script":
                assert had.get("src", "/static/").startswith("/static/"), (path, had)
                assert had["type"] in ("module", "application/ld+json"), (path, had)
        assert "49" not in page.text.replace(nasty, "") or "7*7" not in nasty, path
    [block] = (await opens(api, f"/events/{event['id']}")).data_blocks
    assert msgspec.json.decode(block)["@graph"][0]["name"] == nasty


async def test_a_picture_from_elsewhere_is_not_fetched_by_a_page(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    event = await organiser.create("/events", an_event())
    elsewhere = "https://elsewhere.example/p.png"  # as events could have before posters were uploaded
    await app.postgres.execute("UPDATE event SET poster = $2 WHERE id = $1", event["id"], elsewhere)

    page = await opens(api, f"/events/{event['id']}")

    shown = {had["src"] for had in page.all("img")}
    assert f"/posters/{event['id']}.svg" in shown
    assert all(src.startswith("/posters/") for src in shown)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", ("Was läuft in Testpur", "Letztes Ticket", "Nur noch 3", "Alle Zeiten in Ortszeit")),
        ("hi", ("Testpur में क्या चल रहा है", "आखिरी टिकट", "सिर्फ़ 3 बचे", "सभी समय वेन्यू के")),
        ("en-IN", ("What's on in Testpur", "Last ticket", "Only 3 left", "All times are local")),
    ],
)
async def test_three_languages_with_their_plurals(
    app: App, organiser: Organiser, stage: Stage, alice: Fan, language: str, words: tuple[str, ...]
) -> None:
    last = await box_show(app, organiser, stage, a_layout(5), days=1)
    few = await box_show(app, organiser, stage, a_layout(6), days=2)
    await alice.holds(last, "A-1", "A-2", "A-3", "A-4")
    await alice.holds(few, "A-1", "A-2", "A-3")
    await index_event(app, stage.event_id)

    paths = (
        f"/?city={stage.city}",
        f"/events/{stage.event_id}",
        f"/venues/{stage.venue_id}",
        "/find?q=boats",
    )
    pages = [await opens(alice.api, path, language=language) for path in paths]

    text = " ".join(page.text for page in pages)
    for word in words:
        assert word in text, word
    assert all(page.all("html")[0]["lang"].startswith(language[:2]) for page in pages)


async def test_robots_sitemap_and_manifest_are_served(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    await organiser.create("/shows", show_of(stage))

    robots, sitemap = await api.get("/robots.txt"), await api.get("/sitemap.xml")
    manifest = (await api.get("/holdfast.webmanifest")).json()

    assert "Sitemap: http://box.office/sitemap.xml" in robots.text
    assert "Disallow: /bookings/" in robots.text
    assert sitemap.headers["Content-Type"].startswith("application/xml")
    assert "<loc>http://box.office/events/" in sitemap.text
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    assert "maskable" in [icon.get("purpose") for icon in manifest["icons"]]
    for icon in manifest["icons"]:
        assert (await api.get(icon["src"])).headers["Content-Type"] == icon["type"]


async def test_a_poster_is_compressed_on_request(api: httpx2.AsyncClient, stage: Stage) -> None:
    packed = await api.get(f"/posters/{stage.event_id}.svg", headers={"Accept-Encoding": "gzip"})
    plain = await api.get(f"/posters/{stage.event_id}.svg", headers={"Accept-Encoding": "identity"})

    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.content == plain.content
    assert int(packed.headers["Content-Length"]) < len(plain.content) / 2
