"""Role × right × route × organisation, generated from the routes: access is what a route declares, no more.

A refused request is sent complete and valid, for things that exist: it must be the right that is missing. An
admitted one is sent for things that do not exist, so that the matrix changes nothing; that the complete ones
are valid is shown by the owner, who sends them all in the end.
"""

from collections.abc import Iterable
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.organisations.organisation import GRANTABLE
from holdfast.routes import ROUTES
from holdfast.web.caller import Right, Role, allows
from holdfast.web.routing import Route, params_of
from tests.support import shows as cast
from tests.support.organiser import sign_in_organiser
from tests.support.rights_house import RightsHouse, a_rights_house, key_fan
from tests.support.shows import Fan, problem

ORGANISER_ROUTES = [route for route in ROUTES if route.right is not None]
ROLE_ROUTES = [route for route in ROUTES if route.role is not None and route.right is None]
BY_PATH = [route for route in ORGANISER_ROUTES if "{organisation:int}" in route.path]
BY_HEADER = [route for route in ORGANISER_ROUTES if "{organisation:int}" not in route.path]
# They need another right as well, depending on what they are given.
NEED_MORE = {"create_show"}
# What the owner gets for the samples that cannot succeed.
OWNER_GETS = {
    "create_refund": "wrong_move",  # the booking is not paid
    "settle_refund": "no_such_refund",
    "approve_refund": "wrong_move",  # as create_refund
    "delete_venue": "still_in_use",
    "delete_hall": "still_in_use",
    "delete_event": "something_sold",  # a seat is held
    "delete_show": "something_sold",
    "retry_refund": "no_such_refund",
    "get_show_cancellation": "wrong_move",
    "get_invoice_seller": "no_seller",
    "get_notice_sender": "no_such_notice",
    "get_show_queue": "no_queue",  # created after it
    "override_show_queue": "wrong_room_state",  # closed before it
    "set_show_queue_beacon": "wrong_room_state",
    "upload_poster": "bad_picture",
    "replay_webhook_delivery": "no_such_delivery",
    "leave_organisation": "last_owner",
    "withdraw_invitation": "no_such_invitation",  # sent again before, it has another id
}
LAST = ("DELETE", "transfer_ownership")
# For everyone, on purpose: a new route is in this list, or declares who may use it.
PUBLIC = {
    *("list_cities", "list_events", "list_featured_events", "list_trending_events", "get_event", "get_show"),
    *("get_venue", "get_house", "get_legal_text", "search_events", "get_search_suggestions"),
    *("get_show_layout", "get_seats", "stream_seats", "get_queue", "stream_queue", "get_queue_draw"),
    *("create_account", "log_in", "log_in_gate", "refresh_tokens", "log_out", "complete_sign_in"),
    *("request_password_reset", "reset_password", "request_sign_in_link", "use_sign_in_link"),
    *("confirm_address", "begin_passkey_sign_in", "sign_in_with_passkey", "decline_invitation"),
}
# What belongs to one person; each kind is in `params` of the test of strangers.
OWN = ("booking", "ticket", "session", "passkey")
OWN_ROUTES = [r for r in ROLE_ROUTES if {param.name for param in params_of(r.path)} & set(OWN)]
OWN_BODIES: dict[str, Any] = {
    "PayBody": {"method": "tok_ok"},
    "PhoneBody": {"phone": "phone-one"},
    "TransferBody": {"email": "mallory@example.org"},
    "PasskeyNameBody": {"name": "Mine now"},
    "ProofBody": {},
    "ReturnBody": {},
}


@pytest.fixture(scope="module")
async def house(app: App, api: httpx2.AsyncClient) -> RightsHouse:
    return await a_rights_house(app, api)


async def expect_code(
    house: RightsHouse,
    routes: Iterable[Route],
    who: Fan | None,
    code: str,
    organisation_id: int | None = None,
) -> None:
    """Each of these routes refuses a complete request for what the organisation owns, with this code."""
    got = {}
    for route in routes:
        answer = await house.send(route, who, organisation_id)
        got[route.name] = f"{answer.status_code}" if answer.is_success else problem(answer)["code"]
    assert {name: found for name, found in got.items() if found != code} == {}


