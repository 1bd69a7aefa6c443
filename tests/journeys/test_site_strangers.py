"""Pages are private: another buyer's booking looks missing, and other sites cannot submit forms."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.config import Config
from holdfast.routes import ROUTES
from tests.support.browser_session import ANN, Visitor
from tests.support.site_paths import GATEWAY_RETURN_PATH


async def test_another_buyers_booking_looks_missing(
    ann: Visitor, eve: Visitor, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10)
    path = await ann.holds(show, "A-1")
    other = await eve.holds(show, "A-2")
    given = ANN | {"ticket": f"{show}-1", "other": other.removeprefix("/bookings/")}
    of_booking = [route for route in ROUTES if route.tag == "site" and "{booking}" in route.path]
    found = {}
    for route in of_booking:
        there = route.path.replace("/bookings/{booking}", path)
        data = given if route.method == "POST" else None
        answer = await eve.client.request(route.method, there, data=data)
        if (route.method, route.path) == ("POST", GATEWAY_RETURN_PATH):
            answer = await eve.client.get(answer.headers["location"])
        found[route.name] = answer.status_code
    assert len(of_booking) > 15
    assert {name: status for name, status in found.items() if status != 404} == {}
    for what in ("merge", "swap"):  # the other way round: into a hold of her own
        answer = await eve.client.post(f"{other}/{what}", data={"other": path.removeprefix("/bookings/")})
        assert answer.status_code == 404, what
    assert (await ann.goes(path)).says("Reserved until")


async def test_a_signed_out_visitor_must_sign_in_and_returns_to_the_page(
    ann: Visitor, eve: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    answer = await eve.client.get(path)
    assert answer.status_code == 303
    there = f"/sign-in?back={path.replace('/', '%2F')}&why=private"
    assert answer.headers["location"] == there
    sent = await eve.client.post(f"{path}/pay", data=ANN)
    assert sent.headers["location"] == there, "to the page, not to its form"


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "", "origin": "https://evil.example"},
    ],
)
async def test_a_form_of_another_site_does_nothing(
    headers: dict[str, str], ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    if not headers["sec-fetch-site"]:
        ann.client.headers.pop("sec-fetch-site")
        headers = {"origin": headers["origin"]}
    for what in ("release", "pay", "extend", "cancel", "details"):
        answer = await ann.client.post(f"{path}/{what}", data=ANN, headers=headers)
        assert answer.status_code == 403, what
    assert (await ann.goes(path)).says("Reserved until")


async def test_the_page_is_not_cached_and_blocks_frames_and_foreign_scripts(
    ann: Visitor, config: Config, a_show: Callable[..., Any]
) -> None:
    await ann.holds(await a_show(seats=10), "A-1")
    policy = ann.headers["content-security-policy"]
    assert ann.headers["cache-control"] == "no-store"
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert f"form-action 'self' {config.gateway_url}" in policy
    assert "js.stripe.com" not in policy


async def test_no_parameter_leads_to_another_site(ann: Visitor, a_show: Callable[..., Any]) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    for back in ("//evil.example", "https://evil.example/", "/\\evil.example", "/%5cevil.example"):
        answer = await ann.client.get("/sign-in", params={"back": back})
        assert "//evil.example" not in answer.text
        assert "\\evil.example" not in answer.text
    for note in ("https://evil.example", "<script>", "extended&notice=x"):
        answer = await ann.client.get(path, params={"notice": note})
        assert answer.status_code == 200
        assert "evil.example" not in answer.text
        assert "<script>" not in answer.text


async def test_the_cookie_of_a_guest_is_out_of_reach_of_scripts_and_other_sites(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    answer = await ann.client.post(f"/shows/{await a_show(seats=10)}/hold", data={"seats": ["A-1"]})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("holdfast=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


async def test_a_guest_cannot_claim_a_ticket_by_typing_its_address(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    await ann.holds(await a_show(seats=10), "A-1")
    await ann.pays(**ANN)
    await ann.sends("/transfer", email="friend@example.org")
    await ann.sends("/details", name="Ann", email="friend@example.org")
    assert ann.says("Waiting for friend@example.org")
    assert 'class="qr"' not in ann.text
