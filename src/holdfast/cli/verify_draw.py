"""holdfast verify-draw"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.waitingroom import DrawRecord

TIMEOUT_S = 20
BYTES_MAX = 65_536

Source = Annotated[
    str, typer.Argument(help="A saved answer of …/queue/draw, or its address: https://…/shows/7/queue/draw.")
]
Number = Annotated[int | None, typer.Option(min=0, help="Your entrant number: prints your position.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


def verify_draw(source: Source, number: Number = None, as_json: AsJson = False) -> None:
    """Check the draw of a waiting room, and recompute a position. A saved answer is checked offline."""
    from holdfast.waitingroom import DrawMismatch, verify_draw

    record = _parse(_load(source))
    try:
        order = verify_draw(record)
    except DrawMismatch as mismatch:
        raise OperatorError(f"the draw is not valid: {mismatch}") from None
    if number is not None and number >= order.n:
        raise OperatorError(f"number {number} was not in the draw of {order.n}: its position is {number}")
    position = order.position(number) if number is not None else None
    if as_json:
        print_json({"valid": True, "entrants": order.n, "number": number, "position": position})
        return
    print(
        f"show {record.show_id}: the seed is the one that was committed to; {order.n} people were in the draw"
    )
    if record.is_without_beacon:
        print(f"the value of {record.beacon} had not come until {record.beacon_until}: drawn without it")
    if position is not None:
        print(f"number {number} is at position {position}, behind {position} people")


def _load(source: str) -> bytes:
    if not source.startswith(("http://", "https://")):
        try:
            return Path(source).read_bytes()
        except OSError as problem:
            raise OperatorError(f"{source} cannot be read: {problem.strerror}") from None
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(source, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(BYTES_MAX)
            return body
    except (URLError, TimeoutError, ValueError) as problem:
        raise OperatorError(f"{source} cannot be read: {problem}") from None


def _parse(raw: bytes) -> "DrawRecord":
    import msgspec

    from holdfast.waitingroom import DrawRecord

    try:
        return msgspec.json.decode(raw, type=DrawRecord)
    except msgspec.MsgspecError as problem:
        raise OperatorError(f"this is not the answer of …/queue/draw: {problem}") from None