def test_every_route_has_a_row() -> None:
    """Of everyone, of a role, of a right or of a page: a route that is none of them is a mistake."""
    rows = {route.name for route in (*ORGANISER_ROUTES, *ROLE_ROUTES)} | PUBLIC
    assert {route.name for route in ROUTES if not route.bare} == rows
    assert PUBLIC & {route.name for route in ROUTES if route.role is not None} == set()
    # What belongs to whom on pages: test_desk_rights.py, test_site_strangers.py, test_site_safety.py.
    bare = {route.tag for route in ROUTES if route.bare}
    assert bare == {"site", "desk", "pages", "payments", "catalogue"}


@pytest.fixture(scope="module")
async def things(app: App, api: httpx2.AsyncClient) -> dict[str, Any]:
    """One of each kind, of one owner."""
    (owner,) = await cast.fans(app, api, 1)
    held = (await owner.holds(await cast.a_show(app, 10), "A-1")).json()
    paid = (await owner.holds(await cast.a_show(app, 10), "A-1")).json()
    bought = await owner.post(f"/bookings/{paid['booking_id']}/pay", {"method": "tok_ok"})
    assert bought.is_success, bought.text
    (ticket,) = (await owner.get(f"/bookings/{paid['booking_id']}/tickets")).json()["tickets"]
    await app.sessions.open_account(owner.account_id, None)
    (session, *_) = (await owner.get("/me/sessions")).json()["sessions"]
    passkey = await app.postgres.fetchval(
        "INSERT INTO passkey (account_id, credential_id, public_key, sign_count, transports, name)"
        " VALUES ($1, $2, $2, 0, '{}', 'Phone') RETURNING id",
        owner.account_id,
        owner.account_id.to_bytes(16),
    )
    return {
        "owner": owner,
        "bookings": (held["booking_id"], paid["booking_id"]),
        "ticket": ticket["ticket_id"],
        "session": session["session_id"],
        "passkey": passkey,
    }


class TestOwners:
    """What belongs to a person does not exist for others, whatever their role."""

    @pytest.mark.parametrize("role", list(Role))
    async def test_strangers_find_nothing(
        self, app: App, api: httpx2.AsyncClient, things: dict[str, Any], role: Role
    ) -> None:
        (who,) = await cast.fans(app, api, 1, role)
        before = await self.look(things)
        found = {}
        for booking in things["bookings"]:
            for route in OWN_ROUTES:
                path = "/api/v1" + route.path.replace("{booking}", booking)
                for name in OWN[1:]:
                    path = path.replace(f"{{{name}:int}}", str(things[name]))
                    path = path.replace(f"{{{name}}}", str(things[name]))
                body = {"json": OWN_BODIES[route.body.__name__]} if route.body else {}
                answer = await api.request(route.method, path, headers=who.headers, **body)
                found[route.name] = answer.status_code
        assert {name: status for name, status in found.items() if status != 404} == {}
        assert await self.look(things) == before

    async def look(self, things: dict[str, Any]) -> list[Any]:
        """What the owner sees."""
        paths = (*(f"/bookings/{one}" for one in things["bookings"]), "/tickets", "/me/sessions")
        return [(await things["owner"].get(path)).json() for path in (*paths, "/me/second-factor")]


