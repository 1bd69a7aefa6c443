"""Bookings in PostgreSQL: open, extend, cancel, expire, block. They decide for good which seats are sold."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import msgspec

from holdfast.bookings.booking import (
    AlreadyOpened,
    Booking,
    BookingState,
    Extension,
    LiveBooking,
    Opening,
    OpeningOutcome,
    OpeningRefused,
    Rival,
    Sale,
    SeatsLost,
)
from holdfast.bookings.encoding import encode_openings, remaining_ms
from holdfast.bookings.errors import NoSuchBooking, SaleArchived
from holdfast.bookings.limits import HoldLimits
from holdfast.claim import Claim
from holdfast.engines import fault_injection
from holdfast.engines.batch import Batcher
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries, Transaction, require_row
from holdfast.engines.show_batch import OWN_LOCK_WAIT_MS, busy_if_locked, send_by_show
from holdfast.engines.tracing import current_traceparent
from holdfast.errors import Busy

Q = Queries("holdfast.bookings")

STATES = {state.value: state for state in BookingState}
LOCKED = OpeningRefused("locked")
TRIES_MAX = 4  # of a block that met a deadlock or a hold; nothing of it was committed
PARSED_AT_ONCE_MAX = 1000  # bookings: about four milliseconds
DELETED = frozenset({"taken", "limit", "has_hold", "range_full", "cooling"})  # its row was there for a moment
SWEPT_MAX = 500  # rows closed on behalf of a hold that does not fit
HOLDS_SHOWN_MAX = 30  # of one owner in one show
BY_OWNER = 0  # the actor of a move that each booking's owner makes
UNKNOWN_RETRY_S = 4.0  # how long to retry a batch whose answer was lost


class Bookings:
    def __init__(self, postgres: Postgres, limits: HoldLimits, *, batch_max: int, waiting_max: int) -> None:
        self._postgres = postgres
        self._limits = limits.to_row()
        self._look: Batcher[tuple[int, int], Booking | None] = Batcher(
            self.booking_many, batch_max=batch_max, waiting_max=waiting_max
        )
        self._look_at_holds: Batcher[tuple[int, int], list[Booking]] = Batcher(
            self._open_holds_many, batch_max=batch_max, waiting_max=waiting_max
        )

    @property
    def lock_waits(self) -> asyncio.Semaphore:
        return self._postgres.lock_waits

    async def open_many(self, openings: Sequence[Opening], *, lock_wait_ms: int = 0) -> list[OpeningOutcome]:
        """All seats or none for each opening; a booking is durable before it is returned.

        If the answer is lost, the batch is sent again with the same request ids: PostgreSQL finds what it has
        committed and does not repeat it. Openings of a show that another transaction has locked are refused
        as `locked`; those of other shows are opened. `lock_wait_ms` limits waits for other rows than the sale
        (0: only by the statement's time-out).
        """
        give_up_at = time.monotonic() + UNKNOWN_RETRY_S
        unknown = False
        while True:
            try:
                outcomes = await self._open_by_show(openings, lock_wait_ms)
                if not unknown or LOCKED not in outcomes:
                    return outcomes
                # The lost try may have opened it: "locked" only says that this try wrote nothing.
                raise EngineDown("ledger", unknown=True)
            except EngineDown as down:
                # Once an answer was lost the rows may be there. A later clean failure does not change that:
                # as a certain "no" it would release claims of seats that are sold.
                unknown = unknown or down.unknown
                if not unknown or time.monotonic() > give_up_at:
                    raise EngineDown("ledger", unknown=unknown) from down
                await asyncio.sleep(0.1)

    async def _open_by_show(self, openings: Sequence[Opening], lock_wait_ms: int) -> list[OpeningOutcome]:
        """All in one statement. If a lock stops it, show by show: only the locked show is refused."""
        found = await send_by_show(openings, lambda part: self._open_once(part, lock_wait_ms))
        outcomes: list[OpeningOutcome] = [LOCKED if isinstance(one, Exception) else one for one in found]
        for error in found if LOCKED in outcomes else ():
            if isinstance(error, EngineDown):  # other parts may be committed: a certain "no" would be wrong
                raise EngineDown("ledger", unknown=True) from error
            if isinstance(error, Exception) and not isinstance(error, Busy):
                raise error
        return outcomes

    async def _open_once(self, openings: Sequence[Opening], lock_wait_ms: int) -> list[OpeningOutcome]:
        began = time.perf_counter()
        async with self._postgres.lease() as connection:
            # Computed with the connection in hand: time spent waiting for one has used up the claim,
            # and a row that outlived its claim would refuse seats that Redis shows as free.
            left_ms = remaining_ms(openings, time.monotonic())
            arguments = encode_openings(
                openings, left_ms, lock_wait_ms, limits=self._limits, trace=current_traceparent()
            )
            with fault_injection.fault_points("ledger.open"):
                row = require_row(await connection.fetchrow(Q.open_holds, *arguments))
        for outcome, count in Counter(row["outcomes"]).items():
            metrics.add("openings_total", count, outcome=outcome)
        metrics.observe("open_batch_size", len(openings))
        metrics.observe("open_batch_seconds", time.perf_counter() - began)
        words, numbers, epochs, opened_at, details = row
        ends = {ms: opened_at + timedelta(milliseconds=ms) for ms in set(left_ms)}
        outcomes: list[OpeningOutcome] = [
            _build_booking(opening, number, STATES[word], epoch, (opened_at, ends[ms]))
            if number is not None
            else OpeningRefused(word)
            for opening, word, number, epoch, ms in zip(
                openings, words, numbers, epochs, left_ms, strict=True
            )
        ]
        # Only losers need a second look: a batch of winners costs one round trip and no lookups.
        if None in numbers:
            rivals = _parse_rivals(details, _losers_of_batch(openings, words))
            for i in [i for i, number in enumerate(numbers) if number is None]:
                outcomes[i] = await self._explain(openings[i], words[i], epochs[i], rivals.get(i + 1, ()))
        return outcomes

    async def _explain(
        self, opening: Opening, word: str, epoch: int, rivals: tuple[Rival, ...]
    ) -> OpeningOutcome:
        match word:
            case "same":
                return await self._load_first_answer(opening, epoch)
            case "taken":
                return SeatsLost(rivals)
            case "limit" | "has_hold" | "range_full" as reason:
                # Rows whose time has passed still count until they are closed: close them, and try again.
                if await self._postgres.fetchval(Q.sweep_show, opening.show_id, SWEPT_MAX):
                    return (await self._open_by_show([opening], 0))[0]
                return OpeningRefused(reason)
            case "cooling" | "closed" | "stale" | "unmarked" | "locked" as reason:
                return OpeningRefused(reason)
        raise AssertionError(f"open_holds returned {word}")

    async def _load_first_answer(self, opening: Opening, epoch: int) -> OpeningOutcome:
        row = await self._postgres.fetchrow(
            Q.booking_of_request, opening.owner_id, opening.show_id, opening.request_id
        )
        if row is None:
            # A duplicate of this request in the same batch came first and lost: nothing of it was stored.
            return (await self._open_by_show([opening], 0))[0]
        booking = msgspec.structs.replace(parse_booking(row), is_replay=True)
        if row["has_lapsed"]:  # the sweep has not closed the row yet, but its seats are free
            booking = msgspec.structs.replace(booking, state=BookingState.EXPIRED)
        if booking.body_hash != opening.body_hash:
            return OpeningRefused("key_reused")
        if booking.state in (BookingState.HELD, BookingState.CONFIRMED) and booking.seats == opening.seats:
            # Our first try, whose answer was lost, or a duplicate of it: both have the same claim, so the
            # caller must treat it as opened now. As AlreadyOpened its claim might be released.
            return msgspec.structs.replace(booking, sale_epoch=epoch)
        return AlreadyOpened(booking)

    async def load_owned(self, owner_id: int, show_id: int, number: int) -> Booking:
        """A booking of this owner. Bookings of other owners do not exist for them: NoSuchBooking."""
        booking = await self.booking(show_id, number)
        if booking is None or booking.owner_id != owner_id or booking.state is BookingState.BLOCKED:
            raise NoSuchBooking()
        return booking

    async def booking(self, show_id: int, number: int) -> Booking | None:
        return await self._look((show_id, number))

    async def booking_many(self, keys: Sequence[tuple[int, int]]) -> list[Booking | None]:
        """By (show_id, number); None for one that there is not."""
        rows = await self._postgres.fetch(Q.bookings, [key[0] for key in keys], [key[1] for key in keys])
        found = {(row["show_id"], row["number"]): parse_booking(row) for row in rows}
        return [found.get(key) for key in keys]

    async def booking_of_request(self, owner_id: int, show_id: int, request_id: str) -> Booking | None:
        row = await self._postgres.fetchrow(Q.booking_of_request, owner_id, show_id, request_id)
        return parse_booking(row) if row else None

    async def bookings_of(self, owner_id: int, *, before: int, limit: int) -> list[Booking]:
        return [
            parse_booking(row)
            for row in await self._postgres.fetch(Q.bookings_of_owner, owner_id, before, limit)
        ]

    def open_holds_of(self, owner_id: int, show_id: int) -> asyncio.Future[list[Booking]]:
        """In one show, the newest first; without those whose time has passed."""
        return self._look_at_holds((owner_id, show_id))

    async def _open_holds_many(self, keys: Sequence[tuple[int, int]]) -> list[list[Booking]]:
        found: dict[tuple[int, int], list[Booking]] = {key: [] for key in keys}
        for row in await self._postgres.fetch(Q.open_holds_of, *zip(*found, strict=True), HOLDS_SHOWN_MAX):
            found[row["owner_id"], row["show_id"]].append(parse_booking(row))
        return [found[key] for key in keys]

    async def seats_of(self, owner_id: int, show_id: int) -> list[tuple[int, BookingState]]:
        rows = await self._postgres.fetch(Q.seats_of_owner, owner_id, show_id)
        return sorted((seat, BookingState(row["state"])) for row in rows for seat in row["seats"])

    async def cancel(self, booking: Booking, actor_id: int) -> Booking | None:
        """None: it is not in that state any more, or its fence has moved on. Busy: the sale stays locked."""
        with busy_if_locked():
            return (await self._cancel([booking], booking.state, actor_id, OWN_LOCK_WAIT_MS))[0]

    async def cancel_holds(self, holds: Sequence[Booking], lock_wait_ms: int) -> list[Booking | None]:
        """As cancel, by their owners. A locked sale raises LockNotAvailableError for all."""
        return await self._cancel(holds, BookingState.HELD, BY_OWNER, lock_wait_ms)

    async def _cancel(
        self, bookings: Sequence[Booking], state: BookingState, actor_id: int, lock_wait_ms: int
    ) -> list[Booking | None]:
        found = zip(*((one.show_id, one.number, one.fence) for one in bookings), strict=True)
        with fault_injection.fault_points("ledger.cancel"):
            rows = await self._postgres.fetch(
                Q.cancel, *found, state, actor_id, str(lock_wait_ms), current_traceparent()
            )
        cancelled = {(row["show_id"], row["number"]): parse_booking(row) for row in rows}
        return [cancelled.get((one.show_id, one.number)) for one in bookings]

    async def confirm_free(self, booking: Booking) -> Booking | None:
        """A held booking that costs nothing; None: it cannot be confirmed any more."""
        row = await self._postgres.fetchrow(Q.confirm_free, booking.show_id, booking.number, booking.fence)
        return parse_booking(row) if row else None

    async def merge(self, to: Booking, added: Booking, *, life_max_s: int) -> tuple[Booking, int] | None:
        """`to` with all seats, and its time left in ms; None: one is not held any more. Busy: as cancel."""
        keys = (to.show_id, to.number, to.fence, added.number, added.fence)
        with busy_if_locked():
            row = await self._postgres.fetchrow(Q.merge, *keys, life_max_s, str(OWN_LOCK_WAIT_MS))
        return (parse_booking(row), row["left_ms"]) if row else None

    async def extension_ms(self, booking: Booking, *, ttl_s: int, life_max_s: int) -> int | None:
        """What the hold would have left if it were extended now; None: it is not held any more."""
        key = (booking.show_id, booking.number, booking.owner_id)
        row = await self._postgres.fetchrow(Q.extension, *key, ttl_s * 1000, life_max_s)
        return int(row["left_ms"]) if row else None

    async def extend_holds(self, more: Sequence[Extension], lock_wait_ms: int = 0) -> list[Booking | None]:
        """None: not held any more. A locked sale raises LockNotAvailableError for all."""
        keys = zip(*((one.show_id, one.number, one.fence, one.ttl_s) for one in more), strict=True)
        rows = await self._postgres.fetch(Q.extend, *keys, more[0].life_max_s, str(lock_wait_ms))
        extended = {(row["show_id"], row["number"]): parse_booking(row) for row in rows}
        return [extended.get((one.show_id, one.number)) for one in more]

    async def sweep(self, limit: int) -> list[tuple[int, int]]:
        """Close bookings whose time has passed: (show, number) of each."""
        with fault_injection.fault_points("ledger.sweep"):
            try:
                rows = await self._postgres.fetch(Q.sweep, limit, True)
            except asyncpg.LockNotAvailableError:  # one of the shows is being moved: the others are swept
                rows = await self._postgres.fetch(Q.sweep, limit, False)
        return [(row["show_id"], row["number"]) for row in rows]

    async def block(
        self, show_id: int, seats: Sequence[int], note: str, actor_id: int
    ) -> int | tuple[int, ...]:
        """The number of the block; or the seats that are taken."""
        for _ in range(TRIES_MAX):
            try:
                row = require_row(
                    await self._postgres.fetchrow(Q.block, show_id, sorted(seats), note, actor_id)
                )
            except (*AGAIN, asyncpg.UniqueViolationError):
                continue
            return int(row["number"]) if row["number"] is not None else tuple(row["taken"])
        raise Busy(retry_after_s=1)

    async def blocks(self, show_id: int) -> list[Booking]:
        return [parse_booking(row) for row in await self._postgres.fetch(Q.blocks, show_id)]

    async def sale(self, show_id: int) -> Sale | None:
        row = await self._postgres.fetchrow(Q.sale, show_id)
        return Sale(row["epoch"], row["map_stale"], row["age_ds"], row["revision"]) if row else None

    async def mark_map_stale(self, show_id: int, epoch: int | None = None) -> bool:
        """The map must be rebuilt before Redis sells this show again. False: it is marked already, or has
        been rebuilt since `epoch`."""
        return await self._postgres.execute(Q.mark_sale, show_id, epoch) == "UPDATE 1"

    async def stale_sales(self, limit: int) -> list[int]:
        return [row["show_id"] for row in await self._postgres.fetch(Q.stale_sales, limit)]

    async def live_bookings(self, show_id: int) -> list[LiveBooking]:
        rows = await self._postgres.fetch(Q.live_bookings, show_id)
        return [booking async for part in parse_live_bookings(rows) for booking in part]

    async def counts_many(self, show_ids: Sequence[int]) -> dict[int, dict[str, int]]:
        """Seats that are not free, by seat state code; every requested show is in the result."""
        rows = await self._postgres.fetch(Q.counts, list(show_ids))
        return {row["show_id"]: {"H": row["held"], "B": row["booked"], "X": row["blocked"]} for row in rows}

    async def open_sales(self, after: int, limit: int) -> list[int]:
        return [row["show_id"] for row in await self._postgres.fetch(Q.open_sales, after, limit)]

    async def shows_with_moves(self, since_s: float, after: int, limit: int) -> list[int]:
        # Planned for this moment: a generic plan expects a third of all moves and reads the whole table.
        async with self._postgres.fresh_plans() as tx:
            return [row["show_id"] for row in await tx.fetch(Q.shows_with_moves, since_s, after, limit)]


async def set_sale(tx: Transaction, **sale: Any) -> None:
    """Part of the catalogue's transaction that creates or changes a show."""
    names = ("show_id", "opens_at", "closes_at", "cancelled", "owner_seats_max", "revision")
    try:
        await tx.execute(Q.set_sale, *(sale[name] for name in names))
    except asyncpg.ObjectNotInPrerequisiteStateError:
        raise SaleArchived(show_id=sale["show_id"]) from None


def parse_booking(row: Any) -> Booking:
    return Booking(
        row["show_id"],
        row["number"],
        row["owner_id"],
        row["fence"],
        BookingState(row["state"]),
        row["request_id"],
        row["body_hash"],
        row["claim_id"],
        tuple(row["seats"]),
        tuple(row["prices_minor"]),
        row["amount_minor"],
        row["currency"],
        row["note"],
        row["opened_at"],
        row["expires_at"],
        row["confirmed_at"],
        row["revision"],
    )


async def parse_live_bookings(rows: Sequence[Any]) -> AsyncIterator[list[LiveBooking]]:
    """A part at a time, with a turn of the loop in between: a sold-out stadium has 25 000 bookings, and
    parsing them in one go would stop every other request of the process for a tenth of a second."""
    for first in range(0, len(rows), PARSED_AT_ONCE_MAX):
        yield [_live_booking(row) for row in rows[first : first + PARSED_AT_ONCE_MAX]]
        await asyncio.sleep(0)


def _live_booking(row: Any) -> LiveBooking:
    claim = Claim(row["claim_id"], row["owner_id"], tuple(row["seats"]))
    return LiveBooking(row["number"], claim, BookingState(row["state"]), row["counts"], row["left_ms"])


def _build_booking(
    opening: Opening, number: int, state: BookingState, epoch: int, times: tuple[datetime, datetime]
) -> Booking:
    """The row that open_holds has written, without reading it back. `times`: its start and end."""
    opened_at, expires_at = times
    return Booking(
        opening.show_id,
        number,
        opening.owner_id,
        number,
        state,
        opening.request_id,
        opening.body_hash,
        opening.claim_id,
        opening.seats,
        opening.prices,
        sum(opening.prices),
        opening.currency,
        opening.note,
        opened_at,
        expires_at,
        opened_at if state is BookingState.CONFIRMED else None,
        opening.revision,
        epoch,
    )


def _losers_of_batch(openings: Sequence[Opening], words: Sequence[str]) -> set[str]:
    """Claims that lost in this same batch. They have no row: losing a seat to one is not a real conflict."""
    pairs = zip(openings, words, strict=True)
    return {opening.claim_id for opening, word in pairs if word in DELETED}


def _parse_rivals(details: str | None, losers: set[str]) -> dict[int, tuple[Rival, ...]]:
    """The owners of lost seats, by the loser's position in the batch."""
    found: dict[int, tuple[Rival, ...]] = {}
    for one in msgspec.json.decode(details) if details else ():
        if one["claim_id"] is None or one["claim_id"] in losers:
            continue  # the seat came free in the meantime
        claim = Claim(one["claim_id"], one["owner_id"], tuple(one["seats"]))
        rival = Rival(one["seat"], claim, BookingState(one["state"]), one["left_ms"])
        found[one["ord"]] = (*found.get(one["ord"], ()), rival)
    return found
