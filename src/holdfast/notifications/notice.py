"""Which fact becomes which notice, its recipient and its states. No I/O.

    fact ──► QUEUED ──► SENT         the mail server has it; STORED for the demo's mail page instead
              │  ▲
              │  └── temporary failure (4xx): retry after PAUSES_S. Unreachable: not counted as a try
              ├────► DEAD            rejected (5xx), or out of tries; an operator may replay it
              ├────► OBSOLETE        no longer true when it was due
              └────► UNSENT          no sender is configured for its channel

A notice is a row before it is sent: one per fact, recipient and kind. A worker leases it for LEASE_S and
renews the lease while it works. If a process dies between sending a mail and recording that, the mail is
sent a second time with the same Message-ID.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from holdfast.accounts import PersonMail
from holdfast.bookings import public_id
from holdfast.engines.row_lease import Lease
from holdfast.outbox import (
    BookingConfirmed,
    BookingExpired,
    Fact,
    PaymentBody,
    PaymentDeclined,
    PaymentDisputed,
    PaymentLate,
    QueueCalled,
    QueueDrained,
    RefundDone,
    ShowCancelledFact,
    ShowChanged,
    TicketsSentAgain,
    TicketTakenBack,
    TicketTransferred,
    WaitlistEnded,
    WaitlistJoined,
    WaitlistOffered,
)

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

# Pauses before the retries; after the last one the notice is dead: 16 hours in all.
PAUSES_S = (5, 15, 60, 300, 900, 1800, 3600, 7200, 14_400, 28_800)
LEASE_S = 120  # renewed while a worker works on it; a lease that runs out means that the worker died
INFINITY = datetime.max  # as asyncpg reads it, without a zone: due at once, for newer workers
REASON_MAX = 500  # characters of a failure's reason


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
    TICKET_GOT = "ticket_got"  # with the link that accepts it
    TICKET_TAKEN_BACK = "ticket_taken_back"  # before it was accepted
    QUEUE_TURN = "queue_turn"  # come in within the next minutes
    QUEUE_SOLD_OUT = "queue_sold_out"  # before the turn of a person who waited; offers the waitlist
    WAITLIST_JOINED = "waitlist_joined"
    WAITLIST_OFFER = "waitlist_offer"  # seats are held for a few minutes
    WAITLIST_ENDED = "waitlist_ended"  # the offer was not taken in time, or none came
    CONFIRM_ADDRESS = "confirm_address"
    RESET_PASSWORD = "reset_password"
    SIGN_IN_LINK = "sign_in_link"
    ADDRESS_CHANGED = "address_changed"  # to the address before
    PASSWORD_CHANGED = "password_changed"
    INVITATION = "invitation"  # to an organisation; with the link that accepts it
    TOTP_ADDED = "totp_added"
    TOTP_REMOVED = "totp_removed"
    PASSKEY_ADDED = "passkey_added"
    PASSKEY_REMOVED = "passkey_removed"
    RECOVERY_CODE_USED = "recovery_code_used"
    RECOVERY_CODES_RENEWED = "recovery_codes_renewed"
    SECOND_FACTOR_REMOVED = "second_factor_removed"
    # To the organiser of the show:
    CHARGEBACK_OPEN = "chargeback_open"  # the payer's bank took the money back
    CHARGEBACK_WON = "chargeback_won"
    CHARGEBACK_LOST = "chargeback_lost"


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


PERSON_KINDS = {NoticeKind(mail) for mail in PersonMail}  # about an account, not about a show

# Also sent as a short message; everything is sent as mail.
URGENT = {
    NoticeKind.HOLD_LAPSING,
    NoticeKind.QUEUE_TURN,
    NoticeKind.WAITLIST_OFFER,
    NoticeKind.TICKETS,
    NoticeKind.SHOW_CHANGED,
    NoticeKind.SHOW_CANCELLED,
}
SHOW_FACTS: Mapping[type, NoticeKind] = {
    ShowChanged: NoticeKind.SHOW_CHANGED,
    ShowCancelledFact: NoticeKind.SHOW_CANCELLED,
}
CONSUMED_KINDS = (
    *(BookingConfirmed.KIND, BookingExpired.KIND, PaymentDeclined.KIND, PaymentLate.KIND, RefundDone.KIND),
    *(ShowChanged.KIND, ShowCancelledFact.KIND, TicketTransferred.KIND, TicketsSentAgain.KIND),
    *(TicketTakenBack.KIND, PaymentDisputed.KIND),
    *(WaitlistJoined.KIND, WaitlistOffered.KIND, WaitlistEnded.KIND),
    *(QueueCalled.KIND, QueueDrained.KIND),  # queue_notices.py
)
# How a wait ends that its party did not end itself.
MAILED_ENDS = ("lapsed", "timed_out", "closed")
CHARGEBACKS: Mapping[str, NoticeKind] = {
    "open": NoticeKind.CHARGEBACK_OPEN,
    "won": NoticeKind.CHARGEBACK_WON,
    "lost": NoticeKind.CHARGEBACK_LOST,
}
TO_ORGANISERS = frozenset(CHARGEBACKS.values())


class NewNotice(Struct, frozen=True, kw_only=True):
    """To be inserted. The query looks up the address: an account's, or that of a ticket's new owner."""

    fact_id: int | None  # None: written by a job, not for a fact
    kind: NoticeKind
    show_id: int
    number: int | None
    account_id: int | None = None
    email: str | None = None  # of a recipient without a known account
    serial: int = 0  # of a ticket whose recipient has not signed up yet
    edition: int = 0
    body: Mapping[str, Any] = {}
    due_in_s: float = 0.0


class DueNotice(Struct, frozen=True, kw_only=True):
    """A notice to be sent now by the worker that leased it."""

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
    """The notice for the one recipient of a fact; None: no notice. Facts of shows have many: SHOW_FACTS."""
    match fact.body:
        case BookingConfirmed(is_block=False, owner_id=owner_id) as booking:
            return _notice_for(fact, NoticeKind.TICKETS, owner_id, _booking_fields(booking))
        case BookingExpired(is_block=False, owner_id=owner_id) as booking:
            return _notice_for(fact, NoticeKind.HOLD_LAPSED, owner_id, _booking_fields(booking))
        case PaymentDeclined(owner_id=int() as owner_id) as payment:
            return _notice_for(
                fact, NoticeKind.DECLINED, owner_id, _money_fields(payment) | {"reason": payment.reason}
            )
        case PaymentLate(owner_id=int() as owner_id) as payment:
            kind = NoticeKind.LATE_BOOKED if payment.booked else NoticeKind.LATE_REFUNDED
            return _notice_for(fact, kind, owner_id, _money_fields(payment))
        case RefundDone(owner_id=int() as owner_id) as refund:
            body = _money_fields(refund) | {
                "why": refund.why,
                "seats": refund.seats,
                "at": fact.at.isoformat(),
            }
            return _notice_for(fact, NoticeKind.REFUNDED, owner_id, body)
        case PaymentDisputed(state=state) as payment if state in CHARGEBACKS:
            body = _money_fields(payment) | {
                "reason": payment.reason,
                "tickets_suspended": payment.tickets_suspended,
            }
            return _notice_for(
                fact, CHARGEBACKS[state], None, body
            )  # to whom: NotificationStore.organisers_of
        case TicketsSentAgain(account_id=account_id):
            return _notice_for(fact, NoticeKind.TICKETS, account_id, {})
        case TicketTransferred() as given:
            body = {"serial": given.serial, "edition": given.edition, "from_id": given.from_id}
            if given.side == "given":
                return _notice_for(fact, NoticeKind.TICKET_GIVEN, given.from_id, body)
            new = _notice_for(fact, NoticeKind.TICKET_GOT, given.to_id, body)
            return msgspec.structs.replace(new, serial=given.serial, edition=given.edition)
        case TicketTakenBack() as back:
            # To the address of the transfer that was cancelled: the edition before.
            body = {"serial": back.serial, "edition": back.edition - 1}
            new = _notice_for(fact, NoticeKind.TICKET_TAKEN_BACK, None, body)
            return msgspec.structs.replace(new, serial=back.serial, edition=back.edition - 1)
        case WaitlistJoined(owner_id=owner_id):
            return _notice_for(fact, NoticeKind.WAITLIST_JOINED, owner_id, {})
        case WaitlistOffered(owner_id=owner_id):
            return _notice_for(fact, NoticeKind.WAITLIST_OFFER, owner_id, {})
        case WaitlistEnded(owner_id=owner_id, state=state, seats=seats) if state in MAILED_ENDS:
            return _notice_for(fact, NoticeKind.WAITLIST_ENDED, owner_id, {"seats": seats})
    return None


def build_confirmation(notice: NewNotice) -> NewNotice | None:
    """With tickets goes the mail that proves their owner's address; the store drops the one not needed."""
    if notice.kind is not NoticeKind.TICKETS:
        return None
    return msgspec.structs.replace(notice, kind=NoticeKind.CONFIRM_ADDRESS, body={})


