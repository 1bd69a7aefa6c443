"""Writes cities, venues, halls, layouts and events, one by one or in bulk."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import asyncpg
import msgspec

from holdfast.catalogue import (
    City,
    Hall,
    Kind,
    NoSuchCity,
    NoSuchEvent,
    NoSuchHall,
    NoSuchVenue,
    parse_refund_policy,
    poster_url,
    store_layout,
    uploaded_poster_url,
)
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction
from holdfast.errors import Invalid
from holdfast.layouts import Layout, NoSuchLayout
from holdfast.organisers.errors import NameTaken, NotForOrganisers
from holdfast.organisers.forms import (
    CityChange,
    EventChange,
    Form,
    HallChange,
    ManagedEvent,
    ManagedVenue,
    NewCity,
    NewEvent,
    NewHall,
    NewVenue,
    Paging,
    StoredLayout,
    VenueChange,
)
from holdfast.web.audit_log import AuditEntry, record_change, record_new
from holdfast.web.caller import Scope

if TYPE_CHECKING:
    from holdfast.organisers.poster_images import PosterImages

Q = Queries("holdfast.organisers")
BULK = Queries("holdfast.organisers", "bulk")
Row = TypeVar("Row", bound=msgspec.Struct)


class CatalogueEditor:
    def __init__(self, postgres: Postgres, scope: Scope) -> None:
        self._postgres = postgres
        self._scope = scope
        self._organiser_id = scope.organiser_id
        self.changed_shows: list[int] = []  # that are hidden now, or public again: cached ones are outdated

    async def add_city(self, new: NewCity) -> City:
        await self._refuse_unknown_timezone(new.timezone)
        try:
            async with self._postgres.transaction() as tx:
                city_id = await tx.fetchval(Q.add_city, *list_values(new))
                city = City(id=city_id, **new.given())
                await record_new(tx, _city_entry("city.created", city), city)
        except asyncpg.UniqueViolationError:
            raise NameTaken(field="slug") from None
        return city

    async def change_city(self, city_id: int, change: CityChange) -> City:
        if change.timezone is not msgspec.UNSET:
            await self._refuse_unknown_timezone(change.timezone)
        try:
            async with self._postgres.transaction() as tx:
                row = await tx.fetchrow(Q.lock_city, city_id)
                if row is None:
                    raise NoSuchCity(city_id=city_id)
                before = City(**row)
                city = apply_change(before, change)
                await tx.execute(Q.change_city, *list_values(city))
                await record_change(tx, _city_entry("city.changed", city), before, city)
        except asyncpg.UniqueViolationError:
            raise NameTaken(field="slug") from None
        return city

    async def cities(self, paging: Paging) -> tuple[int, list[City]]:
        total, rows = await fetch_page(self._postgres, Q.list_cities, (), paging)
        return total, [build_from_row(City, row) for row in rows]

    async def add_venue(self, new: NewVenue) -> ManagedVenue:
        city_id, *rest = list_values(new)
        async with self._postgres.transaction() as tx:
            venue_id = await tx.fetchval(Q.add_venue, city_id, self._organiser_id, *rest)
            if venue_id is None:
                raise NoSuchCity(city_id=city_id)
            venue = await self._venue(tx, venue_id)
            await record_new(tx, _venue_entry("venue.created", venue), venue)
        return venue

    async def change_venue(self, venue_id: int, change: VenueChange) -> ManagedVenue:
        async with self._postgres.transaction() as tx:
            before = await self._own_venue(tx, venue_id)
            venue = apply_change(before, change)
            columns = (venue.city_id, venue.name, venue.address, venue.postal_code, venue.lat, venue.lon)
            if await tx.fetchval(Q.change_venue, venue_id, *columns, venue.published) is None:
                raise NoSuchCity(city_id=venue.city_id)
            after = await self._venue(tx, venue_id)
            if after.published != before.published:
                rows = await tx.fetch(Q.refresh_visibility, None, venue_id, None)
                self.changed_shows = [row["show_id"] for row in rows]
            await record_change(tx, _venue_entry(name_change("venue", before, after), after), before, after)
        return after

    async def venues(self, paging: Paging) -> tuple[int, list[ManagedVenue]]:
        total, rows = await fetch_page(self._postgres, Q.list_venues, (self._organiser_id,), paging)
        return total, [build_from_row(ManagedVenue, row) for row in rows]

    async def add_hall(self, new: NewHall) -> Hall:
        try:
            async with self._postgres.transaction() as tx:
                venue = await self._own_venue(tx, new.venue_id)
                layout = await self._layout(tx, new.layout_hash)
                hall_id = await tx.fetchval(Q.add_hall, new.venue_id, new.name, new.layout_hash)
                hall = Hall(id=hall_id, seats=layout["seats"], **new.given())
                await record_new(tx, _hall_entry("hall.created", hall, venue.organiser_id), hall)
        except asyncpg.UniqueViolationError:
            raise NameTaken(field="name") from None
        return hall

    async def change_hall(self, hall_id: int, change: HallChange) -> Hall:
        try:
            async with self._postgres.transaction() as tx:
                row = await tx.fetchrow(Q.hall, hall_id, self._organiser_id)
                if row is None:
                    raise NoSuchHall(hall_id=hall_id)
                self._refuse_unless_own(row["organiser_id"])
                before = build_from_row(Hall, row)
                hall = apply_change(before, change)
                layout = await self._layout(tx, hall.layout_hash)
                hall = msgspec.structs.replace(hall, seats=layout["seats"])
                await tx.execute(Q.change_hall, hall_id, hall.name, hall.layout_hash)
                entry = _hall_entry("hall.changed", hall, row["organiser_id"])
                await record_change(tx, entry, before, hall)
        except asyncpg.UniqueViolationError:
            raise NameTaken(field="name") from None
        return hall

    async def halls(self, paging: Paging, venue_id: int | None) -> tuple[int, list[Hall]]:
        total, rows = await fetch_page(self._postgres, Q.list_halls, (self._organiser_id,), paging, venue_id)
        return total, [build_from_row(Hall, row) for row in rows]

    async def add_layout(self, layout: Layout) -> StoredLayout:
        """The hash is the content, so storing a layout again changes nothing."""
        async with self._postgres.transaction() as tx:
            await store_layout(tx, layout)
            if not self._scope.must_choose:  # admins see all layouts, also those without an owner
                await tx.execute(Q.add_layout_owner, layout.hash, self._scope.owner_id)
            stored = StoredLayout(hash=layout.hash, name=layout.name, seats=layout.seat_count)
            subject = ("layout", stored.hash)
            entry = AuditEntry(action="layout.uploaded", subject=subject, organiser_id=self._organiser_id)
            await record_new(tx, replace(entry, name=stored.name), stored)
        return stored

    async def layout_body(self, layout_hash: str) -> bytes:
        body: str = (await self._layout(self._postgres, layout_hash))["body"]
        return body.encode()

    async def layouts(self, paging: Paging) -> tuple[int, list[StoredLayout]]:
        total, rows = await fetch_page(self._postgres, Q.list_layouts, (self._organiser_id,), paging)
        return total, [build_from_row(StoredLayout, row) for row in rows]

    async def add_event(self, new: NewEvent) -> ManagedEvent:
        self._refuse_featuring(new.featured)
        if new.poster:
            raise _upload_instead()
        owner = self._scope.owner_id
        async with self._postgres.transaction() as tx:
            event_id = await tx.fetchval(Q.add_event, owner, *_columns(new))
            event = ManagedEvent(id=event_id, organiser_id=owner, **new.given())
            await record_new(tx, _event_entry("event.created", event), event)
        return event

    async def change_event(self, event_id: int, change: EventChange) -> ManagedEvent:
        async with self._postgres.transaction() as tx:
            before = await self._event(tx, event_id)
            event = apply_change(before, change)
            self._refuse_featuring(event.featured and not before.featured)
            if event.poster != before.poster:
                if event.poster not in ("", poster_url(event_id, "")):
                    raise _upload_instead()
                event = msgspec.structs.replace(event, poster="")
                await tx.execute(Q.remove_poster, event_id)
            await tx.execute(Q.change_event, event_id, *_columns(event))
            if event.published != before.published:
                rows = await tx.fetch(Q.refresh_visibility, event_id, None, None)
                self.changed_shows = [row["show_id"] for row in rows]
            await record_change(tx, _event_entry(name_change("event", before, event), event), before, event)
        return event

    async def set_poster(self, event_id: int, images: "PosterImages") -> ManagedEvent:
        """Replace the poster; the old images are deleted."""
        async with self._postgres.transaction() as tx:
            event = await self._event(tx, event_id)
            url = uploaded_poster_url(event_id, images.hash)
            await tx.execute(Q.remove_poster, event_id)
            sizes = (list(images.by_width), list(images.by_width.values()))
            await tx.execute(Q.add_poster, event_id, images.hash, *sizes)
            await tx.execute(Q.set_poster, event_id, url)
            after = msgspec.structs.replace(event, poster=url)
            await record_change(tx, _event_entry("event.changed", event), event, after)
        return after

    async def event(self, event_id: int) -> ManagedEvent:
        async with self._postgres.transaction() as tx:
            return await self._event(tx, event_id)

    async def events(self, paging: Paging) -> tuple[int, list[ManagedEvent]]:
        total, rows = await fetch_page(self._postgres, Q.list_events, (self._organiser_id,), paging)
        return total, [_event(row) for row in rows]

    async def _venue(self, tx: Transaction, venue_id: int) -> ManagedVenue:
        if row := await tx.fetchrow(Q.venue, venue_id, self._organiser_id):
            return ManagedVenue(**row)
        raise NoSuchVenue(venue_id=venue_id)

    async def _own_venue(self, tx: Transaction, venue_id: int) -> ManagedVenue:
        venue = await self._venue(tx, venue_id)
        self._refuse_unless_own(venue.organiser_id)
        return venue

    async def _layout(self, tx: Queryable, layout_hash: str) -> Any:
        if row := await tx.fetchrow(Q.layout, layout_hash, self._organiser_id):
            return row
        raise NoSuchLayout(layout=layout_hash)

    async def _event(self, tx: Transaction, event_id: int) -> ManagedEvent:
        if row := await tx.fetchrow(Q.event, event_id, self._organiser_id):
            return _event(row)
        raise NoSuchEvent(event_id=event_id)

    def _refuse_unless_own(self, organiser_id: int | None) -> None:
        """All organisers may use shared venues; only admins change them."""
        if not self._scope.is_admin and organiser_id is None:
            raise NotForOrganisers

    def _refuse_featuring(self, wanted: bool) -> None:
        if wanted and not self._scope.is_admin:
            raise NotForOrganisers(field="featured")

    async def _refuse_unknown_timezone(self, timezone: str) -> None:
        if not await self._postgres.fetchval(Q.known_timezone, timezone):
            raise Invalid(field="timezone", detail="Expected an IANA name like Europe/Paris.")


async def fetch_page(
    postgres: Postgres, sql: str, before: Sequence[object], paging: Paging, *after: object
) -> tuple[int, list[Any]]:
    """The total, and the rows of one page. A page after the last one is empty."""
    rows = await postgres.fetch(sql, *before, paging.size, (paging.page - 1) * paging.size, *after)
    some = rows or (await postgres.fetch(sql, *before, 1, 0, *after) if paging.page > 1 else [])
    return (some[0]["total"] if some else 0), rows


def build_from_row(kind: type[Row], row: Any) -> Row:
    """Build a struct from a row that has at least its fields."""
    return kind(**{name: row[name] for name in kind.__struct_fields__})


def apply_change(before: Row, change: Form) -> Row:
    return msgspec.structs.replace(before, **change.given())


def list_values(form: msgspec.Struct) -> list[Any]:
    """The fields in the order of the form, which is the order of the query's parameters."""
    return [getattr(form, name) for name in form.__struct_fields__]


