"""A show for a rehearsal, made over the organisers' API; afterwards cancelled, deleted or hidden."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.simulation.buyers import Shop

API = "/api/v1"
ROW = 100  # seats
PRICE_MINOR = 1_000
OWNER_SEATS_MAX = 1_000  # the most that the API accepts
REFUNDED_WITHIN_S = 60.0
LOOK_AGAIN_S = 0.2
TITLE = "Rehearsal (not a real show)"


@dataclass(frozen=True)
class Login:
    email: str
    password: str


class Stage:
    """One organiser, one venue, one hall, one event, one show."""

    def __init__(self, shop: "Shop", login: Login) -> None:
        self._shop = shop
        self._login = login
        self._headers: dict[str, str] = {}
        self._made: list[tuple[str, int]] = []  # path and id, in the order in which they were made

    async def build(self, seats: int) -> int:
        """The id of a show with at least so many seats, on sale now."""
        await self._sign_in()
        _, page = await self._shop.send("GET", f"{API}/admin/cities", headers=self._headers)
        cities = page.get("list") or page.get("cities") or []
        if not cities:
            raise OperatorError("the installation has no city: an administrator adds one first")
        place = {"city_id": cities[0]["id"], "postal_code": "00000", "lat": 0.0, "lon": 0.0}
        venue = await self._make("venues", {"name": TITLE, **place})
        layout = await self._create("layouts", build_layout(seats))
        hall = await self._make(
            "halls", {"venue_id": venue, "name": "Rehearsal", "layout_hash": layout["hash"]}
        )
        event = await self._make("events", {"kind": "concert", "title": TITLE, "duration_min": 60})
        starts_at = datetime.now(UTC) + timedelta(days=30)
        return await self._make(
            "shows",
            {
                "event_id": event,
                "hall_id": hall,
                "starts_at": starts_at.isoformat(),
                "currency": "EUR",
                "prices": {"Rehearsal": PRICE_MINOR},
                "owner_seats_max": OWNER_SEATS_MAX,
                "orphan_rule": "off",
            },
        )

    async def clear(self) -> list[str]:
        """Cancel the show with refunds, delete or hide the rest; what is left, in words."""
        left = []
        for path, number in reversed(self._made):
            if path == "shows":
                await self._change(f"shows/{number}", {"cancelled": True})
                if not await self._is_refunded(number):
                    left.append(f"show {number} is cancelled, and not all refunds are through")
            status, _ = await self._shop.send("DELETE", f"{API}/admin/{path}/{number}", headers=self._headers)
            if status == 204:
                continue
            is_hidden = path != "halls" and await self._change(f"{path}/{number}", {"published": False})
            left.append(f"{path[:-1]} {number}{', hidden' if is_hidden else ''}")
        return left

    async def _is_refunded(self, show_id: int) -> bool:
        give_up_at = time.monotonic() + REFUNDED_WITHIN_S
        path = f"{API}/admin/shows/{show_id}/cancellation"
        while time.monotonic() < give_up_at:
            status, page = await self._shop.send("GET", path, headers=self._headers)
            if status == 200 and page["refunded"] + page["by_hand"] >= page["bookings"]:
                return not page["by_hand"]
            await asyncio.sleep(LOOK_AGAIN_S)
        return False

    async def _sign_in(self) -> None:
        body = {"email": self._login.email, "password": self._login.password}
        status, page = await self._shop.send("POST", f"{API}/auth/login", body)
        if status != 200:
            raise OperatorError(f"{self._login.email} cannot sign in: {page.get('code')}")
        self._headers = {"Authorization": f"Bearer {page['access_token']}"}

    async def _make(self, path: str, body: dict[str, Any]) -> int:
        number = int((await self._create(path, body))["id"])
        self._made.append((path, number))
        return number

    async def _create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        status, page = await self._shop.send("POST", f"{API}/admin/{path}", body, self._headers)
        if status not in (200, 201):
            detail = page.get("detail") or page.get("title") or page.get("code")
            raise OperatorError(f"the rehearsal's show cannot be made ({path}): {detail}")
        return page

    async def _change(self, path: str, body: dict[str, Any]) -> bool:
        status, _ = await self._shop.send("PATCH", f"{API}/admin/{path}", body, self._headers)
        return status == 200


def build_layout(seats: int) -> dict[str, Any]:
    """Rows of a hundred, all alike."""
    rows = [
        {"label": f"R{number + 1}", "seats": f"1-{ROW}", "at": [0, 2 + number], "category": "Rehearsal"}
        for number in range(-(-seats // ROW))
    ]
    return {
        "name": TITLE,
        "focal": [0, 0],
        "categories": [{"name": "Rehearsal", "colour": "#0072B2"}],
        "sections": [{"name": "Stalls", "rows": rows}],
    }
