"""Routes of payments: buyers pay, gateways send webhooks, operators look at webhooks and differences."""

import secrets

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import BookingState, HoldGone, NoSuchBooking, WrongMove, from_public_id
from holdfast.engines import fault_injection
from holdfast.engines.metrics import metrics
from holdfast.errors import BadKey, Busy, KeyReused, NoSuchRoute, StillProcessing
from holdfast.holds import compute_body_hash
from holdfast.legal import Agreed, TermsChanged
from holdfast.payments.chargebacks import ChargebackList, ChargebackQuery
from holdfast.payments.differences import Comparison
from holdfast.payments.errors import (
    BadGatewayWebhook,
    CardLimit,
    Declined,
    GatewayMissing,
    NoPayment,
    NoSuchWebhook,
    PaymentUnderWay,
)
from holdfast.payments.every_pod import load_chargebacks, load_comparison, load_webhooks
from holdfast.payments.every_pod import replay_webhook as replay_in_pods
from holdfast.payments.gateway import BadWebhook
from holdfast.payments.payment import PayBody, Payment, PaymentRequest, PayPage, build_pay_page
from holdfast.payments.saga import PaymentStep
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStart
from holdfast.payments.webhooks import (
    IncomingWebhooks,
    WebhookList,
    WebhookPage,
    WebhookQuery,
    WebhookReceipt,
)
from holdfast.web.caller import Right, Role
from holdfast.web.every_pod import find_in_pods
from holdfast.web.idempotency import checked_key
from holdfast.web.responses import answer, query, read, site_of
from holdfast.web.routing import RouteTable, follow_show, get_app, get_caller, get_scope

NO_STORE = {"Cache-Control": "no-store"}
CALLED_OFF = "The payment was cancelled."
LOOK_AGAIN = {"Retry-After": "1", "Cache-Control": "no-store"}
routes = RouteTable(tag="payments", role=Role.FAN)


