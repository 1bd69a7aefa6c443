"""The payment page: HTML without scripts, for phones first, in light and dark.

GET shows the page of a payment, POST takes the payer's choice and redirects to the shop's return_url.
Only the merchant and the payer know the address of a page, and a form carries nothing beyond its path, so a
client that can post it was shown it.
"""

from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from holdfast.money import exponent
from holdfast.sandbox.behaviour import (
    DECLINED,
    ChargePlan,
    ReplyPlan,
    SandboxSettings,
    WebhookPlan,
    decline_plan,
)
from holdfast.sandbox.http import ASGI, Headers, Merchant, Receive, Scope, Send, read_body, send_reply
from holdfast.sandbox.payment import PaymentMove, SandboxPayment, SandboxRefusal, SandboxState

METHOD = "tok_ok:4242"  # the card of every payer on this page

SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "INR": "₹", "JPY": "¥"}


class PageChoice(Struct, frozen=True):
    """A button."""

    name: str
    label: str
    hint: str = ""
    plan: ChargePlan | None = None  # None: nothing happens to the payment


def choices(settings: SandboxSettings) -> tuple[PageChoice, ...]:
    """On the page of a payment that waits for its payer. The first is what a payer would want."""
    late = ChargePlan(move=PaymentMove.SUBMIT, is_late=True, is_firm=True)
    return (
        PageChoice("pay", "Pay", plan=ChargePlan()),
        PageChoice("decline", "Decline", "the bank says no", DECLINED),
        PageChoice(
            "ask", "Ask for 3-D Secure", "the bank asks who you are", ChargePlan(move=PaymentMove.ASK)
        ),
        PageChoice("late", "Pay late", f"pending for {settings.late_s:g} seconds, then paid", late),
        PageChoice("silent", "Do not answer", "back to the shop while the payment stays pending"),
        PageChoice(
            "twice",
            "Pay, webhook twice",
            "the shop receives two webhooks",
            ChargePlan(webhooks=WebhookPlan.TWICE),
        ),
        PageChoice(
            "first",
            "Pay, webhook first",
            "the shop receives it before you are back",
            ChargePlan(reply=ReplyPlan.WEBHOOK_FIRST),
        ),
        PageChoice(
            "out_of_order",
            "Pay, webhooks out of order",
            "an older webhook arrives after the newer one",
            ChargePlan(webhooks=WebhookPlan.OUT_OF_ORDER),
        ),
        PageChoice(
            "never",
            "Pay, no webhook",
            "the shop has to query the gateway",
            ChargePlan(webhooks=WebhookPlan.NEVER),
        ),
    )


CHECK_CHOICES = (
    PageChoice("approve", "Approve", plan=ChargePlan()),
    PageChoice(
        "refuse",
        "Refuse",
        "the payment is declined",
        decline_plan("authentication_failed", "The payer was not recognised by the bank."),
    ),
)

ENDS = {
    SandboxState.PROCESSING: ("Processing", "Your bank is still processing the payment."),
    SandboxState.CAPTURED: ("Paid", "Thank you. The payment has been made."),
    SandboxState.DECLINED: ("Declined", "The payment was not made."),
    SandboxState.CANCELLED: ("Cancelled", "The shop has cancelled this payment."),
}


def available_choices(payment: SandboxPayment, settings: SandboxSettings) -> Sequence[PageChoice]:
    """What may be chosen now."""
    match payment.state:
        case SandboxState.REQUIRES_PAYER:
            return choices(settings)
        case SandboxState.REQUIRES_ACTION:
            return CHECK_CHOICES
    return ()


