"""Gates over HTTP: passes, devices that sign in with them, tickets to scan."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.support.shows import API, Fan

DEVICE = X25519PrivateKey.generate()
PUBLIC = b64encode(DEVICE.public_key().public_bytes_raw()).decode()
_scans = count(1)


def a_pass(show: int, gate: str = "North", **other: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    times = {
        "starts_at": (now - timedelta(hours=1)).isoformat(),
        "ends_at": (now + timedelta(hours=5)).isoformat(),
    }
    return {"shows": [show], "gate": gate, **times, **other}


async def made(admin: Fan, body: dict[str, Any]) -> dict[str, Any]:
    answer = await admin.post("/admin/gate-passes", body)
    assert answer.status_code == 201, answer.text
    return msgspec.json.decode(answer.content, type=dict[str, Any])


async def a_device(admin: Fan, show: int, gate: str = "North", key: str = PUBLIC) -> Fan:
    """A device that has signed in with the code of its pass."""
    code = (await made(admin, a_pass(show, gate)))["code"]
    answer = await admin.api.post(f"{API}/gate/login", json={"code": code, "device_key": key})
    assert answer.status_code == 200, answer.text
    return Fan(0, answer.json()["access_token"], admin.api)


async def a_ticket(fan: Fan, show: int, seat: str) -> dict[str, Any]:
    booking = (await fan.holds(show, seat)).json()
    (ticket,) = (await fan.get(f"/bookings/{booking['booking_id']}/tickets")).json()["tickets"]
    return {**ticket, "reference": booking["reference"]}


async def scan(device: Fan, **body: Any) -> dict[str, Any]:
    answer = await device.post("/gate/check-ins", {"scan_id": f"s{next(_scans)}", **body})
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=dict[str, Any])
