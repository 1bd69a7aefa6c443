"""Organisations and their members in the ledger, and what a request may do for one.

Memberships are cached per account for as long as a revocation takes to reach every process, so a removed
member loses access within the same seconds as a banned account; in the process that removes them, at once.
A refusal is never decided by the cache: a new member is admitted everywhere at once.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from holdfast.accounts import Accounts
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.postgres import Postgres, Queries, Transaction, require_row
from holdfast.errors import NotAMember, Refusal, SecondFactorNeeded
from holdfast.organisations.errors import LastOwner, NoSuchMember
from holdfast.organisations.organisation import (
    MemberPage,
    Membership,
    MyOrganisation,
    OrganisationPage,
    OrganisationsQuery,
    choose_scope,
    list_grantable,
    parse_id,
    parse_rights,
    refuse_higher_rights,
)
from holdfast.organisations.staff_log import record_member, record_name, record_second_factor, record_transfer
from holdfast.web.caller import Caller, Right, Role, Scope

Q = Queries("holdfast.organisations")

ACCOUNTS_CACHED_MAX = 10_000
OWNER_ONLY = [Right.OWNER.value]


class Organisations:
    def __init__(self, postgres: Postgres, accounts: Accounts, config: Config) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._second_factor_for = config.second_factor_for
        self._memberships: Cache[int, Mapping[int, Membership]] = Cache(
            self._load_memberships,
            fresh_s=config.revocations_refresh_s,
            stale_max_s=0.0,  # a stale one would admit members who were removed
            size_max=ACCOUNTS_CACHED_MAX,
        )

    # ── what a request may do ─────────────────────────────────────────────────────────

    async def find_scope(self, caller: Caller, right: Right, organisation: str | None) -> Scope:
        is_named_by_admin = caller.role is Role.ADMIN and organisation is not None
        if is_named_by_admin and not await self.exists(parse_id(organisation or "")):
            raise NotAMember
        await self.check_house(caller)
        if (cached := self._memberships.peek(caller.account_id)) is not None:
            with suppress(Refusal):  # the right may have been given a moment ago, by another process
                return choose_scope(caller, right, organisation, cached)
        return choose_scope(caller, right, organisation, await self.memberships(caller.account_id))

    async def check_house(self, caller: Caller) -> None:
        """SecondFactorNeeded for an administrator without one, where the house wants one."""
        if caller.role is not Role.ADMIN:
            return
        by_setting = self._second_factor_for in ("admins", "staff")
        if await self._postgres.fetchval(Q.lacks_second_factor, caller.account_id, by_setting):
            raise SecondFactorNeeded

    async def check_second_factor(self, account_id: int) -> None:
        """SecondFactorNeeded for an account without one: who requires it of others has one."""
        if not await self._postgres.fetchval(Q.has_second_factor, account_id):
            raise SecondFactorNeeded

    async def has_anywhere(self, account_id: int, right: Right) -> bool:
        cached = self._memberships.peek(account_id) or {}
        if any(right in one.rights and not one.is_held_back for one in cached.values()):
            return True
        found = (await self.memberships(account_id)).values()
        return any(right in one.rights and not one.is_held_back for one in found)

    async def memberships(self, account_id: int) -> Mapping[int, Membership]:
        """As the ledger has them now."""
        return await self._memberships.renew(account_id)

    def forget(self, account_id: int) -> None:
        """Its memberships have changed."""
        self._memberships.drop(account_id)

    async def _load_memberships(self, account_id: int) -> Mapping[int, Membership]:
        rows = await self._postgres.fetch(Q.memberships, account_id, self._second_factor_for == "staff")
        return {
            row["organisation_id"]: Membership(
                row["organisation_id"], parse_rights(row["rights"]), row["is_held_back"]
            )
            for row in rows
        }

    async def exists(self, organisation_id: int) -> bool:
        return bool(await self._postgres.fetchval(Q.exists, organisation_id))

    # ── organisations ─────────────────────────────────────────────────────────────────

    async def create(self, name: str, owner_id: int) -> OrganisationPage:
        async with self._postgres.transaction() as tx:
            made = await self.create_in(tx, name, owner_id)
        self.forget(owner_id)
        return made

    async def create_in(self, tx: Transaction, name: str, owner_id: int) -> OrganisationPage:
        """In the caller's transaction; call `forget` for the owner after its commit."""
        row = require_row(await tx.fetchrow(Q.add, name))
        await tx.execute(Q.add_member, row["id"], owner_id, OWNER_ONLY)
        await record_name(tx, row["id"], None, name)
        return _page(row)

    async def add_member(self, organisation_id: int, account_id: int, rights: list[str]) -> None:
        """Without an invitation: for the program itself. A member keeps the rights they have."""
        await self._postgres.execute(Q.add_member, organisation_id, account_id, rights)
        self.forget(account_id)

    async def organisation(self, organisation_id: int) -> OrganisationPage:
        row = await self._postgres.fetchrow(Q.organisation, organisation_id)
        if row is None:
            raise NotAMember
        return _page(row)

    async def rename(self, organisation_id: int, name: str) -> OrganisationPage:
        async with self._postgres.transaction() as tx:
            before = await tx.fetchrow(Q.organisation, organisation_id)
            row = await tx.fetchrow(Q.rename, organisation_id, name)
            if before is None or row is None:
                raise NotAMember
            if before["name"] != name:
                await record_name(tx, organisation_id, before["name"], name)
        return _page(row)

    async def require_second_factor(self, scope: Scope, *, required: bool) -> OrganisationPage:
        """Members without one can do nothing for it, from seconds later on. The owner needs one first."""
        organisation_id = _organisation_id(scope)
        if required:
            await self.check_second_factor(scope.account_id)
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.require_second_factor, organisation_id, required) is not None:
                await record_second_factor(tx, organisation_id, required)
        return await self.organisation(organisation_id)

    async def all(self, wanted: OrganisationsQuery) -> tuple[int, list[OrganisationPage]]:
        start = (wanted.page - 1) * wanted.size
        rows = await self._postgres.fetch(Q.list_all, wanted.q, wanted.size, start)
        some = rows or (await self._postgres.fetch(Q.list_all, wanted.q, 1, 0) if start else [])
        return (some[0]["total"] if some else 0), [_page(row) for row in rows]

    async def mine(self, account_id: int) -> list[MyOrganisation]:
        return [_mine(row) for row in await self._postgres.fetch(Q.list_mine, account_id)]

    # ── members ───────────────────────────────────────────────────────────────────────

    async def members(self, organisation_id: int) -> list[MemberPage]:
        return [_member(row) for row in await self._postgres.fetch(Q.members, organisation_id, None)]

    async def set_rights(self, scope: Scope, account_id: int, rights: list[str]) -> MemberPage:
        organisation_id = _organisation_id(scope)
        async with self._postgres.transaction() as tx:
            before = await self._locked_member(tx, organisation_id, account_id)
            old, new = parse_rights(before["rights"]), parse_rights(rights)
            refuse_higher_rights(scope, old, new)
            if Right.OWNER in old - new:
                await _refuse_last_owner(tx, organisation_id, account_id)
            await tx.execute(Q.set_rights, organisation_id, account_id, rights)
            if old - new:
                await tx.execute(Q.withdraw_by_inviter, organisation_id, account_id)
            row = require_row(await tx.fetchrow(Q.members, organisation_id, account_id))
            await record_member(tx, (organisation_id, account_id), before["rights"], rights)
        if old - new:
            await self._after_loss(organisation_id, account_id)
        self.forget(account_id)
        return _member(row)

    async def remove(self, scope: Scope, account_id: int) -> None:
        """A member may always leave; others need every right of the one they remove."""
        organisation_id = _organisation_id(scope)
        async with self._postgres.transaction() as tx:
            before = await self._locked_member(tx, organisation_id, account_id)
            if account_id != scope.account_id:
                refuse_higher_rights(scope, parse_rights(before["rights"]), ())
            if Right.OWNER in before["rights"]:
                await _refuse_last_owner(tx, organisation_id, account_id)
            await tx.execute(Q.remove_member, organisation_id, account_id)
            await tx.execute(Q.withdraw_by_inviter, organisation_id, account_id)
            await record_member(tx, (organisation_id, account_id), before["rights"], None)
        await self._after_loss(organisation_id, account_id)

    async def transfer(self, scope: Scope, account_id: int) -> MemberPage:
        """Another member becomes an owner. An owner who transfers keeps all rights but that one."""
        organisation_id = _organisation_id(scope)
        async with self._postgres.transaction() as tx:
            await self._locked_member(tx, organisation_id, account_id)
            await tx.execute(Q.set_rights, organisation_id, account_id, OWNER_ONLY)
            own = await tx.fetchrow(Q.members, organisation_id, scope.account_id)
            is_from_owner = own is not None and account_id != scope.account_id
            if is_from_owner:
                rights = list_grantable(parse_rights(require_row(own)["rights"]))
                await tx.execute(Q.set_rights, organisation_id, scope.account_id, rights)
            row = require_row(await tx.fetchrow(Q.members, organisation_id, account_id))
            await record_transfer(tx, organisation_id, scope.account_id, account_id)
        self.forget(account_id)
        if is_from_owner:
            await self._after_loss(organisation_id, scope.account_id)
        return _member(row)

    async def _locked_member(self, tx: Transaction, organisation_id: int, account_id: int) -> Any:
        """Two owners who leave at once wait for each other: the second finds itself the last."""
        await tx.execute(Q.lock, organisation_id)
        row = await tx.fetchrow(Q.members, organisation_id, account_id)
        if row is None:
            raise NoSuchMember(account_id=account_id)
        return row

    async def _after_loss(self, organisation_id: int, account_id: int) -> None:
        """The release before this one takes an account for the owner of what has its id, by its role."""
        self.forget(account_id)
        if organisation_id != account_id:
            return
        account = await self._accounts.account(account_id)
        if account is not None and account.role is Role.ORGANISER:
            await self._accounts.set_role(account_id, Role.FAN)


async def _refuse_last_owner(tx: Transaction, organisation_id: int, account_id: int) -> None:
    if not await tx.fetchval(Q.other_owners, organisation_id, account_id):
        raise LastOwner


def _organisation_id(scope: Scope) -> int:
    assert scope.organisation_id is not None, "the route names the organisation in its path"
    return scope.organisation_id


def _page(row: Any) -> OrganisationPage:
    return OrganisationPage(
        organisation_id=row["id"],
        name=row["name"],
        created_at=row["created_at"],
        second_factor_required=row["needs_second_factor"],
    )


def _mine(row: Any) -> MyOrganisation:
    rights = parse_rights(row["rights"])
    return MyOrganisation(
        organisation_id=row["id"],
        name=row["name"],
        is_owner=Right.OWNER in rights,
        rights=list_grantable(rights),
    )


def _member(row: Any) -> MemberPage:
    rights = parse_rights(row["rights"])
    return MemberPage(
        account_id=row["account_id"],
        name=row["name"],
        email=row["email"],
        is_owner=Right.OWNER in rights,
        rights=list_grantable(rights),
        joined_at=row["joined_at"],
    )
