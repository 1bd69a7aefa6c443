"""The draw: who is where in the order, decided by a seed that no party can choose. No I/O.

    room opens    seed: 32 random bytes, secret      commitment = SHA-256(show, opening, seed), published
    people join   entrant numbers 0, 1, … n-1, dense
    draw          key = HMAC-SHA-256(seed, (show, opening, n, beacon)); seed, n and beacon are published
                  position = permute(key, n, number)

A beacon may have a deadline. Then the commitment is to the beacon and its deadline, too, and a draw whose
value has not come until then goes on with an empty one: which order that gives follows from the same seed.

The house cannot change the seed after the commitment, and does not know n, or a beacon that does not exist
yet, when it makes the seed. `permute` is a Feistel network over numbers below a·b ≥ n, applied again while
the result is not below n (cycle walking): it needs no memory, and everyone can recompute their own position.

Fields are encoded with a domain and their lengths: no two tuples of fields have the same encoding.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from math import isqrt

from msgspec import Struct

SEED_BYTES = 32
ROUNDS = 12
COMMITMENT = b"holdfast queue commitment 1"
COMMITMENT_UNTIL = b"holdfast queue commitment 2"  # also to a beacon and its deadline
KEY = b"holdfast queue draw 1"


class DrawRecord(Struct, frozen=True):
    """Everything about a draw. Before it, only the commitment and the name of the beacon are there."""

    show_id: int
    opening: int
    commitment: str  # hexadecimal, published when the room opened
    beacon: str  # where the public value comes from, stated when the room opened; empty: none
    beacon_value: str | None = None
    beacon_until: datetime | None = None  # the draw waits for the value until then; None: as long as it takes
    drawn_at: datetime | None = None
    entrants: int | None = None  # n: numbers 0 … n-1 were in the draw
    seed: str | None = None  # hexadecimal, published at the draw
    key: str | None = None  # hexadecimal: derived from all of these

    @property
    def is_drawn(self) -> bool:
        return self.seed is not None and self.entrants is not None

    @property
    def is_without_beacon(self) -> bool:
        """The value had not come at its deadline, and the draw went on."""
        return self.is_drawn and bool(self.beacon) and not self.beacon_value


class DrawMismatch(Exception):
    """A published draw that is not what was committed to."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """An order of n entrants: number → position, and back."""

    key: bytes
    n: int

    def position(self, number: int) -> int:
        """Where this entrant is in the order, from 0."""
        assert 0 <= number < self.n
        while True:
            number = self._forward(number)
            if number < self.n:
                return number

    def number(self, position: int) -> int:
        """The entrant at this position."""
        assert 0 <= position < self.n
        while True:
            position = self._backward(position)
            if position < self.n:
                return position

    def positions(self) -> list[int]:
        """Of all entrants. The network is the same; its values are looked up, because few differ."""
        if self.n == 0:
            return []
        a, b = _sides(self.n)
        tables = [[_mix(self.key, r, half) for half in range(a if r % 2 else b)] for r in range(ROUNDS)]

        def forward(x: int) -> int:
            right, left = divmod(x, a)
            for r in range(0, ROUNDS, 2):
                left = (left + tables[r][right]) % a
                right = (right + tables[r + 1][left]) % b
            return right * a + left

        found = []
        for number in range(self.n):
            position = forward(number)
            while position >= self.n:
                position = forward(position)
            found.append(position)
        return found

    def _forward(self, x: int) -> int:
        a, b = _sides(self.n)
        right, left = divmod(x, a)
        for r in range(0, ROUNDS, 2):
            left = (left + _mix(self.key, r, right)) % a
            right = (right + _mix(self.key, r + 1, left)) % b
        return right * a + left

    def _backward(self, x: int) -> int:
        a, b = _sides(self.n)
        right, left = divmod(x, a)
        for r in reversed(range(0, ROUNDS, 2)):
            right = (right - _mix(self.key, r + 1, left)) % b
            left = (left - _mix(self.key, r, right)) % a
        return right * a + left


def encode(domain: bytes, *fields: bytes) -> bytes:
    """Each with its length in 8 bytes before it."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in (domain, *fields))


def commit(
    show_id: int, opening: int, seed: bytes, beacon: str = "", beacon_until: datetime | None = None
) -> bytes:
    fields = (_number(show_id), _number(opening), seed)
    if beacon_until is None:
        return hashlib.sha256(encode(COMMITMENT, *fields)).digest()
    until = _number(int(beacon_until.timestamp()))
    return hashlib.sha256(encode(COMMITMENT_UNTIL, *fields, beacon.encode(), until)).digest()


def derive_key(show_id: int, opening: int, seed: bytes, n: int, beacon: str) -> bytes:
    fields = (_number(show_id), _number(opening), _number(n), beacon.encode())
    return hmac.digest(seed, encode(KEY, *fields), "sha256")


def verify_draw(record: DrawRecord) -> Permutation:
    """The order that this record gives. Raises DrawMismatch if it is not the one that was committed to."""
    if record.seed is None or record.entrants is None:
        raise DrawMismatch("the order is not drawn yet")
    try:
        seed = bytes.fromhex(record.seed)
    except ValueError:
        raise DrawMismatch("the seed is not hexadecimal") from None
    committed = commit(record.show_id, record.opening, seed, record.beacon, record.beacon_until)
    if committed.hex() != record.commitment:
        raise DrawMismatch("the seed is not the one that was committed to when the room opened")
    if record.is_without_beacon:
        until = record.beacon_until
        if until is None or record.drawn_at is None or record.drawn_at < until:
            raise DrawMismatch(f"the value of the beacon is missing: {record.beacon}")
    key = derive_key(record.show_id, record.opening, seed, record.entrants, record.beacon_value or "")
    if record.key is not None and record.key != key.hex():
        raise DrawMismatch("the key does not follow from the seed, the entrants and the beacon")
    return Permutation(key, record.entrants)


def _sides(n: int) -> tuple[int, int]:
    """a · b is the smallest rectangle with nearly equal sides that has at least n fields."""
    a = isqrt(n - 1) + 1
    return a, -(-n // a)


def _mix(key: bytes, r: int, half: int) -> int:
    return int.from_bytes(hashlib.sha256(key + bytes((r,)) + _number(half)).digest()[:8], "big")


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
