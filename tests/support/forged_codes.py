"""Codes forged with full knowledge of valid codes and their format, but without our keys."""

import random
import string
from base64 import b32decode, b32encode
from collections.abc import Callable, Collection, Sequence

from holdfast.tickets import Ticket, TicketKey
from holdfast.tickets.ticket import PREFIX, SIGNATURE_BYTES, Version, fixed_code, live_code

ALPHABET = string.ascii_uppercase + "234567"


def raw_of(code: str) -> bytes:
    return b32decode(code + "=" * (-len(code) % 8))


def text_of(raw: bytes) -> str:
    return b32encode(raw).decode().rstrip("=")


class Forger:
    """Draws forgeries of genuine fixed codes, each another way; never one of the genuine ones."""

    def __init__(self, codes: Sequence[str], seed: int, without: Collection[str] = ()) -> None:
        self._codes = codes
        self._genuine = frozenset(codes)
        self._drawn = random.Random(seed)
        self._strangers = {
            key_id: TicketKey(key_id, self._drawn.randbytes(32), self._drawn.randbytes(32), 0.0)
            for key_id in range(1, 256)
        }
        self.ways: dict[str, Callable[[str], str]] = {
            "a letter changed": self._changed,
            "a letter dropped": self._dropped,
            "a letter added": self._added,
            "small letters": self._small,
            "cut off": self._cut,
            "padded": self._padded,
            "a bit turned": self._turned,
            "bytes overwritten": self._overwritten,
            "signed by a stranger": self._signed,
            "signed by a stranger under another key": self._under_another_key,
            "another ticket, signed by a stranger": self._another_ticket,
            "live, signed by a stranger": self._live,
            "with the signature of another": self._borrowed,
            "with the live flag": self._with_live_flag,
        }
        self._names = tuple(name for name in self.ways if name not in without)
        self._count = 0

    def next(self) -> tuple[str, str]:
        """(how it was made, the code)"""
        way = self._names[self._count % len(self._names)]
        self._count += 1
        while True:
            code = self.ways[way](self._drawn.choice(self._codes))
            if code not in self._genuine:
                return way, code

    def _changed(self, code: str) -> str:
        at = self._drawn.randrange(len(code))
        return code[:at] + self._drawn.choice(ALPHABET) + code[at + 1 :]

    def _dropped(self, code: str) -> str:
        at = self._drawn.randrange(len(code))
        return code[:at] + code[at + 1 :]

    def _added(self, code: str) -> str:
        at = self._drawn.randrange(len(code) + 1)
        return code[:at] + self._drawn.choice(ALPHABET) + code[at:]

    def _small(self, code: str) -> str:
        at = self._drawn.randrange(len(code))
        return code[:at] + code[at:].lower()

    def _cut(self, code: str) -> str:
        return code[: self._drawn.randrange(len(code))]

    def _padded(self, code: str) -> str:
        return code + self._drawn.choice("= \nA") * self._drawn.randrange(1, 8)

    def _turned(self, code: str) -> str:
        raw = bytearray(raw_of(code))
        raw[self._drawn.randrange(len(raw))] ^= 1 << self._drawn.randrange(8)
        return text_of(bytes(raw))

    def _overwritten(self, code: str) -> str:
        raw, length = bytearray(raw_of(code)), self._drawn.randrange(1, 9)
        at = self._drawn.randrange(len(raw) - length)
        raw[at : at + length] = self._drawn.randbytes(length)
        return text_of(bytes(raw))

    def _signed(self, code: str) -> str:
        payload = raw_of(code)[:-SIGNATURE_BYTES]
        return text_of(payload + self._strangers[payload[1]].sign(PREFIX + payload))

    def _under_another_key(self, code: str) -> str:
        key_id = self._drawn.randrange(1, 256)
        raw = raw_of(code)
        payload = bytes((raw[0], key_id)) + raw[2:-SIGNATURE_BYTES]
        return text_of(payload + self._strangers[key_id].sign(PREFIX + payload))

    def _another_ticket(self, code: str) -> str:
        return fixed_code(self._strangers[raw_of(code)[1]], self._drawn_ticket())

    def _live(self, code: str) -> str:
        key = self._strangers[raw_of(code)[1]]
        return live_code(key, self._drawn_ticket(), self._drawn.randbytes(32), self._drawn.random() * 2e9)

    def _borrowed(self, code: str) -> str:
        other = self._drawn.choice(self._codes)
        return text_of(raw_of(code)[:-SIGNATURE_BYTES] + raw_of(other)[-SIGNATURE_BYTES:])

    def _with_live_flag(self, code: str) -> str:
        raw = raw_of(code)
        tag = self._drawn.randbytes(5)
        return text_of(bytes((Version.LIVE,)) + raw[1:-SIGNATURE_BYTES] + tag + raw[-SIGNATURE_BYTES:])

    def _drawn_ticket(self) -> Ticket:
        return Ticket(
            self._drawn.randrange(1, 100), self._drawn.randrange(1, 10**6), self._drawn.randrange(1, 4)
        )