def _notice_for(fact: Fact, kind: NoticeKind, account_id: int | None, body: Mapping[str, Any]) -> NewNotice:
    return NewNotice(
        fact_id=fact.id,
        kind=kind,
        show_id=fact.show_id,
        number=fact.number,
        account_id=account_id,
        body=body,
    )


def _booking_fields(booking: BookingConfirmed | BookingExpired) -> dict[str, Any]:
    return {"seats": booking.seats, "amount_minor": booking.amount_minor, "currency": booking.currency}


def _money_fields(moved: PaymentBody | RefundDone) -> dict[str, Any]:
    return {"amount_minor": moved.amount_minor, "currency": moved.currency}


def channels_for(kind: NoticeKind, available: Sequence[Channel]) -> list[Channel]:
    """Mail always; the other available channels if the kind is urgent."""
    return [one for one in available if one is Channel.MAIL or kind in URGENT]


# ── for operators ─────────────────────────────────────────────────────────────────────


class NoticesQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: Literal["queued", "sent", "stored", "unsent", "obsolete", "dead", "all"] = "dead"
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class PodNoticeQuery(Struct, forbid_unknown_fields=True, frozen=True):
    pod: Annotated[str, Meta(max_length=31)] = ""  # of the notice, or `home`: several may have its number


