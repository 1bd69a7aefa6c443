"""A fact as JSON, on the bus and wherever it waits. No I/O.

Every fact is written once and read by every group of every process: it is read straight into its structs.
"""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.outbox.body import Body, UnknownBody
from holdfast.outbox.fact import KINDS, Fact


class _FactJson(Struct):
    id: int
    kind: str
    version: int
    at: datetime
    show_id: int
    number: int | None = None
    booking_id: str | None = None
    trace: str | UnsetType = UNSET
    body: msgspec.Raw = msgspec.Raw(b"{}")


_read_wire = msgspec.json.Decoder(_FactJson).decode
_read_values = msgspec.json.Decoder(dict[str, Any]).decode
_read_body = {kind: msgspec.json.Decoder(body).decode for kind, body in KINDS.items()}


def to_json(fact: Fact) -> bytes:
    if not isinstance(fact.body, UnknownBody):
        return msgspec.json.encode(fact)
    envelope = {name: value for name in fact.__struct_fields__ if (value := getattr(fact, name)) is not UNSET}
    return msgspec.json.encode(envelope | {"body": fact.body.values})


def from_json(text: bytes | str) -> Fact:
    """Fields of newer programs are ignored. Raises msgspec.DecodeError for anything that is not a fact."""
    wire = _read_wire(text)
    return Fact(
        id=wire.id,
        kind=wire.kind,
        version=wire.version,
        at=wire.at,
        show_id=wire.show_id,
        number=wire.number,
        booking_id=wire.booking_id,
        trace=wire.trace,
        body=_body(wire),
    )


def _body(wire: _FactJson) -> Body:
    """What does not fit is handed on as it is, as in fact.py."""
    read = _read_body.get(wire.kind)
    try:
        return UnknownBody(values=_read_values(wire.body)) if read is None else read(wire.body)
    except msgspec.ValidationError:
        return UnknownBody(values=_read_values(wire.body))
