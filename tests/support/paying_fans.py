"""A fan that holds seats, pays for them and reads the booking's state, over HTTP."""

from typing import Any

import httpx2

from tests.support.shows import Fan


async def hold_seats(fan: Fan, show_id: int, *seats: str) -> str:
    response = await fan.holds(show_id, *(seats or ("A-1", "A-2")))
    assert response.status_code == 201, response.text
    return str(response.json()["booking_id"])


async def pay(fan: Fan, booking: str, method: str = "tok_ok", key: str | None = None) -> httpx2.Response:
    return await fan.post(f"/bookings/{booking}/pay", {"method": method}, key=key)


async def load_state(fan: Fan, booking: str) -> Any:
    return (await fan.get(f"/bookings/{booking}")).json()["state"]
