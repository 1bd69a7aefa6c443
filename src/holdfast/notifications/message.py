"""A notice in words: subject, heading, lines, details, tickets; in the reader's language. No I/O.

Words come from a table for each language (templates/*.toml), the page around them from one template for all:
whoever translates sees sentences and nothing else, and a language cannot look different from another. Babel
says which plural a number wants, and how dates, times and amounts are written.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING, Any

from holdfast.money import format_money
from holdfast.notifications.notice import NoticeKind

if TYPE_CHECKING:  # as in money.py: whoever writes no letters does without them
    from jinja2 import Template

DEFAULT_LOCALE = "en"
# How a language writes dates and amounts, where its own name alone means a country that is not meant.
FORMAT_LOCALES = {"en": "en_GB"}

Words = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Templates:
    """Everything a letter is written with: words by language, the page as HTML and as text."""

    words: Mapping[str, Words]
    html: "Template"
    text: "Template"
    style: str  # of the page: whoever shows it allows this one and no other

    def locale(self, wanted: str) -> str:
        return wanted if wanted in self.words else DEFAULT_LOCALE


@dataclass(frozen=True, slots=True)
class SeatName:
    section: str
    row: str  # empty: a standing place
    number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketStub:
    """A ticket in a letter: its seat, its code as a picture where a fixed one opens the door, its page."""

    seat: SeatName
    picture: bytes | None = None  # PNG
    link: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageData:
    """What there is to say; which of it is said is a matter of the notice's kind."""

    name: str
    title: str
    where: Sequence[str]
    starts_at: datetime
    zone: tzinfo  # where it takes place
    reference: str = ""
    seats: Sequence[SeatName] = ()
    amount_minor: int = 0
    currency: str = ""
    until: datetime | None = None  # of a hold
    minutes: int = 0  # that are left of it
    reason: str = ""  # the bank's
    at: datetime | None = None  # when money went back
    starts_before: datetime | None = None
    other: str = ""  # who a ticket comes from or goes to
    base: str | None = None  # where we are on the web; None: nowhere that could be linked to
    booking_path: str = ""
    show_path: str = ""
    stubs: Sequence[TicketStub] = ()
    enclosures: Sequence[Attachment] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedMessage:
    locale: str
    subject: str
    greeting: str
    heading: str
    lines: Sequence[str]
    details: Sequence[tuple[str, str]]
    stubs: Sequence[tuple[str, TicketStub]]  # with their seats in words
    open_word: str  # on the link to a ticket's page
    code_word: str  # instead of a picture, for who cannot see it
    foot: str
    link: str = ""  # to where there is something to do or to see
    link_word: str = ""
    enclosures: Sequence[Attachment] = field(default=())


# What is listed beneath the lines, in this order.
DETAILS: Mapping[NoticeKind, tuple[str, ...]] = {
    NoticeKind.HOLD_LAPSING: ("when", "where", "seats", "amount", "until"),
    NoticeKind.HOLD_LAPSED: ("when", "where", "seats"),
    NoticeKind.TICKETS: ("when", "where", "seats", "amount", "booking"),
    NoticeKind.DECLINED: ("when", "where", "amount", "reason", "until"),
    NoticeKind.LATE_BOOKED: ("when", "where", "amount", "booking"),
    NoticeKind.LATE_REFUNDED: ("when", "where", "amount", "booking"),
    NoticeKind.REFUNDED: ("amount", "day", "seats", "booking"),
    NoticeKind.SHOW_CHANGED: ("before", "when", "where", "booking"),
    NoticeKind.SHOW_CANCELLED: ("when", "where", "booking"),
    NoticeKind.TICKET_GIVEN: ("when", "where", "seats", "booking"),
    NoticeKind.TICKET_GOT: ("when", "where", "seats"),
}


# What the button of a letter says, and where it leads; INSTEAD is for letters that say `otherwise`.
BUTTONS: Mapping[NoticeKind, tuple[str, str]] = {
    NoticeKind.HOLD_LAPSING: ("pay", "booking_path"),
    NoticeKind.HOLD_LAPSED: ("choose", "show_path"),
    NoticeKind.DECLINED: ("pay", "booking_path"),
    NoticeKind.LATE_BOOKED: ("see", "booking_path"),
    NoticeKind.LATE_REFUNDED: ("choose", "show_path"),
    NoticeKind.REFUNDED: ("see", "booking_path"),
    NoticeKind.SHOW_CHANGED: ("see", "booking_path"),
}
OTHERWISE_BUTTONS: Mapping[NoticeKind, tuple[str, str]] = {
    NoticeKind.DECLINED: ("choose", "show_path"),
    NoticeKind.TICKET_GOT: ("sign_up", "sign_up_path"),
}
SIGN_UP = "/sign-up"


