"""Loads the current data of a notice and composes the message; notices that no longer apply are obsolete."""

import tomllib
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from holdfast.accounts import LANGUAGES, LOCALES, MailToken, Purpose
from holdfast.bookings import Booking, Bookings, BookingState, public_id, reference
from holdfast.catalogue import Catalogue
from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from holdfast.layouts import Layout
from holdfast.notifications.notice import PERSON_KINDS, Channel, DueNotice, NoticeKind
from holdfast.notifications.person_messages import LINK, PersonMessages
from holdfast.notifications.render import (
    BUTTONS,
    Attachment,
    ComposedMessage,
    MailHeaders,
    MessageData,
    SeatName,
    Templates,
    TicketStub,
    build_mail,
    build_message_id,
    compose_message,
    parse_sender,
    render_html,
)
from holdfast.notifications.sample_data import SAMPLE, SAMPLE_SEATS, SAMPLE_SHOW, SAMPLE_TICKET
from holdfast.notifications.senders import OutgoingMessage
from holdfast.notifications.store import Q
from holdfast.tickets import (
    Codes,
    IssuedTicket,
    Tickets,
    TicketShow,
    calendar_file,
    png,
    ticket_texts_for,
)

PDF, ICS = "application/pdf", "text/calendar"
TICKETS_SHOWN_MAX = 10  # pictures in one message; the PDF has all tickets


