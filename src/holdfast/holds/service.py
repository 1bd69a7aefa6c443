"""Holding seats for a fan: Redis decides fast, the ledger decides for good, and here they meet.

    hold ─► Redis ─┬─ no ──► refused: losers end here, the ledger never hears of them
                   └─ yes ─► ledger ─┬─ opened ──► told the fan; written into a newer map if there is one
                                     ├─ stale ───► prices or layout are others now: composed anew, same claim
                                     ├─ same ────► the booking of the first try; a second claim is let go
                                     └─ lost ────► claim let go, map corrected with who has the seats

Redis away: the ledger decides alone, few at a time, and the show is marked so that its map is written anew
before Redis sells again. The ledger away: nothing is sold.
"""

import asyncio
import time
from collections.abc import Sequence

import msgspec
import structlog
from msgspec import Struct

from holdfast.bookings import (
    TAKES_SEATS,
    AlreadyOpened,
    Booking,
    Bookings,
    BookingState,
    HoldGone,
    NoSuchBooking,
    Opened,
    Opening,
    OpeningOutcome,
    OpeningRefused,
    SeatsLost,
    WrongMove,
)
from holdfast.catalogue import Catalogue
from holdfast.claim import Claim, Claims, Settlement
from holdfast.config import Config
from holdfast.engines.batch import Batcher, Onward
from holdfast.engines.errors import EngineDown
from holdfast.engines.fault_injection import fault_points
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy, KeyReused, Refusal
from holdfast.holds.alternatives import alternatives_for
from holdfast.holds.conversion import (
    booking_of,
    claim_of,
    corrections,
    first_answer,
    is_repriced,
    not_on_sale,
    opening_of,
    price_changed,
    renamed_seats,
)
from holdfast.holds.errors import ExtensionCap, LeavesOrphan, OverLimit, SeatsTaken, SoldOut
from holdfast.holds.ledger_only import LedgerOnlyHolds
from holdfast.holds.outcome import Again, Ask, Few, Held, Limit, Orphan, Outcome, Seats, Shut, Taken, Unbuilt
from holdfast.holds.redis import HoldScripts
from holdfast.holds.request import HoldRequest
from holdfast.layouts import UnknownSeat
from holdfast.seatmap import SeatMap

log = structlog.get_logger(__name__)

TRIES_MAX = 4  # a map that is missing, a catalogue that has moved on: learnt and tried again
STALE = OpeningRefused("stale")  # the ledger knows later prices or another layout
LAPSING_MS = 500  # a rival with less than this is about to be gone: worth one more try


class Winner(Struct, frozen=True, gc=False):
    """Somebody to whom Redis said yes: what the ledger is asked, and what Redis gave."""

    opening: Opening
    held: Held | Again


class Sold(Struct, frozen=True, gc=False):
    """What the ledger said to a winner; a dead ledger is an answer: the claim must be seen to."""

    opening: Opening
    held: Held | Again
    answer: OpeningOutcome | EngineDown


class StaleCatalogue(Struct, frozen=True, gc=False):
    """Seats that are claimed, and that we cannot compose: new ones, or at another price than was expected."""

    held: Held | Again
    claimed_at_s: float


