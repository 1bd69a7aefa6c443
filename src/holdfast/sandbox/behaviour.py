"""What each test token does, and how a storm bends the good one. No I/O.

A token may carry a card: `tok_ok:card-7` is the good token on card-7. Without one, the token is its own card.
"""

import hashlib
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from holdfast.sandbox.payment import PaymentMove, SandboxRefusal


class ReplyPlan(StrEnum):
    """What becomes of the answer to the request."""

    NORMAL = "normal"
    SLOW = "slow"  # after slow_s
    LOST = "lost"  # never: the connection stays silent for hold_s, and is closed
    WEBHOOK_FIRST = "webhook_first"  # after the webhook was taken


class WebhookPlan(StrEnum):
    ONCE = "once"
    TWICE = "twice"
    LATE = "late"  # late_s afterwards
    NEVER = "never"
    OUT_OF_ORDER = "out_of_order"  # an older one after a newer one


class RefundPlan(StrEnum):
    GIVEN = "given"
    REFUSED = "refused"
    LOST_ONCE = "lost_once"  # given, and the first answer never comes


class ChargePlan(Struct, frozen=True):
    """What happens to a charge."""

    move: PaymentMove = PaymentMove.CAPTURE
    code: str | None = None  # of a decline
    reason: str | None = None
    reply: ReplyPlan = ReplyPlan.NORMAL
    is_made: bool = True  # False: the request gets lost, and nothing of it is stored
    fails_first: bool = False  # 500 the first time
    is_late: bool = False  # processing now, captured late_s afterwards
    is_firm: bool = False
    webhooks: WebhookPlan = WebhookPlan.ONCE
    refunds: RefundPlan = RefundPlan.GIVEN


def decline_plan(code: str, reason: str) -> ChargePlan:
    return ChargePlan(move=PaymentMove.DECLINE, code=code, reason=reason)


DECLINED = decline_plan("card_declined", "The card was decline_plan.")

TOKENS: dict[str, ChargePlan] = {
    "tok_ok": ChargePlan(),
    "tok_declined": DECLINED,
    "tok_insufficient": decline_plan("insufficient_funds", "There is not enough money on the card."),
    "tok_expired_card": decline_plan("expired_card", "The card has expired."),
    "tok_slow": ChargePlan(reply=ReplyPlan.SLOW),
    "tok_timeout_then_paid": ChargePlan(reply=ReplyPlan.LOST),
    "tok_timeout_never_paid": ChargePlan(reply=ReplyPlan.LOST, is_made=False),
    "tok_3ds": ChargePlan(move=PaymentMove.ASK),
    "tok_twice": ChargePlan(webhooks=WebhookPlan.TWICE),
    "tok_late": ChargePlan(move=PaymentMove.SUBMIT, is_late=True, is_firm=True),
    "tok_late_open": ChargePlan(move=PaymentMove.SUBMIT, is_late=True),
    "tok_never": ChargePlan(move=PaymentMove.SUBMIT, webhooks=WebhookPlan.NEVER),
    "tok_stuck": ChargePlan(move=PaymentMove.SUBMIT, is_firm=True, webhooks=WebhookPlan.NEVER),
    "tok_no_webhook": ChargePlan(webhooks=WebhookPlan.NEVER),
    "tok_late_webhook": ChargePlan(webhooks=WebhookPlan.LATE),
    "tok_webhook_first": ChargePlan(reply=ReplyPlan.WEBHOOK_FIRST),
    "tok_out_of_order": ChargePlan(webhooks=WebhookPlan.OUT_OF_ORDER),
    "tok_error": ChargePlan(fails_first=True),
    "tok_refund_refused": ChargePlan(refunds=RefundPlan.REFUSED),
    "tok_refund_timeout": ChargePlan(refunds=RefundPlan.LOST_ONCE),
}


class SandboxSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the control endpoint sets. Rates are parts of the charges with `tok_ok`, 0 to 1."""

    timeout_paid: float = 0.0
    timeout_unpaid: float = 0.0
    decline: float = 0.0
    error: float = 0.0
    slow: float = 0.0
    duplicate_webhook: float = 0.0
    late_webhook: float = 0.0
    never_webhook: float = 0.0
    refund_timeout: float = 0.0  # of refunds
    refund_refused: float = 0.0
    seed: int = 0  # the same seed and the same keys, the same storm
    late_s: float = 5.0
    slow_s: float = 1.5
    hold_s: float = 60.0  # a lost answer keeps its connection this long, longer than anybody waits
    out_of_order_s: float = 1.0  # the older webhook comes this much later
    retry_s: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

    @property
    def has_storm(self) -> bool:
        return any(self.outcome_rates) or any(self.webhook_rates)

    @property
    def outcome_rates(self) -> tuple[float, ...]:
        return (self.timeout_paid, self.timeout_unpaid, self.decline, self.error, self.slow)

    @property
    def webhook_rates(self) -> tuple[float, ...]:
        return (self.duplicate_webhook, self.late_webhook, self.never_webhook)

    def problem(self) -> str | None:
        """Describes the first invalid setting; None: all are valid."""
        refunds = (self.refund_timeout, self.refund_refused)
        for rates in (self.outcome_rates, self.webhook_rates, refunds):
            if not all(0 <= rate <= 1 for rate in rates) or sum(rates) > 1:
                return "rates are between 0 and 1, and their sum is at most 1"
        if min(self.late_s, self.slow_s, self.hold_s, self.out_of_order_s, *self.retry_s) < 0:
            return "no time is below 0"
        return None


STORM_OUTCOMES = (
    ChargePlan(reply=ReplyPlan.LOST),
    ChargePlan(reply=ReplyPlan.LOST, is_made=False),
    DECLINED,
    ChargePlan(fails_first=True),
    ChargePlan(reply=ReplyPlan.SLOW),
)
STORM_WEBHOOKS = (WebhookPlan.TWICE, WebhookPlan.LATE, WebhookPlan.NEVER)
STORM_REFUNDS = (RefundPlan.LOST_ONCE, RefundPlan.REFUSED)


def split_token(method: str) -> tuple[str, str]:
    """tok_ok:card-7 → the token and its card."""
    token, _, card = method.partition(":")
    return token, card or token


def card_fingerprint(method: str) -> str | None:
    """The fingerprint of the card behind a token; None: no such token."""
    token, card = split_token(method)
    return f"card_{hashlib.sha256(card.encode()).hexdigest()[:16]}" if token in TOKENS else None


def plan_charge(method: str, key: str, settings: SandboxSettings, lost: int = 0) -> ChargePlan:
    """What happens to a charge. `lost`: how many requests with this key got lost in a storm already."""
    token, _ = split_token(method)
    if (plan := TOKENS.get(token)) is None:
        raise SandboxRefusal(
            400, "no_such_method", "There is no such test token; docs/operating/sandbox.md lists them."
        )
    if token != "tok_ok" or not settings.has_storm:
        return plan
    bent = draw_rate(f"outcome {lost}" if lost else "outcome", key, settings, settings.outcome_rates)
    plan = plan if bent is None else STORM_OUTCOMES[bent]
    webhookd = draw_rate("webhook", key, settings, settings.webhook_rates)
    return plan if webhookd is None else replace(plan, webhooks=STORM_WEBHOOKS[webhookd])


def plan_refund(method: str, key: str, settings: SandboxSettings) -> RefundPlan:
    token, _ = split_token(method)
    plan = TOKENS.get(token, ChargePlan())
    if token != "tok_ok":
        return plan.refunds
    bent = draw_rate("refund", key, settings, (settings.refund_timeout, settings.refund_refused))
    return plan.refunds if bent is None else STORM_REFUNDS[bent]


def draw_rate(what: str, key: str, settings: SandboxSettings, rates: tuple[float, ...]) -> int | None:
    """Which of the rates this key falls under; None: none of them. The same for the same seed and key."""
    if not any(rates):
        return None
    digest = hashlib.blake2b(f"{settings.seed} {what} {key}".encode(), digest_size=8).digest()
    at = int.from_bytes(digest) / 2**64
    for index, rate in enumerate(rates):
        if at < rate:
            return index
        at -= rate
    return None
