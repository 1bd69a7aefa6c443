"""Forms of a held booking: extend, release, contact details, pay, return from the gateway, hold again.

A buyer who pays in two tabs pays once: the attempt number is part of the key, and both tabs show the same.
"""

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email, Name, Session
from holdfast.bookings import Booking, BookingState, HoldGone, NoSuchBooking, WrongMove
from holdfast.errors import Busy, Invalid
from holdfast.holds import (
    ExtensionCap,
    HoldBody,
    HoldRequest,
    PlacesBody,
    compute_body_hash,
    compute_claim_id,
    confirm_free,
    parse_selection,
)
from holdfast.payments import Payment, PaymentRequest, PaymentStart, PaymentStep
from holdfast.site.booking_page import (
    booking_path,
    gateway_origin,
    handle_form,
    render_booking,
    require_form_sender,
)
from holdfast.site.cookies import get_buyer
from holdfast.site.load_booking import load_own_booking
from holdfast.site.pages import EmptyForm, read_form, redirect, require_session
from holdfast.site.seat_form import Buyer
from holdfast.web.responses import site_of
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App


async def hold_again(app: "App", buyer: Buyer, booking: Booking, labels: Sequence[str] = ()) -> Booking:
    """A new booking. A second request for the same seats, or from a second tab, returns the same one."""
    show = await app.catalogue.show_on_sale(booking.show_id)
    body = _same_selection(show.layout, booking, labels)
    named = ",".join(sorted(labels)).encode()
    request_id = (
        f"again-{booking.number}-{compute_body_hash(named):x}" if labels else f"again-{booking.number}"
    )
    order = HoldRequest(
        show,
        buyer.owner_id,
        request_id,
        compute_claim_id(buyer.owner_id, request_id, buyer.party),
        compute_body_hash(named),
        parse_selection(body, show),
        confirms_free=False,
        is_guest=buyer.is_guest,
        admission=buyer.admission,
    )
    try:
        held: Booking = await app.holds.hold(order)
        return held
    except HoldGone:
        # It was held again before, and that one has lapsed too: from its page one can go on.
        found = await app.bookings.booking_of_request(buyer.owner_id, show.show_id, request_id)
        if found is None or found.number == booking.number:
            raise
        return await hold_again(app, buyer, found, labels)


def _same_selection(layout: Any, booking: Booking, labels: Sequence[str]) -> HoldBody:
    """Places of a standing area are interchangeable: any of them will do."""
    area = layout.area_at(booking.seats[0])
    if labels or area is None or any(layout.area_at(seat) is not area for seat in booking.seats):
        return HoldBody(seats=list(labels) or [layout.labels[seat] for seat in booking.seats])
    return HoldBody(places=PlacesBody(area=area.name, count=len(booking.seats)))


Typed = Annotated[str, Meta(max_length=300)]
PAYABLE_STEPS = (PaymentStep.CHARGE, PaymentStep.LOOK_UP)
KEY = "page-{number}-{attempt}"
ATTEMPTS_MAX = 10_000
routes = RouteTable(tag="site", prefix="/bookings/{booking}", bare=True)


class DetailsForm(Struct):
    name: Typed = ""
    email: Typed = ""


class PayForm(Struct):
    attempt: Annotated[int, Meta(ge=1, le=ATTEMPTS_MAX)] = 1
    amount_minor: Annotated[int, Meta(ge=0, le=2**53)] | None = (
        None  # on the button: seats may have been added
    )
    name: Typed = ""
    email: Typed = ""
    agreed: Typed = ""  # which terms were on the page: TermsInForce.mark


class AgainForm(Struct):
    """No seats: the same as before."""

    seats: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=10)] = msgspec.field(
        default_factory=list
    )


@routes.post("/extend")
async def post_extend(request: Request) -> Response:
    """Keeps a hold a little longer, up to its cap."""
    await read_form(request, EmptyForm)

    async def act(session: Session, booking: Booking) -> str:
        app = get_app(request)
        show = await app.catalogue.show_on_sale(booking.show_id)
        after = await app.holds.extend(booking, show.hold_ttl_s)
        if after.expires_at <= booking.expires_at:
            raise ExtensionCap(expires_at=after.expires_at)
        return booking_path(booking, "extended")

    return await handle_form(request, act)


@routes.post("/release")
async def post_release(request: Request) -> Response:
    """Lets a hold go, at once; a payment under way is called off first."""
    await read_form(request, EmptyForm)

    async def act(session: Session, booking: Booking) -> str:
        if (
            booking.state is BookingState.CONFIRMED
        ):  # paid for in another tab: that is given back by another form
            raise WrongMove(state=booking.state, move="release")
        _, is_under_way = await get_app(request).refunds.cancel(booking, None)
        return booking_path(booking, "still_calling_off" if is_under_way else "")

    return await handle_form(request, act)


@routes.post("/details")
async def post_details(request: Request) -> Response:
    """Where a guest's tickets go."""
    data = await read_form(request, DetailsForm)

    async def act(session: Session, booking: Booking) -> str:
        await _store_guest_contact(request, session, data.name, data.email)
        return booking_path(booking, "details")

    return await handle_form(request, act, {"name": data.name, "email": data.email})


