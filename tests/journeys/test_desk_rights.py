"""Page × right × organisation, generated from the declarations of the desk: the same access as the API gives.

A page names routes of the API; who may use those may open it, and no one else.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import httpx2
import pytest

from holdfast.app import App
from holdfast.desk import DESK_PAGES
from holdfast.desk.access import DeskPage
from holdfast.organisations.organisation import GRANTABLE
from holdfast.routes import ROUTES
from holdfast.site.pages import OWN_POLICY
from holdfast.web.asgi import Application
from holdfast.web.caller import Right, Role
from holdfast.web.routing import params_of
from tests.support.browser_session import Visitor, a_visitor
from tests.support.desk import sit_down
from tests.support.rights_house import RightsHouse, a_rights_house
from tests.support.shows import fans

API_ROUTES = {route.name: route for route in ROUTES if not route.bare}
OF_ORGANISATION = [page for page in DESK_PAGES if page.is_of_organisation]
OF_HOUSE = [page for page in DESK_PAGES if page.like and not page.is_of_organisation]
LEAVES = {"post_leave"}  # would succeed without a word in its form
UNKNOWN = 2**53
# What any form of the desk needs, so that a refusal is about whose things they are.
FORM = {
    "title": "The Paper Boats",
    "published": "false",
    "seats": "A-1",
    "amount": "50000",
    "key": "a-key-of-a-form-at-the-desk",
    "note": "Paid in cash",
    "name": "Mine",
    "rights": "door",
    "role": "fan",
    "active": "false",
}

Seat = Callable[[int | None], Awaitable[Visitor]]


@pytest.fixture(scope="module")
async def house(app: App, api: httpx2.AsyncClient) -> RightsHouse:
    return await a_rights_house(app, api)


@pytest.fixture
async def seat(app: App, site: Application) -> AsyncIterator[Seat]:
    """A browser, signed in to this account."""
    async with AsyncExitStack() as stack:

        async def take(account_id: int | None) -> Visitor:
            visitor = await stack.enter_async_context(a_visitor(site))
            return visitor if account_id is None else await sit_down(app, visitor, account_id)

        yield take


def needed(page: DeskPage) -> set[Right | None]:
    return {API_ROUTES[name].right for name in page.like}


def fill(page: DeskPage, house: RightsHouse, *, is_known: bool) -> str:
    path = page.path
    for param in params_of(path):
        value = house.params[param.name]
        if not is_known and param.name != "organisation":
            value = UNKNOWN if param.is_int else "a" * 20
        path = path.replace("{" + param.name + (":int}" if param.is_int else "}"), str(value))
    return path


async def request_all(
    visitor: Visitor, house: RightsHouse, pages: list[DeskPage], *, is_known: bool = True
) -> dict[str, int]:
    """Status by page; redirects are not followed."""
    return {
        page.call.__name__: (
            await visitor.client.request(page.method, fill(page, house, is_known=is_known))
        ).status_code
        for page in pages
    }


def test_every_page_names_a_route_of_its_kind() -> None:
    served = {(route.method, route.path) for route in ROUTES if route.tag == "desk"}
    assert served == {(page.method, page.path) for page in DESK_PAGES}
    for page in OF_ORGANISATION:
        assert page.like, page.path
        assert None not in needed(page), page.path
    for page in OF_HOUSE:
        assert needed(page) == {None}, page.path


@pytest.mark.parametrize("right", [Right.MEMBER, *GRANTABLE])
async def test_a_member_with_one_right(house: RightsHouse, seat: Seat, right: Right) -> None:
    mine = {right, Right.MEMBER} | ({Right.BOOKINGS} if right in (Right.COUNTER, Right.REFUND) else set())
    visitor = await seat(house.members[right].account_id)
    open_pages = [page for page in OF_ORGANISATION if needed(page) <= mine]
    others = [page for page in OF_ORGANISATION if page not in open_pages]

    refused = await request_all(visitor, house, others)
    let_in = [page for page in open_pages if page.call.__name__ not in LEAVES]
    admitted = await request_all(visitor, house, let_in, is_known=False)

    assert {name: status for name, status in refused.items() if status != 403} == {}
    assert {name: status for name, status in admitted.items() if status in (401, 403, 500)} == {}


async def test_the_owner_of_another_organisation_finds_nothing(
    app: App, api: httpx2.AsyncClient, house: RightsHouse, seat: Seat
) -> None:
    """Neither by the organisation's own address, nor its things under the rival's."""
    (rival,) = await fans(app, api, 1, Role.ORGANISER)
    visitor = await seat(rival.account_id)

    statuses = await request_all(visitor, house, OF_ORGANISATION)
    assert {name: status for name, status in statuses.items() if status != 404} == {}

    under_own = {}
    for page in OF_ORGANISATION:
        if len(params_of(page.path)) > 1:
            path = fill(page, house, is_known=True).replace(
                f"/desk/{house.organisation_id}", f"/desk/{rival.account_id}"
            )
            answer = await visitor.client.request(
                page.method, path, data=FORM if page.method == "POST" else None
            )
            under_own[page.call.__name__] = answer.status_code
    assert {name: status for name, status in under_own.items() if status != 404} == {}


async def test_strangers_are_sent_to_sign_in(house: RightsHouse, seat: Seat) -> None:
    statuses = await request_all(await seat(None), house, list(DESK_PAGES))

    assert set(statuses.values()) == {303}


@pytest.mark.parametrize("role", list(Role))
async def test_pages_of_the_house_are_for_admins(
    app: App, api: httpx2.AsyncClient, house: RightsHouse, seat: Seat, role: Role
) -> None:
    (who,) = await fans(app, api, 1, role)
    statuses = await request_all(await seat(who.account_id), house, OF_HOUSE, is_known=False)

    if role is Role.ADMIN:
        assert {name: status for name, status in statuses.items() if status in (401, 403, 500)} == {}
    else:
        assert {name: status for name, status in statuses.items() if status != 403} == {}


async def test_an_admin_opens_the_desk_of_any_organisation(
    app: App, api: httpx2.AsyncClient, house: RightsHouse, seat: Seat
) -> None:
    (admin,) = await fans(app, api, 1, Role.ADMIN)
    pages = [page for page in OF_ORGANISATION if page.method == "GET"]
    statuses = await request_all(await seat(admin.account_id), house, pages)

    assert {name: status for name, status in statuses.items() if status in (401, 403, 500)} == {}


FILES = (".csv", ".json", ".html")
FOREIGN = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
INLINE = re.compile(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE)


async def test_another_site_cannot_send_a_form_of_the_desk(house: RightsHouse, seat: Seat) -> None:
    owner = await seat(house.organisation_id)
    for page in DESK_PAGES:
        if page.method == "POST":
            answer = await owner.client.post(fill(page, house, is_known=True), headers=FOREIGN)
            assert answer.status_code == 403, page.path
            assert "This form was sent from another website" in answer.text, page.path


async def test_every_page_has_the_strict_policy_and_obeys_it(house: RightsHouse, seat: Seat) -> None:
    owner = await seat(house.organisation_id)
    for page in OF_ORGANISATION:
        if page.method == "GET" and not page.path.endswith(FILES):
            answer = await owner.client.get(fill(page, house, is_known=True), follow_redirects=True)
            assert answer.headers["content-security-policy"] == OWN_POLICY, page.path
            assert answer.headers["cache-control"] == "no-store", page.path
            assert not INLINE.search(answer.text), page.path


QUERIES = (
    "q=a&page=2&before=5&role=fan&state=by_hand&show=1&when=past&action=a&since=2026-01-01&seats=A-1",
    "q=%00&page=x&before=x&role=x&state=x&show=x&when=x&action=%00&actor=x&since=x&seats=%00&notice=x",
    "q=a&q=b&page=-1&before=0",
)


@pytest.mark.parametrize("text", QUERIES, ids=["good", "bad", "worse"])
async def test_no_query_breaks_a_page(
    app: App, api: httpx2.AsyncClient, house: RightsHouse, seat: Seat, text: str
) -> None:
    (admin,) = await fans(app, api, 1, Role.ADMIN)
    visitor = await seat(admin.account_id)
    for page in DESK_PAGES:
        if page.method == "GET":
            answer = await visitor.client.get(f"{fill(page, house, is_known=True)}?{text}")
            assert answer.status_code < 500, page.path
