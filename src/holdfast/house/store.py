"""The house in the ledger, and as this process last read it: pages show its name without a query."""

from typing import Any

from holdfast.engines.postgres import Postgres, Queries
from holdfast.house.errors import AlreadyBegun
from holdfast.house.house import HouseBody, HousePage, HouseSecondFactor, SecondFactorFor, check_house
from holdfast.organisations import Organisations
from holdfast.web.audit_log import AuditEntry, record, record_change

Q = Queries("holdfast.house")
REFRESH_PAUSE_S = 2.0


class House:
    def __init__(self, postgres: Postgres, organisations: Organisations) -> None:
        self._postgres = postgres
        self._organisations = organisations
        self._page = HousePage(name="", currency="", timezone="")
        self._is_begun = False
        self._is_open = False

    @property
    def page(self) -> HousePage:
        """As read a moment ago; empty before `refresh` and on an installation that was never set up."""
        return self._page

    @property
    def name(self) -> str:
        return self._page.name

    async def refresh(self) -> int:
        """A job of every web process."""
        row: Any = await self._postgres.fetchrow(Q.load)
        self._is_begun, self._is_open = row["is_begun"], row["is_open"]
        self._page = HousePage(
            name=row["name"] or "", currency=row["currency"] or "", timezone=row["timezone"] or ""
        )
        return 0

    async def is_begun(self) -> bool:
        """Whether it was set up. That is for good, so a process reads it until it is true."""
        if not self._is_begun:
            await self.refresh()
        return self._is_begun

    async def is_open(self) -> bool:
        """Whether visitors see a programme: the house was set up, or has events."""
        if not self._is_open:
            await self.refresh()
        return self._is_open

    async def begin(self, account_id: int, body: HouseBody, organisation: str) -> None:
        """Once: the house and its first organisation, which belongs to this account."""
        check_house(body)
        async with self._postgres.transaction() as tx:
            values = (body.name, body.currency, body.timezone, body.gateway)
            if await tx.fetchrow(Q.begin, *values) is None:
                raise AlreadyBegun
            await self._organisations.create_in(tx, organisation, account_id)
            await record(tx, AuditEntry(action="house.begun", subject=("house", 1), name=body.name))
        self._organisations.forget(account_id)
        await self.refresh()

    async def change(self, body: HouseBody) -> HousePage:
        check_house(body)
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.locked)
            await tx.execute(Q.set, body.name, body.currency, body.timezone, body.gateway)
            entry = AuditEntry(action="house.changed", subject=("house", 1), name=body.name)
            await record_change(tx, entry, HouseBody(**row) if row else None, body)
        await self.refresh()
        return self._page

    async def second_factor(self) -> HouseSecondFactor:
        """As set here; the setting of the environment may require more."""
        return HouseSecondFactor(await self._postgres.fetchval(Q.second_factor_for) or "none")

    async def require_second_factor(self, account_id: int, required_of: SecondFactorFor) -> HouseSecondFactor:
        """Staff without one can do nothing, from seconds later on. Who decides it needs one first."""
        if required_of != "none":
            await self._organisations.check_second_factor(account_id)
        async with self._postgres.transaction() as tx:
            before = HouseSecondFactor(await tx.fetchval(Q.second_factor_for) or "none")
            await tx.execute(Q.set_second_factor_for, required_of)
            after = HouseSecondFactor(required_of)
            entry = AuditEntry(action="house.changed", subject=("house", 1), name=self.name)
            await record_change(tx, entry, before, after)
        return after
