"""Holding seats for a buyer: Redis decides fast, PostgreSQL decides for good, and here they meet.

    hold ─► a waiting room? then a pass is needed: waitingroom/guard.py
         ─► Redis ─┬─ no ──► refused: losers end here and never reach PostgreSQL
                   └─ yes ─► PostgreSQL ─┬─ opened ──► returned; written into a newer map if there is one
                                         ├─ stale ───► prices or layout changed: retried with the same claim
                                         ├─ already ─► booking of the first try; a second claim is released
                                         └─ lost ────► claim released, map corrected with the real owners

A show that is locked waits apart from the others: opener.py. Redis down: PostgreSQL decides alone, few at a
time, and the sale is marked so that its map is rebuilt before Redis sells again. PostgreSQL down: nothing is
sold.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from holdfast.bookings import (
    TAKES_SEATS,
    AlreadyOpened,
    Booking,
    Bookings,
    BookingState,
    Extension,
    HoldGone,
    Opening,
    OpeningOutcome,
    OpeningRefused,
    SeatsLost,
    WrongMove,
)
from holdfast.catalogue import Catalogue
from holdfast.claim import (
    Action,
    Claim,
    MapMissing,
    NotEnoughUnits,
    Settlement,
    UnitsTaken,
)
from holdfast.config import Config
from holdfast.engines import fault_injection
from holdfast.engines.batch import Batcher, Onward
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.show_batch import ShowBatcher
from holdfast.errors import Busy, KeyReused, Refusal
from holdfast.holds.alternatives import find_alternatives
from holdfast.holds.errors import ExtensionCap, SeatsTaken
from holdfast.holds.ledger_only import LedgerOnlyHolds
from holdfast.holds.map_updates import MapUpdates
from holdfast.holds.opener import Decision, Opener, find_settled
from holdfast.holds.redis import HoldScripts
from holdfast.holds.refusals import refuse_claim, refuse_opening
from holdfast.holds.request import (
    AlreadyHeld,
    Held,
    HoldOutcome,
    HoldRequest,
    NamedSeats,
    build_claim,
    build_opening,
    find_renamed_seats,
    is_repriced,
    price_changed,
    reprice_opening,
)
from holdfast.holds.wanted import WantedSeats
from holdfast.layouts import UnknownSeat
from holdfast.seatmap import SeatMap
from holdfast.waitingroom import AdmissionGuard

log = structlog.get_logger(__name__)

TRIES_MAX = 4  # a missing map or a changed catalogue is loaded and the request tried again
STALE = OpeningRefused("stale")  # PostgreSQL has newer prices or another layout
MAP_WAIT_S = 0.25  # for alternatives: a refusal without them is better than a late one
EXPIRING_MS = 500  # a rival with less time left is about to expire: worth one more try


class StaleCatalogue(Struct, frozen=True, gc=False):
    """Seats are claimed, but cannot be priced as requested: the cached show is outdated."""

    held: Held | AlreadyHeld
    claimed_at_s: float


class HoldService:
    def __init__(
        self,
        catalogue: Catalogue,
        guard: AdmissionGuard,
        scripts: HoldScripts,
        bookings: Bookings,
        seatmap: SeatMap,
        config: Config,
    ) -> None:
        self._catalogue = catalogue
        self._guard = guard
        self._scripts = scripts
        self.bookings = bookings
        self._seatmap = seatmap
        self._config = config
        batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
        self._hold: Batcher[HoldRequest, HoldOutcome | Decision | StaleCatalogue] = Batcher(
            self._hold_many, **batches
        )
        by_show: dict[str, Any] = {**batches, "lock_wait_s": config.sale_lock_wait_ms / 1000}
        self._open = Opener(bookings, **by_show)
        self._open.follow(self._hold)
        self._cancel: ShowBatcher[Booking, Booking | None] = ShowBatcher(
            bookings.cancel_holds, bookings.lock_waits, **by_show
        )
        self._extend: ShowBatcher[Extension, Booking | None] = ShowBatcher(
            bookings.extend_holds, bookings.lock_waits, **by_show
        )
        self._ledger_only = LedgerOnlyHolds(bookings, self._open, seatmap, at_once_max=config.ledger_only_max)
        self._updates = MapUpdates(bookings, seatmap.claims, seatmap, **batches)
        self.wanted = WantedSeats()

    @property
    def locked_shows(self) -> int:
        """Shows whose holds wait for a lock now."""
        return self._open.locked_shows

    async def hold(self, request: HoldRequest) -> Booking:
        """The booking, or a refusal."""
        if not self._guard.is_open_to_all(request.show.show_id):
            await self._guard.require(request.show.show_id, request.owner_id, request.admission)
        outcome: HoldOutcome | Decision | StaleCatalogue | Booking
        for attempt in range(TRIES_MAX):
            try:
                outcome = await self._hold(request)
            except EngineDown:
                return await self._hold_ledger_only(request)
            if isinstance(outcome, tuple) and (settled := find_settled(*outcome)) is not None:
                return settled
            if isinstance(outcome, UnitsTaken):
                raise await self._seats_taken(request, outcome.units)
            if isinstance(outcome, StaleCatalogue) or (isinstance(outcome, tuple) and outcome[1] == STALE):
                request, outcome = await self._retry_with_current_prices(request, outcome)
            if isinstance(outcome, Booking):
                return outcome
            if isinstance(outcome, tuple):
                if (booking := await self._apply_decision(request, *outcome)) is not None:
                    return booking
                request = await self._reload_show(request)
            elif isinstance(outcome, MapMissing):
                await self._build_map(request.show.show_id, is_again=attempt > 0)
            else:
                assert not isinstance(outcome, (Held, AlreadyHeld)), "a winner goes on to PostgreSQL"
                if isinstance(outcome, NotEnoughUnits):
                    self.wanted.add(request.show.show_id, ())
                raise refuse_claim(request, outcome, self._config)
        raise Busy(retry_after_s=1)

    async def cancel(self, booking: Booking) -> Booking:
        """Release the seats at once. A cancelled booking stays cancelled."""
        if booking.state is BookingState.CANCELLED:
            return booking
        if booking.state is BookingState.EXPIRED:
            raise HoldGone(state=booking.state)
        if booking.state is not BookingState.HELD:
            raise WrongMove(state=booking.state, move="cancel")
        cancelled = await self._cancel(booking)
        if cancelled is None:
            # It expired, was paid for or was extended since it was read: decide from its current state.
            current = await self.bookings.load_owned(booking.owner_id, booking.show_id, booking.number)
            return await self.cancel(current)
        metrics.add("bookings_total", move="cancel")
        await self.update_map(booking.show_id, Settlement("release", booking.claim))
        return cancelled

    async def extend(self, booking: Booking, ttl_s: int) -> Booking:
        """A heartbeat: the whole time to live again, up to the cap."""
        life_max_s = self._config.hold_life_max_s
        left_ms = await self.bookings.extension_ms(booking, ttl_s=ttl_s, life_max_s=life_max_s)
        if left_ms is None:
            raise HoldGone(state=booking.state)
        if left_ms < 1000 or booking.is_offer:  # other parties wait for the seats of an offer
            raise ExtensionCap(expires_at=booking.expires_at)
        claim_ms = left_ms + self._config.claim_grace_ms
        # Claim first, then row: in the other order a crash in between leaves a row whose claim ends early,
        # and Redis would offer seats that are still held.
        await self.update_map(booking.show_id, Settlement("extend", booking.claim, claim_ms))
        extended = await self._extend(
            Extension(booking.show_id, booking.number, booking.fence, ttl_s, life_max_s)
        )
        if extended is None:
            raise HoldGone(state=booking.state)
        # Again: the map may have been rebuilt meanwhile with the row's old end, or may have lost the claim.
        claim = booking.claim
        await self.update_map(
            booking.show_id, Settlement("adopt", claim, claim_ms), Settlement("extend", claim, claim_ms)
        )
        metrics.add("bookings_total", move="extend")
        return extended

    async def block(
        self, show_id: int, seats: Sequence[int], note: str, actor_id: int
    ) -> int | tuple[int, ...]:
        found = await self.bookings.block(show_id, seats, note, actor_id)
        if isinstance(found, int):
            claim = Claim(f"block{found}", actor_id, tuple(sorted(seats)))
            await self.update_map(show_id, Settlement("block", claim))
        return found

    async def unblock(self, block: Booking, actor_id: int) -> Booking | None:
        cancelled = await self.bookings.cancel(block, actor_id)
        if cancelled is not None:
            await self.update_map(block.show_id, Settlement("unblock", block.claim))
        return cancelled

    async def _hold_many(
        self, requests: Sequence[HoldRequest]
    ) -> list[HoldOutcome | Onward | StaleCatalogue | EngineDown]:
        """Losers get their outcome; winners go on to PostgreSQL together, without waking their callers."""
        with fault_injection.fault_points("map.hold"):
            outcomes = await self._scripts.hold_many(requests)
        claimed_at_s = time.monotonic()
        return [
            self._pass_on(request, outcome, claimed_at_s)
            if isinstance(outcome, (Held, AlreadyHeld))
            else outcome
            for request, outcome in zip(requests, outcomes, strict=True)
        ]

    def _pass_on(
        self, request: HoldRequest, held: Held | AlreadyHeld, claimed_at_s: float
    ) -> Onward | StaleCatalogue:
        # The map may be newer than the cached show: it may name seats that the show does not have yet.
        if held.seats[-1] < len(request.show.layout.labels):
            opening = build_opening(request, held, claimed_at_s)
            if not is_repriced(request, opening):
                return self._open.onward(opening)
        return StaleCatalogue(held, claimed_at_s)

    async def _apply_decision(
        self, request: HoldRequest, opening: Opening, outcome: OpeningOutcome | EngineDown
    ) -> Booking | None:
        """Update the map with PostgreSQL's decision. None: try again, with the current catalogue and map."""
        show_id = opening.show_id
        if isinstance(outcome, SeatsLost) and all(rival.left_ms <= EXPIRING_MS for rival in outcome.rivals):
            # Redis ended the rival's claim a moment before its row ended. Wait for the row: otherwise a seat
            # that is free in a moment would be refused to the buyer that Redis gave it to.
            # Without rivals the seats came free while PostgreSQL looked.
            await asyncio.sleep(max([rival.left_ms for rival in outcome.rivals] + [0]) / 1000 + 0.02)
            _, outcome = await self._open(opening)
        if isinstance(outcome, Booking):
            return await self._publish_booking(request, opening, outcome)
        if isinstance(outcome, EngineDown):
            # Release only if there is certainly no row. If the commit may have happened, or an earlier try
            # made the claim, a release would free seats that are sold: the comparison job decides instead.
            if not outcome.unknown and not opening.is_repeat:
                await self.update_map(show_id, Settlement("drop", opening.claim))
            raise EngineDown(outcome.engine, unknown=outcome.unknown) from outcome
        if isinstance(outcome, AlreadyOpened):
            # A retry after the first claim was lost has claimed other seats: they must not stay held.
            if outcome.booking.seats != opening.seats or outcome.booking.state not in TAKES_SEATS:
                await self.update_map(show_id, Settlement("drop", opening.claim))
            return _first_answer(outcome.booking)
        if opening.is_repeat and outcome == OpeningRefused("key_reused"):
            raise KeyReused()  # the claim belongs to the booking that the key was used for: do not release it
        if opening.is_repeat and outcome == OpeningRefused("locked"):
            raise Busy(retry_after_s=1)  # the first try may have its row: do not release its claim
        settlements = [Settlement("drop", opening.claim)]
        if isinstance(outcome, SeatsLost):
            # Redis offered seats that are sold: without the correction every next buyer would fail here.
            settlements += outcome.corrections()
            metrics.add("map_corrections_total", len(outcome.rivals), kind="taken in the ledger")
        await self.update_map(show_id, *settlements)
        if (
            isinstance(outcome, SeatsLost)
            and outcome.rivals
            and not isinstance(request.selection, NamedSeats)
        ):
            metrics.add("holds_total", outcome="lost")
            return None  # the buyer named no seats: the corrected map has others
        await self._refuse_unless_stale(request, outcome)
        return None

    async def _publish_booking(self, request: HoldRequest, opening: Opening, booking: Booking) -> Booking:
        # The map was rebuilt between the claim and the row: the new one was read without our row.
        is_behind = booking.sale_epoch != opening.map_epoch
        is_confirmed = booking.state is BookingState.CONFIRMED
        if is_behind or is_confirmed:
            if is_behind:
                await self._updates.catch_up(booking.show_id, booking.sale_epoch)
            left_ms = request.show.hold_ttl_s * 1000 + self._config.claim_grace_ms
            action: Action = "commit" if is_confirmed else "adopt"
            await self.update_map(booking.show_id, Settlement(action, booking.claim, left_ms))
        return booking

    async def _refuse_unless_stale(self, request: HoldRequest, outcome: SeatsLost | OpeningRefused) -> None:
        """A stale catalogue is not a refusal: the request is tried again with the current one."""
        if isinstance(outcome, SeatsLost):
            if not outcome.rivals:  # free again: "taken" would be wrong, and the next try may have them
                raise Busy(retry_after_s=1)
            metrics.add("holds_total", outcome="lost")
            raise await self._seats_taken(request, tuple(rival.seat for rival in outcome.rivals))
        if (refusal := refuse_opening(request, outcome, self._config)) is not None:
            raise refusal

    async def _seats_taken(self, request: HoldRequest, seats: tuple[int, ...]) -> SeatsTaken:
        labels, selection = request.show.layout.labels, request.selection
        wanted = selection.seats if isinstance(selection, NamedSeats) else seats
        show_id = request.show.show_id
        self.wanted.add(show_id, wanted)
        # In a storm the map is fresh, or one load of it serves every refusal that waits.
        snapshot = self._seatmap.fresh(show_id) or await self._seatmap.snapshot_within(MAP_WAIT_S, show_id)
        groups: list[list[str]] = []
        if snapshot is not None:  # its layout may be newer than the request's
            names = snapshot.layout.labels
            found = find_alternatives(snapshot, wanted, seats)
            groups = [[names[seat] for seat in group] for group in found]
        return SeatsTaken(taken=[labels[seat] for seat in seats], alternatives=groups)

    async def _reload_show(self, request: HoldRequest) -> HoldRequest:
        """The request with the show as the catalogue has it now."""
        self._catalogue.forget(request.show.show_id)
        show = await self._catalogue.show_on_sale(request.show.show_id)
        if renamed := find_renamed_seats(request, show):
            raise UnknownSeat(seats=renamed)
        return msgspec.structs.replace(request, show=show)

    async def _retry_with_current_prices(
        self, request: HoldRequest, found: StaleCatalogue | Decision
    ) -> tuple[HoldRequest, Decision | Booking]:
        """The catalogue has changed: the same seats, with the same claim, at the current prices."""
        claim = found[0].claim if isinstance(found, tuple) else build_claim(request, found.held)
        try:
            request = await self._reload_show(request)
            if isinstance(found, StaleCatalogue):
                opening = build_opening(request, found.held, found.claimed_at_s)
            else:
                opening = reprice_opening(found[0], request.show)
            if is_repriced(request, opening):
                return request, await self._first_answer_or(request, price_changed(request, opening))
        except Refusal:
            # The buyer does not get these seats: without the release they would be held until they expire.
            await self.update_map(request.show.show_id, Settlement("drop", claim))
            raise
        return request, await self._open(opening)

    async def _first_answer_or(self, request: HoldRequest, refusal: Refusal) -> Booking:
        """The booking of the first try with this key; if this is the first try, the refusal."""
        key = (request.owner_id, request.show.show_id, request.request_id)
        first = await self.bookings.booking_of_request(*key)
        if first is None:
            raise refusal
        if first.body_hash != request.body_hash:
            raise KeyReused()
        return _first_answer(first)

    async def _hold_ledger_only(self, request: HoldRequest) -> Booking:
        revision_before = 0  # of the try before
        for _ in range(TRIES_MAX):
            opening, outcome = await self._ledger_only.open(request)
            if isinstance(outcome, Booking):
                return outcome
            if isinstance(outcome, AlreadyOpened):
                return _first_answer(outcome.booking)
            await self._refuse_unless_stale(request, outcome)
            # Reloaded and still at another price: the price really changed, and the cache is not to blame.
            if outcome == OpeningRefused("repriced") and request.show.revision == revision_before:
                return await self._first_answer_or(request, price_changed(request, opening))
            revision_before, request = request.show.revision, await self._reload_show(request)
        raise Busy(retry_after_s=1)

    async def _build_map(self, show_id: int, *, is_again: bool) -> None:
        try:
            if is_again:  # there is a map, and the scripts cannot read it: only a mark has it replaced
                await self.bookings.mark_map_stale(show_id)
            await self._seatmap.rebuild(show_id, "missing")
        except EngineDown as down:
            if down.engine != "holds":
                raise
            log.info("Redis became unreachable while a map was being built", show_id=show_id)

    async def update_map(self, show_id: int, *settlements: Settlement) -> None:
        """PostgreSQL has decided; the map follows, now or when it is rebuilt."""
        await self._updates.update(show_id, *settlements)


def _first_answer(booking: Booking) -> Booking:
    """The same key again: the booking of the first time, if it still has its seats."""
    if booking.state in (BookingState.EXPIRED, BookingState.CANCELLED, BookingState.FAILED):
        raise HoldGone(state=booking.state, detail="Use a new Idempotency-Key to hold seats again.")
    return booking
