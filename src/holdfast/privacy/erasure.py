"""Erasing a person: name, addresses, password, sessions and messages are deleted; the books stay.

Bookings, payments, refunds and the journal refer to the account's number, not to a name. Codes of tickets
that the person saved stay valid at the door: they were paid for. Holds lapse by themselves, and a payment
under way ends as it would have; its mail has no recipient any more.
"""

from holdfast.accounts import AccountAdmin, Accounts, StaffAccount, record_account
from holdfast.engines.postgres import Postgres, Queries
from holdfast.organisations import LastOwner
from holdfast.web.caller import Role

Q = Queries("holdfast.privacy")


class Erasure:
    def __init__(self, postgres: Postgres, accounts: Accounts, admin: AccountAdmin) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._admin = admin

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
        self._accounts.refuse_sessions(ended)
        for row in versions:
            self._accounts.refuse_version(row["account_id"], row["new_version"])
