"""Refusals about money. No I/O.

Refusal
├── Declined            402  the gateway said no; the hold stays, another method may be tried
├── PaymentUnderWay     409  the booking is being paid for already
├── NoPayment           404  nobody has tried to pay for this booking; also for somebody else's
├── CardLimit           409  this card has as many seats of the show as one card may
├── BadGatewayNotice    400  a webhook that is not the gateway's, or not about what we asked for
└── NoSuchWebhook       404  no webhook of this name has come
"""

from holdfast.errors import Refusal


class Declined(Refusal):
    """The gateway refused the payment; nothing was taken. `reason` says why, as far as it told.

    The seats stay held until `expires_at`: pay again with another method.
    """

    code, status, title = "declined", 402, "The payment was declined"


class PaymentUnderWay(Refusal):
    """Somebody is paying for this booking already: another tab, or the request before this one.

    Look at the booking in a moment; it is charged once. To try another way, call the payment off first.
    """

    code, status, title = "payment_under_way", 409, "The booking is being paid for"


class NoPayment(Refusal):
    """Nobody has tried to pay for this booking yet, or it is not yours.

    Pay with POST /bookings/{booking}/pay.
    """

    code, status, title = "no_payment", 404, "No payment"


class CardLimit(Refusal):
    """This card has as many seats of this show as one card may have.

    The seats stay held: pay with another method, or let some of them go.
    """

    code, status, title = "card_limit", 409, "This card has its seats already"


class BadGatewayNotice(Refusal):
    """A webhook whose signature, time, account, mode, amount or currency is not what it must be.

    Nothing was changed. If the gateway sent it, check the webhook secret and the mode of both sides.
    """

    code, status, title = "bad_webhook", 400, "Not a webhook of the gateway"


class NoSuchWebhook(Refusal):
    """No webhook of this gateway with this name has come, or it was done and forgotten long ago.

    GET /admin/webhooks?state=all lists those that are kept.
    """

    code, status, title = "no_such_webhook", 404, "No such webhook"
