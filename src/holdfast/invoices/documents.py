"""Which invoices and credit notes a paid booking needs. No I/O."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace


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