class HoldService:
    def __init__(
        self,
        catalogue: Catalogue,
        holds: HoldScripts,
        claims: Claims,
        ledger: Bookings,
        seatmap: SeatMap,
        config: Config,
    ) -> None:
        self._catalogue = catalogue
        self._holds = holds
        self._claims = claims
        self._ledger = ledger
        self._seatmap = seatmap
        self._config = config
        self._by_ledger = LedgerOnlyHolds(ledger, seatmap, at_once_max=config.ledger_only_max)
        batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
        self._sell: Batcher[HoldRequest, Outcome | Sold | StaleCatalogue] = Batcher(
            self._hold_many, **batches
        )
        self._open: Batcher[Winner, Outcome | Sold] = Batcher(self._open_many, **batches)
        self._settle = Batcher(self._settle_many, batch_max=config.batch_max, waiting_max=config.waiting_max)

    async def hold(self, order: HoldRequest) -> Booking:
        """The booking, or a refusal."""
        outcome: Outcome | Sold | StaleCatalogue | Booking
        for _ in range(TRIES_MAX):
            try:
                outcome = await self._sell(order)
            except EngineDown:
                return await self._hold_by_ledger(order)
            if isinstance(outcome, Taken):
                raise self._taken(order, outcome.seats)
            if isinstance(outcome, StaleCatalogue) or (isinstance(outcome, Sold) and outcome.answer == STALE):
                order, outcome = await self._retry_with_current_prices(order, outcome)
            if isinstance(outcome, Booking):
                return outcome
            if isinstance(outcome, Sold):
                if (booking := await self._settled(order, outcome)) is not None:
                    return booking
                order = await self._refreshed(order)
            elif isinstance(outcome, Unbuilt):
                await self._build(order.show.show_id)
            else:
                assert not isinstance(outcome, (Held, Again, Taken, StaleCatalogue)), (
                    "a winner goes on to the ledger"
                )
                self._refuse(order, outcome)
        raise Busy(retry_after_s=1)

    async def booking(self, owner_id: int, show_id: int, number: int) -> Booking:
        """The owner's own; to everybody else there is no such booking."""
        booking = await self._ledger.booking(show_id, number)
        if booking is None or booking.owner_id != owner_id or booking.state is BookingState.BLOCKED:
            raise NoSuchBooking()
        return booking

    async def cancel(self, booking: Booking) -> Booking:
        """Let go at once. A booking that is cancelled already stays so."""
        if booking.state is BookingState.CANCELLED:
            return booking
        if booking.state is BookingState.EXPIRED:
            raise HoldGone(state=booking.state)
        if booking.state is not BookingState.HELD:
            raise WrongMove(state=booking.state, move="cancel")
        cancelled = await self._ledger.cancel(booking, booking.owner_id)
        if cancelled is None:
            return await self.cancel(await self.booking(booking.owner_id, booking.show_id, booking.number))
        metrics.add("bookings_total", move="cancel")
        await self.update_map(booking.show_id, Settlement("release", booking.claim))
        return cancelled

    async def extend(self, booking: Booking, ttl_s: int) -> Booking:
        """A heartbeat: the whole time again, up to the cap. Claim first, then row: no row without a claim."""
        life_max_s = self._config.hold_life_max_s
        left_ms = await self._ledger.extension_ms(booking, ttl_s=ttl_s, life_max_s=life_max_s)
        if left_ms is None:
            raise HoldGone(state=booking.state)
        if left_ms < 1000:
            raise ExtensionCap(expires_at=booking.expires_at)
        await self.update_map(
            booking.show_id, Settlement("extend", booking.claim, left_ms + self._config.claim_grace_ms)
        )
        extended = await self._ledger.extend(booking, ttl_s=ttl_s, life_max_s=life_max_s)
        if extended is None:
            raise HoldGone(state=booking.state)
        # Only if the claim was lost before its row: now the ledger has said that the seats are still theirs.
        await self.update_map(
            booking.show_id, Settlement("adopt", booking.claim, left_ms + self._config.claim_grace_ms)
        )
        metrics.add("bookings_total", move="extend")
        return extended

    async def block(
        self, show_id: int, seats: Sequence[int], note: str, actor_id: int
    ) -> int | tuple[int, ...]:
        found = await self._ledger.block(show_id, seats, note, actor_id)
        if isinstance(found, int):
            await self.update_map(
                show_id, Settlement("block", Claim(f"block{found}", actor_id, tuple(sorted(seats))))
            )
        return found

    async def unblock(self, block: Booking, actor_id: int) -> Booking | None:
        gone = await self._ledger.cancel(block, actor_id)
        if gone is not None:
            await self.update_map(block.show_id, Settlement("unblock", block.claim))
        return gone

    def _ask(self, order: HoldRequest) -> Ask:
        show = order.show
        life_ms = show.hold_ttl_s * 1000 + self._config.claim_grace_ms
        return Ask(show.show_id, order.owner_id, order.claim_id, life_ms, show.owner_seats_max, order.what)

    async def _hold_many(self, orders: Sequence[HoldRequest]) -> list[Outcome | Onward | StaleCatalogue]:
        """Losers have their answer; winners go on to the ledger together, without being woken in between."""
        with fault_points("map.hold"):
            outcomes = await self._holds.hold_many([self._ask(order) for order in orders])
        claimed_at = time.monotonic()
        return [
            self._won(order, outcome, claimed_at) if isinstance(outcome, (Held, Again)) else outcome
            for order, outcome in zip(orders, outcomes, strict=True)
        ]

    def _won(self, order: HoldRequest, held: Held | Again, claimed_at_s: float) -> Onward | StaleCatalogue:
        if held.seats[-1] < order.show.layout.seat_count:
            opening = opening_of(order, held, claimed_at_s)
            if not is_repriced(order, opening):
                return Onward(Winner(opening, held), self._open)
        return StaleCatalogue(held, claimed_at_s)

    async def _open_many(self, winners: Sequence[Winner]) -> list[Sold]:
        try:
            answers = await self._ledger.open_many([winner.opening for winner in winners])
        except EngineDown as down:
            return [Sold(winner.opening, winner.held, down) for winner in winners]
        return [Sold(w.opening, w.held, answer) for w, answer in zip(winners, answers, strict=True)]

    async def _settled(self, order: HoldRequest, sold: Sold) -> Booking | None:
        """What the ledger said, told to the map. None: the catalogue has moved on, ask again."""
        opening, held, answer = sold.opening, sold.held, sold.answer
        if isinstance(answer, SeatsLost) and all(rival.left_ms <= LAPSING_MS for rival in answer.rivals):
            await asyncio.sleep(max([rival.left_ms for rival in answer.rivals] + [0]) / 1000 + 0.02)
            (again,) = await self._open_many([Winner(opening, held)])
            answer = again.answer
        if isinstance(answer, EngineDown):
            if not answer.unknown and isinstance(held, Held):
                await self.update_map(order.show.show_id, Settlement("release", opening.claim))
            # Unknown, or the claim of an earlier try: the row may be there. The next comparison will tell.
            raise EngineDown(answer.engine, unknown=answer.unknown) from answer
        if isinstance(answer, Opened):
            return await self._opened(order, opening, answer, held.epoch)
        if isinstance(answer, AlreadyOpened):
            if answer.booking.seats != held.seats or answer.booking.state not in TAKES_SEATS:
                await self.update_map(order.show.show_id, Settlement("release", opening.claim))
            return first_answer(answer.booking)
        if isinstance(held, Again) and answer == OpeningRefused("key_reused"):
            raise KeyReused()  # the claim is that of the booking the key was used for
        parts = [Settlement("release", opening.claim)]
        if isinstance(answer, SeatsLost):
            parts += corrections(answer.rivals)
            metrics.add("map_corrections_total", len(answer.rivals), kind="taken in the ledger")
        await self.update_map(order.show.show_id, *parts)
        self._refuse_unless_stale(order, answer)
        return None

    async def _opened(self, order: HoldRequest, opening: Opening, opened: Opened, map_epoch: int) -> Booking:
        booking = booking_of(opening, opened)
        is_behind = opened.epoch != map_epoch
        if is_behind or opened.state is BookingState.CONFIRMED:
            if is_behind:
                await self._catch_up(order.show.show_id, opened.epoch)
            left_ms = order.show.hold_ttl_s * 1000 + self._config.claim_grace_ms
            what = "commit" if opened.state is BookingState.CONFIRMED else "adopt"
            await self.update_map(order.show.show_id, Settlement(what, booking.claim, left_ms))
        return booking

    def _refuse_unless_stale(self, order: HoldRequest, answer: SeatsLost | OpeningRefused) -> None:
        """Stale is no refusal: the catalogue has moved on, and the order is tried again with what it has."""
        if isinstance(answer, SeatsLost):
            metrics.add("holds_total", outcome="lost")
            raise self._taken(order, tuple(rival.seat for rival in answer.rivals))
        match answer.why:
            case "limit":
                raise OverLimit(limit=order.show.owner_seats_max)
            case "closed":
                raise not_on_sale(order)
            case "key_reused":
                raise KeyReused()

    def _refuse(self, order: HoldRequest, outcome: Orphan | Limit | Few | Shut) -> None:
        labels = order.show.layout.labels
        match outcome:
            case Few(free):
                raise SoldOut(free=free)
            case Orphan(better):
                raise LeavesOrphan(better=[labels[seat] for seat in better])
            case Limit(has):
                raise OverLimit(limit=order.show.owner_seats_max, has=has)
            case Shut():
                raise not_on_sale(order)

    def _taken(self, order: HoldRequest, seats: tuple[int, ...]) -> SeatsTaken:
        labels = order.show.layout.labels
        asked = order.what.seats if isinstance(order.what, Seats) else seats
        groups = alternatives_for(self._seatmap.peek(order.show.show_id), asked)
        return SeatsTaken(
            taken=[labels[seat] for seat in seats],
            alternatives=[[labels[seat] for seat in group] for group in groups],
        )

    async def _refreshed(self, order: HoldRequest) -> HoldRequest:
        """The order on the show as the catalogue has it now."""
        self._catalogue.forget(order.show.show_id)
        show = await self._catalogue.show_on_sale(order.show.show_id)
        if renamed := renamed_seats(order, show):
            raise UnknownSeat(seats=renamed)
        return msgspec.structs.replace(order, show=show)

    async def _retry_with_current_prices(
        self, order: HoldRequest, found: StaleCatalogue | Sold
    ) -> tuple[HoldRequest, Sold | Booking]:
        """The catalogue has moved on: the same seats, by the same claim, at the prices of now."""
        held = found.held
        claimed_at_s = found.claimed_at_s if isinstance(found, StaleCatalogue) else found.opening.claimed_at_s
        try:
            order = await self._refreshed(order)
            opening = opening_of(order, held, claimed_at_s)
            if is_repriced(order, opening):
                return order, await self._first_answer(order, price_changed(order, opening))
        except Refusal:
            await self.update_map(order.show.show_id, Settlement("release", claim_of(order, held)))
            raise
        sold = await self._open(Winner(opening, held))
        assert isinstance(sold, Sold)
        return order, sold

    async def _first_answer(self, order: HoldRequest, refusal: Refusal) -> Booking:
        """The booking of the first try with this key; of a first try, the refusal."""
        known = (order.owner_id, order.show.show_id, order.request_id)
        first = await self._ledger.booking_of_request(*known)
        if first is None:
            raise refusal
        if first.body_hash != order.body_hash:
            raise KeyReused()
        return first_answer(first)

    async def _hold_by_ledger(self, order: HoldRequest) -> Booking:
        before = 0  # the revision of the try before
        for _ in range(TRIES_MAX):
            opening, answer = await self._by_ledger.open(order)
            if isinstance(answer, Opened):
                return booking_of(opening, answer)
            if isinstance(answer, AlreadyOpened):
                return first_answer(answer.booking)
            self._refuse_unless_stale(order, answer)
            if answer == OpeningRefused("repriced") and order.show.revision == before:
                return await self._first_answer(order, price_changed(order, opening))
            before, order = order.show.revision, await self._refreshed(order)
        raise Busy(retry_after_s=1)

    async def _build(self, show_id: int) -> None:
        try:
            await self._seatmap.rebuild(show_id, "missing")
        except EngineDown as down:
            if down.engine != "holds":
                raise
            log.info("Redis went away while its map was being written", show_id=show_id)

    async def _catch_up(self, show_id: int, epoch: int) -> None:
        """The ledger is at a later epoch than the map of our claim: see that Redis gets there too."""
        try:
            found, is_ours = await self._claims.epoch(show_id)
            if found < epoch or not is_ours:
                await self._seatmap.rebuild(show_id, "behind")
        except EngineDown:
            log.info("Redis went away; its map is written anew when it is back", show_id=show_id)

    async def update_map(self, show_id: int, *parts: Settlement) -> None:
        """The ledger has decided; the map follows. One that cannot be told is put right by the comparison."""
        try:
            with fault_points(f"map.{parts[0].what}"):
                await self._settle((show_id, parts))
        except EngineDown:
            metrics.add("map_not_told_total", len(parts))

    async def _settle_many(self, asked: Sequence[tuple[int, tuple[Settlement, ...]]]) -> list[None]:
        by_show: dict[int, list[Settlement]] = {}
        for show_id, parts in asked:
            by_show.setdefault(show_id, []).extend(parts)
        for show_id, all_parts in by_show.items():
            await self._claims.settle_many(show_id, all_parts)
        return [None] * len(asked)
