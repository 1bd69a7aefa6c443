"""What a player needs to draw and play a sale, as one JSON document without personal data. No I/O.

{"seats": 500, "began_ms": …, "length_ms": …, "bounds": […], "sections": […], "areas": […],
 "points": base64 of x and y of every seat, 16 bits each within the bounds, little-endian,
 "events": base64 of the events (encoding.py)}
"""

from array import array
from base64 import b64encode
from sys import byteorder
from typing import Any

import msgspec

from holdfast.layouts import Layout
from holdfast.replay.sale import ReplayedSale

STEPS = 65_535  # of a coordinate


def build_document(sale: ReplayedSale, layout: Layout, timezone: str) -> bytes:
    page: dict[str, Any] = msgspec.json.decode(layout.page())
    began_at = sale.figures.began_at
    document = {
        "seats": sale.figures.seats,
        "began_ms": int(began_at.timestamp() * 1000),
        "length_ms": sale.length_ms,
        "timezone": timezone,
        "bounds": page["bounds"],
        "stage": {"name": page["focal"]["name"], "at": page["focal"]["at"]},
        "sections": [{"name": one["name"], "outline": one["outline"]} for one in page["sections"]],
        "areas": [
            {name: one[name] for name in ("name", "start", "capacity", "outline")} for one in page["areas"]
        ],
        "shapes": [one["outline"] for one in page["shapes"]],
        "points": b64encode(pack_points(layout, page["bounds"])).decode(),
        "events": b64encode(sale.events).decode(),
    }
    return msgspec.json.encode(document)


def pack_points(layout: Layout, bounds: list[float]) -> bytes:
    left, top, right, bottom = bounds
    wide, high = max(right - left, 0.01), max(bottom - top, 0.01)
    points = array("H")
    for x, y in zip(layout.x, layout.y, strict=True):
        points.append(_place((x - left) / wide))
        points.append(_place((y - top) / high))
    if byteorder == "big":
        points.byteswap()
    return points.tobytes()


def _place(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * STEPS)
