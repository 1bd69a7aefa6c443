"""The code on a ticket: a few signed bytes that a gate can check by itself. No I/O.

    version │ key id │ show │ serial │ edition │ [ tag 5 ] │ signature 64
       1        1      ─── varints, shortest form ───

As text it is base 32 in capitals: QR codes have a mode for those (11 bits for two characters), and a scanner
that types like a keyboard gets them right on most layouts. About 122 characters: a QR of 37 modules (41
for live codes and from show 16 384 on).

- A code has one spelling. Another spelling of the same bytes is refused, so nothing can be changed unseen.
- The signature is Ed25519 over a prefix of its own: nothing else we sign is a ticket, and no ticket is a
  token.
- The key is looked up by its id among ours; keys are never deleted, so that old tickets stay valid (T1),
  unless the key was revoked: then its codes are refused by name.
- `edition` is raised when a ticket changes hands: the code of the edition before opens nothing any more.
- A *live* code carries a tag of the current half minute, from a secret that only the phone it was given to,
  the server and gates with a pack know: a picture of it goes stale (attack 28).
"""

import hmac
import re
from base64 import b32encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from struct import pack, unpack

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast.tickets.errors import BadCode, NoSuchTicket

PREFIX = b"holdfast ticket\0"
SIGNATURE_BYTES = 64
TAG_BYTES = 5
SECRET_BYTES = 32
STEP_S = 30  # a live code changes this often
STEPS_OFF_MAX = 1  # and is good one step earlier and later: clocks differ, people are slow
NUMBER_MAX = 2**63 - 1  # what PostgreSQL can hold
EDITION_MAX = 2**31 - 1
# The longest one there can be has 168 letters.
SPELLING = re.compile("[A-Z2-7]{100,200}")
DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghijklmnopqrstuv")


class Version(IntEnum):
    FIXED = 1
    LIVE = 2


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a code says, and what our signature is on."""

    show_id: int
    serial: int
    edition: int


@dataclass(frozen=True, slots=True)
class Code:
    """A code whose signature is good. `tag` is None on a fixed one."""

    ticket: Ticket
    key_id: int
    tag: bytes | None


@dataclass(frozen=True, slots=True)
class TicketKey:
    """Signs tickets; `secret` is where live codes come from."""

    key_id: int  # 1 … 255
    private: bytes
    secret: bytes
    signs_from: float  # epoch seconds; every process knows it by then
    is_revoked: bool = False  # at every show

    @property
    def public(self) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.private).public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.private).sign(message)


def signing_key(keys: Mapping[int, TicketKey], now: float) -> TicketKey:
    """The youngest key whose time has come; the oldest when our clock is behind all of them."""
    by_age = sorted(keys.values(), key=lambda key: (key.signs_from, key.key_id))
    return next((key for key in reversed(by_age) if key.signs_from <= now), by_age[0])


def fixed_code(key: TicketKey, ticket: Ticket) -> str:
    """The code that is good until the ticket is used, given back or given away."""
    payload = _payload(Version.FIXED, key.key_id, ticket)
    return _encode_text(payload + key.sign(PREFIX + payload))


def live_code(key: TicketKey, ticket: Ticket, secret: bytes, now: float) -> str:
    """The code of this half minute. The tag is outside of the signature: phones and gates can make it."""
    payload = _payload(Version.LIVE, key.key_id, ticket)
    return _encode_text(payload + build_tag(secret, ticket, int(now // STEP_S)) + key.sign(PREFIX + payload))


def read_code(text: str, keys: Mapping[int, bytes]) -> Code:
    """The code, if one of these public keys (by id) signed it. Whatever else is sent is a BadCode."""
    raw = _decode_text(text)
    if len(raw) < 2 or raw[0] not in (Version.FIXED, Version.LIVE):
        raise BadCode
    key = keys.get(raw[1])
    tag_bytes = TAG_BYTES if raw[0] == Version.LIVE else 0
    payload, signature = raw[: -SIGNATURE_BYTES - tag_bytes], raw[-SIGNATURE_BYTES:]
    if key is None or len(raw) <= SIGNATURE_BYTES + tag_bytes:
        raise BadCode
    ticket = _ticket(payload)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, PREFIX + payload)
    except InvalidSignature:
        raise BadCode from None
    tag = raw[-SIGNATURE_BYTES - tag_bytes : -SIGNATURE_BYTES] if tag_bytes else None
    return Code(ticket, raw[1], tag)


def show_secret(secret: bytes, show_id: int) -> bytes:
    """What a gate of this show needs to check live codes, and no other show's."""
    return _derive(secret, b"show" + show_id.to_bytes(8, "big"))


