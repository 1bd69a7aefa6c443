"""Erasing a person: name, addresses, password, sessions and messages are deleted; the books stay.

Bookings, payments, refunds and the journal refer to the account's number, not to a name. Codes of tickets
that the person saved stay valid at the door: they were paid for. Holds lapse by themselves, and a payment
under way ends as it would have; its mail has no recipient any more.

    home: account, sessions, own rows, a row of `erasure_due` ──► each pod: rows with these addresses
          one transaction                                         by a job, until every pod has done it

A pod that is away does not keep a person from being erased: its part is done when it is back.
"""

from collections.abc import Awaitable, Callable, Mapping

import structlog

from holdfast.accounts import AccountAdmin, Accounts, StaffAccount, record_account
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries, Row
from holdfast.organisations import LastOwner
from holdfast.web.caller import Role

Q = Queries("holdfast.privacy")
log = structlog.get_logger(__name__)
ERASURES_AT_ONCE_MAX = 100

Databases = Callable[[], Mapping[str, Postgres]]  # by the name of the pod, without that of the home database


class Erasure:
    def __init__(
        self, postgres: Postgres, accounts: Accounts, admin: AccountAdmin, pods: Databases = dict
    ) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._admin = admin
        self._pods = pods

    async def erase(self, account_id: int) -> None:
        """StaffAccount for other roles than fan; LastOwner while an organisation depends on the account."""
        listed = await self._admin.find(account_id)
        if listed.account.role is not Role.FAN:
            raise StaffAccount
        async with self._postgres.transaction() as tx:
            ids = [row["account_id"] for row in await tx.fetch(Q.accounts_of_person, account_id)]
            addresses = [row["address"] for row in await tx.fetch(Q.addresses_of, ids)]
            if alone := [row[0] for row in await tx.fetch(Q.end_memberships, ids)]:
                raise LastOwner(organisations=alone)
            ended = [one for each in ids for one in await self._accounts.end_sessions(tx, each, "erased")]
            await tx.execute(Q.erase_identities, ids)
            await tx.execute(Q.end_waits, ids)
            await tx.execute(Q.erase_notices, addresses)
            await tx.execute(Q.erase_ticket_addresses, addresses)
            versions = await tx.fetch(Q.erase_accounts, ids, addresses)
            await tx.execute(Q.erase_from_audit_log, ids)
            await record_account(tx, "account.erased", account_id)
            if self._pods():
                await tx.execute(Q.add_erasure, ids, addresses)
        self._accounts.refuse_sessions(ended)
        for row in versions:
            self._accounts.refuse_version(row["account_id"], row["new_version"])


class PodErasure:
    """Erases in every pod those who are erased in the home database."""

    def __init__(self, home: Postgres, pods: Databases, count_moves: Callable[[], Awaitable[int]]) -> None:
        self._home = home
        self._pods = pods
        self._count_moves = count_moves

    async def finish(self) -> int:
        """A job: how many people have been erased everywhere."""
        done = 0
        for row in await self._home.fetch(Q.erasures_due, ERASURES_AT_ONCE_MAX):
            before = await self._count_moves()
            places = {"": self._home, **self._pods()}
            away = [
                name for name, database in places.items() if not await self._erase_in(name, database, row)
            ]
            # A show that moved meanwhile may have taken rows from a pod that had its turn last to one that
            # had it first. Then all of them have another. A move that is under way stops its old pod here:
            # rows of a fenced show cannot be changed.
            if not away and await self._count_moves() == before:
                await self._home.execute(Q.complete_erasure, row["id"])
                done += 1
        metrics.measure("erasures_due", await self._home.fetchval(Q.count_erasures))
        return done

    async def _erase_in(self, name: str, database: Postgres, row: Row) -> bool:
        """Idempotent. The address may be another account's by now: only what is older is erased.

        False: not now.
        """
        ids, addresses, before = row["account_ids"], row["addresses"], row["requested_at"]
        try:
            async with database.transaction() as tx:
                # Before the account is erased there, too, the pod could write to the old address again.
                if not await tx.fetchval(Q.are_erased, ids):
                    return False
                await tx.execute(Q.end_waits, ids)
                await tx.execute(Q.erase_earlier_notices, ids, addresses, before)
                await tx.execute(Q.erase_earlier_ticket_addresses, addresses, before)
                await tx.execute(Q.erase_from_audit_log, ids)
        except (EngineDown, *AGAIN) as error:
            log.warning("erasure of a person waits for a pod", pod=name, error=repr(error))
            return False
        return True
