"""The show page and its forms, without a browser: which account holds, what is refused, and the texts."""

import gzip
import re
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.demo.halls import club, concert_hall, village_cinema
from holdfast.layouts import Layout
from tests.support.shows import a_layout, problem

HTML = {"Accept": "text/html"}
JSON = {"Accept": "application/json"}
BOOKING = re.compile(r"^/bookings/[a-z2-7]{20}$")
Show = Callable[..., Any]


async def post_form(
    api: httpx2.AsyncClient, show: int, form: dict[str, Any], **headers: str
) -> httpx2.Response:
    """Sends the form of a show's page without a session."""
    api.cookies.clear()
    return await api.post(f"/shows/{show}/hold", data=form, headers=HTML | headers)


async def held(app: App, show: int) -> list[str]:
    snapshot = await app.seatmap.newest(show)
    return [snapshot.layout.labels[seat] for seat, letter in enumerate(snapshot.states) if letter == ord("H")]


@pytest.mark.parametrize("language", ["en", "de", "hi"])
@pytest.mark.parametrize("opens_in_s", [-60, 60])
async def test_a_show_has_a_page_in_every_language(
    api: httpx2.AsyncClient, a_show: Show, language: str, opens_in_s: float
) -> None:
    show = await a_show(layout=Layout.build(village_cinema()), opens_in_s=opens_in_s)

    page = await api.get(f"/shows/{show}", headers=HTML | {"Accept-Language": language})

    assert page.status_code == 200
    assert f'<html lang="{language}-' in page.text
    assert "public" in page.headers["cache-control"]


async def test_an_unknown_show_has_no_page(api: httpx2.AsyncClient) -> None:
    assert (await api.get("/shows/999999999", headers=HTML)).status_code == 404


async def test_a_visitor_without_an_account_becomes_a_guest_and_holds_seats(
    api: httpx2.AsyncClient, app: App, a_show: Show
) -> None:
    show = await a_show(seats=20)

    answer = await post_form(api, show, {"seats": ["A-3", "A-4"]})

    assert answer.status_code == 303
    assert BOOKING.match(answer.headers["location"])
    assert "holdfast=" in answer.headers["set-cookie"]
    assert await held(app, show) == ["A-3", "A-4"]


async def test_a_guest_stays_the_same_guest(api: httpx2.AsyncClient, a_show: Show) -> None:
    shows = [await a_show(seats=20), await a_show(seats=20)]
    first = await post_form(api, shows[0], {"seats": "A-3"})
    cookie = first.headers["set-cookie"].partition(";")[0]

    second = await post_form(api, shows[1], {"seats": "A-5"}, Cookie=cookie)
    mine = [await api.get(f"/shows/{show}/mine", headers=JSON | {"Cookie": cookie}) for show in shows]

    assert "set-cookie" not in second.headers
    assert [[each["seats"] for each in one.json()["mine"]] for one in mine] == [[["A-3"]], [["A-5"]]]


async def test_a_script_gets_the_address_of_the_next_page(api: httpx2.AsyncClient, a_show: Show) -> None:
    show = await a_show(seats=20)

    answer = await post_form(api, show, {"quantity": "3"}, Accept="application/json")

    assert BOOKING.match(answer.json()["go"])


async def test_the_same_key_is_the_same_hold(api: httpx2.AsyncClient, app: App, a_show: Show) -> None:
    show = await a_show(layout=Layout.build(concert_hall()))
    form = {"quantity": "2", "section": "Circle", "key": "k1"}
    first = await post_form(api, show, form)
    cookie = first.headers["set-cookie"].partition(";")[0]

    again = await post_form(api, show, form, Cookie=cookie)

    assert again.headers["location"] == first.headers["location"]
    assert len(await held(app, show)) == 2


