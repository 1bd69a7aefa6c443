"""Forms of a held booking: keep it longer, let it go, say who you are, pay, come back, begin again.

Whoever pays in two tabs pays once: an attempt's number is part of its key, and both tabs show the same one.
"""

import secrets
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email, Name, Session
from holdfast.bookings import Booking, BookingState, HoldGone, NoSuchBooking, WrongMove
from holdfast.errors import Busy, Invalid
from holdfast.holds import ExtensionCap, compute_body_hash
from holdfast.payments import Payment, PaymentRequest, PaymentStart, PaymentStep
from holdfast.site.booking_page import gateway_origin, page_of, sender, shown, tried
from holdfast.site.hold_again import hold_again
from holdfast.site.load_booking import own_booking
from holdfast.site.pages import form, see, visitor
from holdfast.web.context import get_app
from holdfast.web.responses import site_of
from holdfast.web.routing import RouteTable

Typed = Annotated[str, Meta(max_length=300)]
KEY = "page-{number}-{attempt}"
ATTEMPTS_MAX = 10_000
routes = RouteTable(tag="site", prefix="/bookings/{booking}", bare=True)


class Nothing(Struct):
    """A button alone."""


class DetailsForm(Struct):
    name: Typed = ""
    email: Typed = ""


class PayForm(Struct):
    attempt: Annotated[int, Meta(ge=1, le=ATTEMPTS_MAX)] = 1
    name: Typed = ""
    email: Typed = ""


class AgainForm(Struct):
    """No seats: the same as before."""

    seats: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=10)] = msgspec.field(
        default_factory=list
    )


@routes.post("/extend")
async def post_extend(request: Request) -> Response:
    """Keeps a hold a little longer, up to its cap."""
    await form(request, Nothing)

    async def act(visit: Session, booking: Booking) -> str:
        app = get_app(request)
        show = await app.catalogue.show_on_sale(booking.show_id)
        after = await app.holds.extend(booking, show.hold_ttl_s)
        if after.expires_at <= booking.expires_at:
            raise ExtensionCap(expires_at=after.expires_at)
        return page_of(booking, "extended")

    return await tried(request, act)


@routes.post("/release")
async def post_release(request: Request) -> Response:
    """Lets a hold go, at once; a payment under way is called off first."""
    await form(request, Nothing)

    async def act(visit: Session, booking: Booking) -> str:
        if (
            booking.state is BookingState.CONFIRMED
        ):  # paid for in another tab: that is given back by another form
            raise WrongMove(state=booking.state, move="release")
        _, is_under_way = await get_app(request).refunds.cancel(booking, None)
        return page_of(booking, "still_calling_off" if is_under_way else "")

    return await tried(request, act)


@routes.post("/details")
async def post_details(request: Request) -> Response:
    """Where a guest's tickets go."""
    asked = await form(request, DetailsForm)

    async def act(visit: Session, booking: Booking) -> str:
        await _name_guest(request, visit, asked.name, asked.email)
        return page_of(booking, "details")

    return await tried(request, act, {"name": asked.name, "email": asked.email})


@routes.post("/pay")
async def post_pay(request: Request) -> Response:
    """Begins to pay, and leads to the gateway. The same attempt again leads to the same payment."""
    asked = await form(request, PayForm)

    async def act(visit: Session, booking: Booking) -> str:
        if visit.is_guest:
            await _name_guest(request, visit, asked.name, asked.email)
        started = await get_app(request).saga_runner.pay(_ask(request, booking, asked.attempt))
        return _onward(request, booking, _understood(started))

    return await tried(request, act, {"name": asked.name, "email": asked.email})


@routes.post("/call-off")
async def post_call_off(request: Request) -> Response:
    """Calls a payment off; too late if the money has been taken, and then the booking is confirmed."""
    await form(request, Nothing)

    async def act(visit: Session, booking: Booking) -> str:
        app = get_app(request)
        payment = await app.payments.latest(booking.show_id, booking.number)
        after = payment and await app.saga_runner.call_off(payment)
        return page_of(booking, "" if after is None or after.has_ended else "still_calling_off")

    return await tried(request, act)


@routes.get("/return")
async def get_return(request: Request) -> Response:
    """The payer is back from the gateway: looks there at once, then shows the page, which says how it is."""
    visit, app = await visitor(request), get_app(request)
    booking = await own_booking(app, visit, request.path_params["booking"])
    if booking.state in (BookingState.PAYING, BookingState.EXPIRED):
        payment = await app.payments.latest(booking.show_id, booking.number)
        if payment is not None:
            await app.saga_runner.refresh_from_gateway(payment)
    return see(page_of(booking))


@routes.post("/return")
async def post_return(request: Request) -> Response:
    """A gateway that sends its payers back by a form of its own; nothing in it is believed."""
    return see(f"/bookings/{_id(request)}/return")


@routes.post("/again")
async def post_again(request: Request) -> Response:
    """Holds the seats of a booking that has lapsed once more, or those offered instead."""
    asked = await form(request, AgainForm)
    visit, app = await sender(request), get_app(request)
    booking = await own_booking(app, visit, _id(request))
    if booking.state in (
        BookingState.PAYING,
        BookingState.CONFIRMED,
    ):  # in another tab: nothing to begin again
        return await shown(request, visit, booking)

    async def act(visit: Session, booking: Booking) -> str:
        return page_of(await hold_again(app, visit, booking, asked.seats))

    return await tried(request, act)


async def _name_guest(request: Request, visit: Session, name: str, email: str) -> None:
    """Kept at once, so that nothing has to be typed twice, whatever becomes of the payment."""
    if not visit.is_guest:
        raise Invalid(field="email", detail="An account has an address already.")
    if visit.contact_email is not None and not (name or email):
        return  # known from before
    if wrong := [one for one in (_problem(name, Name, "name"), _problem(email, Email, "email")) if one]:
        raise Invalid(field=",".join(wrong), detail="Expected a name and an e-mail address.")
    await get_app(request).sessions.name_guest(visit, email=email, name=name)


def _problem(text: str, kind: object, field: str) -> str | None:
    """The name of a field that is not as the API wants it."""
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return field
    return None


def _ask(request: Request, booking: Booking, attempt: int) -> PaymentRequest:
    salt = secrets.token_hex(5)
    return PaymentRequest(
        show_id=booking.show_id,
        number=booking.number,
        owner_id=booking.owner_id,
        request_id=KEY.format(number=booking.number, attempt=attempt),
        body_hash=compute_body_hash(b"page %d" % booking.number),
        method="",  # the payer confirms with the gateway: no number or token of a card comes by here
        return_url=f"{site_of(request)}{page_of(booking)}/return",
        salt=salt,
    )


def _understood(started: PaymentStart) -> Payment | None:
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


def _onward(request: Request, booking: Booking, payment: Payment | None) -> str:
    """To the gateway's own page, where we know it to be the gateway's; else our page leads there."""
    if (
        payment is None
        or payment.step not in (PaymentStep.CHARGE, PaymentStep.LOOK_UP)
        or payment.action_url is None
    ):
        return page_of(booking)
    origin = gateway_origin(get_app(request))
    return payment.action_url if origin and payment.action_url.startswith(f"{origin}/") else page_of(booking)


def _id(request: Request) -> str:
    return str(request.path_params["booking"])


ROUTES = routes.all
