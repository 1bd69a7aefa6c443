"""The only file in invoices/ that talks to PostgreSQL."""

from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.invoices.invoice import Invoice, SellerBody

Q = Queries("holdfast.invoices")


class Invoices:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def issue(self, show_id: int, number: int) -> list[Invoice]:
        """Every paper of a booking, oldest first; what has none gets one now. Empty: nothing was paid."""
        async with self._postgres.transaction() as tx:
            rows = await tx.fetch(Q.issue, show_id, number)
        return [
            Invoice(
                row["organiser_id"],
                row["serial"],
                row["credits"],
                tuple(row["seats"]),
                row["amount_minor"],
                row["fee_minor"],
                row["tax_minor"],
                row["currency"],
                SellerBody(
                    name=row["seller_name"], address=row["seller_address"], tax_number=row["seller_tax"]
                ),
                row["issued_at"],
            )
            for row in rows
        ]

    async def seller(self, organiser_id: int) -> SellerBody | None:
        row = await self._postgres.fetchrow(Q.seller, organiser_id)
        return SellerBody(**row) if row else None

    async def set_seller(self, organiser_id: int, seller: SellerBody) -> None:
        await self._postgres.execute(
            Q.set_seller, organiser_id, seller.name, seller.address, seller.tax_number
        )