class Composer:
    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        bookings: Bookings,
        tickets: Tickets,
        persons: PersonMessages,
        config: Config,
    ) -> None:
        self._postgres = postgres
        self._persons = persons
        self._catalogue = catalogue
        self._bookings = bookings
        self._tickets = tickets
        self._config = config

    @property
    def _base(self) -> str | None:
        """None: without a public URL a mail has no links. The demo's mail page uses relative links."""
        base = self._config.public_url.rstrip("/")
        return base if base or not self._config.mail_url else None

    async def warm_up(self) -> None:
        """Load fonts, texts and templates now, so that the first mail is not delayed."""
        for locale in load_templates().words:
            sample_html(sample_message(NoticeKind.TICKETS, locale, load_templates()), load_templates())
        await self._tickets.printer.print(SAMPLE_SHOW, [SAMPLE_TICKET])

    async def compose(self, due: DueNotice) -> ComposedMessage | None:
        """None: the notice no longer applies."""
        if due.kind in PERSON_KINDS:
            contents = await self._persons.contents(due, self._base)
        else:
            contents = await self._contents(due)
        return compose_message(due.kind, contents, due.locale, load_templates()) if contents else None

    async def build_outgoing(self, due: DueNotice, message: ComposedMessage) -> OutgoingMessage:
        """A complete mail, or the subject as a short text."""
        name, address = parse_sender(self._config.mail_from)
        if not parse_sender(self._config.mail_from or "<>")[0]:  # the environment names no sender
            name = await self._postgres.fetchval(Q.house_name) or name
        known: dict[str, Any] = {"kind": due.kind, "account_id": due.account_id, "address": due.address}
        known |= {"notice_id": due.id, "key": f"notice-{due.id}-{due.round}", "locale": message.locale}
        if due.channel is not Channel.MAIL:
            link = next((stub.link for _, stub in message.stubs if stub.link), message.link)
            text = f"{message.subject} {link}".strip()
            return OutgoingMessage(text=text, **known)
        chosen = await self._postgres.fetchrow(Q.sender_of_show, due.show_id)
        headers = MailHeaders(
            message_id=build_message_id(due.id, due.written_at, due.round, address),
            sent_at=due.written_at,
            from_name=chosen["from_name"] if chosen else name,
            from_address=address,
            to_name=due.name,
            to_address=due.address,
            reply_to=chosen["reply_to"] if chosen else "",
        )
        mail = build_mail(message, headers, load_templates()).as_bytes()
        return OutgoingMessage(text=message.subject, mail=mail, **known)

    async def _contents(self, due: DueNotice) -> MessageData | None:
        occasion = await self._tickets.occasion(due.show_id)
        contents = await self._with_link(due, replace(_of_show(due, occasion), base=self._base))
        match due.kind:
            case NoticeKind.HOLD_LAPSING | NoticeKind.DECLINED | NoticeKind.WAITLIST_OFFER:
                return await self._while_held(due, contents)
            case NoticeKind.QUEUE_TURN:
                return await self._while_called(due, contents)
            case NoticeKind.HOLD_LAPSED if (booking := await self._booking(due)) and booking.is_offer:
                return None  # waitlist_ended says it
            case NoticeKind.TICKETS:
                return await self._with_tickets(due, contents, occasion)
            case NoticeKind.TICKET_GIVEN | NoticeKind.TICKET_GOT | NoticeKind.TICKET_TAKEN_BACK:
                return await self._of_transfer(due, contents, occasion)
            case NoticeKind.SHOW_CHANGED:
                return await self._of_move(due, contents, occasion)
            case NoticeKind.SHOW_CANCELLED:
                return replace(contents, enclosures=[await self._calendar(due, occasion, is_off=True)])
        return replace(contents, seats=await self._seats(due.show_id, due.body.get("seats", ())))

    async def _with_link(self, due: DueNotice, contents: MessageData) -> MessageData:
        """A guest opens the booking on any device by the link; an account signs in."""
        target = BUTTONS.get(due.kind, ("", ""))[1]
        if target != "booking_path" or due.account_id is None or due.number is None or self._base is None:
            return contents
        booking, person = await self._booking(due), await self._postgres.fetchrow(Q.person, due.account_id)
        if person is None or not person["is_guest"] or booking is None or booking.owner_id != person["id"]:
            return contents
        token = MailToken(
            purpose=Purpose.BOOKING,
            email=due.address,
            account_id=due.account_id,
            show_id=due.show_id,
            number=due.number,
        )
        return replace(contents, booking_path=LINK + await self._persons.links.issue(token))

    async def _while_held(self, due: DueNotice, contents: MessageData) -> MessageData | None:
        """None: the booking is no longer held."""
        booking = await self._booking(due)
        left_s = (booking.expires_at - datetime.now(UTC)).total_seconds() if booking else 0.0
        if booking is None or booking.state is not BookingState.HELD or left_s <= 0:
            # A buyer who has paid meanwhile must not get a notice that the payment was declined.
            has_lapsed = booking is not None and booking.state in (BookingState.HELD, BookingState.EXPIRED)
            return contents if due.kind is NoticeKind.DECLINED and has_lapsed else None
        return replace(
            contents,
            seats=await self._seats(due.show_id, booking.seats),
            amount_minor=booking.amount_minor,
            currency=booking.currency,
            until=booking.expires_at,
            minutes=max(1, round(left_s / 60)),
        )

    async def _while_called(self, due: DueNotice, contents: MessageData) -> MessageData | None:
        """None: the turn is over, or the person has come in."""
        ends_at = await self._postgres.fetchval(
            Q.turn_of_person, due.show_id, due.body["opening"], due.account_id
        )
        if ends_at is None:
            return None
        left_s = (ends_at - datetime.now(UTC)).total_seconds()
        return replace(contents, until=ends_at, minutes=max(1, int(left_s / 60)))

    async def _with_tickets(
        self, due: DueNotice, contents: MessageData, occasion: TicketShow
    ) -> MessageData | None:
        booking = await self._booking(due)
        found = await self._tickets.of_booking(due.show_id, due.number or 0)
        own = [one for one in found if one.is_of(due.account_id or 0) and one.voided_at is None]
        if booking is None or not own:
            return None
        if booking.owner_id != due.account_id:  # got one of its tickets; the booking is not theirs
            contents = replace(contents, reference="", booking_path="")
        return replace(
            await self._with(due, contents, occasion, own, booking),
            amount_minor=booking.amount_minor if len(own) == len(booking.seats) else 0,
            currency=booking.currency,
        )

    async def _with(
        self,
        due: DueNotice,
        contents: MessageData,
        occasion: TicketShow,
        tickets: list[IssuedTicket],
        booking: Booking | None,
    ) -> MessageData:
        """With these tickets: as pictures, as a PDF and in a calendar."""
        layout = (await self._catalogue.show_on_sale(due.show_id)).layout
        enclosures = []
        if any(one.codes is not Codes.LIVE for one in tickets):
            paper = await self._tickets.paper(occasion, tickets, booking, _ticket_locale(due))
            enclosures.append(Attachment("tickets.pdf", PDF, paper))
        labels = [layout.labels[one.seat] for one in tickets]
        enclosures.append(await self._calendar(due, occasion, labels))
        return replace(
            contents,
            seats=[_named(layout, one.seat) for one in tickets],
            stubs=[await self._stub(one, layout) for one in tickets[:TICKETS_SHOWN_MAX]],
            enclosures=enclosures,
        )

    async def _of_transfer(
        self, due: DueNotice, contents: MessageData, occasion: TicketShow
    ) -> MessageData | None:
        serial, edition = due.body["serial"], due.body["edition"]
        ticket = await self._tickets.find(due.show_id, serial)
        people = await self._postgres.fetchrow(Q.giver_and_getter, due.show_id, serial, edition)
        if ticket is None or people is None:
            return None
        if due.kind is NoticeKind.TICKET_GIVEN:
            seats = await self._seats(due.show_id, [ticket.seat])
            return replace(contents, seats=seats, other=people["getter"])
        contents = replace(contents, other=people["giver"] or "", reference="", booking_path="")
        if due.kind is NoticeKind.TICKET_TAKEN_BACK:
            return replace(contents, seats=await self._seats(due.show_id, [ticket.seat]))
        if ticket.edition != edition or ticket.voided_at is not None or ticket.owner_email is None:
            return None  # transferred again, taken back, or accepted already
        seats = await self._seats(due.show_id, [ticket.seat])
        return replace(contents, seats=seats, link_path=await self._claim_path(due, ticket))

    async def _claim_path(self, due: DueNotice, ticket: IssuedTicket) -> str:
        """Of the link that accepts a ticket: until then no code is shown."""
        if self._base is None:
            return ""
        token = MailToken(
            purpose=Purpose.CLAIM,
            email=due.address,
            show_id=ticket.show_id,
            number=ticket.serial,
            edition=ticket.edition,
        )
        return LINK + await self._persons.links.issue(token)

    async def _of_move(
        self, due: DueNotice, contents: MessageData, occasion: TicketShow
    ) -> MessageData | None:
        if occasion.cancelled:
            return None
        found = await self._tickets.of_booking(due.show_id, due.number or 0)
        layout = (await self._catalogue.show_on_sale(due.show_id)).layout
        labels = [layout.labels[one.seat] for one in found if one.is_of(due.account_id or 0)]
        return replace(
            contents,
            starts_before=datetime.fromisoformat(due.body["starts_before"]),
            enclosures=[await self._calendar(due, occasion, labels)],
        )

    async def _calendar(
        self, due: DueNotice, occasion: TicketShow, labels: list[str] | None = None, *, is_off: bool = False
    ) -> Attachment:
        texts = ticket_texts_for(_ticket_locale(due))
        file = calendar_file(
            occasion, due.number or 0, labels or [], texts, is_off=is_off, now=due.written_at
        )
        return Attachment("tickets.ics", ICS, file)

    async def _stub(self, ticket: IssuedTicket, layout: Layout) -> TicketStub:
        link, base = await self._tickets.link(ticket), self._base
        code = await self._tickets.fixed_code(ticket) if ticket.codes is Codes.FIXED else None
        return TicketStub(
            seat=_named(layout, ticket.seat),
            picture=png(code) if code else None,
            link="" if base is None else f"{base}/tickets/{link}",
        )

    async def _booking(self, due: DueNotice) -> Booking | None:
        return None if due.number is None else await self._bookings.booking(due.show_id, due.number)

    async def _seats(self, show_id: int, seats: Any) -> list[SeatName]:
        layout = (await self._catalogue.show_on_sale(show_id)).layout
        return [_named(layout, seat) for seat in seats]