def compose_message(
    kind: NoticeKind, contents: MessageData, locale: str, stationery: Templates
) -> ComposedMessage:
    locale = stationery.locale(locale)
    words, common = stationery.words[locale][kind], stationery.words[locale]["common"]
    values = _values(contents, locale, common)
    count = contents.minutes if kind is NoticeKind.HOLD_LAPSING else len(contents.stubs or contents.seats)

    def say(word: Any) -> str:
        return fill_in(word, values | {"count": str(count)}, count, locale)

    is_otherwise = _is_otherwise(kind, contents)
    details = [(common[name], values[name]) for name in DETAILS[kind] if values[name]]
    link_word, link = _button(kind, contents, is_otherwise)
    return ComposedMessage(
        locale=locale,
        subject=to_one_line(say(words["subject"])),
        greeting=say(common["greeting"] if contents.name else common["greeting_nobody"]),
        heading=say(words["heading"]),
        lines=[say(line) for line in words["otherwise" if is_otherwise else "lines"]],
        details=details,
        stubs=[(describe_seat(stub.seat, common), stub) for stub in contents.stubs],
        open_word=common["open"],
        code_word=common["code"],
        foot=common["foot"],
        link=link,
        link_word=common[link_word] if link else "",
        enclosures=contents.enclosures,
    )


def _is_otherwise(kind: NoticeKind, contents: MessageData) -> bool:
    """A ticket that waits for whoever signs up by this address; a payment that left nothing to pay for."""
    is_waiting = kind is NoticeKind.TICKET_GOT and not contents.stubs
    return is_waiting or (kind is NoticeKind.DECLINED and contents.until is None)


def _button(kind: NoticeKind, contents: MessageData, is_otherwise: bool) -> tuple[str, str]:
    """A word and an address; none: there is nothing to do, or nowhere to do it."""
    found = (OTHERWISE_BUTTONS if is_otherwise else BUTTONS).get(kind)
    paths = {"booking_path": contents.booking_path, "show_path": contents.show_path, "sign_up_path": SIGN_UP}
    if found is None or contents.base is None or not paths[found[1]]:
        return "", ""
    return found[0], contents.base + paths[found[1]]


def fill_in(word: Any, values: Mapping[str, str], count: int, locale: str) -> str:
    """A sentence with its values. One that has forms for numbers is a table: one = …, other = …"""
    if not isinstance(word, str):
        from babel import Locale

        word = word.get(Locale.parse(locale).plural_form(count), word["other"])
    return str(word.format_map(values))


def render_html(letter: ComposedMessage, stationery: Templates, pictures: Sequence[str]) -> str:
    """The page; `pictures` are the addresses of the stubs' codes, in order."""
    return stationery.html.render(letter=letter, style=stationery.style, pictures=pictures)


def render_text(letter: ComposedMessage, stationery: Templates) -> str:
    return stationery.text.render(letter=letter).strip() + "\n"


def to_one_line(text: str) -> str:
    """One line, whatever somebody typed: nothing in it can begin another header, or turn the line around."""
    kept = (letter if unicodedata.category(letter) not in ("Cc", "Cs") else " " for letter in text)
    return " ".join("".join(one for one in kept if one not in DIRECTION_MARKS).split())


DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def describe_seat(seat: SeatName, common: Words) -> str:
    form = common["seat"] if seat.row else common["place"]
    return str(form.format(section=seat.section, row=seat.row, number=seat.number))


def format_moment(at: datetime, zone: tzinfo, locale: str) -> str:
    """Friday 20 November 2026, 19:30 (Central European Standard Time), where it takes place."""
    from babel.dates import format_date, format_time, get_timezone_name

    local = at.astimezone(zone)
    written = FORMAT_LOCALES.get(locale, locale)
    name = get_timezone_name(local, locale=written)
    if name.startswith("GMT") and getattr(zone, "key", "") not in ("", "UTC"):  # Babel has no better: India
        name = get_timezone_name(zone, locale=written)
    text = f"{format_date(local, 'full', written)}, {format_time(local, 'HH:mm', locale=written)}"
    return f"{text}, {name}" if "(" in name else f"{text} ({name})"


