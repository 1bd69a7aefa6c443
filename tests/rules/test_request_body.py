"""A request body is collected in linear time, and never beyond its limit."""

import threading
from collections.abc import Sequence

import pytest
from msgspec import Struct
from starlette.types import Message, Receive

from holdfast.errors import BodyTooLarge, Malformed
from holdfast.web.guards import read_body
from holdfast.web.responses import OFF_LOOP_BYTES, read_off_loop


class Piece(bytes):
    """Notices when it is appended to the pieces before it, which copies all of them again."""

    appended = 0

    def __radd__(self, before: bytes) -> bytes:
        Piece.appended += 1
        return bytes(before) + bytes(self)


class Numbers(Struct):
    numbers: list[int]
    decoded_by: int = 0

    def __post_init__(self) -> None:
        self.decoded_by = threading.get_ident()


def sends(pieces: Sequence[bytes]) -> Receive:
    left = list(pieces)

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return receive


async def test_a_body_in_many_pieces_is_copied_once() -> None:
    """16 MB in pieces of 64 kB froze a process for two seconds."""
    Piece.appended = 0

    body = await read_body(sends([Piece(b"x" * 100)] * 500), {}, 1_000_000)

    assert (len(body), Piece.appended) == (50_000, 0)


@pytest.mark.parametrize("pieces", [[b""], [b"one"], [b"on", b"e", b""]])
async def test_a_body_is_what_was_sent(pieces: list[bytes]) -> None:
    assert await read_body(sends(pieces), {}, 3) == b"".join(pieces)


async def test_a_body_that_turns_out_too_long_is_refused_at_once() -> None:
    with pytest.raises(BodyTooLarge):
        await read_body(sends([b"xx", b"xx", b"never read"]), {}, 3)


@pytest.mark.parametrize("length", [3, OFF_LOOP_BYTES])
async def test_a_body_of_any_size_is_decoded_or_refused(length: int) -> None:
    assert (await read_off_loop(Numbers, b'{"numbers":[1' + b",1" * length + b"]}")).numbers[-1] == 1
    with pytest.raises(Malformed):
        await read_off_loop(Numbers, b'{"numbers":[1' + b",1" * length)


async def test_a_long_body_is_decoded_beside_the_loop() -> None:
    short, long = [
        await read_off_loop(Numbers, b'{"numbers":[1' + b",1" * length + b"]}")
        for length in (3, OFF_LOOP_BYTES)
    ]

    assert short.decoded_by == threading.get_ident()
    assert long.decoded_by != threading.get_ident()
