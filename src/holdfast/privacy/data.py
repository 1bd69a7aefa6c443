"""Everything that is stored about one person, as a document that programs can read."""

from typing import Any

from holdfast.accounts import NoSuchAccount, People, SecondFactors
from holdfast.bookings import public_id, reference
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries
from holdfast.privacy.erasure import Databases

Q = Queries("holdfast.privacy")


class PersonalData:
    def __init__(
        self, postgres: Postgres, people: People, factors: SecondFactors, pods: Databases = dict
    ) -> None:
        self._postgres = postgres
        self._people = people
        self._factors = factors
        self._pods = pods

    async def load(self, account_id: int) -> dict[str, Any]:
        ids = [row["account_id"] for row in await self._postgres.fetch(Q.accounts_of_person, account_id)]
        if not ids:
            raise NoSuchAccount
        addresses = [row["address"] for row in await self._postgres.fetch(Q.addresses_of, ids)]
        sales, away = await self._of_sales(ids, addresses)
        return {
            "complete": not away,  # false: a part of the box office cannot be reached
            "missing_parts": away,
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
            **sales,
            "consents": await self._rows(Q.consents, ids),
        }

    async def _of_sales(
        self, ids: list[int], addresses: list[str]
    ) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
        """What every database that sells has of them; and the pods that cannot be reached."""
        found = await _load_sale(self._postgres, ids, addresses)
        away: list[str] = []
        for name, database in self._pods().items():
            try:
                more = await _load_sale(database, ids, addresses)
            except EngineDown:
                away.append(name)
                continue
            found = {key: [*rows, *more[key]] for key, rows in found.items()}
        return found, away

    async def _rows(self, query: str, argument: object) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._postgres.fetch(query, argument)]


async def _load_sale(
    database: Postgres, ids: list[int], addresses: list[str]
) -> dict[str, list[dict[str, Any]]]:
    async def rows(query: str, argument: object) -> list[dict[str, Any]]:
        return [dict(row) for row in await database.fetch(query, argument)]

    return {
        "bookings": [_named(row) for row in await rows(Q.bookings, ids)],
        "payments": [_named(row) for row in await rows(Q.payments, ids)],
        "refunds": [_named(row) for row in await rows(Q.refunds, ids)],
        "tickets": [_named(row) for row in await rows(Q.tickets, ids)],
        "received_transfers": await rows(Q.transfers, addresses),
        "messages": await rows(Q.messages, addresses),
        "waitlists": await rows(Q.waitlists, ids),
    }


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """With the names of the booking that people and the API use."""
    place = (row["show_id"], row.pop("number"))
    return {"booking_id": public_id(*place), "reference": reference(*place), **row}
