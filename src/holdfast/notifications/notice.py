"""Which fact becomes which notice, to whom, and what becomes of it. No I/O.

    fact ──► QUEUED ──► SENT         the mail server has it; STORED for the demo's mail page instead
              │  ▲
              │  └── not now (4xx): again after PAUSES_S. Nobody there: again, and not counted
              ├────► DEAD            refused for good (5xx), or tried often enough; a person may replay it
              ├────► OBSOLETE        no longer true when it was due
              └────► UNSENT          nobody sends anything here

A notice is a row before anybody tries to send it, once a fact, person and kind. Who takes one has it for
LEASE_S, and again while it is at it; a process that dies between sending and writing that down has sent a
mail that comes once more, with the same Message-ID.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from holdfast.bookings import public_id
from holdfast.engines.lease import Lease
from holdfast.outbox import (
    BookingConfirmed,
    BookingExpired,
    Fact,
    PaymentDeclined,
    PaymentLate,
    RefundDone,
    ShowCancelledFact,
    ShowChanged,
    TicketsSentAgain,
    TicketTransferred,
)

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

# How long after a failed try the next one is; after the last, it is dead: 16 hours in all.
PAUSES_S = (5, 15, 60, 300, 900, 1800, 3600, 7200, 14_400, 28_800)
LEASE_S = 120  # renewed while somebody is at it; after that, whoever had it is dead
REASON_MAX = 500  # letters of what went wrong


class NoticeKind(StrEnum):
    HOLD_LAPSING = "hold_lapsing"  # pay within the next minutes
    HOLD_LAPSED = "hold_lapsed"
    TICKETS = "tickets"  # with the tickets
    DECLINED = "declined"
    LATE_BOOKED = "late_booked"  # paid late, and the seats were still free
    LATE_REFUNDED = "late_refunded"  # paid late, and they were not
    REFUNDED = "refunded"
    SHOW_CHANGED = "show_changed"  # it begins at another time
    SHOW_CANCELLED = "show_cancelled"
    TICKET_GIVEN = "ticket_given"
    TICKET_GOT = "ticket_got"  # with the ticket


class NoticeState(StrEnum):
    QUEUED = "queued"
    SENT = "sent"
    STORED = "stored"
    UNSENT = "unsent"
    OBSOLETE = "obsolete"
    DEAD = "dead"


class Channel(StrEnum):
    MAIL = "mail"
    SMS = "sms"
    PUSH = "push"


# Worth a phone's buzz; everything is worth a mail.
URGENT = {
    NoticeKind.HOLD_LAPSING,
    NoticeKind.TICKETS,
    NoticeKind.SHOW_CHANGED,
    NoticeKind.SHOW_CANCELLED,
    NoticeKind.TICKET_GOT,
}
SHOW_FACTS: Mapping[type, NoticeKind] = {
    ShowChanged: NoticeKind.SHOW_CHANGED,
    ShowCancelledFact: NoticeKind.SHOW_CANCELLED,
}
CONSUMED_KINDS = (
    *(BookingConfirmed.KIND, BookingExpired.KIND, PaymentDeclined.KIND, PaymentLate.KIND, RefundDone.KIND),
    *(ShowChanged.KIND, ShowCancelledFact.KIND, TicketTransferred.KIND, TicketsSentAgain.KIND),
)


class NewNotice(Struct, frozen=True, kw_only=True):
    """To be written down. The address is looked up there: an account's, or that of a ticket's new owner."""

    fact_id: int | None  # None: no fact, a job saw it coming
    kind: NoticeKind
    show_id: int
    number: int | None
    account_id: int | None = None
    email: str | None = None  # of whoever has no account, or none that we know of
    serial: int = 0  # of a ticket that waits for whoever signs up by an address
    edition: int = 0
    body: Mapping[str, Any] = {}


class DueNotice(Struct, frozen=True, kw_only=True):
    """One to be sent now, by whoever has this turn."""

    id: int
    kind: NoticeKind
    channel: Channel
    account_id: int | None
    address: str
    name: str
    locale: str
    show_id: int
    number: int | None
    body: Mapping[str, Any]
    round: int
    tries: int
    turn: int
    written_at: datetime

    @property
    def lease(self) -> Lease:
        return Lease((self.id,), self.turn)


def build_notice(fact: Fact) -> NewNotice | None:
    """What the one person a fact is about is told; None: nothing. Facts of shows are for many: OF_SHOWS."""
    match fact.body:
        case BookingConfirmed(is_block=False, owner_id=owner_id) as booking:
            return _told(fact, NoticeKind.TICKETS, owner_id, _of_booking(booking))
        case BookingExpired(is_block=False, owner_id=owner_id) as booking:
            return _told(fact, NoticeKind.HOLD_LAPSED, owner_id, _of_booking(booking))
        case PaymentDeclined(owner_id=int() as owner_id) as payment:
            return _told(fact, NoticeKind.DECLINED, owner_id, _of_money(payment) | {"reason": payment.reason})
        case PaymentLate(owner_id=int() as owner_id) as payment:
            kind = NoticeKind.LATE_BOOKED if payment.booked else NoticeKind.LATE_REFUNDED
            return _told(fact, kind, owner_id, _of_money(payment))
        case RefundDone(owner_id=int() as owner_id) as refund:
            body = _of_money(refund) | {"why": refund.why, "seats": refund.seats, "at": fact.at.isoformat()}
            return _told(fact, NoticeKind.REFUNDED, owner_id, body)
        case TicketsSentAgain(account_id=account_id):
            return _told(fact, NoticeKind.TICKETS, account_id, {})
        case TicketTransferred() as given:
            body = {"serial": given.serial, "edition": given.edition, "from_id": given.from_id}
            if given.side == "given":
                return _told(fact, NoticeKind.TICKET_GIVEN, given.from_id, body)
            new = _told(fact, NoticeKind.TICKET_GOT, given.to_id, body)
            return msgspec.structs.replace(new, serial=given.serial, edition=given.edition)
    return None


def _told(fact: Fact, kind: NoticeKind, account_id: int | None, body: Mapping[str, Any]) -> NewNotice:
    return NewNotice(
        fact_id=fact.id,
        kind=kind,
        show_id=fact.show_id,
        number=fact.number,
        account_id=account_id,
        body=body,
    )


def _of_booking(booking: BookingConfirmed | BookingExpired) -> dict[str, Any]:
    return {"seats": booking.seats, "amount_minor": booking.amount_minor, "currency": booking.currency}


def _of_money(moved: PaymentDeclined | PaymentLate | RefundDone) -> dict[str, Any]:
    return {"amount_minor": moved.amount_minor, "currency": moved.currency}


def channels_for(kind: NoticeKind, there: Sequence[Channel]) -> list[Channel]:
    """By mail always; by whatever else there is when it is urgent."""
    return [one for one in there if one is Channel.MAIL or kind in URGENT]


# ── for operators ─────────────────────────────────────────────────────────────────────


class NoticesQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: Literal["queued", "sent", "stored", "unsent", "obsolete", "dead", "all"] = "dead"
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class NoticePage(Struct, frozen=True, kw_only=True):
    notice_id: int
    kind: NoticeKind
    channel: Channel
    address: str
    locale: str
    show_id: int
    booking_id: str | None
    state: NoticeState
    tries: int
    reason: str | None  # why not, the last time
    written_at: datetime
    due_at: datetime | None  # when it is tried next
    ended_at: datetime | None


class NoticeList(Struct, frozen=True):
    notices: list[NoticePage]
    more: bool


class PreviewQuery(Struct, forbid_unknown_fields=True, frozen=True):
    locale: Annotated[str, Meta(pattern="^[a-z]{2,3}$")] = "en"
    text: bool = False  # the text of it instead of the page


class SenderBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Under which name your letters go out, and where answers go; empty: to the box office."""

    from_name: Annotated[
        str, Meta(min_length=1, max_length=80, pattern=r"^[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")
    ]
    reply_to: Annotated[
        str,
        Meta(
            max_length=254,
            pattern=r"^([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)?$",
            examples=["hello@hall.example"],
        ),
    ] = ""


def build_page(row: "Row") -> NoticePage:
    number = row["number"]
    copied = ("address", "locale", "show_id", "tries", "reason", "written_at", "due_at", "ended_at")
    return NoticePage(
        notice_id=row["id"],
        kind=NoticeKind(row["kind"]),
        channel=Channel(row["channel"]),
        booking_id=None if number is None else public_id(row["show_id"], number),
        state=NoticeState(row["state"]),
        **{name: row[name] for name in copied},
    )


def parse_due(row: "Row") -> DueNotice:
    known = {name: row[name] for name in DueNotice.__struct_fields__}
    return DueNotice(
        **known
        | {
            "kind": NoticeKind(row["kind"]),
            "channel": Channel(row["channel"]),
            "body": msgspec.json.decode(row["body"]),
        }
    )
