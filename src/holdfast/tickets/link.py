"""The address of one ticket's page: whoever has it may see the ticket. No I/O.

It goes to the owner alone and works without signing in, as a ticket in a mail must. It names an edition, so
it dies when the ticket changes hands; it is sealed with a key of ours, so that nobody finds one by counting.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from struct import pack, unpack

from holdfast.tickets.errors import NoSuchTicket
from holdfast.tickets.ticket import Ticket, TicketKey

FORM = ">BQQI"
SEAL_BYTES = 15
LINK_CHARACTERS = 48


def link_of(key: TicketKey, ticket: Ticket) -> str:
    plain = pack(FORM, key.key_id, ticket.show_id, ticket.serial, ticket.edition)
    return urlsafe_b64encode(plain + _seal(key, plain)).decode()


def read_link(text: str, keys: Mapping[int, TicketKey]) -> Ticket:
    """The ticket it names; whatever is no link of ours is nobody's ticket."""
    if len(text) != LINK_CHARACTERS or not text.isascii():
        raise NoSuchTicket
    try:
        raw = urlsafe_b64decode(text)
    except ValueError:
        raise NoSuchTicket from None
    if len(raw) * 4 != LINK_CHARACTERS * 3:
        raise NoSuchTicket
    plain, seal = raw[:-SEAL_BYTES], raw[-SEAL_BYTES:]
    key = keys.get(plain[0])
    if key is None or not hmac.compare_digest(seal, _seal(key, plain)):
        raise NoSuchTicket
    _, show_id, serial, edition = unpack(FORM, plain)
    return Ticket(show_id, serial, edition)


def _seal(key: TicketKey, plain: bytes) -> bytes:
    return hmac.digest(key.secret, b"holdfast link\0" + plain, "sha256")[:SEAL_BYTES]
