"""Which invoices and credit notes a paid booking needs: decided without an engine."""

from holdfast.invoices.invoices import INVOICE, Amounts, RefundToCredit, missing_documents

SOLD = Amounts((4, 5), 3000, 200, 100)
ONE_SEAT = Amounts((5,), 1500, 100, 50)


def test_a_booking_without_refunds_has_an_invoice_once() -> None:
    assert missing_documents(SOLD, [], set()) == {INVOICE: SOLD}
    assert missing_documents(SOLD, [], {INVOICE}) == {}


def test_a_refund_that_is_done_has_a_credit_note_after_the_invoice() -> None:
    refunds = [RefundToCredit(2, ONE_SEAT, True), RefundToCredit(1, Amounts((), 300, 0, 0), True)]

    assert list(missing_documents(SOLD, refunds, set())) == [INVOICE, 1, 2]
    assert missing_documents(SOLD, refunds, {INVOICE, 1}) == {2: ONE_SEAT}


def test_a_refund_under_way_and_a_refund_of_nothing_have_no_credit_note() -> None:
    """The gateway may still refuse the one; the other moved no money."""
    refunds = [RefundToCredit(1, ONE_SEAT, False), RefundToCredit(2, Amounts((4,), 0, 0, 0), True)]

    assert list(missing_documents(SOLD, refunds, set())) == [INVOICE]


def test_an_invoice_lists_every_seat_that_was_sold() -> None:
    """Issued after a seat was given back, it would otherwise charge for a seat that it does not name."""
    left = Amounts((4,), 3000, 200, 100)

    documents = missing_documents(left, [RefundToCredit(1, ONE_SEAT, True)], set())

    assert documents[INVOICE].seats == (4, 5)
