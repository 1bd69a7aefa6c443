"""Fills an empty database with the demo programme, and extends an existing one.

    accounts ─► cities, venues, halls ─► events ─► timetable ─► shows to try first

Every step adds only missing rows, so a restart is fast and adds the days since the last start.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.accounts import NewAccount
from holdfast.bookings import Booking, Opening
from holdfast.catalogue.event import Kind, Times
from holdfast.catalogue.store import store_layout
from holdfast.demo.halls import club, concert_hall, stadium, studio, village_cinema
from holdfast.demo.programme import (
    CITIES,
    CITY,
    FREE_TITLE,
    NAMED,
    NEARLY_SOLD_OUT_HALL,
    NEARLY_SOLD_OUT_TITLE,
    OPENING_SOON_HALL,
    OPENING_SOON_TITLE,
    POLICIES,
    ROUND_TO,
    SALE_OPENS_DAYS,
    VENUES,
    ScheduledShow,
    by_demand,
    early_price,
    price_minor,
    terms_for,
    timetable,
)
from holdfast.demo.repertoire import EVENTS
from holdfast.engines.postgres import Queries, Queryable, Transaction
from holdfast.holds import compute_claim_id
from holdfast.layouts import Layout
from holdfast.organisers import store as organisers
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import PlannedShow, add_shows
from holdfast.web.caller import Right, Role, Scope

if TYPE_CHECKING:
    from holdfast.app import App

Q = Queries("holdfast.demo")
Progress = Callable[[str, int, int], None]  # what, done, of how many

LAYOUTS = {
    "cinema": village_cinema,
    "studio": studio,
    "theatre": concert_hall,
    "club": club,
    "stadium": stadium,
}
PASSWORD = "hold-fast-demo"
ACCOUNTS = (
    ("fan@holdfast.example", "Frida Fan", Role.FAN),
    ("organiser@holdfast.example", "Omar Organiser", Role.ORGANISER),
    ("gate@holdfast.example", "Gita Gate", Role.GATE),
    ("admin@holdfast.example", "Ada Admin", Role.ADMIN),
)
STEPS = ("accounts", "cities, venues and halls", "events", "shows", "shows to try first")
KINDS = {event.title: event.kind for event in EVENTS}
SOON = timedelta(minutes=30)  # nothing is added that starts before this
OPENS_IN = timedelta(minutes=2)
SEATS_LEFT = 4
GUEST_SEATS = 4  # of one booking of a guest; each guest has two


@dataclass(frozen=True, slots=True)
class DemoFacts:
    """Data for the welcome text: the demo accounts, and the shows, the most interesting first."""

    accounts: list[dict[str, str]]
    shows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class DemoHall:
    id: int
    city: str
    timezone: str
    layout_hash: str
    categories: tuple[str, ...]


async def populate(app: "App", progress: Progress) -> DemoFacts:
    """Add the whole programme from now on. Idempotent."""

    def step(number: int) -> None:
        progress(STEPS[number] if number < len(STEPS) else "done", number, len(STEPS))

    step(0)
    organiser_id = await _accounts(app)
    step(1)
    halls = await _halls(app)
    step(2)
    events = await _events(app, organiser_id)
    seed = Seed(app, halls, events)
    step(3)
    await seed.timetable()
    step(4)
    facts = DemoFacts(
        accounts=[{"email": email, "password": PASSWORD, "role": role.value} for email, _, role in ACCOUNTS],
        shows=await seed.shows_to_try(),
    )
    app.catalogue.clear_cached_responses()
    step(5)
    return facts


async def _accounts(app: "App") -> int:
    """Create the demo accounts; returns the id of the organiser's organisation, which owns all events."""
    made = await asyncio.gather(
        *(
            app.account_admin.ensure_account(email=email, password=PASSWORD, name=name, role=role)
            for email, name, role in ACCOUNTS
        )
    )
    by_role = {account.role: account.account_id for account in made}
    organiser_id = by_role[Role.ORGANISER]
    await app.organisations.add_member(organiser_id, by_role[Role.GATE], [Right.DOOR])
    return organiser_id


async def _halls(app: "App") -> dict[tuple[str, str], DemoHall]:
    """All halls by (venue, name); missing ones are created."""
    wanted = {(venue.name, hall): layout for venue in VENUES for hall, layout in venue.halls}
    async with app.postgres.transaction() as tx:
        await tx.execute(Q.lock_demo)
        venues = [venue.name for venue in VENUES]
        known = {(row["venue"], row["name"]) for row in await organisers.load_halls(tx, venues)}
        if missing := wanted.keys() - known:
            await organisers.add_cities(tx, (astuple(city)[:6] for city in CITIES))
            await organisers.add_venues(tx, (astuple(venue)[:6] for venue in VENUES))
            hash_of = {name: await _layout(tx, name) for name in {wanted[hall] for hall in missing}}
            await organisers.add_halls(tx, ((*hall, hash_of[wanted[hall]]) for hall in sorted(missing)))
        rows = await organisers.load_halls(tx, venues)
    return {
        (row["venue"], row["name"]): DemoHall(
            row["id"], row["city"], row["timezone"], row["layout_hash"], tuple(row["categories"])
        )
        for row in rows
    }


