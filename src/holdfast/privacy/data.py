"""Everything that is stored about one person, as a document that programs can read."""

from typing import Any

from holdfast.accounts import NoSuchAccount, People, SecondFactors
from holdfast.bookings import public_id, reference
from holdfast.engines.postgres import Postgres, Queries

Q = Queries("holdfast.privacy")


class PersonalData:
    def __init__(self, postgres: Postgres, people: People, factors: SecondFactors) -> None:
        self._postgres = postgres
        self._people = people
        self._factors = factors

    async def load(self, account_id: int) -> dict[str, Any]:
        ids = [row["account_id"] for row in await self._postgres.fetch(Q.accounts_of_person, account_id)]
        if not ids:
            raise NoSuchAccount
        addresses = [row["address"] for row in await self._postgres.fetch(Q.addresses_of, ids)]
        return {
            "accounts": await self._rows(Q.account_profiles, ids),
            "sessions": [
                {
                    "device": one.device,
                    "created_at": one.created_at,
                    "last_used_at": one.last_used_at,
                    "signed_in_by": one.signed_in_by,
                }
                for one in await self._people.sessions(account_id, 0)
            ],
            "sign_in_services": await self._rows(Q.sign_in_services, ids),
            "second_factor": await self._factors.status(account_id),
            "bookings": [_named(row) for row in await self._rows(Q.bookings, ids)],
            "payments": [_named(row) for row in await self._rows(Q.payments, ids)],
            "refunds": [_named(row) for row in await self._rows(Q.refunds, ids)],
            "tickets": [_named(row) for row in await self._rows(Q.tickets, ids)],
            "received_transfers": await self._rows(Q.transfers, addresses),
            "messages": await self._rows(Q.messages, addresses),
            "consents": await self._rows(Q.consents, ids),
            "waitlists": await self._rows(Q.waitlists, ids),
        }

    async def _rows(self, query: str, argument: object) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._postgres.fetch(query, argument)]


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """With the names of the booking that people and the API use."""
    place = (row["show_id"], row.pop("number"))
    return {"booking_id": public_id(*place), "reference": reference(*place), **row}