async def test_a_form_of_another_site_holds_nothing(api: httpx2.AsyncClient, app: App, a_show: Show) -> None:
    show = await a_show(seats=20)

    answer = await post_form(api, show, {"seats": "A-3"}, **{"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 403
    assert await held(app, show) == []


async def test_the_best_of_a_price_is_of_that_price(api: httpx2.AsyncClient, app: App, a_show: Show) -> None:
    layout = Layout.build(concert_hall())
    show = await a_show(layout=layout)

    await post_form(api, show, {"quantity": "2", "category": "Balcony and choir"})

    categories = {
        layout.categories[layout.category_of[layout.index_of[label]]].name for label in await held(app, show)
    }
    assert categories == {"Balcony and choir"}


async def test_a_wheelchair_space_in_a_part_comes_with_its_companion(
    api: httpx2.AsyncClient, app: App, a_show: Show
) -> None:
    layout = Layout.build(concert_hall())
    show = await a_show(layout=layout)

    await post_form(api, show, {"quantity": "2", "section": "Stalls", "accessible": "true"})

    traits = sorted(layout.seat(layout.index_of[label]).trait for label in await held(app, show))
    assert traits == ["c", "w"]


@pytest.mark.parametrize("form", [{"section": "Mezzanine"}, {"category": "Mezzanine"}])
async def test_places_to_stand_are_had_by_their_part_or_their_price(
    api: httpx2.AsyncClient, app: App, a_show: Show, form: dict[str, str]
) -> None:
    show = await a_show(layout=Layout.build(club()))

    await post_form(api, show, {"quantity": "3", **form})

    assert [label.partition("-")[0] for label in await held(app, show)] == ["Mezzanine"] * 3


async def test_a_standing_show_needs_no_section(api: httpx2.AsyncClient, app: App, a_show: Show) -> None:
    show = await a_show(layout=Layout.build(club()))

    await post_form(api, show, {"quantity": "2"})

    assert len(await held(app, show)) == 2


async def test_taken_seats_are_answered_with_others_to_be_had_by_one_click(
    api: httpx2.AsyncClient, a_show: Show
) -> None:
    show = await a_show(seats=20)
    await post_form(api, show, {"seats": "A-3"})

    refused = await post_form(api, show, {"seats": "A-3"})

    assert refused.status_code == 409
    assert 'id="refused"' in refused.text
    assert refused.text.count('<input type="hidden" name="seats"') == 3
    assert refused.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({}, 422),
        ({"seats": "Z-99"}, 422),
        ({"quantity": "11"}, 422),
        ({"quantity": "many"}, 422),
        ({"quantity": "2", "section": "Nowhere"}, 422),
        ({"quantity": "2", "category": "Gold"}, 422),
        ({"seats": ["A-1", "A-1"]}, 422),
        ({"seats": [f"A-{n}" for n in range(1, 11)] + ["B-1"]}, 422),
        ({"seats": "A-1", "key": "with space"}, 400),
    ],
)
async def test_the_page_reports_a_selection_that_cannot_be_held(
    api: httpx2.AsyncClient, app: App, a_show: Show, form: dict[str, Any], status: int
) -> None:
    show = await a_show(seats=20)

    refused = await post_form(api, show, form)

    assert refused.status_code == status
    assert 'id="refused"' in refused.text
    assert await held(app, show) == []


async def test_more_than_there_are_is_sold_out_for_scripts_too(api: httpx2.AsyncClient, a_show: Show) -> None:
    show = await a_show(layout=a_layout(6, row=3))

    refused = await post_form(api, show, {"quantity": "4"}, Accept="application/json")

    assert problem(refused)["code"] == "sold_out"


async def test_every_form_of_the_map_says_its_version(api: httpx2.AsyncClient, a_show: Show) -> None:
    url = f"/api/v1/shows/{await a_show()}/seats"
    compact = {"Accept": "application/vnd.holdfast.seats"}
    answers = [
        await api.get(url),
        await api.get(url, headers={**compact, "Accept-Encoding": "identity"}),
        await api.get(url, headers=compact),
        await api.get(f"{url}?form=compact"),
    ]
    version = answers[0].json()["version"]

    for answer in answers:
        known = {"If-None-Match": answer.headers["etag"], **compact}
        assert answer.headers["etag"] == f'"{version}"'
        assert answer.headers["cache-control"] == "public, max-age=1"
        assert "Accept" in answer.headers["vary"]
        assert (await api.get(url, headers=known)).status_code == 304
    assert [answer.headers["content-type"] for answer in answers] == [
        "application/json",
        *[compact["Accept"]] * 3,
    ]
    assert answers[1].content == answers[2].content == answers[3].content


async def test_layouts_and_compact_maps_are_compressed_on_request(
    api: httpx2.AsyncClient, a_show: Show
) -> None:
    show = await a_show(layout=Layout.build(concert_hall()))
    for path, accept in (("layout", "application/json"), ("seats", "application/vnd.holdfast.seats")):
        url = f"/api/v1/shows/{show}/{path}"
        plain = await api.get(url, headers={"Accept": accept, "Accept-Encoding": "identity"})

        async with api.stream("GET", url, headers={"Accept": accept, "Accept-Encoding": "gzip"}) as packed:
            raw = b"".join([piece async for piece in packed.aiter_raw()])

        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw) == plain.content
        assert "Accept-Encoding" in packed.headers["vary"]
        assert "content-encoding" not in plain.headers
