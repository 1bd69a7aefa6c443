"""The waitlist as routes and pages use it."""

from datetime import UTC, datetime

import structlog

from holdfast.bookings import Booking, BookingState, NoSuchBooking
from holdfast.catalogue import Catalogue, ShowOnSale
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres
from holdfast.holds import HoldService, NotOnSale
from holdfast.refunds import RefundService
from holdfast.seatmap import SeatMap
from holdfast.waitlist.entry import (
    EntryState,
    JoinBody,
    NewEntry,
    PartiesQuery,
    PartyList,
    WaitlistPage,
    parse_join,
    seat_labels,
)
from holdfast.waitlist.errors import NoSuchReturn, NotWaiting, SeatsAvailable
from holdfast.waitlist.matching import Matcher, Wish
from holdfast.waitlist.offers import OfferSteps
from holdfast.waitlist.returns import Returns
from holdfast.waitlist.store import WaitlistStore

log = structlog.get_logger(__name__)


class Waitlists:
    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        seatmap: SeatMap,
        refunds: RefundService,
        holds: HoldService,
        config: Config,
    ) -> None:
        self.store = WaitlistStore(postgres, holds.bookings)
        self.returns = Returns(postgres, holds.bookings, refunds)
        self.steps = OfferSteps(postgres, catalogue, holds, self.returns, config)
        self._catalogue = catalogue
        self._seatmap = seatmap
        self._holds = holds
        self._config = config

    async def join(
        self, show_id: int, owner_id: int, body: JoinBody, queue_position: int | None = None
    ) -> tuple[WaitlistPage, bool]:
        """The list with my entry, and whether the entry is new."""
        show = await self._catalogue.public_show(show_id)
        if not await self.store.is_joinable(show_id):
            raise NotOnSale(opens_at=show.opens_at, closes_at=show.closes_at, cancelled=show.cancelled)
        new = parse_join(body, show, owner_id, datetime.now(UTC), queue_position)
        if await self.store.live_entry(show_id, owner_id) is None:
            await self._refuse_if_on_sale(show, new)
        joined = await self.store.add(new)
        if joined.is_first:
            await self._rebuild_map(show_id)
        return await self.page(show_id, owner_id), joined.is_new

    async def page(self, show_id: int, owner_id: int) -> WaitlistPage:
        show = await self._catalogue.show_on_sale(show_id)
        figures = await self.store.figures(show)
        return WaitlistPage(
            show_id=show_id,
            can_join=await self.store.is_joinable(show_id),
            parties=figures.parties,
            offered_seats=figures.offered_seats,
            freed_percent=round(100 * figures.offered_seats / figures.capacity, 1),
            days=figures.days,
            offer_window_s=self._config.waitlist_offer_s,
            entry=await self.store.entry_page(show, owner_id, figures),
        )

    async def leave(self, show_id: int, owner_id: int) -> None:
        """An open offer is declined with it."""
        entry = await self.store.live_entry(show_id, owner_id)
        if entry is None:
            raise NotWaiting()
        if entry.state is EntryState.OFFERED and (booking := await self.store.offer_of(entry)) is not None:
            await self.decline(booking)
            return
        await self.store.leave(entry)
        await self.steps.run(show_id)

    async def decline(self, booking: Booking) -> WaitlistPage:
        """The seats go to the next party at once."""
        if not booking.is_offer:
            raise NoSuchBooking()
        await self._holds.cancel(booking)
        await self.steps.run(booking.show_id)
        return await self.page(booking.show_id, booking.owner_id)

    async def return_state(self, booking: Booking, show: ShowOnSale) -> str:
        """Of the last offer of a booking's tickets to the waitlist; empty: there was none."""
        if booking.state is not BookingState.CONFIRMED:
            return ""
        try:
            return (await self.returns.page(booking, show)).state
        except NoSuchReturn:
            return ""

    async def parties(self, show: ShowOnSale, query: PartiesQuery) -> PartyList:
        return await self.store.parties(show, query)

    async def _rebuild_map(self, show_id: int) -> None:
        """The map offers no freed seats from now on. If this fails, a worker does it: the map is marked."""
        try:
            await self._seatmap.rebuild(show_id, "waitlist")
        except EngineDown:
            log.info("the map is rebuilt when Redis is back", show_id=show_id)

    async def _refuse_if_on_sale(self, show: ShowOnSale, new: NewEntry) -> None:
        """Seats on sale are no reason to wait. Seen in the map, which may be a second old."""
        snapshot = await self._seatmap.snapshot(show.show_id)
        layout = snapshot.layout
        names = {category.name: index for index, category in enumerate(layout.categories)}
        categories = frozenset(names[name] for name in new.categories if name in names)
        wish = Wish(new.seats, categories if new.categories else None, new.price_minor_max, new.together)
        free = [seat for seat, state in enumerate(snapshot.states) if state == ord("A")]
        if found := Matcher(layout, show.prices, free).find_seats(wish):
            raise SeatsAvailable(seats=seat_labels(layout, found))