def render_page(payment: SandboxPayment, settings: SandboxSettings) -> dict[str, str]:
    """The parts of the page, for its shell."""
    buttons = available_choices(payment, settings)
    if payment.state == SandboxState.REQUIRES_PAYER:
        first, *others = buttons
        amount = amount_text(payment.amount_minor, payment.currency)
        content = (
            _card()
            + _form(payment, (PageChoice(first.name, f"Pay {amount}"),), "main")
            + "<h2>Or try another outcome</h2>"
            + _form(payment, others, "others")
        )
        return _parts(payment, "Payment", content)
    if buttons:
        words = "<p>Confirm it's you: your bank wants to be sure who is paying.</p>"
        return _parts(payment, "3-D Secure", words + _form(payment, buttons, "check"))
    title, words = ENDS[SandboxState(payment.state)]
    reason = f"<p>{escape(payment.reason)}</p>" if payment.reason else ""
    back = f'<p><a class="back" href="{escape(payment.return_url)}">Back to the shop</a></p>'
    return _parts(payment, title, f"<p>{words}</p>{reason}{back if payment.return_url else ''}")


def missing_page() -> dict[str, str]:
    content = "<p>There is no payment at this address. Go back to the shop and start again.</p>"
    return {"title": "No such payment", "summary": "", "content": content}


def policy(payment: SandboxPayment | None) -> str:
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


def _parts(payment: SandboxPayment, title: str, content: str) -> dict[str, str]:
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
        "<small>No real card is needed, and no money moves.</small></p>"
    )


def _form(payment: SandboxPayment, buttons: Sequence[PageChoice], name: str) -> str:
    def button(choice: PageChoice) -> str:
        hint = f"<small>{escape(choice.hint)}</small>" if choice.hint else ""
        return (
            f'<button name="choice" value="{choice.name}"><span>{escape(choice.label)}</span>{hint}</button>'
        )

    rows = "".join(button(choice) for choice in buttons)
    return f'<form method="post" action="/pay/{payment.page}" class="{name}">{rows}</form>'


FILES = resources.files("holdfast.sandbox") / "static"
CSS = (FILES / "page.css").read_bytes()
SHELL = Template((FILES / "page.html").read_text())
HTML = "text/html; charset=utf-8"


def payment_pages(merchant: Merchant) -> ASGI:
    core, merchant_name = merchant.core, escape(merchant.name)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix("/")
        if name == "page.css":
            await send_reply(send, 200, CSS, _headers("text/css; charset=utf-8", None, "max-age=3600"))
            return
        payment = core.find_by_page(name)
        if payment is None:
            text = SHELL.substitute(missing_page(), merchant=merchant_name)
            await send_reply(send, 404, text.encode(), _headers(HTML, None))
        elif scope["method"] == "POST":
            chosen = parse_qs((await read_body(receive)).decode("latin-1")).get("choice", [""])[-1]
            await _see_other(send, await _after(payment, chosen))
        elif scope["method"] in ("GET", "HEAD"):
            text = SHELL.substitute(render_page(payment, core.settings), merchant=merchant_name)
            await send_reply(send, 200, text.encode(), _headers(HTML, payment))
        else:
            raise SandboxRefusal(405, "method_not_allowed", "A page is shown by GET and answered by POST.")

    async def _after(payment: SandboxPayment, chosen: str) -> str:
        """Where the payer goes when they have chosen."""
        here = f"/pay/{payment.page}"
        choice = next((one for one in available_choices(payment, core.settings) if one.name == chosen), None)
        if choice is None:
            return here
        if choice.plan is not None:
            method = METHOD if payment.state == SandboxState.REQUIRES_PAYER else ""
            try:
                payment = await core.decide(payment.page, choice.plan, method)
            except SandboxRefusal:  # decided meanwhile, in another tab or by the merchant: the page shows it
                return here
        return here if payment.state == SandboxState.REQUIRES_ACTION else payment.return_url or here

    return serve


async def _see_other(send: Send, url: str) -> None:
    await send_reply(send, 303, b"", ((b"location", url.encode()), (b"cache-control", b"no-store")))


def _headers(kind: str, payment: SandboxPayment | None, cache: str = "no-store") -> Headers:
    return (
        (b"content-type", kind.encode()),
        (b"content-security-policy", policy(payment).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", cache.encode()),
    )
