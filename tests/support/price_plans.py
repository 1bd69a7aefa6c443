"""Price rules for a show's gold seats, and their upload by an organiser."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.organiser import Organiser

GOLD = {"category": "Gold", "base_minor": 50_000, "floor_minor": 30_000, "ceiling_minor": 70_000}


def gold_rules(**gold: Any) -> dict[str, Any]:
    return {"currency": "INR", "rules": [{**GOLD, **gold}]}


def in_hours(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


async def set_rules(organiser: Organiser, show: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    answer = await organiser.send("PUT", f"/shows/{show['id']}/price-rules", body)
    assert answer.status_code == 200, answer.text
    plan: dict[str, Any] = answer.json()
    return plan
