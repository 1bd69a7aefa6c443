"""A booking as its page shows it. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.bookings import BookingPage
from holdfast.payments import Payment
from holdfast.site.booking_stage import (
    KNOWN_CODES,
    NOT_PAID,
    Stage,
    face_of,
    is_late,
    money_of,
    stage_of,
    waits_for,
)
from holdfast.tickets import PrintedTicket, TicketShow


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A seat, in words."""

    label: str
    section: str
    row: str
    number: str
    category: str
    trait: str  # n plain, w wheelchair space, c companion, r restricted view
    price_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A ticket on the page. Without `qr`: given away, given back, or its code lives on one phone."""

    printed: PrintedTicket
    link: str | None  # of its own page
    qr: str | None  # a picture, as a data URL
    standing: str
    is_live: bool
    waits_for: str | None  # the address it was given to, while nobody has signed up with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A line in the history of the money."""

    at: datetime
    what: str  # paid, declined, called_off, expired, returned, under_way; refund_asked, refund_done …
    amount_minor: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    page: BookingPage
    occasion: TicketShow
    places: tuple[Place, ...]
    payment: Payment | None  # the latest
    expires_at: datetime
    life_max_s: int  # of a hold
    now: datetime  # the ledger's
    came: Sequence[Came] = ()
    tickets: Sequence[Shown] = ()

    @property
    def path(self) -> str:
        return f"/bookings/{self.page.booking_id}"

    @property
    def left_ms(self) -> int:
        """Of the hold; while it is paid for, of the payment."""
        return int((self.ends_at - self.now) / timedelta(milliseconds=1))

    @property
    def ends_at(self) -> datetime:
        if self.payment is not None and self.page.state == "paying":
            return self.payment.deadline_at
        return self.expires_at

    @property
    def ends_at_ms(self) -> int:
        return int(self.ends_at.timestamp() * 1000)

    @property
    def now_ms(self) -> int:
        return int(self.now.timestamp() * 1000)

    @property
    def whole_ms(self) -> int:
        """From the hold's beginning to its end."""
        return max(1, self.ends_at_ms - int(self.page.opened_at.timestamp() * 1000))

    @property
    def longest_at(self) -> datetime:
        """Until when a hold may be extended."""
        return self.page.opened_at + timedelta(seconds=self.life_max_s)

    @property
    def can_extend(self) -> bool:
        return self.longest_at - self.expires_at > timedelta(seconds=1)

    @property
    def stage(self) -> Stage:
        return stage_of(self.page.state, self.left_ms)

    @property
    def face(self) -> str:
        return face_of(self.stage, self.payment, self.ends_at_ms)

    @property
    def attempt(self) -> int:
        """The number of the next attempt to pay: two tabs that see the same make the same one."""
        return self.payment.attempt + 1 if self.payment else 1

    @property
    def waits_for(self) -> str:
        return waits_for(self.payment)

    @property
    def money(self) -> str:
        return money_of(self.payment)

    @property
    def is_late(self) -> bool:
        return is_late(self.payment)

    @property
    def not_paid(self) -> str | None:
        """declined or called_off: what became of the latest attempt."""
        return NOT_PAID.get(self.payment.step) if self.payment else None

    @property
    def decline_code(self) -> str | None:
        code = self.payment.code if self.payment else None
        return code if code in KNOWN_CODES else None

    @property
    def is_over(self) -> bool:
        return self.now >= self.occasion.ends_at

    @property
    def good_tickets(self) -> list[Shown]:
        return [one for one in self.tickets if one.standing in ("good", "inside")]
