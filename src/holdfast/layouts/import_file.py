"""A file somebody brings → a layout body. It is our JSON, pretix's JSON, or a table; it says itself which.
No I/O.

Pure: bytes in, `LayoutBody` out. What is wrong with a file is a `LayoutProblem`: one line that says where,
what, and what to do.
"""

from pathlib import PurePath

import msgspec

from holdfast.layouts.body import LayoutBody, LayoutProblem, decode_body
from holdfast.layouts.from_seat_list import build_layout_body
from holdfast.layouts.import_csv import parse_csv
from holdfast.layouts.import_pretix import parse_pretix

FILE_BYTES_MAX = 32 * 1024 * 1024  # 60 000 seats of a pretix plan, written out at length, are about 15 MB

__all__ = ["LayoutProblem", "parse_layout_file"]


def parse_layout_file(name: str, data: bytes) -> LayoutBody:
    """`name` is the file's, or any other: it becomes the layout's where the file has none."""
    title = PurePath(name).stem.replace("_", " ").strip()[:60] or "Hall"
    if len(data) > FILE_BYTES_MAX:
        raise LayoutProblem(f"{len(data)} bytes are too many; {FILE_BYTES_MAX} at most")
    if not data.strip():
        raise LayoutProblem("the file is empty; docs/layouts.md shows what to put in it")
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return _through(build_layout_body(parse_csv(title, data)))
    data = data.removeprefix(b"\xef\xbb\xbf")
    if "zones" in _keys(data):
        return _through(build_layout_body(parse_pretix(title, data)))
    return decode_body(data)


def _keys(data: bytes) -> set[str]:
    try:
        return set(msgspec.json.decode(data, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return set()  # checked() says what is wrong with it, and where


def _through(body: LayoutBody) -> LayoutBody:
    """What another program wrote is held to the same bounds as what people write."""
    return decode_body(msgspec.json.encode(body))
