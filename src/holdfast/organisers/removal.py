"""Deletes shows, events, venues and halls while nothing is sold.

    lock show ─► lock sale (no hold can be opened) ─► sold? ─► refuse
                                                      └ no ─► hidden and deleted, in one transaction

A hold that comes first is seen under the lock, and the show stays; one that comes later finds a sale that is
closed. Rows are marked, not removed: bookings that lapsed, prices and the audit log refer to them. In the pod
that sells a show, a fence takes the place of the lock (pods/close.py), and what is sold is read there.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from holdfast.bookings import is_sold, lock_sale
from holdfast.catalogue import Catalogue, NoSuchEvent, NoSuchHall, NoSuchShow, NoSuchVenue
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.organisers.errors import NotForOrganisers, SomethingSold, StillInUse
from holdfast.pods import ShowCloser, closing_shows
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.caller import Scope

Q = Queries("holdfast.organisers", "removal")
CATALOGUE_EDITS = Queries("holdfast.organisers")
SHOWS = Queries("holdfast.organisers", "shows")


class CatalogueRemover:
    """Deletes what belongs to an organiser; an admin deletes everything."""

    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        scope: Scope,
        database_for: Callable[[str], Postgres | None] | None = None,
    ) -> None:
        """`database_for`: the databases of pods; None: there are none."""
        self._database_for = database_for
        self._postgres = postgres
        self._catalogue = catalogue
        self._scope = scope
        self._organiser_id = scope.organiser_id

    async def delete_show(self, show_id: int) -> None:
        async with self._postgres.transaction() as tx, self._closing(tx) as closer:
            show = await tx.fetchrow(SHOWS.show, show_id, self._organiser_id)
            if show is None:
                raise NoSuchShow(show_id=show_id)
            await self._delete_shows(tx, [show_id], closer)
            title = await tx.fetchval(SHOWS.title_of_event, show["event_id"])
            subject = ("show", show_id)
            entry = AuditEntry(action="show.deleted", subject=subject, show_id=show_id, name=title)
            await record(tx, entry)
        self._forget([show_id])

    async def delete_event(self, event_id: int) -> None:
        """With its shows, unless one of them has sold something."""
        async with self._postgres.transaction() as tx, self._closing(tx) as closer:
            event = await tx.fetchrow(CATALOGUE_EDITS.event, event_id, self._organiser_id)
            if event is None:
                raise NoSuchEvent(event_id=event_id)
            shows = [row["id"] for row in await tx.fetch(Q.lock_shows_of_event, event_id)]
            await self._delete_shows(tx, shows, closer)
            await tx.execute(Q.delete_event, event_id)
            entry = AuditEntry(
                action="event.deleted",
                subject=("event", event_id),
                organiser_id=event["organiser_id"],
                name=event["title"],
                before={"shows": shows},
            )
            await record(tx, entry)
        self._forget(shows)

    async def delete_venue(self, venue_id: int) -> None:
        """With its halls, unless a show is in one of them."""
        async with self._postgres.transaction() as tx:
            venue = await tx.fetchrow(CATALOGUE_EDITS.venue, venue_id, self._organiser_id)
            if venue is None:
                raise NoSuchVenue(venue_id=venue_id)
            self._refuse_shared(venue["organiser_id"])
            halls = [row["id"] for row in await tx.fetch(Q.lock_halls_of_venue, venue_id)]
            await self._delete_halls(tx, halls)
            await tx.execute(Q.delete_venue, venue_id)
            entry = AuditEntry(
                action="venue.deleted",
                subject=("venue", venue_id),
                organiser_id=venue["organiser_id"],
                name=venue["name"],
                before={"halls": halls},
            )
            await record(tx, entry)
        self._forget([])

    async def delete_hall(self, hall_id: int) -> None:
        async with self._postgres.transaction() as tx:
            hall = await tx.fetchrow(CATALOGUE_EDITS.hall, hall_id, self._organiser_id)
            if hall is None:
                raise NoSuchHall(hall_id=hall_id)
            self._refuse_shared(hall["organiser_id"])
            await self._delete_halls(tx, [hall_id])
            subject, organiser_id = ("hall", hall_id), hall["organiser_id"]
            entry = AuditEntry(
                action="hall.deleted", subject=subject, organiser_id=organiser_id, name=hall["name"]
            )
            await record(tx, entry)
        self._forget([])

    def _closing(self, tx: Transaction) -> AbstractAsyncContextManager[ShowCloser | None]:
        return closing_shows(tx, self._database_for) if self._database_for is not None else nullcontext()

    async def _delete_shows(self, tx: Transaction, shows: Sequence[int], closer: ShowCloser | None) -> None:
        """The caller has locked the shows; their sales are locked in the order of their ids."""
        for show_id in sorted(shows):
            await lock_sale(tx, show_id)
            closed = await closer.close(show_id) if closer is not None else None
            if closed is None:
                await _refuse_sold(tx, show_id)
            else:
                async with closed.database.transaction() as there:
                    await _refuse_sold(there, show_id)
            await tx.execute(Q.delete_show, show_id)
            await tx.execute(Q.delete_price_plan, show_id)
            await tx.fetch(CATALOGUE_EDITS.refresh_visibility, None, None, show_id)

    async def _delete_halls(self, tx: Transaction, halls: Sequence[int]) -> None:
        """The caller has locked the halls: no show can be added meanwhile."""
        if (show_id := await tx.fetchval(Q.show_in_halls, list(halls))) is not None:
            raise StillInUse(show_id=show_id)
        await tx.execute(Q.delete_halls, list(halls))

    def _refuse_shared(self, organiser_id: int | None) -> None:
        if not self._scope.is_admin and organiser_id is None:
            raise NotForOrganisers

    def _forget(self, shows: Sequence[int]) -> None:
        for show_id in shows:
            self._catalogue.forget(show_id)
        self._catalogue.clear_cached_responses()


async def _refuse_sold(tx: Transaction, show_id: int) -> None:
    if await is_sold(tx, show_id) or await tx.fetchval(Q.has_payments, show_id):
        raise SomethingSold(show_id=show_id)
