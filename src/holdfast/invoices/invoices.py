"""Invoices and credit notes: what they contain, the store, and the consumer that writes credit notes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.outbox import Consumer, Fact, RefundDone


class SellerBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who sells, as it is printed on invoices from now on."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S")]
    address: Annotated[str, msgspec.Meta(max_length=500)] = ""
    tax_number: Annotated[str, msgspec.Meta(max_length=50)] = ""


@dataclass(frozen=True, slots=True)
class Invoice:
    organiser_id: int
    serial: int
    credits: int | None  # the serial of the invoice that this credit note is for
    seats: tuple[int, ...]
    amount_minor: int
    fee_minor: int
    tax_minor: int
    currency: str
    seller: SellerBody
    issued_at: datetime

    @property
    def name(self) -> str:
        return format_serial(self.organiser_id, self.serial)

    @property
    def title(self) -> str:
        if self.credits is None:
            return f"Invoice {self.name}"
        return f"Credit note {self.name} for invoice {format_serial(self.organiser_id, self.credits)}"

    @property
    def lines(self) -> list[tuple[str, int]]:
        """What it is made of; of a credit note, what comes back."""
        sign = 1 if self.credits is None else -1
        base_minor = self.amount_minor - self.fee_minor - self.tax_minor
        parts = [("Tickets", base_minor), ("Service fee", self.fee_minor), ("Tax", self.tax_minor)]
        return [(what, sign * minor) for what, minor in parts if minor]

    @property
    def total_minor(self) -> int:
        return self.amount_minor if self.credits is None else -self.amount_minor


def format_serial(organiser_id: int, serial: int) -> str:
    return f"{organiser_id}-{serial:06d}"


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


GROUP = "invoices"


def credit_note_consumer(invoices: Invoices) -> Consumer:
    """Told twice it writes once: a refund that has its paper gets no other."""

    async def hear(fact: Fact) -> None:
        if fact.number is not None:
            await invoices.issue(fact.show_id, fact.number)

    return Consumer(group=GROUP, kinds=(RefundDone.KIND,), call=hear)
