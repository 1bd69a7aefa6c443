"""API keys: how one looks, what requests and responses say about it. No I/O.

    hfk_  8 characters  30 characters  6 characters
    ───────────────────
      shown in lists       secret        checksum of all before it

The fixed beginning and the checksum let a secret scanner find a key that was published, without false alarms:
`hfk_[0-9A-Za-z]{44}`. The checksum protects nothing: it saves a look-up for what cannot be a key.
"""

import string
import zlib
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.organisations.organisation import OrganisationName, Rights
from holdfast.web.caller import KEY_PREFIX

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 38  # 226 bits: no hash needs to be slow to protect it
CHECKSUM_LENGTH = 6
KEY_LENGTH = len(KEY_PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH
SHOWN_LENGTH = len(KEY_PREFIX) + 8
OVERLAP_MAX_H = 168

Moment = Annotated[datetime, Meta(tz=True)]


def build_key(random: Iterable[str]) -> str:
    """Of RANDOM_LENGTH characters of ALPHABET."""
    text = KEY_PREFIX + "".join(random)
    return text + _checksum(text)


def shown_part(key: str) -> str:
    return key[:SHOWN_LENGTH]


def is_well_formed(text: str) -> bool:
    if len(text) != KEY_LENGTH or not text.startswith(KEY_PREFIX) or not text.isascii():
        return False
    return _checksum(text[:-CHECKSUM_LENGTH]) == text[-CHECKSUM_LENGTH:]


def _checksum(text: str) -> str:
    rest, found = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        found = ALPHABET[digit] + found
    return found


# ── for requests and responses ────────────────────────────────────────────────────────


class NewKey(Struct, forbid_unknown_fields=True, frozen=True):
    name: OrganisationName  # what it is for
    rights: Rights
    expires_at: Moment | None = None  # none: it works until it is revoked


class KeyRotation(Struct, forbid_unknown_fields=True, frozen=True):
    overlap_h: Annotated[int, Meta(ge=0, le=OVERLAP_MAX_H)] = 24  # the secret before works so long


class KeySecret(Struct, frozen=True, kw_only=True):
    prefix: str  # its first characters
    created_at: datetime
    ends_at: datetime | None  # after a rotation


class KeyPage(Struct, frozen=True, kw_only=True):
    key_id: int
    name: str
    rights: list[str]
    created_by: int  # account
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None  # to some minutes
    secrets: list[KeySecret]  # newest first; two during a rotation


class ListedKey(Struct, frozen=True, kw_only=True):
    """A secret of a key, for who runs the house."""

    prefix: str
    key_id: int
    organisation_id: int
    organisation: str
    name: str
    rights: list[str]
    expires_at: datetime | None
    last_used_at: datetime | None


class CreatedKey(Struct, frozen=True):
    key: KeyPage
    secret: str  # shown only now


class KeyList(Struct, frozen=True):
    keys: list[KeyPage]