def phone_secret(of_show: bytes, ticket: Ticket, binding: int) -> bytes:
    """For one phone: the next one the ticket is bound to gets another, and this one is worth nothing."""
    numbers = (ticket.serial, ticket.edition, binding)
    return _derive(of_show, b"phone" + b"".join(n.to_bytes(8, "big") for n in numbers))


def build_tag(secret: bytes, ticket: Ticket, step: int) -> bytes:
    numbers = (ticket.show_id, ticket.serial, ticket.edition, step)
    return hmac.digest(secret, b"".join(n.to_bytes(8, "big") for n in numbers), "sha256")[:TAG_BYTES]


def is_live(code: Code, secret: bytes, now: float) -> bool:
    """Whether the tag is of now, or of a step beside it."""
    step = int(now // STEP_S)
    near = range(max(0, step - STEPS_OFF_MAX), step + STEPS_OFF_MAX + 1)
    return code.tag is not None and any(
        hmac.compare_digest(code.tag, build_tag(secret, code.ticket, one)) for one in near
    )


def _payload(version: Version, key_id: int, ticket: Ticket) -> bytes:
    assert 1 <= key_id <= 255
    numbers = (ticket.show_id, ticket.serial, ticket.edition)
    return bytes((version, key_id)) + b"".join(_varint(number) for number in numbers)


def _ticket(payload: bytes) -> Ticket:
    at, numbers = 2, []
    for most in (NUMBER_MAX, NUMBER_MAX, EDITION_MAX):
        number, at = _read_varint(payload, at)
        if not 1 <= number <= most:
            raise BadCode
        numbers.append(number)
    if at != len(payload):
        raise BadCode
    return Ticket(*numbers)


def _varint(number: int) -> bytes:
    assert number >= 0
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """(number, where it ends). Nine bytes hold what PostgreSQL can; the last one is never an idle 0."""
    number = 0
    for place in range(9):
        if at + place >= len(raw):
            raise BadCode
        byte = raw[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128:
            if byte == 0:
                raise BadCode
            return number, at + place + 1
    raise BadCode


def _encode_text(raw: bytes) -> str:
    return b32encode(raw).decode("ascii").rstrip("=")


def _decode_text(text: str) -> bytes:
    """base64.b32decode would take other spellings too, and is as slow as the signature."""
    if SPELLING.fullmatch(text) is None:
        raise BadCode
    length, spare = divmod(len(text) * 5, 8)
    number = int(text.translate(DIGITS), 32)
    # A letter too many, or bits of the last one that say nothing.
    if spare >= 5 or number & ((1 << spare) - 1):
        raise BadCode
    return (number >> spare).to_bytes(length, "big")


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), SECRET_BYTES, salt=None, info=b"holdfast live code\0" + purpose).derive(secret)


FORM = ">BQQI"
SEAL_BYTES = 15
LINK_CHARACTERS = 48


def build_link(key: TicketKey, ticket: Ticket) -> str:
    plain = pack(FORM, key.key_id, ticket.show_id, ticket.serial, ticket.edition)
    return urlsafe_b64encode(plain + _seal(key, plain)).decode()


def read_link(text: str, keys: Mapping[int, TicketKey]) -> Ticket:
    """The ticket that a link names. Raises NoSuchTicket for any other text."""
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
