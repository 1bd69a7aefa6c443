"""Signed places and passes: short texts that name one person, show and opening of its room. No I/O.

    way, kind │ key id │ show │ opening │ account │ number │ from │ until │ signature 64
        1         1       8       4          8         4       8      8       as base64url, 142 characters

Every field has a fixed width; the way in and the kind, four bits each, are the first of them: no two tuples
of fields have the same bytes.
The signature is Ed25519 by the keys of tickets, over a prefix of its own: no ticket is a place, and no place
a ticket. Times are seconds since 1970 by the ledger's clock.
"""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from holdfast.tickets import TicketKey
from holdfast.waitingroom.errors import (
    QueueTokenExpired,
    QueueTokenInvalid,
    QueueTokenKeyUnknown,
    QueueTokenOfOtherAccount,
    QueueTokenOfOtherShow,
)
from holdfast.waitingroom.place import WayIn

PREFIX = b"holdfast queue\0"
FORM = struct.Struct(">BBQIQIQQ")
SIGNATURE_BYTES = 64


class TokenKind(IntEnum):
    PLACE = 1
    ADMISSION = 2


# By their number, which is signed: another way gets the next one, at most 15; none is ever removed.
WAYS = (WayIn.QUEUE, WayIn.DRAW, WayIn.LATE, WayIn.ARRIVAL)


@dataclass(frozen=True, slots=True)
class QueueClaims:
    """What a signed text says."""

    kind: TokenKind
    show_id: int
    opening: int
    account_id: int
    number: int  # of the entrant
    from_s: int
    until_s: int  # 0: no end of its own
    way_in: WayIn = WayIn.QUEUE  # of passes


def signature_input(key_id: int, claims: QueueClaims) -> bytes:
    fields = (claims.show_id, claims.opening, claims.account_id, claims.number, claims.from_s, claims.until_s)
    return FORM.pack(WAYS.index(claims.way_in) << 4 | claims.kind, key_id, *fields)


def sign_claims(key: TicketKey, claims: QueueClaims) -> str:
    plain = signature_input(key.key_id, claims)
    return urlsafe_b64encode(plain + key.sign(PREFIX + plain)).decode().rstrip("=")


def read_claims(text: str, keys: Mapping[int, bytes]) -> tuple[int, QueueClaims]:
    """(Key id, claims), if one of these public keys (by id) signed them."""
    raw = _decode(text)
    plain, signature = raw[: FORM.size], raw[FORM.size :]
    first, key_id, *fields = FORM.unpack(plain)
    way, kind = divmod(first, 16)
    if kind not in (TokenKind.PLACE, TokenKind.ADMISSION) or way >= len(WAYS):
        raise QueueTokenInvalid
    if key_id not in keys:
        raise QueueTokenKeyUnknown
    try:
        Ed25519PublicKey.from_public_bytes(keys[key_id]).verify(signature, PREFIX + plain)
    except InvalidSignature:
        raise QueueTokenInvalid from None
    return key_id, replace(QueueClaims(TokenKind(kind), *fields), way_in=WAYS[way])


def check_claims(claims: QueueClaims, kind: TokenKind, show_id: int, opening: int, account_id: int) -> None:
    """For this use, show, opening and person; times are checked by the caller."""
    if claims.kind is not kind:
        raise QueueTokenInvalid
    if claims.show_id != show_id:
        raise QueueTokenOfOtherShow
    if claims.opening != opening:
        raise QueueTokenExpired
    if claims.account_id != account_id:
        raise QueueTokenOfOtherAccount


def _decode(text: str) -> bytes:
    """The bytes of the only spelling that we write; another spelling of the same bytes is refused."""
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"==")
    except ValueError:
        raise QueueTokenInvalid from None
    if len(raw) != FORM.size + SIGNATURE_BYTES or urlsafe_b64encode(raw).decode().rstrip("=") != text:
        raise QueueTokenInvalid
    return raw
