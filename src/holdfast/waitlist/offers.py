"""Reserved seats become offers: one idempotent step per show, under the lock of its waitlist.

    lock the list ─► share the sale ─► end offers and waits ─► offer seats, party by party ─► free the rest
                                                                 └ HELD bookings, in this transaction
    commit ─► the seat map follows

The consumer of facts, the job and the routes all run this same step; running it once more does nothing. A
seat is reserved by the transaction that frees it (bookings/functions_waitlist.sql), so it does not matter how
late this step comes: no other buyer can have the seat meanwhile.
"""

from collections.abc import Iterable

import asyncpg
import structlog
from msgspec import Struct

from holdfast.bookings import (
    Booking,
    HoldLimits,
    NewOffer,
    WaitlistSale,
    open_offer,
    reserved_claim,
    reserved_seats,
    set_waitlist,
    share_waitlist_sale,
    unreserve_seats,
    waitlist_sale,
)
from holdfast.catalogue import Catalogue, ShowOnSale
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.engines import fault_injection
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries, Transaction
from holdfast.holds import HoldService
from holdfast.outbox import WaitlistEnded, WaitlistOffered, add_fact
from holdfast.waitlist.entry import WaitlistEntry
from holdfast.waitlist.matching import Matcher
from holdfast.waitlist.returns import Returns, begin_sale, close_returns, live_returns
from holdfast.waitlist.store import parse_entry

Q = Queries("holdfast.waitlist")
log = structlog.get_logger(__name__)

TRIES_MAX = 4
OFFERS_AT_ONCE_MAX = 50  # per transaction, which shares the sale's lock; the step is repeated
PARTIES_AT_ONCE = 500  # read in one go
FIRST = (-1, 0)
NOTE = "from the waitlist"


SoldBack = tuple[int, tuple[int, ...]]  # the number of a booking, and seats of it


class StepOutcome(Struct, frozen=True):
    offers: tuple[Booking, ...] = ()
    ended: int = 0
    public_seats: tuple[int, ...] = ()
    sold_back: tuple[SoldBack, ...] = ()

    @property
    def changes(self) -> int:
        return len(self.offers) + self.ended + len(self.public_seats) + len(self.sold_back)


