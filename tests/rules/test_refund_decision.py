"""How a refund is decided, without an engine: amounts, shares, and every reason to refuse."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bookings import Booking, BookingState
from holdfast.refunds.decision import PaidPayment, RefundCase, RefundTicket, decide, split_refund
from holdfast.refunds.refund import RefundRequest, RefundScope

NOW = datetime(2026, 11, 17, tzinfo=UTC)
WHOLE, SEATS, MONEY = RefundScope.WHOLE, RefundScope.SEATS, RefundScope.MONEY


def a_case(**other: object) -> RefundCase:
    """Seats 1 and 2 for 1500 each, paid with a fee of 200 and a tax of 100 in all."""
    values: dict[str, object] = {
        "state": BookingState.CONFIRMED,
        "seats": (1, 2),
        "prices_minor": (1500, 1500),
        "payment": PaidPayment(1, 3000, 200, 100, 0),
        "tickets": {seat: RefundTicket(False, False, False) for seat in (1, 2)},
    }
    return RefundCase(**(values | other))  # type: ignore[arg-type]


def a_request(what: RefundScope = WHOLE, *seats: int, why: str = "owner", **other: object) -> RefundRequest:
    seen = Booking(
        1, 1, 7, 1, BookingState.CONFIRMED, "", 0, "", (1, 2), (1500, 1500), 3000, "EUR", "", NOW, NOW, NOW, 1
    )
    values: dict[str, object] = {"booking": seen, "why": why, "what": what, "seats": seats}
    return RefundRequest(**(values | other))  # type: ignore[arg-type]


class TestAmounts:
    def test_the_whole_booking_is_everything_that_was_paid(self) -> None:
        verdict = decide(case := a_case(), a_request())

        assert verdict.refund is not None
        assert (verdict.outcome, verdict.freed) == ("decided", (1, 2))
        assert (verdict.refund.amount_minor, verdict.refund.fee_minor, verdict.refund.tax_minor) == (
            3000,
            200,
            100,
        )
        assert case.state is BookingState.REFUNDED

    def test_returning_one_seat_refunds_its_price_and_leaves_the_other(self) -> None:
        verdict = decide(case := a_case(), a_request(SEATS, 2))

        assert verdict.refund is not None
        assert verdict.refund.amount_minor == verdict.refund.seats_minor == 1500
        assert (case.state, case.seats, case.amount_minor) == (BookingState.CONFIRMED, (1,), 1500)

    def test_money_that_went_back_alone_is_part_of_the_price_of_the_seats(self) -> None:
        """Otherwise a buyer that got 1000 back would get 3000 for the seats on top."""
        case = a_case()
        decide(case, a_request(MONEY, why="admin:1", amount_minor=1000))

        verdict = decide(case, a_request())

        assert verdict.refund is not None
        assert verdict.refund.amount_minor == 2000
        assert case.payment is not None
        assert case.payment.left_minor == 0

    def test_an_exact_amount_is_refunded_whole_or_not_at_all(self) -> None:
        """The buyer has agreed to an amount; money that went back meanwhile must not lower it silently."""
        case = a_case()
        decide(case, a_request(MONEY, why="admin:1", amount_minor=1000))

        refused = decide(case, a_request(amount_minor=3000, is_exact=True))
        agreed = decide(case, a_request(amount_minor=2000, is_exact=True))

        assert (refused.outcome, refused.refund) == ("changed", None)
        assert agreed.refund is not None
        assert agreed.refund.amount_minor == 2000

    def test_a_booking_that_cost_nothing_gives_back_its_seats_alone(self) -> None:
        verdict = decide(a_case(payment=None, prices_minor=(0, 0)), a_request())

        assert (verdict.outcome, verdict.refund, verdict.freed) == ("decided", None, (1, 2))

    def test_two_requests_for_one_seat_in_one_batch_refund_it_once(self) -> None:
        case = a_case()
        first = decide(case, a_request(SEATS, 2, why="owner:2"))
        again, other = (
            decide(case, a_request(SEATS, 2, why="owner:2")),
            decide(case, a_request(SEATS, 2, why="admin:1")),
        )

        assert (again.outcome, again.refund) == ("same", first.refund)
        assert other.outcome == "gone"


class TestRefusals:
    @pytest.mark.parametrize(
        ("case", "request_", "outcome", "in_the_way"),
        [
            (None, a_request(), "none", ()),
            (a_case(state=BookingState.REFUNDED), a_request(), "refunded", ()),
            (a_case(state=BookingState.HELD), a_request(MONEY, amount_minor=1), "held", ()),
            (a_case(seats=(1,), prices_minor=(1500,)), a_request(), "changed", ()),
            (a_case(), a_request(SEATS, 3), "seats", ()),
            (a_case(tickets={2: RefundTicket(False, True, False)}), a_request(), "used", (2,)),
            (a_case(tickets={2: RefundTicket(False, False, True)}), a_request(), "given", (2,)),
            (a_case(), a_request(MONEY, amount_minor=3001), "much", ()),
            (a_case(payment=None), a_request(MONEY, amount_minor=1), "much", ()),
        ],
        ids=["none", "refunded", "held", "changed", "seats", "used", "given", "much", "free"],
    )
    def test_each_has_its_outcome(
        self, case: RefundCase | None, request_: RefundRequest, outcome: str, in_the_way: tuple[int, ...]
    ) -> None:
        verdict = decide(case, request_)

        assert (verdict.outcome, verdict.in_the_way, verdict.refund) == (outcome, in_the_way, None)

    def test_a_cancelled_show_refunds_visitors_who_were_admitted(self) -> None:
        case = a_case(tickets={2: RefundTicket(False, True, False)})

        assert decide(case, a_request(why="show")).outcome == "decided"
        assert not case.tickets[2].is_void, "a used ticket stays as it was"

    def test_an_organiser_refunds_a_transferred_ticket_and_its_first_owner_does_not(self) -> None:
        tickets = {2: RefundTicket(False, False, True)}

        assert decide(a_case(tickets=tickets), a_request(SEATS, 2, why="admin:1")).outcome == "decided"
        assert decide(a_case(tickets=tickets), a_request(SEATS, 2, why="owner:2")).outcome == "gone"


@given(
    shares=st.tuples(*(st.integers(0, 10**6) for _ in range(3))),
    parts=st.lists(st.integers(1, 10**6)),
    keep=...,
)
def test_shares_never_give_more_than_they_have(
    shares: tuple[int, int, int], parts: list[int], keep: bool
) -> None:
    """Refund after refund, until nothing is left: organiser, fee and tax stay at zero or above."""
    organiser, fee, tax = shares
    for part in parts:
        left = organiser + fee + tax
        amount = min(part, left)
        from_fee, from_tax = split_refund(amount, left=left, fee_left=fee, tax_left=tax, keep_fee=keep)
        organiser, fee, tax = organiser - (amount - from_fee - from_tax), fee - from_fee, tax - from_tax

        assert min(organiser, fee, tax, from_fee, from_tax) >= 0
