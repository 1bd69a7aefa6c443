"""Pay for a booking, see how far that is, call it off."""

import secrets

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import BookingState, HoldGone, NoSuchBooking, WrongMove, from_public_id
from holdfast.engines.fault_injection import fault_points
from holdfast.errors import BadKey, Busy, KeyReused, StillProcessing
from holdfast.holds import compute_body_hash
from holdfast.payments.errors import CardLimit, Declined, NoPayment, PaymentUnderWay
from holdfast.payments.payment import Ask, PayBody, Payment, PayPage, pay_page
from holdfast.payments.saga import Step
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import Started
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.idempotency import checked_key
from holdfast.web.responses import answer, read, site_of
from holdfast.web.routing import RouteTable

CALLED_OFF = "The payment was called off."
LOOK_AGAIN = {"Retry-After": "1", "Cache-Control": "no-store"}
routes = RouteTable(tag="payments", role=Role.FAN)


@routes.post(
    "/bookings/{booking}/pay",
    body=PayBody,
    answers={200: PayPage, 202: PayPage},
    refusals=(
        Declined,
        PaymentUnderWay,
        CardLimit,
        HoldGone,
        KeyReused,
        StillProcessing,
        BadKey,
        NoSuchBooking,
        WrongMove,
        Busy,
    ),
    takes_key=True,
)
async def pay_booking(request: Request) -> Response:
    """Pay for a hold.

    With a `method`, a token of the gateway's, it is charged at once: 200 confirmed, 202 when the gateway has
    not said yet, 402 declined, and then the hold stays and another method may be tried. Without one the payer
    confirms with the gateway, at `action_url` or with `client_secret`: 202. The same Idempotency-Key charges
    once and gives the same answer; a key whose payment failed may be used again.
    """
    raw = await request.body()
    body = read(PayBody, raw)
    cashier: SagaRunner = get_app(request).saga_runner
    show_id, number = from_public_id(request.path_params["booking"])
    key = request.state.headers.get(b"idempotency-key")
    salt = secrets.token_hex(5)
    card, card_max = await _card(request, show_id, body.method)
    ask = Ask(
        show_id=show_id,
        number=number,
        owner_id=get_caller(request).account_id,
        request_id=checked_key(key) if key is not None else f"~{salt}{secrets.token_hex(5)}",
        body_hash=compute_body_hash(b"%d %b" % (number, raw)),
        method=body.method,
        return_url=site_of(request) + body.return_path,
        salt=salt,
        card=card,
        card_seats_max=card_max,
    )
    with fault_points("pay"):
        started = await cashier.pay(ask)
    return _told(_understood(started, ask))


@routes.get("/bookings/{booking}/payment", answers={200: PayPage}, refusals=(NoPayment, NoSuchBooking))
async def get_payment(request: Request) -> Response:
    """How far the latest payment of a booking is."""
    return answer(200, pay_page(await _own_payment(request)), {"Cache-Control": "no-store"})


@routes.post(
    "/bookings/{booking}/payment",
    answers={200: PayPage, 202: PayPage},
    refusals=(NoPayment, NoSuchBooking, Declined, HoldGone),
)
async def refresh_payment(request: Request) -> Response:
    """The payer is back from the gateway: look there now, instead of waiting for its word."""
    payment = await _own_payment(request)
    cashier: SagaRunner = get_app(request).saga_runner
    return _told(await cashier.hear(payment))


@routes.delete(
    "/bookings/{booking}/payment", answers={200: PayPage, 202: PayPage}, refusals=(NoPayment, NoSuchBooking)
)
async def cancel_payment(request: Request) -> Response:
    """Call a payment off.

    The hold has its time again, and another way may be tried. Too late when the money has been taken: then
    the booking is confirmed, and that is the answer.
    """
    payment = await _own_payment(request)
    cashier: SagaRunner = get_app(request).saga_runner
    after = await cashier.call_off(payment)
    status = 200 if after.has_ended else 202
    return answer(status, pay_page(after), LOOK_AGAIN if status == 202 else {"Cache-Control": "no-store"})


async def _own_payment(request: Request) -> Payment:
    show_id, number = from_public_id(request.path_params["booking"])
    payment: Payment | None = await get_app(request).payments.latest(show_id, number)
    if payment is None or payment.owner_id != get_caller(request).account_id:
        raise NoPayment()
    return payment


async def _card(request: Request, show_id: int, method: str) -> tuple[str, int]:
    """The card's fingerprint and its limit, where the show has one; asked for only there."""
    app = get_app(request)
    show = app.catalogue.recent_show(show_id) or await app.catalogue.show_on_sale(show_id)
    if show.terms.card_seats_max is None or not method:
        return "", 0
    return await app.saga_runner.gateway.card_of(method) or "", show.terms.card_seats_max


def _understood(started: Started, ask: Ask) -> Payment:
    """The payment that was started, or was started with the same key before; else a refusal."""
    payment = started.payment
    match started.outcome:
        case "charge":
            assert payment is not None
            return payment
        case "same":
            assert payment is not None
            if started.body_hash != ask.body_hash:
                raise KeyReused()
            if not payment.has_ended and payment.action_url is None and payment.client_secret is None:
                raise StillProcessing(retry_after_s=1)
            return payment
        case "none":
            raise NoSuchBooking()
        case "card":
            raise CardLimit(limit=ask.card_seats_max)
        case "paying":
            raise PaymentUnderWay(retry_after_s=1)
        case "held" | "expired" | "cancelled" | "failed" as state:
            raise HoldGone(state="expired" if state == "held" else state)
    raise WrongMove(state=started.outcome, move="pay")


def _told(payment: Payment) -> Response:
    match payment.step:
        case Step.PAID:
            return answer(200, pay_page(payment), {"Cache-Control": "no-store"})
        case Step.DECLINED:
            raise Declined(
                reason=payment.reason or "The payment was declined.",
                decline_code=payment.code,
                attempt=payment.attempt,
            )
        case Step.CALLED_OFF if payment.booking_state is BookingState.HELD:
            # Another tab did: nothing was taken and the seats are still theirs.
            raise Declined(reason=CALLED_OFF, decline_code=payment.step, attempt=payment.attempt)
        case Step.EXPIRED | Step.RETURNED | Step.CALLED_OFF:
            raise HoldGone(state=payment.booking_state, payment=payment.step)
    return answer(202, pay_page(payment), LOOK_AGAIN)


ROUTES = routes.all