class TestRoles:
    async def test_without_a_token(self, house: RightsHouse) -> None:
        await expect_code(house, ORGANISER_ROUTES, None, "not_signed_in")

    @pytest.mark.parametrize("role", [Role.FAN, Role.GATE])
    async def test_without_a_membership(
        self, house: RightsHouse, app: App, api: httpx2.AsyncClient, role: Role
    ) -> None:
        (who,) = await cast.fans(app, api, 1, role)

        await expect_code(house, BY_HEADER, who, "not_allowed")
        await expect_code(house, BY_HEADER, who, "not_a_member", house.organisation_id)
        await expect_code(house, BY_PATH, who, "not_a_member")

    @pytest.mark.parametrize("role", list(Role))
    async def test_routes_that_go_by_role_alone(self, app: App, api: httpx2.AsyncClient, role: Role) -> None:
        """The role of an organiser opens nothing that belongs to the whole house."""
        (who,) = await cast.fans(app, api, 1, role)
        found = []
        for route in ROLE_ROUTES:
            path = "/api/v1" + _filled(route)
            body: dict[str, Any] = {"json": {"unknown": "field"}} if route.body else {}
            signed_in = await api.request(route.method, path, headers=who.headers, **body)
            stranger = await api.request(route.method, path, **body)
            assert route.role is not None
            is_let_in = signed_in.is_success or problem(signed_in)["code"] != "not_allowed"
            if is_let_in != (allows(role, route.role) or _owns_a_door(role, route)):
                found.append((route.name, signed_in.status_code))
            if stranger.status_code != 401:
                found.append((route.name, stranger.status_code))
        assert found == []


def _owns_a_door(role: Role, route: Route) -> bool:
    """An organiser owns an organisation, and an owner has the right to work at its door."""
    return role is Role.ORGANISER and route.role is Role.GATE


def _filled(route: Route) -> str:
    path = route.path
    for param in params_of(path):
        path = path.replace(f"{{{param.name}:int}}", str(2**53)).replace(f"{{{param.name}}}", "a" * 20)
    return path


class TestRights:
    @pytest.mark.parametrize("right", [Right.MEMBER, *GRANTABLE])
    async def test_a_member_with_one_right(self, house: RightsHouse, right: Right) -> None:
        who, mine = house.members[right], {right, Right.MEMBER}
        if right in (Right.COUNTER, Right.REFUND):
            mine.add(Right.BOOKINGS)
        others = [route for route in ORGANISER_ROUTES if route.right not in mine]

        await expect_code(house, others, who, "not_allowed")
        for route in ORGANISER_ROUTES:
            if route.right in mine and route.name not in {*NEED_MORE, "leave_organisation"}:
                answer = await house.send(route, who, is_known=False)
                assert answer.status_code not in (401, 403), (route.name, answer.text)

    async def test_an_admin_has_all_in_the_house_and_in_a_named_organisation(
        self, house: RightsHouse, app: App, api: httpx2.AsyncClient
    ) -> None:
        admin = await sign_in_organiser(app, api, Role.ADMIN)
        for named in (None, house.organisation_id):
            for route in ORGANISER_ROUTES:
                answer = await house.send(route, admin.who, named, is_known=False)
                assert answer.status_code not in (401, 403), (route.name, answer.text)
        await expect_code(house, BY_HEADER, admin.who, "not_a_member", 2**53)


