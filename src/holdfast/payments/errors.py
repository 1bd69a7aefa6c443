"""Refusals about money. No I/O.

Refusal
├── Declined            402  the gateway refused; the hold stays, another method may be tried
├── PaymentUnderWay     409  the booking is being paid for already
├── NoPayment           404  no attempt to pay for this booking; also for bookings of other owners
├── GatewayMissing      409  something has a price, and this box office takes no payments
├── CardLimit           409  this card has reached the show's limit of seats per card
├── BadGatewayNotice    400  a webhook with a bad signature, or about another amount than ours
└── NoSuchWebhook       404  no webhook with this id is stored
"""

from collections.abc import Iterable

from holdfast.errors import Refusal


class Declined(Refusal):
    """The gateway refused the payment; nothing was taken. `reason` has its explanation, if there is one.

    The seats stay held until `expires_at`: pay again with another method.
    """

    code, status, title = "declined", 402, "The payment was declined"


class PaymentUnderWay(Refusal):
    """A payment for this booking is in progress: in another tab, or from an earlier request.

    Look at the booking in a moment; it is charged once. To use another method, cancel the payment first.
    """

    code, status, title = "payment_under_way", 409, "The booking is being paid for"


class NoPayment(Refusal):
    """There has been no attempt to pay for this booking yet, or the booking is not yours.

    Pay with POST /bookings/{booking}/pay.
    """

    code, status, title = "no_payment", 404, "No payment"


class CardLimit(Refusal):
    """This card has reached the limit of seats per card for this show.

    The seats stay held: pay with another card, or release some of them. If the card became known only on the
    gateway's page, its money goes back to it.
    """

    code, status, title = "card_limit", 409, "Card limit reached"


class GatewayMissing(Refusal):
    """This box office runs without a payment gateway (HOLDFAST_GATEWAY=none), so every ticket must be free.

    Set all prices to 0. To sell tickets for money, an operator configures a gateway.
    """

    code, status, title = "no_gateway", 409, "No payment gateway"


def refuse_prices_without_gateway(gateway: str, prices: Iterable[int]) -> None:
    """Called before prices are stored: a seat that cannot be paid for must not be put on sale."""
    if gateway == "none" and any(price > 0 for price in prices):
        raise GatewayMissing


class BadGatewayWebhook(Refusal):
    """A webhook whose signature, time, account, mode, amount or currency is wrong.

    Nothing was changed. If the gateway sent it, check the webhook secret and the mode of both sides.
    """

    code, status, title = "bad_webhook", 400, "Webhook rejected"


class NoSuchWebhook(Refusal):
    """No webhook of this gateway with this id is stored, or it was settled and deleted long ago.

    GET /admin/webhooks?state=all lists the stored ones.
    """

    code, status, title = "no_such_webhook", 404, "No such webhook"