def _named(layout: Layout, index: int) -> SeatName:
    seat = layout.seat(index)
    return SeatName(seat.section, seat.row, seat.number)


def _of_show(due: DueNotice, occasion: TicketShow) -> MessageData:
    at = due.body.get("at")
    return MessageData(
        name=due.name,
        title=occasion.title,
        where=[occasion.hall, occasion.venue, occasion.address, occasion.city],
        starts_at=occasion.starts_at,
        zone=occasion.starts_local.tzinfo or UTC,
        reference=reference(due.show_id, due.number) if due.number is not None else "",
        booking_path=f"/bookings/{public_id(due.show_id, due.number)}" if due.number is not None else "",
        show_path=f"/shows/{due.show_id}",
        queue_path=f"/shows/{due.show_id}/queue",
        waitlist_path=f"/shows/{due.show_id}/waitlist",
        amount_minor=due.body.get("amount_minor", 0),
        currency=due.body.get("currency", ""),
        reason=due.body.get("reason") or "",
        is_suspended=due.body.get("tickets_suspended", False),
        at=datetime.fromisoformat(at) if at else None,
    )


def sample_message(kind: NoticeKind, locale: str, templates: Templates) -> ComposedMessage:
    from babel.dates import get_timezone  # imported lazily, as in money.py

    picture = png("a sample: it opens no door")
    seats = SAMPLE_SEATS[:1] if kind.startswith("ticket_") else SAMPLE_SEATS
    has_tickets = kind is NoticeKind.TICKETS
    stubs = (
        [TicketStub(seat=seat, picture=picture, link="/tickets/") for seat in seats] if has_tickets else []
    )
    contents = replace(SAMPLE, seats=seats, stubs=stubs, zone=get_timezone(SAMPLE_SHOW.timezone))
    return compose_message(kind, contents, locale, templates)


def sample_html(message: ComposedMessage, templates: Templates) -> str:
    return render_html(message, templates, [picture_url(stub.picture or b"") for _, stub in message.stubs])


def picture_url(picture: bytes) -> str:
    return "data:image/png;base64," + b64encode(picture).decode()


FOLDER = resources.files("holdfast.notifications") / "templates"


@cache
def load_templates() -> Templates:
    from jinja2 import Environment, StrictUndefined

    # HTML pages escape every value, because users typed many of them; plain text needs no escaping.
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    texts = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return Templates(
        words={name: tomllib.loads(_read(f"{name}.toml")) for name in LANGUAGES},
        html=pages.from_string(_read("message.html")),
        text=texts.from_string(_read("message.txt")),
        style=_read("message.css").strip(),
    )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _ticket_locale(due: DueNotice) -> str:
    """The recipient's language, in its first region; English for a language that tickets do not speak."""
    return LOCALES.get(due.locale, LOCALES["en"])[0]