class OfferSteps:
    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        holds: HoldService,
        returns: Returns,
        config: Config,
    ) -> None:
        self._postgres = postgres
        self._returns = returns
        self._catalogue = catalogue
        self._holds = holds
        self._config = config
        self._limits = HoldLimits.from_config(config)

    async def run(self, show_id: int) -> int:
        """How much changed; 0: there was nothing to do."""
        for _ in range(TRIES_MAX):
            sale = await waitlist_sale(self._postgres, show_id)
            if sale is None:
                return 0
            show = await self._catalogue.show_at_revision(show_id, sale.revision)
            try:
                with fault_injection.fault_points("ledger.offer"):
                    async with self._postgres.transaction() as tx:
                        outcome = await self._step(tx, show)
            except (*AGAIN, asyncpg.UniqueViolationError):
                continue
            if outcome is not None:
                await self._update_map(show_id, outcome)
                for number, seats in outcome.sold_back:
                    await self._returns.sell(show_id, number, seats)
                return outcome.changes
        return 0  # the show keeps changing: the job comes back

    async def _step(self, tx: Transaction, show: ShowOnSale) -> StepOutcome | None:
        """None: the show has changed since it was loaded."""
        show_id = show.show_id
        locked = await tx.fetchrow(Q.lock, show_id, self._config.waitlist_idle_s)
        if locked is None:
            return StepOutcome()
        sale = await share_waitlist_sale(tx, show_id)
        if sale is None or sale.revision != show.revision:
            return None
        ended = await self._end(tx, show_id, sale)
        reserved = await reserved_seats(tx, show_id)
        matcher = Matcher(show.layout, show.prices, reserved)
        offers = await self._make_offers(tx, show, matcher) if reserved and sale.is_open else []
        is_waited_for = bool(await tx.fetchval(Q.is_waited_for, show_id))
        public: set[int] = set()
        sold_back: list[SoldBack] = []
        if len(offers) < OFFERS_AT_ONCE_MAX:  # otherwise some parties have not been looked at
            left = reserved.keys() & matcher.reserved
            keep_s = self._config.waitlist_keep_s
            public = {seat for seat in left if not is_waited_for or reserved[seat] >= keep_s}
            if is_waited_for and sale.is_open:
                sold_back = await self._sell_back(tx, show, left - public)
        await unreserve_seats(tx, show_id, sorted(public))
        await self._mark(tx, show_id, sale, is_waited_for, is_idle=locked["is_idle"])
        return StepOutcome(tuple(offers), ended, tuple(sorted(public)), tuple(sold_back))

    async def _end(self, tx: Transaction, show_id: int, sale: WaitlistSale) -> int:
        """End offers whose booking has ended, and waits whose time is over; how many."""
        ended = [*await tx.fetch(Q.end_offers, show_id), *await tx.fetch(Q.end_waits, show_id, sale.is_over)]
        for row in ended:
            fact = WaitlistEnded(
                owner_id=row["owner_id"],
                entry=row["entry"],
                state=row["state"],
                seats=tuple(row["seats"] or ()),
            )
            await add_fact(tx, show_id, fact, row["number"])
        if sale.is_over:
            await close_returns(tx, show_id)
        return len(ended)

    async def _make_offers(self, tx: Transaction, show: ShowOnSale, matcher: Matcher) -> list[Booking]:
        offers: list[Booking] = []
        after = FIRST
        while matcher.reserved and len(offers) < OFFERS_AT_ONCE_MAX:
            rows = await tx.fetch(Q.waiting, show.show_id, *after, PARTIES_AT_ONCE)
            for row in rows:
                offer = await self._make_offer(tx, show, matcher, parse_entry(row))
                offers += [offer] if offer else []
                if len(offers) == OFFERS_AT_ONCE_MAX:
                    break
            if len(rows) < PARTIES_AT_ONCE:
                break
            after = (rows[-1]["rank"], rows[-1]["number"])
        return offers

    async def _make_offer(
        self, tx: Transaction, show: ShowOnSale, matcher: Matcher, entry: WaitlistEntry
    ) -> Booking | None:
        """None: the seats do not fit, or the buyer may hold no more seats now and is passed over."""
        seats = matcher.find_seats(entry.to_wish(show.layout))
        if seats is None:
            return None
        prices = tuple(show.prices[show.layout.category_of[seat]] for seat in seats)
        new = NewOffer(
            show.show_id, entry.owner_id, seats, prices, show.currency, NOTE, self._config.waitlist_offer_s
        )
        booking = await open_offer(tx, new, self._limits)
        if booking is None:
            metrics.add("waitlist_passed_over_total")
            return None
        matcher.take(seats)
        await tx.execute(
            Q.add_offer, show.show_id, booking.number, entry.number, list(seats), booking.expires_at
        )
        fact = WaitlistOffered(
            owner_id=entry.owner_id,
            entry=entry.number,
            seats=seats,
            amount_minor=booking.amount_minor,
            currency=booking.currency,
            expires_at=booking.expires_at,
        )
        await add_fact(tx, show.show_id, fact, booking.number)
        return booking

    async def _sell_back(self, tx: Transaction, show: ShowOnSale, reserved: set[int]) -> list[SoldBack]:
        """Returned seats that make up a group for the first party that they fit, with reserved ones.

        The seats are refunded after the commit, and offered by the next step: in the order of the list.
        """
        live = await live_returns(tx, show.show_id)
        for back in live:
            if not back.seats:
                await close_returns(tx, show.show_id, back.number)
        under_way = [(back.number, back.selling) for back in live if back.selling and back.seats]
        returned = {seat: back.number for back in live if not back.selling for seat in back.seats}
        if under_way or not returned:
            return under_way
        matcher = Matcher(show.layout, show.prices, reserved | returned.keys())
        seats = await self._first_fit(tx, show, matcher)
        by_booking: dict[int, tuple[int, ...]] = {}
        for seat in seats:
            if seat in returned:
                by_booking[returned[seat]] = (*by_booking.get(returned[seat], ()), seat)
        for number, some in by_booking.items():
            await begin_sale(tx, show.show_id, number, some)
        return list(by_booking.items())

    async def _first_fit(self, tx: Transaction, show: ShowOnSale, matcher: Matcher) -> tuple[int, ...]:
        after = FIRST
        while rows := await tx.fetch(Q.waiting, show.show_id, *after, PARTIES_AT_ONCE):
            for row in rows:
                if seats := matcher.find_seats(parse_entry(row).to_wish(show.layout)):
                    return seats
            after = (rows[-1]["rank"], rows[-1]["number"])
        return ()

    async def _mark(
        self, tx: Transaction, show_id: int, sale: WaitlistSale, is_waited_for: bool, *, is_idle: bool
    ) -> None:
        if is_waited_for:
            await tx.execute(Q.mark_waiting, show_id)
            await set_waitlist(tx, show_id, True)
            return
        await tx.execute(Q.mark_empty, show_id)
        # Not at once: each change of the flag rebuilds the seat map, and the next party may come in a moment.
        if is_idle or sale.is_over:
            await tx.execute(Q.mark_over, show_id)
            await set_waitlist(tx, show_id, False)

    async def _update_map(self, show_id: int, outcome: StepOutcome) -> None:
        """If this is lost, the comparison of map and bookings repairs the map."""
        for name, count in (
            ("offered", len(outcome.offers)),
            ("ended", outcome.ended),
            ("public", len(outcome.public_seats)),
        ):
            if count:
                metrics.add("waitlist_total", count, outcome=name)
        settlements = [*self._adopted(outcome.offers)]
        if outcome.public_seats:
            settlements.append(Settlement("unreserve", reserved_claim(outcome.public_seats)))
        if settlements:
            await self._holds.update_map(show_id, *settlements)

    def _adopted(self, offers: Iterable[Booking]) -> Iterable[Settlement]:
        left_ms = self._config.waitlist_offer_s * 1000 + self._config.claim_grace_ms
        return (Settlement("adopt", offer.claim, left_ms) for offer in offers)