class Publishable(Protocol):
    @property
    def published(self) -> bool: ...


def name_change(kind: str, before: Publishable, after: Publishable) -> str:
    """For the audit log: "event.published", "event.unpublished" or "event.changed"."""
    if before.published == after.published:
        return f"{kind}.changed"
    return f"{kind}.published" if after.published else f"{kind}.unpublished"


def _city_entry(action: str, city: City) -> AuditEntry:
    return AuditEntry(action=action, subject=("city", city.id), name=city.name)


def _venue_entry(action: str, venue: ManagedVenue) -> AuditEntry:
    subject = ("venue", venue.id)
    return AuditEntry(action=action, subject=subject, name=venue.name, organiser_id=venue.organiser_id)


def _hall_entry(action: str, hall: Hall, organiser_id: int | None) -> AuditEntry:
    return AuditEntry(action=action, subject=("hall", hall.id), name=hall.name, organiser_id=organiser_id)


def _event_entry(action: str, event: ManagedEvent) -> AuditEntry:
    subject = ("event", event.id)
    return AuditEntry(action=action, subject=subject, name=event.title, organiser_id=event.organiser_id)


def _upload_instead() -> Invalid:
    detail = (
        "Pages show posters from here only: upload the picture with PUT /api/v1/admin/events/{event}/poster."
    )
    return Invalid(field="poster", detail=detail)