async def _layout(tx: Transaction, name: str) -> str:
    layout = Layout.build(LAYOUTS[name]())
    await store_layout(tx, layout)
    return layout.hash


async def _events(app: "App", organiser_id: int) -> dict[str, tuple[int, timedelta]]:
    """Id and duration of every event by title; missing ones are created."""
    async with app.postgres.transaction() as tx:
        await tx.execute(Q.lock_demo)
        policies = {kind: msgspec.json.encode(policy).decode() for kind, policy in POLICIES.items()}
        events = [(*astuple(event)[:-1], "|".join(event.people), policies[event.kind]) for event in EVENTS]
        await organisers.add_events(tx, organiser_id, events)
        rows = await organisers.load_events(tx, organiser_id)
    return {row["title"]: (row["id"], timedelta(minutes=row["duration_min"])) for row in rows}


class Seed:
    """The shows of the demo, from now on."""

    def __init__(
        self, app: "App", halls: dict[tuple[str, str], DemoHall], events: dict[str, tuple[int, timedelta]]
    ) -> None:
        self._app = app
        self._halls = halls
        self._events = events
        self._now = datetime.now(UTC)

    async def timetable(self) -> None:
        """Add two weeks of shows; existing ones stay as they are."""
        slated = list(timetable(self._now.date(), EVENTS))
        zones = [self._halls[show.venue, show.hall].timezone for show in slated]
        rows = await self._app.postgres.fetch(Q.instants, [show.starts_local for show in slated], zones)
        async with self._app.postgres.transaction() as tx:
            await tx.execute(Q.lock_demo)
            known = {(row["hall_id"], row["starts_at"]) for row in await self._to_come(tx)}
            planned = [
                self._planned(show, starts_at)
                for show, starts_at in zip(slated, (row["instant"] for row in rows), strict=True)
                if starts_at > self._now + SOON
            ]
            if new := [show for show in planned if (show.hall_id, show.times.starts_at) not in known]:
                await add_shows(tx, new)

    async def shows_to_try(self) -> list[dict[str, Any]]:
        """All upcoming shows for the welcome text; first those that demonstrate something."""
        opening = await self._opening_soon()
        nearly = await self._nearly_sold_out()
        await self._price_rules()
        rows = await self._to_come(self._app.postgres)
        later, on_sale = self._now + timedelta(days=1), self._now
        ready = [row for row in rows if row["starts_at"] > later and row["opens_at"] <= on_sale]
        free = next(row["id"] for row in ready if row["title"] == FREE_TITLE)
        biggest = max(ready, key=lambda row: (row["seats"], -row["id"]))["id"]
        small = next(row["id"] for row in ready if 150 <= row["seats"] <= 250 and row["from_price_minor"])
        first = {show_id: place for place, show_id in enumerate((free, opening, nearly, biggest, small))}
        rows.sort(key=lambda row: first.get(row["id"], len(first)))
        return [
            {
                "id": row["id"],
                "title": row["title"],
                "seats": row["seats"],
                "price": row["from_price_minor"],
                "currency": row["currency"],
                "opens_at": row["opens_at"].isoformat(),
            }
            for row in rows
        ]

    async def _price_rules(self) -> None:
        """Give two concerts price rules: an early price, and a price that follows demand."""
        rows = [row for row in await self._to_come(self._app.postgres) if self._may_move(row)]
        plans = await organisers.load_price_plans(self._app.postgres, [row["id"] for row in rows])
        there = {plan["by_demand"] for plan in plans}
        ruled = {plan["show_id"] for plan in plans}
        free = [row for row in rows if row["id"] not in ruled]
        editor = self._app.price_rules(Scope(0, is_admin=True))
        for is_demand, row in zip([kind for kind in (False, True) if kind not in there], free, strict=False):
            show = await self._app.catalogue.show_on_sale(row["id"])
            names = [category.name for category in show.layout.categories]
            prices, step = dict(zip(names, show.prices, strict=True)), ROUND_TO[show.currency]
            await editor.put(
                show.show_id,
                by_demand(prices, show.currency, step)
                if is_demand
                else early_price(prices, show.currency, show.starts_at, step),
            )

    def _may_move(self, row: Any) -> bool:
        """Whether a row is a concert on sale some days away, and not one of the shows to try first."""
        if row["title"] in NAMED or KINDS.get(row["title"]) is not Kind.CONCERT:
            return False
        return bool(row["opens_at"] <= self._now and row["starts_at"] > self._now + timedelta(days=3))

    async def _opening_soon(self) -> int:
        """A show that goes on sale in two minutes: one that is not on sale yet, or a new date."""
        opens_at = self._now + OPENS_IN
        nights = [
            row for row in await self._to_come(self._app.postgres) if row["title"] == OPENING_SOON_TITLE
        ]
        for row in nights:
            if row["opens_at"] > self._now:
                editor = self._app.show_editor(Scope(0, is_admin=True))
                return (await editor.change_show(row["id"], ShowChange(opens_at=opens_at))).id
        last = max([row["starts_at"] for row in nights], default=_evening(self._now, days=11))
        return await self._add(OPENING_SOON_TITLE, OPENING_SOON_HALL, last + timedelta(days=1), opens_at)

    async def _nearly_sold_out(self) -> int:
        """A show with a long guest list: free tickets, confirmed at once. The last seats are for sale."""
        rows = await self._to_come(self._app.postgres)
        known = [row for row in rows if row["title"] == NEARLY_SOLD_OUT_TITLE]
        if known and known[-1]["starts_at"] > self._now + timedelta(days=1):
            return int(known[-1]["id"])
        starts_at = _evening(self._now, days=6)
        show_id = await self._add(NEARLY_SOLD_OUT_TITLE, NEARLY_SOLD_OUT_HALL, starts_at, self._now)
        await self._fill_guest_list(show_id)
        return show_id

    async def _fill_guest_list(self, show_id: int) -> None:
        """Booked through the ledger like any other booking; two pairs of good seats stay free."""
        show = await self._app.catalogue.show_on_sale(show_id)
        pairs = [run.start + run.length // 2 for run in show.layout.runs if run.length >= GUEST_SEATS * 2]
        left = {seat for start in pairs[-SEATS_LEFT // 2 :] for seat in (start, start + 1)}
        seats = [seat for seat in range(show.layout.seat_count) if seat not in left]
        orders = [tuple(seats[at : at + GUEST_SEATS]) for at in range(0, len(seats), GUEST_SEATS)]
        names = [f"guest{number:02}" for number in range(1, len(orders) // 2 + 2)]
        guests = await self._app.accounts.add_many(
            [NewAccount(f"{name}@holdfast.example", f"Guest {name[5:]}") for name in names]
        )
        openings = [
            Opening(
                show_id=show_id,
                owner_id=guests[place // 2],
                request_id=f"guest list {place}",
                body_hash=place,
                claim_id=compute_claim_id(guests[place // 2], f"guest list {place}"),
                note="guest list",
                ttl_ms=show.hold_ttl_s * 1000,
                claimed_at_s=time.monotonic(),
                revision=show.revision,
                currency=show.currency,
                seats=order,
                prices=(0,) * len(order),
                ledger_only=True,
            )
            for place, order in enumerate(orders)
        ]
        for answer in await self._app.bookings.open_many(openings):
            assert isinstance(answer, Booking), answer

    async def _add(self, title: str, hall: tuple[str, str], starts_at: datetime, opens_at: datetime) -> int:
        planned = self._plan(title, hall, starts_at, opens_at)
        async with self._app.postgres.transaction() as tx:
            [show_id] = await add_shows(tx, [planned])
        return show_id

    def _planned(self, show: ScheduledShow, starts_at: datetime) -> PlannedShow:
        opens_at = starts_at - timedelta(days=SALE_OPENS_DAYS)
        return self._plan(show.title, (show.venue, show.hall), starts_at, opens_at)

    def _plan(
        self, title: str, hall: tuple[str, str], starts_at: datetime, opens_at: datetime
    ) -> PlannedShow:
        event_id, length = self._events[title]
        where = self._halls[hall]
        city = CITY[where.city]
        free = title == FREE_TITLE
        return PlannedShow(
            event_id=event_id,
            hall_id=where.id,
            layout_hash=where.layout_hash,
            times=Times(
                starts_at=starts_at, ends_at=starts_at + length, opens_at=opens_at, closes_at=starts_at
            ),
            currency=city.currency,
            prices={name: 0 if free else price_minor(city, name) for name in where.categories},
            terms=terms_for(city, KINDS[title]),
        )

    async def _to_come(self, tx: Queryable) -> list[Any]:
        rows: list[Any] = await tx.fetch(Q.shows_to_come, [hall.id for hall in self._halls.values()])
        return rows


def _evening(now: datetime, *, days: int) -> datetime:
    """Half past seven in India, which is fourteen hours sharp in UTC, summer and winter."""
    return (now + timedelta(days=days)).replace(hour=14, minute=0, second=0, microsecond=0)
