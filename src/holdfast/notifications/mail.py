"""A letter as a mail (RFC 5322, MIME). No I/O.

    multipart/mixed
    ├── multipart/alternative
    │   ├── text/plain                always, and enough by itself
    │   └── multipart/related
    │       ├── text/html             no script, no picture from elsewhere
    │       └── image/png …           the codes, by Content-ID
    ├── application/pdf
    └── text/calendar

Everything about a mail that could differ from one try to the next (its id, its date) is made from the
notice, so that a mail that is sent twice after a crash is the same mail.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr

from holdfast.notifications.message import Letter, Stationery, html_of, plain, text_of

# ASCII on the wire: no server on the way has to know 8BITMIME. A header that is none raises ValueError.
POLICY = SMTP.clone(cte_type="7bit")
NO_SENDER = "Holdfast <tickets@holdfast.invalid>"  # on letters that are only kept
NAME_MAX = 80
SPECIAL = str.maketrans(dict.fromkeys('()<>[]:;@\\,."', " "))  # they have a meaning in an address line


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    message_id: str
    sent_at: datetime
    from_name: str
    from_address: str
    to_name: str
    to_address: str
    reply_to: str = ""


def mail_of(letter: Letter, envelope: Envelope, stationery: Stationery) -> EmailMessage:
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
    message.set_content(text_of(letter, stationery))
    ids = [f"code-{number}@{envelope.message_id.strip('<>')}" for number in range(len(letter.stubs))]
    message.add_alternative(html_of(letter, stationery, [f"cid:{one}" for one in ids]), subtype="html")
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


def message_id(notice_id: int, written_at: datetime, nth: int, address: str) -> str:
    """The same for every try of the nth round: who gets it twice can tell."""
    again = f".{nth}" if nth > 1 else ""
    domain = address.rpartition("@")[2] or "holdfast.invalid"
    return f"<notice.{notice_id}.{written_at:%Y%m%d%H%M%S}{again}@{domain}>"


def name_and_address(sender: str) -> tuple[str, str]:
    """Of HOLDFAST_MAIL_FROM: Box office <tickets@hall.example>, or the address alone."""
    name, address = parseaddr(sender or NO_SENDER)
    return name, address


def parts_of(message: EmailMessage) -> Iterator[EmailMessage]:
    """Everything in it that is no container, in order."""
    for part in message.walk():
        assert isinstance(part, EmailMessage)
        if not part.is_multipart():
            yield part


def _address(name: str, address: str) -> Address:
    """A name is for the eye: what has a meaning in an address line is left out of it."""
    return Address(" ".join(plain(name).translate(SPECIAL).split())[:NAME_MAX], addr_spec=address)