def _event(row: Any) -> ManagedEvent:
    return msgspec.structs.replace(
        build_from_row(ManagedEvent, row), kind=Kind(row["kind"]), refund_policy=parse_refund_policy(row)
    )


def _columns(event: NewEvent | ManagedEvent) -> list[Any]:
    """The fields of an event that an organiser sets, in the order of the query parameters."""
    *plain, policy = (getattr(event, name) for name in NewEvent.__struct_fields__)
    return [*plain, msgspec.json.encode(policy).decode()]


async def add_cities(tx: Transaction, cities: Iterable[tuple[Any, ...]]) -> None:
    """(slug, name, country, timezone, lat, lon) each."""
    await tx.execute(BULK.add_cities, *_transpose(cities))


async def add_venues(tx: Transaction, venues: Iterable[tuple[Any, ...]]) -> None:
    """(slug of the city, name, address, postal code, lat, lon) each."""
    await tx.execute(BULK.add_venues, *_transpose(venues))


async def add_halls(tx: Transaction, halls: Iterable[tuple[str, str, str]]) -> None:
    """(venue, name, hash of the layout) each."""
    await tx.execute(BULK.add_halls, *_transpose(halls))


async def load_halls(tx: Queryable, venues: Sequence[str]) -> list[Any]:
    rows: list[Any] = await tx.fetch(BULK.halls, list(venues))
    return rows


async def add_events(tx: Transaction, organiser_id: int, events: Iterable[tuple[Any, ...]]) -> None:
    """(kind, title, genre, language, minutes, rating, description, featured, people, refund policy) each."""
    await tx.execute(BULK.add_events, organiser_id, *_transpose(events))


async def load_events(tx: Queryable, organiser_id: int) -> list[Any]:
    rows: list[Any] = await tx.fetch(BULK.events, organiser_id)
    return rows


async def load_price_plans(tx: Queryable, show_ids: Sequence[int]) -> list[Any]:
    rows: list[Any] = await tx.fetch(BULK.price_plans, list(show_ids))
    return rows


def _transpose(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Arrays for unnest()."""
    return [list(column) for column in zip(*rows, strict=True)]
