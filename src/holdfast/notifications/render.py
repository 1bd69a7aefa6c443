"""Renders a notice in the reader's language as plain text, as HTML and as a mail. No I/O.

Each language has a table of texts (templates/*.toml); one page template serves all of them. So translators
see only sentences, and the layout is the same in every language. Babel chooses plural forms and formats
dates, times and amounts.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING, Any

from holdfast.money import format_money
from holdfast.notifications.notice import PERSON_KINDS, TO_ORGANISERS, NoticeKind

if TYPE_CHECKING:  # as in money.py: imported lazily, only processes that compose messages need it
    from jinja2 import Template

DEFAULT_LOCALE = "en"
# The locale for dates and amounts, where Babel's default country of a language is not the one we want.
FORMAT_LOCALES = {"en": "en_GB"}

Words = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Templates:
    """All templates of a message: texts by language, the page as HTML and as plain text."""

    words: Mapping[str, Words]
    html: "Template"
    text: "Template"
    style: str  # of the page: the content security policy of a preview allows this style only

    def locale(self, wanted: str) -> str:
        return wanted if wanted in self.words else DEFAULT_LOCALE


@dataclass(frozen=True, slots=True)
class SeatName:
    section: str
    row: str  # empty: a standing place
    number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketStub:
    """A ticket in a message: its seat, its code as a picture if the code is fixed, and a link to its page."""

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
    """The data of a message; the kind of the notice decides which of it is shown."""

    name: str
    title: str = ""
    where: Sequence[str] = ()
    starts_at: datetime | None = None
    zone: tzinfo = UTC  # where it takes place
    reference: str = ""
    seats: Sequence[SeatName] = ()
    amount_minor: int = 0
    currency: str = ""
    until: datetime | None = None  # of a hold
    minutes: int = 0  # until the hold expires
    reason: str = ""  # the bank's, or the payer's for a dispute
    is_suspended: bool = False  # the tickets, while the payment is disputed
    at: datetime | None = None  # when money went back
    starts_before: datetime | None = None
    other: str = ""  # who a ticket comes from or goes to
    base: str | None = None  # our public URL; None: no links
    booking_path: str = ""
    show_path: str = ""
    queue_path: str = ""
    waitlist_path: str = ""
    link_path: str = ""  # of a mailed link, which works once
    email: str = ""  # where the message goes
    is_taken: bool = False  # the address to be confirmed has an account already
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
    stubs: Sequence[tuple[str, TicketStub]]  # with a description of the seat
    open_word: str  # on the link to a ticket's page
    code_word: str  # alternative text of the code's picture
    foot: str
    link: str = ""  # target of the button
    link_word: str = ""
    enclosures: Sequence[Attachment] = field(default=())


# The details listed beneath the lines, in this order.
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
    NoticeKind.TICKET_TAKEN_BACK: ("when", "where", "seats"),
    NoticeKind.QUEUE_TURN: ("when", "where"),
    NoticeKind.QUEUE_SOLD_OUT: ("when", "where"),
    NoticeKind.WAITLIST_JOINED: ("when", "where"),
    NoticeKind.WAITLIST_OFFER: ("when", "where", "seats", "amount", "until"),
    NoticeKind.WAITLIST_ENDED: ("when", "where", "seats"),
    **dict.fromkeys(PERSON_KINDS, ()),
    **dict.fromkeys(TO_ORGANISERS, ("booking", "amount", "grounds", "when", "where")),
}


# Label and target of a message's button; OTHERWISE_BUTTONS is for messages that use the text `otherwise`.
BUTTONS: Mapping[NoticeKind, tuple[str, str]] = {
    NoticeKind.HOLD_LAPSING: ("pay", "booking_path"),
    NoticeKind.HOLD_LAPSED: ("choose", "show_path"),
    NoticeKind.DECLINED: ("pay", "booking_path"),
    NoticeKind.LATE_BOOKED: ("see", "booking_path"),
    NoticeKind.LATE_REFUNDED: ("choose", "show_path"),
    NoticeKind.REFUNDED: ("see", "booking_path"),
    NoticeKind.SHOW_CHANGED: ("see", "booking_path"),
    NoticeKind.TICKETS: ("see", "booking_path"),
    NoticeKind.TICKET_GIVEN: ("see", "booking_path"),
    NoticeKind.TICKET_GOT: ("accept", "link_path"),
    NoticeKind.QUEUE_TURN: ("go_in", "queue_path"),
    NoticeKind.QUEUE_SOLD_OUT: ("join_waitlist", "waitlist_path"),
    NoticeKind.WAITLIST_JOINED: ("show", "show_path"),
    NoticeKind.WAITLIST_OFFER: ("pay", "booking_path"),
    NoticeKind.WAITLIST_ENDED: ("show", "show_path"),
    NoticeKind.CONFIRM_ADDRESS: ("confirm", "link_path"),
    NoticeKind.RESET_PASSWORD: ("reset", "link_path"),
    NoticeKind.SIGN_IN_LINK: ("sign_in", "link_path"),
    NoticeKind.INVITATION: ("invited", "link_path"),
}
OTHERWISE_BUTTONS: Mapping[NoticeKind, tuple[str, str]] = {
    NoticeKind.DECLINED: ("choose", "show_path"),
    NoticeKind.TICKET_GOT: ("accept", "link_path"),
    NoticeKind.WAITLIST_ENDED: ("show", "show_path"),
    NoticeKind.CONFIRM_ADDRESS: ("sign_in", "sign_in_path"),
}
SIGN_IN = "/sign-in"
WAITLIST_KINDS = {NoticeKind.WAITLIST_JOINED, NoticeKind.WAITLIST_OFFER, NoticeKind.WAITLIST_ENDED}
QUEUE_KINDS = {NoticeKind.QUEUE_TURN, NoticeKind.QUEUE_SOLD_OUT}
COUNTS_MINUTES = {NoticeKind.HOLD_LAPSING, NoticeKind.QUEUE_TURN}  # the others count seats


def compose_message(
    kind: NoticeKind, contents: MessageData, locale: str, templates: Templates
) -> ComposedMessage:
    locale = templates.locale(locale)
    words, common = templates.words[locale][kind], templates.words[locale]["common"]
    values = _values(contents, locale, common)
    count = contents.minutes if kind in COUNTS_MINUTES else len(contents.stubs or contents.seats)

    def fill(word: Any) -> str:
        return fill_in(word, values | {"count": str(count)}, count, locale)

    is_otherwise = _is_otherwise(kind, contents)
    details = [(common[name], values[name]) for name in DETAILS[kind] if values[name]]
    link_word, link = _button(kind, contents, is_otherwise)
    return ComposedMessage(
        locale=locale,
        subject=to_one_line(fill(words["subject"])),
        greeting=fill(common["greeting"] if contents.name else common["greeting_unnamed"]),
        heading=fill(words["heading"]),
        lines=[fill(line) for line in words["otherwise" if is_otherwise else "lines"]],
        details=details,
        stubs=[(describe_seat(stub.seat, common), stub) for stub in contents.stubs],
        open_word=common["open"],
        code_word=common["code"],
        foot=common[_foot(kind)],
        link=link,
        link_word=common[link_word] if link else "",
        enclosures=contents.enclosures,
    )


def _foot(kind: NoticeKind) -> str:
    if kind in PERSON_KINDS:
        return "foot_account"
    if kind in WAITLIST_KINDS:
        return "foot_waitlist"
    if kind in QUEUE_KINDS:
        return "foot_queue"
    return "foot_organiser" if kind in TO_ORGANISERS else "foot"


def _is_otherwise(kind: NoticeKind, contents: MessageData) -> bool:
    """Whether the text `otherwise` applies.

    The sender of a ticket is not named, a payment was declined and the hold has expired, or an address to be
    confirmed has an account, a dispute suspends nothing, or a wait ended without an offer.
    """
    match kind:
        case NoticeKind.TICKET_GOT:
            return not contents.other
        case NoticeKind.DECLINED:
            return contents.until is None
        case NoticeKind.CONFIRM_ADDRESS:
            return contents.is_taken
        case NoticeKind.CHARGEBACK_OPEN:
            return not contents.is_suspended
        case NoticeKind.WAITLIST_ENDED:
            return not contents.seats
    return False


def _button(kind: NoticeKind, contents: MessageData, is_otherwise: bool) -> tuple[str, str]:
    """The label and the URL; empty: no button."""
    found = (OTHERWISE_BUTTONS if is_otherwise else BUTTONS).get(kind)
    paths = {"booking_path": contents.booking_path, "show_path": contents.show_path, "sign_in_path": SIGN_IN}
    paths |= {"link_path": contents.link_path, "queue_path": contents.queue_path}
    paths |= {"waitlist_path": contents.waitlist_path}
    if found is None or contents.base is None or not paths[found[1]]:
        return "", ""
    return found[0], contents.base + paths[found[1]]


def fill_in(word: Any, values: Mapping[str, str], count: int, locale: str) -> str:
    """A sentence with its values filled in. A sentence with plural forms is a table: one = …, other = …"""
    if not isinstance(word, str):
        from babel import Locale

        word = word.get(Locale.parse(locale).plural_form(count), word["other"])
    return str(word.format_map(values))


def render_html(message: ComposedMessage, templates: Templates, pictures: Sequence[str]) -> str:
    """The page; `pictures` are the URLs of the stubs' codes, in order."""
    return templates.html.render(message=message, style=templates.style, pictures=pictures)


