"""Invoices and credit notes: which a booking needs, what they contain, the store, the consumer."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import msgspec

from holdfast.engines.postgres import Postgres, Queries, Row, Transaction, require_row
from holdfast.outbox import Consumer, Fact, RefundDone
from holdfast.web.audit_log import AuditEntry, record_change


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a document is about: seats and money."""

    seats: tuple[int, ...]
    amount_minor: int
    fee_minor: int
    tax_minor: int


@dataclass(frozen=True, slots=True)
class RefundToCredit:
    refund_id: int
    returned: Amounts
    is_done: bool  # a refund that is only decided has no credit note yet


INVOICE = 0  # in place of a refund_id: the document is the invoice itself


def missing_documents(
    sold: Amounts, refunds: Sequence[RefundToCredit], issued: Container[int]
) -> dict[int, Amounts]:
    """What a paid booking has no document for: refund id, or INVOICE, -> what is printed; in that order.

    The invoice is for everything that was sold, so seats that were given back before it was issued are on it;
    their credit notes take them off again. A refund of seats without money needs no document.
    """
    seats = sorted({*sold.seats, *(seat for refund in refunds for seat in refund.returned.seats)})
    documents = {INVOICE: replace(sold, seats=tuple(seats))}
    for refund in sorted(refunds, key=lambda one: one.refund_id):
        if refund.is_done and refund.returned.amount_minor > 0:
            documents[refund.refund_id] = refund.returned
    return {key: amounts for key, amounts in documents.items() if key not in issued}


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
SELLER = ("organiser_id", "name", "address", "tax_number")


class Invoices:
    """Documents and their numbers are in the home database, bookings and refunds in that of the show's pod.
    Without pods both are the same."""

    def __init__(self, postgres: Postgres, sale: Postgres | None = None) -> None:
        self._postgres = postgres
        self._sale = sale or postgres

    async def issue(self, show_id: int, number: int) -> list[Invoice]:
        """Every document of a booking, oldest first; missing ones are issued now. Empty: nothing was paid."""
        booking = (show_id, number)
        # Read before the lock of the numbers: no other buyer of the organiser waits for a pod that is slow.
        # What is read may be old by then. Old is a part of what is there now: a later call adds the rest.
        sold = await self._sale.fetchrow(Q.sold, *booking)
        if sold is None:
            return []
        # After `sold`: a seat that is given back in between is in one of the two, or in both.
        refunds = [
            RefundToCredit(row["id"], _amounts(row), row["is_done"])
            for row in await self._sale.fetch(Q.refunds, *booking, sold["attempt"])
        ]
        async with self._postgres.transaction() as tx:
            seller = require_row(await tx.fetchrow(Q.seller_of_show, show_id))
            # Documents are read under the lock of the numbers: another transaction that issues documents of
            # this booking has committed, and we see them, or it waits for us.
            last = await tx.fetchval(Q.lock_numbers, seller["organiser_id"])
            await self._issue_missing(tx, sold, refunds, seller, last)
            rows = await tx.fetch(Q.issued, *booking)
        return [_invoice(row) for row in rows]

    async def _issue_missing(
        self, tx: Transaction, sold: Row, refunds: Sequence[RefundToCredit], seller: Row, last: int
    ) -> None:
        booking = (sold["show_id"], sold["number"])
        issued = {
            row["refund_id"]: row["serial"]
            for row in await tx.fetch(Q.issued, *booking)
            if row["attempt"] == sold["attempt"]
        }
        for refund_id, new in missing_documents(_amounts(sold), refunds, issued).items():
            last += 1
            issued[refund_id] = last
            await tx.execute(
                Q.add,
                *(*booking, sold["attempt"], *(seller[name] for name in SELLER), sold["currency"]),
                *(last, None if refund_id == INVOICE else issued[INVOICE], refund_id),
                *(new.seats, new.amount_minor, new.fee_minor, new.tax_minor),
            )
        await tx.execute(Q.set_numbers, seller["organiser_id"], last)

    async def seller(self, organiser_id: int) -> SellerBody | None:
        row = await self._postgres.fetchrow(Q.seller, organiser_id)
        return SellerBody(**row) if row else None

    async def set_seller(self, organiser_id: int, seller: SellerBody) -> None:
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.seller, organiser_id)
            await tx.execute(Q.set_seller, organiser_id, seller.name, seller.address, seller.tax_number)
            subject = ("invoice_seller", organiser_id)
            entry = AuditEntry(action="invoice_seller.changed", subject=subject, organiser_id=organiser_id)
            await record_change(tx, entry, SellerBody(**row) if row else None, seller)


GROUP = "invoices"


def credit_note_consumer(invoices: Invoices) -> Consumer:
    """Idempotent: a refund that already has its credit note does not get a second one. So a worker may die
    between the commit of the documents and its checkpoint, which are in two databases if a pod has the show.
    """

    async def hear(fact: Fact) -> None:
        if fact.number is not None:
            await invoices.issue(fact.show_id, fact.number)

    return Consumer(group=GROUP, kinds=(RefundDone.KIND,), call=hear)


def _amounts(row: Row) -> Amounts:
    return Amounts(tuple(row["seats"]), row["amount_minor"], row["fee_minor"], row["tax_minor"])


def _invoice(row: Row) -> Invoice:
    return Invoice(
        row["organiser_id"],
        row["serial"],
        row["credits"],
        tuple(row["seats"]),
        row["amount_minor"],
        row["fee_minor"],
        row["tax_minor"],
        row["currency"],
        SellerBody(name=row["seller_name"], address=row["seller_address"], tax_number=row["seller_tax"]),
        row["issued_at"],
    )
