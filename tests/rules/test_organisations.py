"""Which organisation a request speaks for, and who may change whose rights."""

import pytest
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NotAllowed, NotAMember, OrganisationNeeded
from holdfast.organisations.errors import RightsTooHigh
from holdfast.organisations.organisation import (
    Membership,
    choose_scope,
    list_grantable,
    parse_rights,
    refuse_higher_rights,
)
from holdfast.routes import ROUTES
from holdfast.web.caller import Caller, Right, Role, Scope
from holdfast.web.routing import RouteTable

FAN, ADMIN = Caller(1, Role.FAN, 1), Caller(2, Role.ADMIN, 1)
DOOR, OWNER = Membership(10, parse_rights(["door"])), Membership(20, parse_rights(["owner"]))


class TestTheOrganisationOfARequest:
    def test_the_only_one_needs_no_name(self) -> None:
        scope = choose_scope(FAN, Right.DOOR, None, {10: DOOR})

        assert (scope.organiser_id, scope.owner_id, scope.is_admin) == (10, 10, False)
        assert scope.rights == {Right.MEMBER, Right.DOOR}

    def test_one_of_several_must_be_named(self) -> None:
        both = {10: DOOR, 20: OWNER}

        with pytest.raises(OrganisationNeeded) as refused:
            choose_scope(FAN, Right.DOOR, None, both)
        assert refused.value.details == {"organisations": [10, 20]}
        assert choose_scope(FAN, Right.SETTINGS, "20", both).organiser_id == 20
        with pytest.raises(NotAllowed):
            choose_scope(FAN, Right.SETTINGS, "10", both)

    @pytest.mark.parametrize("named", ["30", "", "-1", "1e3", "9" * 40, "१०", "10 "])
    def test_another_one_or_nonsense_is_refused_alike(self, named: str) -> None:
        with pytest.raises(NotAMember):
            choose_scope(FAN, Right.DOOR, named, {10: DOOR})

    def test_a_missing_right_is_named(self) -> None:
        for memberships in ({10: DOOR}, {}):
            with pytest.raises(NotAllowed) as refused:
                choose_scope(FAN, Right.MONEY, None, memberships)
            assert refused.value.details == {"needed": "money"}

    def test_an_admin_speaks_for_the_house_or_for_any_organisation(self) -> None:
        house = choose_scope(ADMIN, Right.MONEY, None, {})
        one = choose_scope(ADMIN, Right.MONEY, "30", {10: DOOR})

        assert (house.organiser_id, one.organiser_id) == (None, 30)
        assert house.is_admin
        assert one.is_admin

    def test_what_an_admin_of_the_house_creates_goes_into_their_only_organisation(self) -> None:
        assert choose_scope(ADMIN, Right.CATALOGUE, None, {}).owner_id == ADMIN.account_id
        assert choose_scope(ADMIN, Right.CATALOGUE, None, {10: DOOR}).owner_id == 10
        several = choose_scope(ADMIN, Right.CATALOGUE, None, {10: DOOR, 20: OWNER})
        with pytest.raises(OrganisationNeeded):
            _ = several.owner_id


class TestRights:
    def test_an_owner_has_all(self) -> None:
        assert parse_rights(["owner"]) == set(Right)
        assert list_grantable(parse_rights(["owner"]))[0] == "catalogue"
        assert list_grantable(parse_rights([])) == []

    def test_a_member_cannot_give_or_take_what_they_lack(self) -> None:
        scope = Scope(1, False, 10, parse_rights(["settings", "door"]))

        refuse_higher_rights(scope, parse_rights([]), parse_rights(["door"]))
        for before, after in (([], ["money"]), (["money", "door"], ["door"]), (["owner"], ["door"])):
            with pytest.raises(RightsTooHigh):
                refuse_higher_rights(scope, parse_rights(before), parse_rights(after))


class TestEveryRouteOfOrganisersDeclaresARight:
    def test_one_without_cannot_be_declared(self) -> None:
        routes = RouteTable(tag="admin", role=Role.ORGANISER)

        with pytest.raises(AssertionError, match="organisers need a right"):

            @routes.get("/admin/secrets")
            async def list_secrets(request: Request) -> Response:
                """Never served."""
                raise NotImplementedError

    def test_the_product_uses_all_but_the_counter(self) -> None:
        """Nothing sells at a counter yet."""
        assert {route.right for route in ROUTES} - {None} == set(Right) - {Right.COUNTER}