def render_text(message: ComposedMessage, templates: Templates) -> str:
    return templates.text.render(message=message).strip() + "\n"


def to_one_line(text: str) -> str:
    """User input as one line: it cannot start another mail header or change the text direction."""
    printable = (char if unicodedata.category(char) not in ("Cc", "Cs") else " " for char in text)
    return " ".join("".join(char for char in printable if char not in DIRECTION_MARKS).split())


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
        "grounds": to_one_line(contents.reason),
        "other": to_one_line(contents.other),
        "email": contents.email,
    }


# ASCII on the wire, because not every server supports 8BITMIME. An invalid header raises ValueError.
POLICY = SMTP.clone(cte_type="7bit")
NO_SENDER = "Holdfast <tickets@holdfast.invalid>"  # for mail that is stored and not sent
NAME_MAX = 80
ADDRESS_SYNTAX = str.maketrans(
    dict.fromkeys('()<>[]:;@\\,."', " ")
)  # special characters of an address header


@dataclass(frozen=True, slots=True, kw_only=True)
class MailHeaders:
    message_id: str
    sent_at: datetime
    from_name: str
    from_address: str
    to_name: str
    to_address: str
    reply_to: str = ""


def build_mail(message: ComposedMessage, headers: MailHeaders, templates: Templates) -> EmailMessage:
    mail = EmailMessage(policy=POLICY)
    mail["From"] = _address(headers.from_name, headers.from_address)
    mail["To"] = _address(headers.to_name, headers.to_address)
    if headers.reply_to:
        mail["Reply-To"] = _address(headers.from_name, headers.reply_to)
    mail["Subject"] = message.subject
    mail["Date"] = format_datetime(headers.sent_at)
    mail["Message-ID"] = headers.message_id
    # Suppresses out-of-office replies. It is not a mailing list, so it has no List-Unsubscribe header.
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(render_text(message, templates))
    ids = [f"code-{number}@{headers.message_id.strip('<>')}" for number in range(len(message.stubs))]
    mail.add_alternative(render_html(message, templates, [f"cid:{one}" for one in ids]), subtype="html")
    *_, page = mail.iter_parts()
    assert isinstance(page, EmailMessage)
    for name, (_, stub) in zip(ids, message.stubs, strict=True):
        if stub.picture is not None:
            page.add_related(stub.picture, "image", "png", cid=f"<{name}>", disposition="inline")
    for enclosed in message.enclosures:
        kind, _, form = enclosed.media_type.partition("/")
        mail.add_attachment(enclosed.content, kind, form, filename=enclosed.name)
    mail["Content-Language"] = message.locale  # last: add_alternative would move the header to an inner part
    return mail


def build_message_id(notice_id: int, written_at: datetime, nth: int, address: str) -> str:
    """The same for every try of the nth round, so that mail clients recognise a duplicate."""
    again = f".{nth}" if nth > 1 else ""
    domain = address.rpartition("@")[2] or "holdfast.invalid"
    return f"<notice.{notice_id}.{written_at:%Y%m%d%H%M%S}{again}@{domain}>"


def parse_sender(sender: str) -> tuple[str, str]:
    """Of HOLDFAST_MAIL_FROM: Box office <tickets@hall.example>, or the address alone."""
    name, address = parseaddr(sender or NO_SENDER)
    return name, address


def leaf_parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """The parts that are not containers, in order."""
    for part in message.walk():
        assert isinstance(part, EmailMessage)
        if not part.is_multipart():
            yield part


def _address(name: str, address: str) -> Address:
    """The name is only displayed, so special characters of an address header are removed from it."""
    return Address(
        " ".join(to_one_line(name).translate(ADDRESS_SYNTAX).split())[:NAME_MAX], addr_spec=address
    )
