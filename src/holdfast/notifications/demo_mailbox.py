"""A kept mail, read again: what its page shows. No I/O."""

from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from holdfast.notifications.mail import parts_of
from holdfast.notifications.sample import picture_url

HEADERS = ("From", "Reply-To", "To", "Subject", "Date", "Message-ID")


@dataclass(frozen=True, slots=True)
class KeptFile:
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class KeptMail:
    sender: str
    reader: str
    headers: list[tuple[str, str]]
    html: str  # its pictures are in it
    text: str
    text_url: str
    files: list[KeptFile]


def kept_mail(raw: bytes, address: str) -> KeptMail:
    """`address`: of its page."""
    message = _read(raw)
    html, text = message.get_body(("html",)), message.get_body(("plain",))
    assert html is not None, "every letter has a page"
    assert text is not None, "and a text"
    page = str(html.get_content())
    for part in parts_of(message):
        if part["Content-ID"] is not None:
            name = str(part["Content-ID"]).strip("<>")
            page = page.replace(f"cid:{name}", picture_url(part.get_content()))
    # In its frame, a link opens in a window of its own: the frame itself goes nowhere.
    page = page.replace("<a href=", '<a target="_blank" rel="noopener noreferrer" href=')
    files = [
        KeptFile(part.get_filename() or "file", f"{address}/files/{number}")
        for number, part in enumerate(parts_of(message))
        if part.is_attachment()
    ]
    headers = [(name, str(message[name])) for name in HEADERS if message[name] is not None]
    sender, reader = message["From"].addresses[0], message["To"].addresses[0]
    return KeptMail(
        sender.display_name or sender.addr_spec,
        str(reader),
        headers,
        page,
        str(text.get_content()),
        f"{address}/text",
        files,
    )


def file_in(raw: bytes, number: int) -> tuple[str, str, bytes] | None:
    """Name, media type and bytes of an attachment; None: it has none of this number."""
    for place, part in enumerate(parts_of(_read(raw))):
        if place == number and part.is_attachment():
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            return part.get_filename() or "file", part.get_content_type(), content
    return None


def _read(raw: bytes) -> EmailMessage:
    message = message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message
