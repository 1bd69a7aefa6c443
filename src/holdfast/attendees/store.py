"""Finds bookings and attendees of an organiser's shows. Reads views of other folders; writes nothing.

    term ─► an id · a mail address · with a show: a seat · a reference · a name ─► keys ─► bookings
            each by its own index; the first that finds something

An organiser is None for an admin, who sees all.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime

from holdfast.attendees.errors import TooManyPeople
from holdfast.attendees.page import (
    ATTENDEE_COLUMNS,
    BIGINT_MAX,
    BOOKING_COLUMNS,
    PAGE_MAX,
    Attendee,
    AttendeeFilter,
    AttendeeList,
    AttendeeQuery,
    BookingDossier,
    BookingFilter,
    BookingQuery,
    FoundBooking,
    FoundBookings,
    SoldState,
    attendee_row,
    booking_row,
    build_attendee,
    build_booking,
    build_step,
    parse_ticket_place,
)
from holdfast.attendees.term import SearchTerm
from holdfast.bookings import NoSuchBooking, from_public_id, public_id
from holdfast.catalogue import Catalogue, NoSuchEvent, NoSuchShow, ShowOnSale
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.errors import Invalid
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.csv_export import to_csv

Q = Queries("holdfast.attendees")
SHOWS_MAX = 5_000  # whose bookings are searched by reference without naming a show: the latest ones
PEOPLE_MAX = 2_000  # who have a name or an address that is searched for
STEPS_MAX = 500

BookingKey = tuple[int, int]  # show_id, number
PageLoader = Callable[[int], Awaitable[list[FoundBooking]]]  # those before a number, at most PAGE_MAX


class AttendeeStore:
    def __init__(self, postgres: Postgres, catalogue: Catalogue) -> None:
        self._postgres = postgres
        self._catalogue = catalogue

    async def search(self, organiser_id: int | None, wanted: BookingQuery) -> FoundBookings:
        before = from_public_id(wanted.before)[1] if wanted.before else BIGINT_MAX
        found = await self._search(organiser_id, wanted, before, wanted.size + 1)
        keys, more = found[: wanted.size], len(found) > wanted.size
        return FoundBookings(await self._load(keys), public_id(*keys[-1]) if more else None)

    async def dossier(self, organiser_id: int | None, key: BookingKey) -> BookingDossier:
        await self._own_show(key[0], organiser_id, NoSuchBooking)
        found = await self._load([key])
        if not found:
            raise NoSuchBooking
        show = await self._catalogue.show_on_sale(key[0])
        rows = await self._postgres.fetch(Q.moves, *key, STEPS_MAX)
        tickets = await self._postgres.fetch(Q.attendees, key[0], 0, -1, True, key[1], PAGE_MAX)
        return BookingDossier(
            booking=found[0],
            tickets=[build_attendee(row, show) for row in tickets],
            steps=[build_step(row) for row in rows],
        )

    async def attendees(self, show_id: int, organiser_id: int | None, wanted: AttendeeQuery) -> AttendeeList:
        show = await self._own_show(show_id, organiser_id)
        place = parse_ticket_place(wanted.after) if wanted.after else (0, -1)
        found = await self._attendees(show, wanted.given_back, place, wanted.size + 1)
        shown, more = found[: wanted.size], len(found) > wanted.size
        (number, seat), _ = shown[-1] if more else ((0, 0), None)
        last = f"{public_id(show_id, number)}-{seat}" if more else None
        return AttendeeList([one for _, one in shown], last)

    async def page(
        self, organiser_id: int | None, wanted: BookingFilter, before: int, limit: int = PAGE_MAX
    ) -> list[FoundBooking]:
        return await self._load(await self._search(organiser_id, wanted, before, limit))

    async def export_bookings(
        self, organiser_id: int | None, wanted: BookingFilter, load: PageLoader | None = None
    ) -> AsyncIterator[bytes]:
        """CSV. That it was exported is in the audit log before the first row is.

        `load`: other bookings than those of this database.
        """
        shows = await self._shows(organiser_id, wanted)
        subject = ("show", wanted.show) if wanted.show is not None else ("event", wanted.event or 0)
        entry = AuditEntry(
            action="bookings.exported",
            subject=subject,
            organiser_id=organiser_id,
            show_id=shows[0] if shows else None,
            personal={"q": wanted.q},
        )
        await record(self._postgres, entry)
        return _booking_sheet(load or (lambda before: self.page(organiser_id, wanted, before)))

    async def export_attendees(
        self, show_id: int, organiser_id: int | None, wanted: AttendeeFilter
    ) -> AsyncIterator[bytes]:
        show = await self._own_show(show_id, organiser_id)
        entry = AuditEntry(
            action="attendees.exported", subject=("show", show_id), show_id=show_id, name=show.title
        )
        await record(self._postgres, entry)
        return self._attendee_sheet(show, wanted.given_back)

    async def _attendee_sheet(self, show: ShowOnSale, given_back: bool) -> AsyncIterator[bytes]:
        yield to_csv([ATTENDEE_COLUMNS])
        place = 0, -1
        while found := await self._attendees(show, given_back, place, PAGE_MAX):
            yield to_csv(attendee_row(one) for _, one in found)
            place = found[-1][0]

    async def _attendees(
        self, show: ShowOnSale, given_back: bool, after: tuple[int, int], limit: int
    ) -> list[tuple[tuple[int, int], Attendee]]:
        """By (number, seat)."""
        async with self._postgres.fresh_plans() as tx:
            rows = await tx.fetch(Q.attendees, show.show_id, *after, given_back, None, limit)
        return [((row["number"], row["seat"]), build_attendee(row, show)) for row in rows]

    async def _search(
        self, organiser_id: int | None, wanted: BookingFilter, before: int, limit: int
    ) -> list[BookingKey]:
        shows = await self._shows(organiser_id, wanted)
        async with self._postgres.fresh_plans() as tx:
            if not wanted.q.strip():
                return await _newest(tx, shows, wanted.state, before, limit)
            label_of = (await self._catalogue.show_on_sale(wanted.show)).layout if wanted.show else None
            term = SearchTerm(wanted.q)
            seat = label_of.index_of.get(wanted.q.strip()) if label_of else None
            exact = await _exact(tx, term, organiser_id, shows)
            if not exact and seat is not None and wanted.show is not None:
                exact = _keys(await tx.fetch(Q.seat_holder, wanted.show, seat))
            if exact:
                return [key for key in exact if key[1] < before and _is_within(key, wanted, shows)][:limit]
            return await _by_person(tx, term, organiser_id, wanted.show, (before, limit))

    async def _shows(self, organiser_id: int | None, wanted: BookingFilter) -> list[int]:
        if wanted.show is not None:
            await self._own_show(wanted.show, organiser_id)
            return [wanted.show]
        if wanted.event is None and not wanted.q.strip():
            raise Invalid(field="q", detail="Expected a search term, a show or an event.")
        if wanted.event is None and not SearchTerm(wanted.q).is_like_reference:
            return []  # other terms are searched in all shows at once
        rows = await self._postgres.fetch(Q.shows_of, organiser_id, wanted.event, SHOWS_MAX)
        if wanted.event is not None and not rows:
            raise NoSuchEvent(event_id=wanted.event)
        return [row["show_id"] for row in rows]

    async def _load(self, keys: Sequence[BookingKey]) -> list[FoundBooking]:
        rows = await self._postgres.fetch(Q.bookings, [key[0] for key in keys], [key[1] for key in keys])
        return [build_booking(row, await self._catalogue.show_on_sale(row["show_id"])) for row in rows]

    async def _own_show(
        self, show_id: int, organiser_id: int | None, refusal: type[NoSuchBooking] | None = None
    ) -> ShowOnSale:
        try:
            return await self._catalogue.organiser_show(show_id, organiser_id)
        except NoSuchShow:
            if refusal is None:
                raise
            raise refusal from None


async def _booking_sheet(load: PageLoader) -> AsyncIterator[bytes]:
    yield to_csv([BOOKING_COLUMNS])
    before = BIGINT_MAX
    while found := await load(before):
        yield to_csv(booking_row(one) for one in found)
        before = from_public_id(found[-1].booking_id)[1]


async def _newest(
    tx: Transaction, shows: Sequence[int], state: SoldState, before: int, limit: int
) -> list[BookingKey]:
    if state is SoldState.ALL:
        return _keys(await tx.fetch(Q.newest_of_any_state, shows, before, limit))
    one_state = None if state is SoldState.SOLD else state.value
    return _keys(await tx.fetch(Q.newest, shows, one_state, before, limit))


async def _exact(
    tx: Transaction, term: SearchTerm, organiser_id: int | None, shows: Sequence[int]
) -> list[BookingKey]:
    """By id or reference."""
    if (booking := term.booking) is not None:
        candidates = [booking]
    else:
        candidates = list(term.list_references(shows, datetime.now(UTC)))
    if not candidates:
        return []
    arrays = [key[0] for key in candidates], [key[1] for key in candidates]
    found = _keys(await tx.fetch(Q.existing, *arrays, organiser_id))
    return sorted(found, key=lambda key: -key[1])


async def _by_person(
    tx: Transaction,
    term: SearchTerm,
    organiser_id: int | None,
    show_id: int | None,
    page: tuple[int, int],  # before, limit
) -> list[BookingKey]:
    name = term.name_query
    if (email := term.email) is not None:
        rows = await tx.fetch(Q.people_by_email, email, PEOPLE_MAX)
    elif name is None:
        return []
    elif show_id is not None:
        return _keys(await tx.fetch(Q.named_in_show, show_id, name, *page))
    else:
        rows = await tx.fetch(Q.people_by_name, name, PEOPLE_MAX + 1)
        if len(rows) > PEOPLE_MAX:
            raise TooManyPeople(limit=PEOPLE_MAX)
    people = [row["id"] for row in rows]
    return _keys(await tx.fetch(Q.of_people, people, email, organiser_id, show_id, *page))


def _is_within(key: BookingKey, wanted: BookingFilter, shows: Sequence[int]) -> bool:
    return (wanted.show is None and wanted.event is None) or key[0] in shows


def _keys(rows: Sequence[object]) -> list[BookingKey]:
    return [(row["show_id"], row["number"]) for row in rows]  # type: ignore[index]
