"""Events that are in the search index at once, without a worker."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.app import App
from tests.support.organiser import Organiser, Stage, an_event, show_of


def a_word() -> str:
    """A word that no other test uses, near to no other word. No letter comes twice: every slip changes it."""
    return "".join(random.sample("bcdfghjklmnpqrtvwxyz", k=16))


async def add_show(
    app: App, organiser: Organiser, stage: Stage, days: int = 1, at: datetime | None = None, **event: Any
) -> dict[str, Any]:
    """An event with a show so many days from now; found at once, as the worker would see to in a second."""
    made = await organiser.create("/events", an_event(**event))
    starts_at = at or datetime.now(UTC).replace(hour=6, minute=0) + timedelta(days=days)
    show = await organiser.create(
        "/shows", show_of(stage, event_id=made["id"], starts_at=starts_at.isoformat())
    )
    await index_event(app, made["id"])
    return show


async def index_event(app: App, event_id: int) -> None:
    await app.search_index.mark_events([event_id])
    while await app.search_index.write_due():
        pass