class NoticePage(Struct, frozen=True, kw_only=True):
    pod: str = ""  # in whose database it is, which counts its own; empty: the home database
    notice_id: int
    kind: NoticeKind
    channel: Channel
    address: str
    locale: str
    show_id: int
    booking_id: str | None
    state: NoticeState
    tries: int
    reason: str | None  # of the last failure
    written_at: datetime
    due_at: datetime | None  # when it is tried next
    ended_at: datetime | None


class NoticeList(Struct, frozen=True):
    notices: list[NoticePage]
    more: bool
    complete: bool = True  # false: some databases cannot be reached, their notices are missing
    missing_pods: list[str] = msgspec.field(default_factory=list)


class PreviewQuery(Struct, forbid_unknown_fields=True, frozen=True):
    locale: Annotated[str, Meta(pattern=r"^[a-z]{2,3}$(?!\n)")] = "en"
    text: bool = False  # the plain text instead of the HTML page


class SenderBody(Struct, forbid_unknown_fields=True, frozen=True):
    """The sender name of your mail, and the address for replies; empty: the box office."""

    from_name: Annotated[
        str, Meta(min_length=1, max_length=80, pattern=r"^[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$(?!\n)")
    ]
    reply_to: Annotated[
        str,
        Meta(
            max_length=254,
            pattern=r"^([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)?$(?!\n)",
            examples=["hello@hall.example"],
        ),
    ] = ""


def build_page(row: "Row") -> NoticePage:
    number = row["number"]
    copied = ("address", "locale", "show_id", "tries", "reason", "written_at", "ended_at")
    return NoticePage(
        notice_id=row["id"],
        kind=NoticeKind(row["kind"]),
        channel=Channel(row["channel"]),
        booking_id=None if number is None else public_id(row["show_id"], number),
        state=NoticeState(row["state"]),
        due_at=row["written_at"] if row["due_at"] == INFINITY else row["due_at"],
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
