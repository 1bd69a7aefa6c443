"""What each test token does, and how a storm bends the good one. No I/O.

A token may carry a card: `tok_ok:card-7` is the good token on card-7. Without one, the token is its own card.
"""

import hashlib
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from holdfast.sandbox.errors import Refused
from holdfast.sandbox.payment import Move


class Reply(StrEnum):
    """What becomes of the answer to the request."""

    NORMAL = "normal"
    SLOW = "slow"  # after slow_s
    LOST = "lost"  # never: the connection stays silent for hold_s, and is closed
    NOTICE_FIRST = "notice_first"  # after the notice was taken


class Notices(StrEnum):
    ONCE = "once"
    TWICE = "twice"
    LATE = "late"  # late_s afterwards
    NEVER = "never"
    OUT_OF_ORDER = "out_of_order"  # an older one after a newer one


class Refunds(StrEnum):
    GIVEN = "given"
    REFUSED = "refused"
    LOST_ONCE = "lost_once"  # given, and the first answer never comes


class Plan(Struct, frozen=True):
    """What happens to a charge."""

    move: Move = Move.CAPTURE
    code: str | None = None  # of a decline
    reason: str | None = None
    reply: Reply = Reply.NORMAL
    is_made: bool = True  # False: the request gets lost, and nothing is ever kept of it
    fails_first: bool = False  # 500 the first time
    is_late: bool = False  # processing now, captured late_s afterwards
    is_firm: bool = False
    notices: Notices = Notices.ONCE
    refunds: Refunds = Refunds.GIVEN


def declined(code: str, reason: str) -> Plan:
    return Plan(move=Move.DECLINE, code=code, reason=reason)


DECLINED = declined("card_declined", "The card was declined.")

TOKENS: dict[str, Plan] = {
    "tok_ok": Plan(),
    "tok_declined": DECLINED,
    "tok_insufficient": declined("insufficient_funds", "There is not enough money on the card."),
    "tok_expired_card": declined("expired_card", "The card has expired."),
    "tok_slow": Plan(reply=Reply.SLOW),
    "tok_timeout_then_paid": Plan(reply=Reply.LOST),
    "tok_timeout_never_paid": Plan(reply=Reply.LOST, is_made=False),
    "tok_3ds": Plan(move=Move.ASK),
    "tok_twice": Plan(notices=Notices.TWICE),
    "tok_late": Plan(move=Move.SUBMIT, is_late=True, is_firm=True),
    "tok_late_open": Plan(move=Move.SUBMIT, is_late=True),
    "tok_never": Plan(move=Move.SUBMIT, notices=Notices.NEVER),
    "tok_stuck": Plan(move=Move.SUBMIT, is_firm=True, notices=Notices.NEVER),
    "tok_no_notice": Plan(notices=Notices.NEVER),
    "tok_late_notice": Plan(notices=Notices.LATE),
    "tok_notice_first": Plan(reply=Reply.NOTICE_FIRST),
    "tok_out_of_order": Plan(notices=Notices.OUT_OF_ORDER),
    "tok_error": Plan(fails_first=True),
    "tok_refund_refused": Plan(refunds=Refunds.REFUSED),
    "tok_refund_timeout": Plan(refunds=Refunds.LOST_ONCE),
}


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the control endpoint sets. Rates are parts of the charges with `tok_ok`, 0 to 1."""

    timeout_paid: float = 0.0
    timeout_unpaid: float = 0.0
    decline: float = 0.0
    error: float = 0.0
    slow: float = 0.0
    duplicate_notice: float = 0.0
    late_notice: float = 0.0
    never_notice: float = 0.0
    refund_timeout: float = 0.0  # of refunds
    refund_refused: float = 0.0
    seed: int = 0  # the same seed and the same keys, the same storm
    late_s: float = 5.0
    slow_s: float = 1.5
    hold_s: float = 60.0  # a lost answer keeps its connection this long, longer than anybody waits
    out_of_order_s: float = 1.0  # the older notice comes this much later
    retry_s: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

    @property
    def has_storm(self) -> bool:
        return any(self.outcome_rates) or any(self.notice_rates)

    @property
    def outcome_rates(self) -> tuple[float, ...]:
        return (self.timeout_paid, self.timeout_unpaid, self.decline, self.error, self.slow)

    @property
    def notice_rates(self) -> tuple[float, ...]:
        return (self.duplicate_notice, self.late_notice, self.never_notice)

    def problem(self) -> str | None:
        """What is wrong with them, in words."""
        refunds = (self.refund_timeout, self.refund_refused)
        for rates in (self.outcome_rates, self.notice_rates, refunds):
            if not all(0 <= rate <= 1 for rate in rates) or sum(rates) > 1:
                return "rates are between 0 and 1, and their sum is at most 1"
        if min(self.late_s, self.slow_s, self.hold_s, self.out_of_order_s, *self.retry_s) < 0:
            return "no time is below 0"
        return None


STORM_OUTCOMES = (
    Plan(reply=Reply.LOST),
    Plan(reply=Reply.LOST, is_made=False),
    DECLINED,
    Plan(fails_first=True),
    Plan(reply=Reply.SLOW),
)
STORM_NOTICES = (Notices.TWICE, Notices.LATE, Notices.NEVER)
STORM_REFUNDS = (Refunds.LOST_ONCE, Refunds.REFUSED)


def split(method: str) -> tuple[str, str]:
    """tok_ok:card-7 → the token and its card."""
    token, _, card = method.partition(":")
    return token, card or token


def card_of(method: str) -> str | None:
    """The fingerprint of the card behind a token; None: no such token."""
    token, card = split(method)
    return f"card_{hashlib.sha256(card.encode()).hexdigest()[:16]}" if token in TOKENS else None


def plan_of(method: str, key: str, settings: Settings, lost: int = 0) -> Plan:
    """What happens to a charge. `lost`: how many requests with this key got lost in a storm already."""
    token, _ = split(method)
    if (plan := TOKENS.get(token)) is None:
        raise Refused(
            400, "no_such_method", "There is no such test token; docs/operating/sandbox.md lists them."
        )
    if token != "tok_ok" or not settings.has_storm:
        return plan
    bent = drawn(f"outcome {lost}" if lost else "outcome", key, settings, settings.outcome_rates)
    plan = plan if bent is None else STORM_OUTCOMES[bent]
    noticed = drawn("notice", key, settings, settings.notice_rates)
    return plan if noticed is None else replace(plan, notices=STORM_NOTICES[noticed])


def refunds_of(method: str, key: str, settings: Settings) -> Refunds:
    token, _ = split(method)
    plan = TOKENS.get(token, Plan())
    if token != "tok_ok":
        return plan.refunds
    bent = drawn("refund", key, settings, (settings.refund_timeout, settings.refund_refused))
    return plan.refunds if bent is None else STORM_REFUNDS[bent]


def drawn(what: str, key: str, settings: Settings, rates: tuple[float, ...]) -> int | None:
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