def _values(contents: MessageData, locale: str, common: Words) -> dict[str, str]:
    from babel.dates import format_date

    written = FORMAT_LOCALES.get(locale, locale)

    def when(at: datetime | None) -> str:
        return format_moment(at, contents.zone, locale) if at else ""

    amount = format_money(contents.amount_minor, contents.currency, written) if contents.amount_minor else ""
    seats = [describe_seat(seat, common) for seat in contents.seats]
    return {
        "name": to_one_line(contents.name),
        "title": to_one_line(contents.title),
        "when": when(contents.starts_at),
        "before": when(contents.starts_before),
        "where": ", ".join(to_one_line(part) for part in contents.where if part),
        "seats": to_one_line("; ".join(seats)),
        "amount": amount,
        "booking": contents.reference,
        "until": when(contents.until),
        "day": format_date(contents.at, "long", written) if contents.at else "",
        "reason": to_one_line(contents.reason),
        "other": to_one_line(contents.other),
    }


# ASCII on the wire: no server on the way has to know 8BITMIME. A header that is none raises ValueError.
POLICY = SMTP.clone(cte_type="7bit")
NO_SENDER = "Holdfast <tickets@holdfast.invalid>"  # on letters that are only kept
NAME_MAX = 80
ADDRESS_SYNTAX = str.maketrans(dict.fromkeys('()<>[]:;@\\,."', " "))  # they have a meaning in an address line


@dataclass(frozen=True, slots=True, kw_only=True)
class MailHeaders:
    message_id: str
    sent_at: datetime
    from_name: str
    from_address: str
    to_name: str
    to_address: str
    reply_to: str = ""


def build_mail(letter: ComposedMessage, envelope: MailHeaders, stationery: Templates) -> EmailMessage:
    message = EmailMessage(policy=POLICY)
    message["From"] = _address(envelope.from_name, envelope.from_address)
    message["To"] = _address(envelope.to_name, envelope.to_address)
    if envelope.reply_to:
        message["Reply-To"] = _address(envelope.from_name, envelope.reply_to)
    message["Subject"] = letter.subject
    message["Date"] = format_datetime(envelope.sent_at)
    message["Message-ID"] = envelope.message_id
    # Nobody's out-of-office answers it. It is no list: there is nothing to unsubscribe from.
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(render_text(letter, stationery))
    ids = [f"code-{number}@{envelope.message_id.strip('<>')}" for number in range(len(letter.stubs))]
    message.add_alternative(render_html(letter, stationery, [f"cid:{one}" for one in ids]), subtype="html")
    *_, page = message.iter_parts()
    assert isinstance(page, EmailMessage)
    for name, (_, stub) in zip(ids, letter.stubs, strict=True):
        if stub.picture is not None:
            page.add_related(stub.picture, "image", "png", cid=f"<{name}>", disposition="inline")
    for enclosed in letter.enclosures:
        kind, _, form = enclosed.media_type.partition("/")
        message.add_attachment(enclosed.content, kind, form, filename=enclosed.name)
    message["Content-Language"] = letter.locale  # last: a part that is put around others takes no such header
    return message


def build_message_id(notice_id: int, written_at: datetime, nth: int, address: str) -> str:
    """The same for every try of the nth round: who gets it twice can tell."""
    again = f".{nth}" if nth > 1 else ""
    domain = address.rpartition("@")[2] or "holdfast.invalid"
    return f"<notice.{notice_id}.{written_at:%Y%m%d%H%M%S}{again}@{domain}>"


def parse_sender(sender: str) -> tuple[str, str]:
    """Of HOLDFAST_MAIL_FROM: Box office <tickets@hall.example>, or the address alone."""
    name, address = parseaddr(sender or NO_SENDER)
    return name, address


def leaf_parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """Everything in it that is no container, in order."""
    for part in message.walk():
        assert isinstance(part, EmailMessage)
        if not part.is_multipart():
            yield part


def _address(name: str, address: str) -> Address:
    """A name is for the eye: what has a meaning in an address line is left out of it."""
    return Address(
        " ".join(to_one_line(name).translate(ADDRESS_SYNTAX).split())[:NAME_MAX], addr_spec=address
    )