@routes.post(
    "/bookings/{booking}/pay",
    body=PayBody,
    answers={200: PayPage, 202: PayPage},
    refusals=(
        Declined,
        TermsChanged,
        PaymentUnderWay,
        CardLimit,
        GatewayMissing,
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

    With a `method`, a token from the gateway, it is charged at once: 200 confirmed, 202 if it is not
    decided yet, 402 declined; then the hold stays and another method may be tried. Without one, the payer
    confirms with the gateway, at `action_url` or with `client_secret`: 202. The same Idempotency-Key charges
    once and gives the same answer; a key whose payment failed may be used again. Consent is recorded with
    `agreed`, before the payment: the terms of the house and of the organisation, if they are those in force.
    """
    raw = await request.body()
    body = read(PayBody, raw)
    saga_runner: SagaRunner = get_app(request).saga_runner
    show_id, number = from_public_id(request.path_params["booking"])
    key = request.state.headers.get(b"idempotency-key")
    salt = secrets.token_hex(5)
    payment_request = PaymentRequest(
        show_id=show_id,
        number=number,
        owner_id=get_caller(request).account_id,
        request_id=checked_key(key) if key is not None else f"~{salt}{secrets.token_hex(5)}",
        body_hash=compute_body_hash(b"%d %b" % (number, raw)),
        method=body.method,
        return_url=site_of(request) + body.return_path,
        salt=salt,
    )
    if body.agreed is not None:
        await _record_consent(request, body.agreed, (show_id, number))
    with fault_injection.fault_points("pay"):
        started = await saga_runner.pay(payment_request)
    return _payment_answer(_started_payment(started, payment_request))


async def _record_consent(request: Request, agreed: Agreed, key: tuple[int, int]) -> None:
    app, account_id = get_app(request), get_caller(request).account_id
    booking = await app.bookings.booking(*key)
    if booking is None or booking.owner_id != account_id:
        raise NoSuchBooking
    await app.legal.agree_to_show(account_id, agreed, key)


@routes.get("/bookings/{booking}/payment", answers={200: PayPage}, refusals=(NoPayment, NoSuchBooking))
async def get_payment(request: Request) -> Response:
    """The state of the latest payment of a booking."""
    return answer(200, build_pay_page(await _own_payment(request)), NO_STORE)


@routes.post(
    "/bookings/{booking}/payment",
    answers={200: PayPage, 202: PayPage},
    refusals=(NoPayment, NoSuchBooking, Declined, HoldGone),
)
async def refresh_payment(request: Request) -> Response:
    """The payer is back from the gateway: look the payment up now instead of waiting for the webhook."""
    payment = await _own_payment(request)
    saga_runner: SagaRunner = get_app(request).saga_runner
    return _payment_answer(await saga_runner.refresh_for_payer(payment))


@routes.delete(
    "/bookings/{booking}/payment", answers={200: PayPage, 202: PayPage}, refusals=(NoPayment, NoSuchBooking)
)
async def cancel_payment(request: Request) -> Response:
    """Cancel a payment.

    The hold continues, and another method may be tried. If the money has been taken already, it is too late:
    the booking is confirmed, and that is the answer.
    """
    payment = await _own_payment(request)
    saga_runner: SagaRunner = get_app(request).saga_runner
    after = await saga_runner.call_off(payment)
    status = 200 if after.has_ended else 202
    return answer(status, build_pay_page(after), LOOK_AGAIN if status == 202 else NO_STORE)


async def _own_payment(request: Request) -> Payment:
    show_id, number = from_public_id(request.path_params["booking"])
    payment: Payment | None = await get_app(request).payments.latest(show_id, number)
    if payment is None or payment.owner_id != get_caller(request).account_id:
        raise NoPayment()
    return payment


def _started_payment(started: PaymentStart, request: PaymentRequest) -> Payment:
    """The payment that was started now or earlier with the same key; otherwise raises the refusal."""
    payment = started.payment
    match started.outcome:
        case "charge":
            assert payment is not None
            return payment
        case "same":
            assert payment is not None
            if started.body_hash != request.body_hash:
                raise KeyReused()
            if not payment.has_ended and payment.action_url is None and payment.client_secret is None:
                raise StillProcessing(retry_after_s=1)
            return payment
        case "none":
            raise NoSuchBooking()
        case "card":
            raise CardLimit(limit=started.card_seats_max)
        case "paying":
            raise PaymentUnderWay(retry_after_s=1)
        case "held" | "expired" | "cancelled" | "failed" as state:
            raise HoldGone(state="expired" if state == "held" else state)
    raise WrongMove(state=started.outcome, move="pay")


def _payment_answer(payment: Payment) -> Response:
    match payment.step:
        case PaymentStep.PAID:
            return answer(200, build_pay_page(payment), NO_STORE)
        case PaymentStep.DECLINED:
            raise Declined(
                reason=payment.reason or "The payment was declined.",
                decline_code=payment.code,
                attempt=payment.attempt,
            )
        case PaymentStep.CALLED_OFF if payment.booking_state is BookingState.HELD:
            # Cancelled in another tab: no money was taken, and the buyer still has the seats.
            raise Declined(reason=CALLED_OFF, decline_code=payment.step, attempt=payment.attempt)
        case PaymentStep.RETURNED if payment.code == "card_limit":
            raise CardLimit(reason=payment.reason, attempt=payment.attempt)
        case PaymentStep.EXPIRED | PaymentStep.RETURNED | PaymentStep.CALLED_OFF:
            raise HoldGone(state=payment.booking_state, payment=payment.step)
    return answer(202, build_pay_page(payment), LOOK_AGAIN)


gateway_routes = RouteTable(tag="payments")


@gateway_routes.post(
    "/webhooks/{gateway}",
    answers={200: WebhookReceipt},
    refusals=(BadGatewayWebhook, NoSuchRoute),
    bare=True,
    body_limit="webhook_bytes_max",
)
async def post_webhook(request: Request) -> Response:
    """Receive a gateway's webhook. 2xx: it is stored and need not be sent again."""
    webhooks: IncomingWebhooks = get_app(request).webhooks_in
    if request.path_params["gateway"] != webhooks.gateway.name:
        raise NoSuchRoute
    raw, headers = await request.body(), request.state.headers
    try:
        if get_app(request).router.has_pods:
            await _follow_payment(request, *webhooks.find_payment(raw, headers))
        await get_app(request).webhooks_in.receive(raw, headers)
    except BadWebhook as bad:
        metrics.add("webhooks_refused_total", why=bad.why)
        raise BadGatewayWebhook(why=bad.why) from None
    return answer(200, WebhookReceipt(stored=True), NO_STORE)


async def _follow_payment(request: Request, show_id: int | None, reference: str | None) -> None:
    """To the pod of the payment. Webhooks about disputes name it by the gateway's reference alone.

    Twice: while its show moves, its new pod may have answered before the payment came, and its old one after
    it went. Nowhere means that it is not ours, and the gateway would not send it again.
    """
    if show_id is None and reference is not None:
        app = get_app(request)
        for _ in range(2):
            show_id = show_id or await find_in_pods(app, lambda each: each.webhooks_in.find_show(reference))
    if show_id is not None:
        follow_show(request, show_id)


@gateway_routes.get("/admin/webhooks", query=WebhookQuery, answers={200: WebhookList}, role=Role.ADMIN)
async def list_webhooks(request: Request) -> Response:
    """Webhooks from gateways, newest first: dead, due, or all."""
    return answer(200, await load_webhooks(get_app(request), query(WebhookQuery, request)), NO_STORE)


@gateway_routes.post(
    "/admin/webhooks/{gateway}/{event}/replay",
    answers={200: WebhookPage},
    refusals=(NoSuchWebhook,),
    role=Role.ADMIN,
)
async def replay_webhook(request: Request) -> Response:
    """Process a webhook again, now.

    The answer is its state afterwards. The payment is looked up at the gateway, so that a replay changes
    nothing that is settled already.
    """
    name = (request.path_params["gateway"], request.path_params["event"])
    return answer(200, await replay_in_pods(get_app(request), *name), NO_STORE)


@gateway_routes.get("/admin/payments/differences", answers={200: Comparison}, role=Role.ADMIN)
async def list_payment_differences(request: Request) -> Response:
    """Differences between the gateway and the ledger that reconciliation could not settle.

    Differences that settle themselves are not here: `settled` counts them.
    """
    return answer(200, await load_comparison(get_app(request)), NO_STORE)


@gateway_routes.get(
    "/admin/chargebacks",
    query=ChargebackQuery,
    answers={200: ChargebackList},
    role=Role.ORGANISER,
    right=Right.MONEY,
)
async def list_chargebacks(request: Request) -> Response:
    """Payments of your shows that their payers dispute, newest first: open, won, lost, or all."""
    organiser_id = get_scope(request).organiser_id
    found = await load_chargebacks(get_app(request), organiser_id, query(ChargebackQuery, request))
    return answer(200, found, NO_STORE)


ROUTES = (*routes.all, *gateway_routes.all)
