"""How a refund is decided. No I/O.

    lock sale, bookings, payments, tickets ─► load a RefundCase per booking ─► decide() each request ─► write

The store does the first, second and last; this module only computes. decide() changes its case, so that a
second request for the same booking in one batch sees what the first one did.

Outcomes besides the state of a booking that does not allow it:
    decided   · same (this reason has had its refund)    · gone (these seats were given back before)
    none (no such booking)   · seats (it does not have them)
    changed (its seats changed meanwhile, or less is left of the money than an exact request names)
    used, given (tickets were used, or transferred)      · much (more than is left of the payment)
    approval (by staff, and above the amount for which their organisation wants a second person)
    ended (the proposal that it approves is decided or expired)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.bookings import BookingState
from holdfast.refunds.refund import RefundRequest, RefundScope

MAY_GIVE_SEATS = {BookingState.CONFIRMED}
MAY_GIVE_MONEY = {BookingState.CONFIRMED, BookingState.REFUNDED}


@dataclass(slots=True)
class PaidPayment:
    """The payment that confirmed the booking."""

    attempt: int
    amount_minor: int
    fee_minor: int
    tax_minor: int
    refunds_minor: int  # decided or done
    is_disputed: bool = False  # its payer's bank took the money back

    @property
    def left_minor(self) -> int:
        """That can still go back. Of a disputed payment nothing: the payer would have it twice."""
        return 0 if self.is_disputed else self.amount_minor - self.refunds_minor


@dataclass(slots=True)
class RefundTicket:
    is_void: bool
    is_used: bool
    is_transferred: bool  # to an account other than the booking's, or to an address without an account


@dataclass(frozen=True, slots=True)
class DecidedRefund:
    """A refund as it is stored; `seats_minor` is what its seats had cost."""

    id: int
    why: str
    seats: tuple[int, ...]
    seats_minor: int
    amount_minor: int
    fee_minor: int
    tax_minor: int


@dataclass(slots=True)
class RefundCase:
    """A booking under its lock, with all that a decision needs to know."""

    state: BookingState
    seats: tuple[int, ...]
    prices_minor: tuple[int, ...]
    payment: PaidPayment | None  # None: it cost nothing
    tickets: dict[int, RefundTicket]  # by seat, given back ones included
    refunds: list[DecidedRefund] = field(default_factory=list)  # of that payment
    approval_above_minor: int | None = None  # refunds by staff, all together, that one person may give

    @property
    def amount_minor(self) -> int:
        return sum(self.prices_minor)


@dataclass(frozen=True, slots=True)
class RefundVerdict:
    outcome: str
    in_the_way: tuple[int, ...] = ()  # seats whose tickets were used or transferred
    refund: DecidedRefund | None = None  # decided now, or earlier for the same reason
    freed: tuple[int, ...] = ()  # seats that are given back now
    amount_minor: int = 0  # that needs an approval


def decide(case: RefundCase | None, request: RefundRequest) -> RefundVerdict:
    """One request for one booking; None: there is no such booking."""
    if case is None:
        return RefundVerdict("none")
    for earlier in case.refunds:
        if earlier.why == request.why:
            return RefundVerdict("same", refund=earlier)
    wanted = _wanted_seats(case, request)
    outcome, in_the_way = _find_refusal(case, request, wanted)
    if outcome:
        return RefundVerdict(outcome, in_the_way)
    if request.is_exact and case.payment and not _has_amount(case, case.payment, request, wanted):
        return RefundVerdict("changed")
    if case.payment and (amount := _needs_approval(case, case.payment, request, wanted)):
        return RefundVerdict("approval", amount_minor=amount)
    refund = _compute(case, case.payment, request, wanted) if case.payment else None
    _give_up(case, wanted)
    return RefundVerdict("decided", refund=refund, freed=wanted)


def split_refund(amount: int, *, left: int, fee_left: int, tax_left: int, keep_fee: bool) -> tuple[int, int]:
    """(fee, tax) in a refund: each share of the payment gives its part, and never more than it has.

    With `keep_fee` our fee is used last. What integer division leaves over is taken from the organiser's
    share, then from the tax, then from the fee, so that the parts always add up to the amount.
    """
    if amount == 0:
        return 0, 0
    organiser_left = left - fee_left - tax_left
    source = left - (fee_left if keep_fee else 0)
    if amount >= source:
        return amount - tax_left - organiser_left, tax_left
    fee = 0 if keep_fee else fee_left * amount // source
    tax = tax_left * amount // source
    tax += min(tax_left - tax, max(0, amount - fee - tax - organiser_left))
    fee += max(0, amount - fee - tax - organiser_left)
    return fee, tax


def _wanted_seats(case: RefundCase, request: RefundRequest) -> tuple[int, ...]:
    match request.what:
        case RefundScope.WHOLE:
            return case.seats
        case RefundScope.SEATS:
            return request.seats
    return ()


def _find_refusal(
    case: RefundCase, request: RefundRequest, wanted: tuple[int, ...]
) -> tuple[str | None, tuple[int, ...]]:
    """(outcome, seats in the way); an outcome of None: nothing speaks against it."""
    tickets = {seat: case.tickets[seat] for seat in sorted(wanted) if seat in case.tickets}
    # A cancelled show refunds everybody, visitors who were admitted before it was cancelled included.
    used = _seats(seat for seat, one in tickets.items() if one.is_used and request.why != "show")
    # Only the owner's own wish is refused for a transferred ticket: an organiser decides for all holders.
    given = _seats(
        seat
        for seat, one in tickets.items()
        if request.why.startswith("owner") and one.is_transferred and not one.is_void
    )
    in_the_way = used or given
    is_money = request.what is RefundScope.MONEY
    if request.what is RefundScope.SEATS and all(
        seat in tickets and tickets[seat].is_void for seat in wanted
    ):
        return "gone", in_the_way
    if case.state not in (MAY_GIVE_MONEY if is_money else MAY_GIVE_SEATS):
        return case.state.value, in_the_way
    if not is_money and request.booking.seats != case.seats:
        return "changed", in_the_way  # the amount was computed for other seats
    if not set(wanted) <= set(case.seats):
        return "seats", in_the_way
    if used or given:
        return "used" if used else "given", in_the_way
    if is_money and (request.amount_minor or 0) > (case.payment.left_minor if case.payment else 0):
        return "much", in_the_way
    return None, ()


def _compute(
    case: RefundCase, payment: PaidPayment, request: RefundRequest, wanted: tuple[int, ...]
) -> DecidedRefund:
    worth = _worth(case, wanted)
    amount = _amount(case, payment, request, wanted)
    fee, tax = split_refund(
        amount,
        left=payment.left_minor,
        fee_left=payment.fee_minor - sum(refund.fee_minor for refund in case.refunds),
        tax_left=payment.tax_minor - sum(refund.tax_minor for refund in case.refunds),
        keep_fee=request.keep_fee,
    )
    number = max((refund.id for refund in case.refunds), default=0) + 1
    refund = DecidedRefund(number, request.why, wanted, worth, amount, fee, tax)
    payment.refunds_minor += amount
    case.refunds.append(refund)
    return refund


def _worth(case: RefundCase, wanted: tuple[int, ...]) -> int:
    price_of = dict(zip(case.seats, case.prices_minor, strict=True))
    return sum(price_of[seat] for seat in wanted)


def _amount(case: RefundCase, payment: PaidPayment, request: RefundRequest, wanted: tuple[int, ...]) -> int:
    if request.what is RefundScope.MONEY:
        return request.amount_minor or 0
    # Money that went back alone was part of the price of the seats that are left.
    alone = sum(refund.amount_minor for refund in case.refunds if not refund.seats)
    most = min(payment.left_minor, max(0, case.amount_minor - alone))
    return min(_worth(case, wanted) if request.amount_minor is None else request.amount_minor, most)


def _has_amount(
    case: RefundCase, payment: PaidPayment, request: RefundRequest, wanted: tuple[int, ...]
) -> bool:
    """Whether all of the request's amount is left: money may have gone back since it was quoted."""
    return _amount(case, payment, request, wanted) == request.amount_minor


def _needs_approval(
    case: RefundCase, payment: PaidPayment, request: RefundRequest, wanted: tuple[int, ...]
) -> int:
    """The amount, if a second person must approve it. 0: none must.

    Earlier refunds by staff count: a large refund in small parts is a large refund.
    """
    if request.origin is None or request.proposal_id is not None or case.approval_above_minor is None:
        return 0
    amount = _amount(case, payment, request, wanted)
    given = sum(refund.amount_minor for refund in case.refunds if refund.why.startswith("admin:"))
    return amount if given + amount > case.approval_above_minor else 0


def _give_up(case: RefundCase, seats: tuple[int, ...]) -> None:
    """What the ledger does with the seats: some leave the booking; without any left it is refunded."""
    for seat in seats:
        if (ticket := case.tickets.get(seat)) and not ticket.is_used:
            ticket.is_void = True
    if seats and set(case.seats) <= set(seats):
        case.state = BookingState.REFUNDED
    elif seats:
        rest = [pair for pair in zip(case.seats, case.prices_minor, strict=True) if pair[0] not in seats]
        case.seats = tuple(seat for seat, _ in rest)
        case.prices_minor = tuple(price for _, price in rest)


def _seats(seats: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(seats))
