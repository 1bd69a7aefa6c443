"""Organisations in the ledger: ids, owners, invitations, and processes that remember memberships."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.errors import NotAllowed, NotAMember
from holdfast.organisations import (
    AlreadyAMember,
    InvitationsMax,
    LastOwner,
    NoSuchInvitation,
    NoSuchMember,
    Organisations,
    RightsTooHigh,
)
from holdfast.organisations.invitations import INVITATIONS_TO_ADDRESS_MAX
from holdfast.organisations.organisation import NewInvitation, parse_rights
from holdfast.web.caller import Caller, Right, Role, Scope
from tests.support.wait import until


async def an_account(app: App, role: Role = Role.FAN) -> int:
    (account_id,) = await app.accounts.add_many(
        [NewAccount(f"{secrets.token_hex(8)}@example.org", "Ann", role)]
    )
    return account_id


async def an_owner(app: App) -> Scope:
    owner_id = await an_account(app)
    made = await app.organisations.create("The Club", owner_id)
    return Scope(owner_id, False, made.organisation_id, parse_rights(["owner"]))


async def joined(app: App, scope: Scope, *rights: str) -> Scope:
    assert scope.organisation_id is not None
    account_id = await an_account(app)
    await app.organisations.add_member(scope.organisation_id, account_id, list(rights))
    return Scope(account_id, False, scope.organisation_id, parse_rights(rights))


def invitation(*rights: Any) -> NewInvitation:
    return NewInvitation(email=f"{secrets.token_hex(8)}@example.org", rights=list(rights))


async def invited(app: App, scope: Scope, new: NewInvitation) -> tuple[int, str]:
    """Its id and the token in the mail."""
    page = await app.invitations.invite(scope, new)
    token = await app.invitations.issue_token(page.invitation_id)
    assert token is not None
    return page.invitation_id, token


class TestIds:
    async def test_no_account_ever_has_the_id_of_a_new_organisation(self, app: App) -> None:
        """The release before this one takes `organiser_id` for the id of an account."""
        scope = await an_owner(app)
        others = [await an_account(app) for _ in range(3)]

        assert scope.organisation_id not in (scope.account_id, *others)
        assert await app.accounts.account(scope.organisation_id or 0) is None

    async def test_an_organiser_owns_the_organisation_with_its_own_id(self, app: App) -> None:
        """Also if the release before this one makes it an organiser, or an admin does by the command line."""
        new, promoted = await an_account(app, Role.ORGANISER), await an_account(app)
        assert await app.organisations.mine(promoted) == []
        await app.accounts.set_role(promoted, Role.ORGANISER)

        for account_id in (new, promoted):
            (own,) = await app.organisations.mine(account_id)
            assert (own.organisation_id, own.name, own.is_owner) == (account_id, "Ann", True)

    async def test_an_admin_gets_one_with_the_first_thing_in_it(self, app: App) -> None:
        admin_id = await an_account(app, Role.ADMIN)
        assert not await app.organisations.exists(admin_id)

        await app.postgres.execute(
            "INSERT INTO event (organiser_id, kind, title, duration_min) VALUES ($1, 'film', 'Mine', 90)",
            admin_id,
        )

        assert [one.organisation_id for one in await app.organisations.mine(admin_id)] == [admin_id]


class TestMembers:
    async def test_there_is_always_an_owner(self, app: App) -> None:
        scope = await an_owner(app)

        with pytest.raises(LastOwner):
            await app.organisations.remove(scope, scope.account_id)
        with pytest.raises(LastOwner):
            await app.organisations.set_rights(scope, scope.account_id, ["door"])

    async def test_two_owners_who_leave_at_once_do_not_both_leave(self, app: App) -> None:
        first = await an_owner(app)
        second = await joined(app, first, "owner")

        ends = await asyncio.gather(
            *(app.organisations.remove(scope, scope.account_id) for scope in (first, second)),
            return_exceptions=True,
        )

        assert sorted(type(end).__name__ for end in ends) == ["LastOwner", "NoneType"]
        (left,) = await app.organisations.members(first.organisation_id or 0)
        assert left.is_owner

    async def test_a_transfer_moves_the_ownership(self, app: App) -> None:
        scope = await an_owner(app)
        heir = await joined(app, scope, "door")

        made = await app.organisations.transfer(scope, heir.account_id)

        assert made.is_owner
        members = {one.account_id: one for one in await app.organisations.members(scope.organisation_id or 0)}
        assert not members[scope.account_id].is_owner
        assert "settings" in members[scope.account_id].rights
        with pytest.raises(NoSuchMember):
            await app.organisations.transfer(scope, await an_account(app))

    async def test_a_manager_cannot_raise_themselves_or_touch_an_owner(self, app: App) -> None:
        owner = await an_owner(app)
        manager, clerk = await joined(app, owner, "settings", "door"), await joined(app, owner, "money")

        for account_id, rights in (
            (manager.account_id, ["settings", "door", "money"]),
            (clerk.account_id, []),
            (owner.account_id, ["door"]),
        ):
            with pytest.raises(RightsTooHigh):
                await app.organisations.set_rights(manager, account_id, rights)
        for account_id in (clerk.account_id, owner.account_id):
            with pytest.raises(RightsTooHigh):
                await app.organisations.remove(manager, account_id)
        await app.organisations.set_rights(manager, clerk.account_id, ["money", "door"])

    async def test_an_organiser_who_gives_up_their_own_organisation_is_none_any_more(self, app: App) -> None:
        """The release before this one would let the role in to everything with the account's id."""
        organiser_id = await an_account(app, Role.ORGANISER)
        scope = Scope(organiser_id, False, organiser_id, parse_rights(["owner"]))
        heir = await joined(app, scope, "door")

        await app.organisations.transfer(scope, heir.account_id)

        account = await app.accounts.account(organiser_id)
        assert account is not None
        assert account.role is Role.FAN


