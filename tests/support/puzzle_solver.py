"""What the script of the page does with a puzzle."""

from hashlib import sha256
from itertools import count


def solve(puzzle: str, bits: int) -> str:
    """The puzzle with the first number that solves it."""
    tries = (f"{puzzle}.{n}" for n in count())
    return next(t for t in tries if int.from_bytes(sha256(t.encode()).digest(), "big") >> (256 - bits) == 0)