class TestApiKeys:
    """A key is refused wherever its scope is too small, on every route that looks at tokens."""

    @pytest.mark.parametrize("right", [Right.MEMBER, *GRANTABLE])
    async def test_a_key_with_one_right(self, house: RightsHouse, right: Right) -> None:
        key, mine = house.keys[right], {right, Right.MEMBER}
        if right in (Right.COUNTER, Right.REFUND):
            mine.add(Right.BOOKINGS)

        others = [route for route in ORGANISER_ROUTES if route.right not in mine or route.for_people]
        await expect_code(house, others, key, "not_allowed")
        for route in ORGANISER_ROUTES:
            if route not in others and route.name not in NEED_MORE:
                answer = await house.send(route, key, is_known=False)
                assert answer.status_code not in (401, 403), (route.name, answer.text)

    async def test_a_key_with_every_right_is_still_no_person(self, house: RightsHouse) -> None:
        key = house.keys[Right.OWNER]
        await expect_code(house, [r for r in ORGANISER_ROUTES if r.for_people], key, "not_allowed")
        for route in ORGANISER_ROUTES:
            if not route.for_people:
                answer = await house.send(route, key, is_known=False)
                assert answer.status_code not in (401, 403), (route.name, answer.text)

    async def test_routes_that_go_by_role(self, house: RightsHouse, api: httpx2.AsyncClient) -> None:
        """Accounts, bookings of buyers, the door, the house: none of them takes a key."""
        found = {}
        for route in ROLE_ROUTES:
            body: dict[str, Any] = {"json": {"unknown": "field"}} if route.body else {}
            path, headers = "/api/v1" + _filled(route), house.keys[Right.OWNER].headers
            answer = await api.request(route.method, path, headers=headers, **body)
            found[route.name] = (answer.status_code, problem(answer)["code"])
        assert set(found.values()) == {(401, "token_invalid")}, found

    async def test_another_organisation(self, house: RightsHouse, app: App, api: httpx2.AsyncClient) -> None:
        rival = await key_fan((await sign_in_organiser(app, api)).who, *GRANTABLE)
        by_path, by_header = (
            [route for route in routes if not route.for_people] for routes in (BY_PATH, BY_HEADER)
        )
        await expect_code(house, by_header, rival, "not_a_member", house.organisation_id)
        await expect_code(house, by_path, rival, "not_a_member")
        for route in by_header:
            if house.is_about_something(route):
                answer = await house.send(route, rival)
                assert answer.status_code == 404, (route.name, answer.text)

    def test_only_people_change_members_owners_and_keys_and_approve_refunds(self) -> None:
        """A second approval by a machine would be none."""
        for_people = {route.name for route in ROUTES if route.for_people}
        money = ("approve_", "set_refund_limits")
        about = ("member", "invitation", "ownership", "api_key", "leave_", "second_factor", *money)
        assert for_people == {r.name for r in ORGANISER_ROUTES if any(word in r.name for word in about)}


class TestOrganisations:
    async def test_the_owner_of_another_one(
        self, house: RightsHouse, app: App, api: httpx2.AsyncClient
    ) -> None:
        """Whether they name the organisation or not, what it owns does not exist for them."""
        rival = (await sign_in_organiser(app, api)).who
        await expect_code(house, BY_HEADER, rival, "not_a_member", house.organisation_id)
        await expect_code(house, BY_PATH, rival, "not_a_member")
        for route in BY_HEADER:
            if house.is_about_something(route):
                answer = await house.send(route, rival)
                assert answer.status_code == 404, (route.name, answer.text)
            elif route.method == "GET" and not {route.name} & OWNER_GETS.keys():
                listed = (await house.send(route, rival)).text
                assert "The Shed" not in listed, route.name
                assert f'"organiser_id":{house.organisation_id}' not in listed, route.name

    async def test_a_member_of_two_says_which(
        self, house: RightsHouse, app: App, api: httpx2.AsyncClient
    ) -> None:
        both = (await sign_in_organiser(app, api)).who
        rights = [right.value for right in GRANTABLE]
        await app.organisations.add_member(house.organisation_id, both.account_id, rights)

        await expect_code(house, BY_HEADER, both, "organisation_needed")
        for named in (house.organisation_id, both.account_id):
            for route in BY_HEADER:
                answer = await house.send(route, both, named, is_known=False)
                assert answer.status_code not in (400, 401, 403), (route.name, answer.text)
        for route in BY_HEADER:
            if house.is_about_something(route):
                answer = await house.send(route, both, both.account_id)
                assert answer.status_code == 404, (route.name, answer.text)


async def test_the_samples_are_valid_the_owner_may_send_them_all(app: App, api: httpx2.AsyncClient) -> None:
    """Otherwise a refusal above could be one of a bad sample."""
    house = await a_rights_house(app, api)
    got = {}
    for route in sorted(ORGANISER_ROUTES, key=lambda route: (route.name in LAST, route.method in LAST)):
        answer = await house.send(route, house.owner.who)
        if not answer.is_success:
            got[route.name] = problem(answer)["code"]
    assert got == OWNER_GETS