@routes.post("/pay")
async def post_pay(request: Request) -> Response:
    """Begins to pay, and leads to the gateway; free tickets are booked at once.

    The same attempt again leads to the same payment.
    """
    data = await read_form(request, PayForm)

    async def act(session: Session, booking: Booking) -> str:
        if session.is_guest:
            await _store_guest_contact(request, session, data.name, data.email)
        await _record_consent(request, session, booking, data.agreed)
        if data.amount_minor not in (None, booking.amount_minor):
            return booking_path(booking, "amount_changed")
        if not booking.amount_minor:
            return booking_path(await confirm_free(get_app(request).holds, booking))
        started = await get_app(request).saga_runner.pay(_payment_request(request, booking, data.attempt))
        payment = _started_payment(started)
        if payment is not None and data.amount_minor not in (None, payment.amount_minor):
            # Seats were added between the check above and the start of the payment: first show the new total.
            return booking_path(booking, "amount_changed")
        return _next_page(request, booking, payment)

    return await handle_form(request, act, {"name": data.name, "email": data.email, "agreed": data.agreed})


@routes.post("/call-off")
async def post_call_off(request: Request) -> Response:
    """Calls a payment off; too late if the money has been taken, and then the booking is confirmed."""
    await read_form(request, EmptyForm)

    async def act(session: Session, booking: Booking) -> str:
        app = get_app(request)
        payment = await app.payments.latest(booking.show_id, booking.number)
        after = payment and await app.saga_runner.call_off(payment)
        return booking_path(booking, "" if after is None or after.has_ended else "still_calling_off")

    return await handle_form(request, act)


@routes.get("/return")
async def get_return(request: Request) -> Response:
    """The payer is back from the gateway: looks there at once, then shows the page, which says how it is."""
    session, app = await require_session(request), get_app(request)
    booking = await load_own_booking(app, session, request.path_params["booking"])
    if booking.state in (BookingState.PAYING, BookingState.EXPIRED):
        payment = await app.payments.latest(booking.show_id, booking.number)
        if payment is not None:
            await app.saga_runner.refresh_for_payer(payment)
    return redirect(booking_path(booking))


@routes.post("/return")
async def post_return(request: Request) -> Response:
    """A gateway that sends its payers back by a form of its own; nothing in it is believed."""
    return redirect(f"/bookings/{_id(request)}/return")


@routes.post("/again")
async def post_again(request: Request) -> Response:
    """Holds the seats of a booking that has lapsed once more, or those offered instead."""
    data = await read_form(request, AgainForm)
    session, app = await require_form_sender(request), get_app(request)
    booking = await load_own_booking(app, session, _id(request))
    if booking.state in (
        BookingState.PAYING,
        BookingState.CONFIRMED,
    ):  # in another tab: nothing to begin again
        return await render_booking(request, session, booking)

    async def act(session: Session, booking: Booking) -> str:
        return booking_path(await hold_again(app, get_buyer(request, session), booking, data.seats))

    return await handle_form(request, act)


async def _store_guest_contact(request: Request, session: Session, name: str, email: str) -> None:
    """Stored before the payment, so that a failed one does not lose what was typed."""
    if not session.is_guest:
        raise Invalid(field="email", detail="An account has an address already.")
    if session.contact_email is not None and not (name or email):
        return  # known from before
    if wrong := [
        one for one in (_invalid_field(name, Name, "name"), _invalid_field(email, Email, "email")) if one
    ]:
        raise Invalid(field=",".join(wrong), detail="Expected a name and an e-mail address.")
    await get_app(request).sessions.name_guest(session, email=email, name=name)


async def _record_consent(request: Request, session: Session, booking: Booking, agreed: str) -> None:
    """Before the payment. Terms that changed since the page was loaded are shown first."""
    legal = get_app(request).legal
    terms = await legal.terms_of_show(booking.show_id)
    if not terms.is_agreed(agreed):
        raise Invalid(field="agreed", detail="Expected consent to the terms that are in force.")
    if terms.texts:
        await legal.agree(session.account_id, terms, booking.show_id, booking.number)


def _invalid_field(text: str, kind: object, field: str) -> str | None:
    """The name of a field that is not as the API wants it."""
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return field
    return None


def _payment_request(request: Request, booking: Booking, attempt: int) -> PaymentRequest:
    salt = secrets.token_hex(5)
    return PaymentRequest(
        show_id=booking.show_id,
        number=booking.number,
        owner_id=booking.owner_id,
        request_id=KEY.format(number=booking.number, attempt=attempt),
        body_hash=compute_body_hash(b"page %d" % booking.number),
        method="",  # the payer confirms with the gateway: no number or token of a card comes by here
        return_url=f"{site_of(request)}{booking_path(booking)}/return",
        salt=salt,
    )


def _started_payment(started: PaymentStart) -> Payment | None:
    """The payment to go on with; None: the page says how far another one is."""
    match started.outcome:
        case "charge" | "same":
            return started.payment
        case "paying" | "confirmed" | "refunded":
            return None  # by another tab: its page is the answer
        case "none":
            raise NoSuchBooking
        case "held" | "expired" | "cancelled" | "failed" as state:
            raise HoldGone(state="expired" if state == "held" else state)
    raise Busy(retry_after_s=1)


def _next_page(request: Request, booking: Booking, payment: Payment | None) -> str:
    """To the gateway's own page, where we know it to be the gateway's; else our page leads there."""
    if (
        payment is None
        or payment.step not in (PaymentStep.CHARGE, PaymentStep.LOOK_UP)
        or payment.action_url is None
    ):
        return booking_path(booking)
    origin = gateway_origin(get_app(request))
    return (
        payment.action_url
        if origin and payment.action_url.startswith(f"{origin}/")
        else booking_path(booking)
    )


def _id(request: Request) -> str:
    return str(request.path_params["booking"])


ROUTES = routes.all
