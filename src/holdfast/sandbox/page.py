"""The payment page as HTML: without scripts, for phones first, in light and dark. No I/O."""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.money import exponent
from holdfast.sandbox.behaviour import DECLINED, Notices, Plan, Reply, Settings, declined
from holdfast.sandbox.payment import Move, Payment, State

METHOD = "tok_ok:4242"  # whoever pays here pays with this card

SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "INR": "₹", "JPY": "¥"}


class Choice(Struct, frozen=True):
    """A button."""

    name: str
    label: str
    hint: str = ""
    plan: Plan | None = None  # None: nothing happens to the payment


def choices(settings: Settings) -> tuple[Choice, ...]:
    """On the page of a payment that waits for its payer. The first is what a payer would want."""
    late = Plan(move=Move.SUBMIT, is_late=True, is_firm=True)
    return (
        Choice("pay", "Pay", plan=Plan()),
        Choice("decline", "Decline", "the bank says no", DECLINED),
        Choice("ask", "Ask for 3-D Secure", "the bank asks who you are", Plan(move=Move.ASK)),
        Choice("late", "Pay late", f"in {settings.late_s:g} seconds; until then it is pending", late),
        Choice("silent", "Do not answer", "back to the shop, and the payment stays pending"),
        Choice("twice", "Pay, notice twice", "the shop is told two times", Plan(notices=Notices.TWICE)),
        Choice(
            "first",
            "Pay, notice first",
            "the shop is told before you are back",
            Plan(reply=Reply.NOTICE_FIRST),
        ),
        Choice(
            "out_of_order",
            "Pay, notices out of order",
            "an older notice arrives after the newer one",
            Plan(notices=Notices.OUT_OF_ORDER),
        ),
        Choice("never", "Pay, no notice", "the shop has to ask by itself", Plan(notices=Notices.NEVER)),
    )


CHECK_CHOICES = (
    Choice("approve", "Yes, it is me", plan=Plan()),
    Choice(
        "refuse",
        "No, refuse",
        "the payment is declined",
        declined("authentication_failed", "The payer was not recognised by the bank."),
    ),
)

ENDS = {
    State.PROCESSING: ("Under way", "The bank has your payment. It is not decided yet."),
    State.CAPTURED: ("Paid", "Thank you. The payment has been made."),
    State.DECLINED: ("Declined", "The payment was not made."),
    State.CANCELLED: ("Cancelled", "The shop has called this payment off."),
}


def offered(payment: Payment, settings: Settings) -> Sequence[Choice]:
    """What may be chosen now."""
    match payment.state:
        case State.REQUIRES_PAYER:
            return choices(settings)
        case State.REQUIRES_ACTION:
            return CHECK_CHOICES
    return ()


def page_of(payment: Payment, settings: Settings) -> dict[str, str]:
    """The parts of the page, for its shell."""
    buttons = offered(payment, settings)
    if payment.state == State.REQUIRES_PAYER:
        first, *others = buttons
        amount = amount_text(payment.amount_minor, payment.currency)
        content = (
            _card()
            + _form(payment, (Choice(first.name, f"Pay {amount}"),), "main")
            + "<h2>Or try what else can happen</h2>"
            + _form(payment, others, "others")
        )
        return _parts(payment, "Payment", content)
    if buttons:
        words = "<p>Your bank wants to know whether it is you who is paying.</p>"
        return _parts(payment, "3-D Secure", words + _form(payment, buttons, "check"))
    title, words = ENDS[State(payment.state)]
    reason = f"<p>{escape(payment.reason)}</p>" if payment.reason else ""
    back = f'<p><a class="back" href="{escape(payment.return_url)}">Back to the shop</a></p>'
    return _parts(payment, title, f"<p>{words}</p>{reason}{back if payment.return_url else ''}")


def missing_page() -> dict[str, str]:
    content = "<p>There is no payment at this address. Go back to the shop and begin again.</p>"
    return {"title": "No such payment", "summary": "", "content": content}


def policy(payment: Payment | None) -> str:
    """No script, no frame, no foreign style. To a browser the way back to the shop is the form's doing."""
    back = f" {origin(payment.return_url)}" if payment is not None and payment.return_url else ""
    return (
        "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        f"form-action 'self'{back}"
    )


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def amount_text(amount_minor: int, currency: str) -> str:
    """€ 1 234.50, ¥ 1 500, KWD 1.250"""
    decimals = exponent(currency)
    whole, part = divmod(amount_minor, 10**decimals)
    digits = f"{whole:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    digits += f".{part:0{decimals}}" if decimals else ""
    return f"{SYMBOLS.get(currency, currency)}\N{NO-BREAK SPACE}{digits}"


def _parts(payment: Payment, title: str, content: str) -> dict[str, str]:
    amount = amount_text(payment.amount_minor, payment.currency)
    description = f"<dt>For</dt><dd>{escape(payment.description)}</dd>" if payment.description else ""
    summary = (
        f'<dl><dt>Amount</dt><dd class="amount">{escape(amount)}</dd>{description}'
        f"<dt>Reference</dt><dd><code>{escape(payment.reference)}</code></dd></dl>"
    )
    return {"title": escape(title), "summary": summary, "content": content}


def _card() -> str:
    return (
        '<p class="card" role="note"><span>Test card •••• 4242</span>'
        "<small>No real card is asked for, and no money moves.</small></p>"
    )


def _form(payment: Payment, buttons: Sequence[Choice], name: str) -> str:
    def button(choice: Choice) -> str:
        hint = f"<small>{escape(choice.hint)}</small>" if choice.hint else ""
        return (
            f'<button name="choice" value="{choice.name}"><span>{escape(choice.label)}</span>{hint}</button>'
        )

    rows = "".join(button(choice) for choice in buttons)
    return f'<form method="post" action="/pay/{payment.page}" class="{name}">{rows}</form>'
