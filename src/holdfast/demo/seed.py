"""Fills an empty box office with the demo's programme, and brings yesterday's up to date.

    accounts ─► places ─► events ─► timetable ─► named shows
                                                 free · opening soon · nearly sold out

Every step adds only what is missing, so starting again costs a moment and adds the day that has come since.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.catalogue import Layout
from holdfast.catalogue.admin.keeper import Keeper
from holdfast.catalogue.schedule.forms import ShowChange
from holdfast.catalogue.schedule.store import PlannedShow, Schedule, add_shows
from holdfast.catalogue.show import Times
from holdfast.catalogue.store import store_layout
from holdfast.demo.halls import club, concert_hall, village_cinema
from holdfast.demo.programme import (
    CITIES,
    CITY,
    FREE_TITLE,
    NEARLY_SOLD_OUT_HALL,
    NEARLY_SOLD_OUT_TITLE,
    OPENING_SOON_HALL,
    OPENING_SOON_TITLE,
    SALE_OPENS_DAYS,
    VENUES,
    price_minor,
    timetable,
)
from holdfast.demo.repertoire import EVENTS
from holdfast.demo.stadium import stadium
from holdfast.engines.sql import Queries
from holdfast.holds import claim_id
from holdfast.ledger import Opened, Opening
from holdfast.people import NewAccount, Role

Q = Queries("holdfast.demo")
Progress = Callable[[str, int, int], None]  # what, done, of how many
Box = Any  # holdfast.app.Box

LAYOUTS = {"cinema": village_cinema, "theatre": concert_hall, "club": club, "stadium": stadium}
PASSWORD = "hold-fast-demo"
ACCOUNTS = (
    ("fan@holdfast.example", "Frida Fan", Role.FAN),
    ("organiser@holdfast.example", "Omar Organiser", Role.ORGANISER),
    ("gate@holdfast.example", "Gita Gate", Role.GATE),
    ("admin@holdfast.example", "Ada Admin", Role.ADMIN),
)
OPENING_SOON = timedelta(minutes=2)
SEATS_LEFT = 4
GUEST_ORDER = 4  # seats of a guest's booking; two such bookings a guest
STEPS = 6


@dataclass(frozen=True, slots=True)
class DemoFacts:
    """What the welcome tells: who can sign in, and what is on, the shows worth trying first."""

    accounts: list[dict[str, str]]
    shows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Hall:
    id: int
    city: str
    timezone: str
    layout: Layout


async def populate(box: Box, progress: Progress) -> DemoFacts:
    """The whole programme from now on. Safe to call again and again."""
    progress("accounts", 0, STEPS)
    organiser_id = await _accounts(box)
    progress("cities, venues and halls", 1, STEPS)
    halls = await _places(box)
    progress("events", 2, STEPS)
    events = await _events(box, organiser_id)
    progress("shows", 3, STEPS)
    await _timetable(box, halls, events)
    progress("the shows to try first", 4, STEPS)
    seed = Named(box, halls, events)
    await seed.opening_soon()
    await seed.nearly_sold_out()
    progress("the welcome", 5, STEPS)
    facts = await _facts(box, halls)
    box.catalogue.forget()
    progress("done", STEPS, STEPS)
    return facts
