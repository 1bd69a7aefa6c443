"""What the native wire understands, and how it answers. No I/O."""

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from holdfast.sandbox.errors import Refused
from holdfast.sandbox.payment import Order, Payment, Refund, State, payment_page, refund_page

AMOUNT_MINOR_MAX = 99_999_999_999
TEXT_MAX = 500
URL_MAX = 2048
CURRENCY = re.compile(r"[A-Z]{3}")
# No blanks, no control characters, no backslash: what browsers and libraries read differently.
URL = re.compile(r"[!-\[\]-~]+")

_encode = msgspec.json.Encoder().encode


class NewPayment(Struct, frozen=True, forbid_unknown_fields=True):
    amount_minor: int
    currency: str
    reference: str
    method: str = ""
    description: str = ""
    return_url: str = ""

    def order(self) -> Order:
        check(0 < self.amount_minor <= AMOUNT_MINOR_MAX, "amount_minor is at least 1")
        check(bool(CURRENCY.fullmatch(self.currency)), "currency has three letters, as EUR")
        check(0 < len(self.reference) <= TEXT_MAX, "reference is your own key for this payment")
        check(max(len(self.method), len(self.description)) <= TEXT_MAX, "a text is too long")
        if self.return_url:
            check_return_url(self.return_url)
        return Order(
            amount_minor=self.amount_minor,
            currency=self.currency,
            reference=self.reference,
            method=self.method,
            description=self.description,
            return_url=self.return_url,
        )


class Confirmation(Struct, frozen=True, forbid_unknown_fields=True):
    method: str


class NewRefund(Struct, frozen=True, forbid_unknown_fields=True):
    amount_minor: int | None = None


def check(is_so: bool, problem: str) -> None:
    if not is_so:
        raise Refused(400, "invalid_request", problem)


def check_return_url(url: str) -> None:
    """Only where a browser goes without harm."""
    problem = "return_url is an http or https address"
    check(len(url) <= URL_MAX and bool(URL.fullmatch(url)), problem)
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    check(is_address, problem)


def rendered(made: Payment | Refund | Refused, url: str) -> tuple[int, bytes]:
    """Status and body. A decline is a 402 with the payment, so that nobody takes it for a success."""
    match made:
        case Refused():
            return made.status, error_body(made)
        case Refund() if made.state == "refused":
            return 402, error_body(
                Refused(402, "refund_refused", made.reason or ""), refund=refund_page(made)
            )
        case Refund():
            return 200, _encode(refund_page(made))
        case Payment() if made.state == State.DECLINED:
            refused = Refused(402, made.code or "declined", made.reason or "")
            return 402, error_body(refused, payment=payment_page(made, url))
        case Payment():
            return 200, _encode(payment_page(made, url))


def error_body(refused: Refused, **more: Any) -> bytes:
    return _encode({"error": {"code": refused.code, "reason": refused.reason, **more}})