class TestOtherProcesses:
    async def test_a_removed_member_is_refused_within_the_seconds_of_a_revocation(self, app: App) -> None:
        owner = await an_owner(app)
        clerk = await joined(app, owner, "door")
        caller, named = Caller(clerk.account_id, Role.FAN, 1), str(owner.organisation_id)
        config = replace(app.config, revocations_refresh_s=1)
        elsewhere = Organisations(app.postgres, app.accounts, config)
        assert (await elsewhere.find_scope(caller, Right.DOOR, named)).rights == clerk.rights

        await app.organisations.remove(owner, clerk.account_id)

        async def is_refused() -> bool:
            try:
                await elsewhere.find_scope(caller, Right.DOOR, named)
            except NotAMember:
                return True
            return False

        await until(is_refused)
        with pytest.raises(NotAllowed):
            await app.organisations.find_scope(caller, Right.DOOR, None)

    async def test_a_new_member_is_admitted_at_once(self, app: App) -> None:
        """A refusal is never cached: people try, are invited, and try again."""
        owner = await an_owner(app)
        account_id = await an_account(app)
        caller = Caller(account_id, Role.FAN, 1)
        elsewhere = Organisations(app.postgres, app.accounts, app.config)
        with pytest.raises(NotAllowed):
            await elsewhere.find_scope(caller, Right.DOOR, None)

        await app.organisations.add_member(owner.organisation_id or 0, account_id, ["door"])

        found = await elsewhere.find_scope(caller, Right.DOOR, None)
        assert found.organiser_id == owner.organisation_id
        assert await elsewhere.has_anywhere(account_id, Right.DOOR)


class TestInvitations:
    async def test_a_token_works_once(self, app: App) -> None:
        owner = await an_owner(app)
        _, token = await invited(app, owner, invitation("door", "refund"))
        first, second = await an_account(app), await an_account(app)

        accepted = await asyncio.gather(
            *(app.invitations.accept(token, account_id) for account_id in (first, second)),
            return_exceptions=True,
        )

        assert sorted(type(one).__name__ for one in accepted) == ["MyOrganisation", "NoSuchInvitation"]
        with pytest.raises(NoSuchInvitation):
            await app.invitations.find(token)
        assert len(await app.organisations.members(owner.organisation_id or 0)) == 2

    async def test_the_ledger_does_not_have_the_token(self, app: App) -> None:
        owner = await an_owner(app)
        invitation_id, token = await invited(app, owner, invitation("door"))

        row = await app.postgres.fetchval(
            "SELECT invitation::text FROM invitation WHERE id = $1", invitation_id
        )

        assert token not in row

    @pytest.mark.parametrize("how", ["withdrawn", "declined", "expired", "replaced", "inviter removed"])
    async def test_one_that_has_ended_is_refused(self, app: App, how: str) -> None:
        owner = await an_owner(app)
        manager = await joined(app, owner, "settings", "door")
        new = invitation("door")
        invitation_id, token = await invited(app, manager, new)
        ends: dict[str, Callable[[], Any]] = {
            "withdrawn": lambda: app.invitations.withdraw(owner.organisation_id or 0, invitation_id),
            "declined": lambda: app.invitations.decline(token),
            "expired": lambda: app.postgres.execute(
                "UPDATE invitation SET expires_at = now() WHERE id = $1", invitation_id
            ),
            "replaced": lambda: app.invitations.invite(owner, new),
            "inviter removed": lambda: app.organisations.remove(owner, manager.account_id),
        }
        await ends[how]()

        with pytest.raises(NoSuchInvitation):
            await app.invitations.accept(token, await an_account(app))

    async def test_rights_that_the_inviter_lacks_are_refused(self, app: App) -> None:
        owner = await an_owner(app)
        manager = await joined(app, owner, "settings")

        with pytest.raises(RightsTooHigh):
            await app.invitations.invite(manager, invitation("money"))

    async def test_a_member_is_not_invited_and_does_not_join_twice(self, app: App) -> None:
        owner = await an_owner(app)
        clerk = await joined(app, owner, "door")
        account = await app.accounts.account(clerk.account_id)
        assert account is not None

        with pytest.raises(AlreadyAMember):
            await app.invitations.invite(owner, NewInvitation(email=account.email.upper(), rights=[]))
        _, token = await invited(app, owner, invitation("money"))
        with pytest.raises(AlreadyAMember):
            await app.invitations.accept(token, clerk.account_id)
        assert (await app.invitations.find(token)).rights == {Right.MEMBER, Right.MONEY}

    async def test_an_address_gets_few_per_day_from_all_organisations(self, app: App) -> None:
        new = invitation()
        for _ in range(INVITATIONS_TO_ADDRESS_MAX):
            await app.invitations.invite(await an_owner(app), new)

        with pytest.raises(InvitationsMax):
            await app.invitations.invite(await an_owner(app), new)

    async def test_a_device_cannot_join(self, app: App) -> None:
        _, token = await invited(app, await an_owner(app), invitation("door"))
        (device_id,) = await app.accounts.add_many(
            [NewAccount(f"{secrets.token_hex(8)}@gate.invalid", "A device", Role.GATE)]
        )

        with pytest.raises(NoSuchInvitation):
            await app.invitations.accept(token, device_id)
