"""The waiting rooms of all shows, in the ledger: joining, places, turns and passes.

    join ⇉ join_queues          a batch takes the row of the queue once; numbers are dense
    find_place                  position = permutation of the number, computed; nothing is stored for it
    redeem ─► redeem_turn       once: the visit begins, and its pass is signed
    jobs.py                     opens, draws, calls, ends turns

Everything is in PostgreSQL: whatever Redis loses, no place is lost. What everybody may see is read once a
second and process.
"""

import hmac
from collections.abc import Sequence

from holdfast.catalogue import Catalogue
from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.cache import Cache
from holdfast.engines.postgres import Postgres, Queries, Row
from holdfast.tickets import Tickets
from holdfast.waitingroom.draw import DrawRecord
from holdfast.waitingroom.errors import NoPlace, NoQueue, QueueNotOpen, QueueSoldOut
from holdfast.waitingroom.guard import END_GRACE_S, AdmissionGuard
from holdfast.waitingroom.opening import log_step, open_queue
from holdfast.waitingroom.place import (
    Admission,
    Joined,
    Joiner,
    LeftWaiting,
    Place,
    PlaceState,
    WayIn,
)
from holdfast.waitingroom.room import JOINABLE, RoomState, RoomStatus
from holdfast.waitingroom.signed import QueueClaims, TokenKind, check_claims, sign_claims
from holdfast.waitingroom.views import RoomView, build_place, build_view, refuse_turn
from holdfast.waitingroom.waits import Calibration, LogPoint, calibrate
from holdfast.web.puzzles import PUZZLE_LIFE_S, ProofNeeded, check_proof, new_puzzle

Q = Queries("holdfast.waitingroom")
STATUS_FRESH_S, STATUS_STALE_MAX_S = 1.0, 2.0
LEFT = 1  # queue_place.state
# What a place that was just taken has in the columns of its turn.
NOT_CALLED = dict.fromkeys(("call", "turn_state", "ends_at", "redeemed_at", "recall_at", "way_in")) | {
    "state": 0
}
JoinedRow = tuple[Row, bool]  # as find_place returns it; whether it is new


class WaitingRooms:
    def __init__(self, postgres: Postgres, catalogue: Catalogue, tickets: Tickets, config: Config) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._tickets = tickets
        self._config = config
        self.guard = AdmissionGuard(postgres, tickets)
        self.guard.on_demand = self.open_by_demand
        self._views: Cache[int, RoomView | None] = Cache(
            self._load_view, fresh_s=STATUS_FRESH_S, stale_max_s=STATUS_STALE_MAX_S
        )
        self._join: Batcher[tuple[int, int], JoinedRow | None] = Batcher(
            self._join_many, batch_max=config.batch_max, waiting_max=config.waiting_max
        )

    async def status(self, show_id: int) -> RoomStatus | None:
        """What everybody may see, at most two seconds old; None: the show has no waiting room."""
        view = await self._views.get(show_id)
        return None if view is None else view.status

    async def join(self, show_id: int, joiner: Joiner) -> Joined:
        """A place at the end, or the one that the same person has already."""
        view = await self._require_view(show_id)
        if view.status.state not in JOINABLE:
            # It may have opened a moment ago.
            view = await self._renew(show_id)
        self._refuse_unless_joinable(view.status)
        if joiner.is_guest:
            await self._require_proof(view.status, joiner)
        joined = await self._join((show_id, joiner.account_id))
        if joined is None:  # closed a moment ago
            self._refuse_unless_joinable((await self._renew(show_id)).status)
            raise QueueNotOpen
        row, is_new = joined
        if not is_new:
            row = await self._find_row(view.status, joiner.account_id) or row
        return Joined(await self._build_place(view, joiner.account_id, row), is_new)

    async def find_place(self, show_id: int, account_id: int) -> Place | None:
        """The person's place; also one that they took as a guest before signing in."""
        view = await self._views.get(show_id)
        return None if view is None else await self._load_place(view, account_id)

    async def leave(self, show_id: int, account_id: int) -> bool:
        """Whether there was a live place, which is given up."""
        view = await self._require_view(show_id)
        row = await self._find_row(view.status, account_id)
        if row is None or row["state"] != 0:
            return False
        opening = view.status.opening
        await self._postgres.execute(Q.end_visit, show_id, opening, row["number"], LEFT, END_GRACE_S)
        await self.guard.refresh()
        return True

    async def redeem(self, show_id: int, account_id: int, place_token: str = "") -> Admission:
        """The pass of a person whose turn it is; the same window again while it lasts."""
        view = await self._require_view(show_id)
        opening = view.status.opening
        if view.status.state is RoomState.DRAINED:
            raise QueueSoldOut
        if place_token:
            claims = await self.guard.read(place_token)
            check_claims(claims, TokenKind.PLACE, show_id, opening, account_id)
        row = await self._find_row(view.status, account_id)
        if row is None:
            raise NoPlace
        number = row["number"]
        redeemed: Row | None = await self._postgres.fetchrow(Q.redeem, show_id, opening, number)
        if redeemed is None:
            # A second request, or too late: as it is now.
            redeemed = await self._find_row(view.status, account_id)
            assert redeemed is not None, "places are not deleted while their room is open"
            place = await self._build_place(view, account_id, redeemed)
            if place.state is not PlaceState.INSIDE:
                raise refuse_turn(place)
        ends_at, way_in = redeemed["ends_at"], WayIn(redeemed["way_in"])
        claims = QueueClaims(
            TokenKind.ADMISSION,
            *(show_id, opening, account_id, number),
            from_s=int(redeemed["redeemed_at"].timestamp()),
            until_s=int(ends_at.timestamp()),
            way_in=way_in,
        )
        text = sign_claims(await self._tickets.signing_key(), claims)
        return Admission(show_id, opening, account_id, ends_at, text, way_in)

    async def drained_position(self, show_id: int, account_id: int) -> int | None:
        """The position of a person who was still waiting when everything was sold."""
        view = await self._views.get(show_id)
        if view is None or view.status.state is not RoomState.DRAINED:
            return None
        place = await self._load_place(view, account_id)
        return place.position if place is not None and place.state is PlaceState.DRAINED else None

    async def left_waiting(self, show_id: int, opening: int, behind: int, limit: int) -> list[LeftWaiting]:
        """People who still waited when everything was sold: a page, in the order of their numbers."""
        view = await self._renew(show_id)
        status = view.status
        if status.opening != opening or status.state is not RoomState.DRAINED:
            return []  # the organiser has closed it, or another opening has begun
        found = []
        for row in await self._postgres.fetch(Q.left_waiting, show_id, opening, behind, limit):
            position = view.position(row["number"]) or 0
            found.append(LeftWaiting(row["account_id"], row["number"], max(0, position - status.serving)))
        return found

    async def load_draw(self, show_id: int) -> DrawRecord:
        """Everything about the draw that is public now."""
        row = await self._postgres.fetchrow(Q.draw, show_id)
        if row is None or row["commitment"] is None:
            raise NoQueue
        is_drawn = row["key"] is not None
        return DrawRecord(
            show_id,
            row["opening"],
            row["commitment"].hex(),
            row["beacon"],
            row["beacon_value"],
            row["beacon_until"],
            row["drawn_at"] if is_drawn else None,
            row["entrants"] if is_drawn else None,
            row["seed"].hex() if is_drawn else None,
            row["key"].hex() if is_drawn else None,
        )

    async def load_calibration(self, show_id: int, opening: int) -> Calibration:
        """How good the estimates of waits were, from the log."""
        rows = await self._postgres.fetch(Q.log_points, show_id, opening)
        return calibrate([LogPoint(row["at_s"], row["serving"]) for row in rows])

    async def open_by_demand(self, show_id: int) -> None:
        """Very many people want seats of this show now: the room opens without a draw."""
        view = await self._renew(show_id)
        async with self._postgres.transaction() as tx:
            if await open_queue(tx, show_id, view.status.opening, by="demand"):
                await log_step(tx, show_id, view.status.opening, "opened", seats_left=view.status.seats_left)
        self.forget(show_id)

    def forget(self, show_id: int) -> None:
        """After a change: this process shows it at once, others within two seconds."""
        self._views.drop(show_id)
        self._catalogue.clear_cached_responses()

    async def _join_many(self, people: Sequence[tuple[int, int]]) -> list[JoinedRow | None]:
        shows, accounts = [show_id for show_id, _ in people], [account_id for _, account_id in people]
        rows = {row["ord"] - 1: row for row in await self._postgres.fetch(Q.join, shows, accounts)}
        found: list[JoinedRow | None] = []
        known: set[tuple[int, int]] = set()
        for index, person in enumerate(people):
            row = rows.get(index)
            # Of two requests of one person in one batch, the first is the one that joins.
            is_new = row is not None and row["is_new"] and person not in known
            found.append(None if row is None else ({**NOT_CALLED, **row}, is_new))
            known.add(person)
        return found

    async def _require_view(self, show_id: int) -> RoomView:
        view = await self._views.get(show_id)
        if view is None:
            raise NoQueue
        return view

    async def _renew(self, show_id: int) -> RoomView:
        self._views.drop(show_id)
        return await self._require_view(show_id)

    async def _load_view(self, show_id: int) -> RoomView | None:
        row = await self._postgres.fetchrow(Q.current_queue, show_id)
        return None if row is None else build_view(row)

    async def _load_place(self, view: RoomView, account_id: int) -> Place | None:
        row = await self._find_row(view.status, account_id)
        if row is None:
            return None
        if row["turn_state"] is not None and view.status.entrants is None:  # the view is older than the draw
            view = await self._renew(view.status.show_id)
        return await self._build_place(view, account_id, row)

    async def _find_row(self, status: RoomStatus, account_id: int) -> Row | None:
        """The current place. A guest's is adopted by the account that the guest has logged in to."""
        key = (status.show_id, status.opening, account_id)
        row = await self._postgres.fetchrow(Q.find_place, *key)
        if row is None:
            await self._postgres.execute(Q.adopt_place, *key)
            row = await self._postgres.fetchrow(Q.find_place, *key)
        return row

    async def _build_place(self, view: RoomView, account_id: int, row: Row) -> Place:
        status, opened_at = view.status, view.opened_at
        joined_s = row["joined_s"] + (int(opened_at.timestamp()) if opened_at is not None else 0)
        claims = QueueClaims(
            TokenKind.PLACE, status.show_id, status.opening, account_id, row["number"], joined_s, until_s=0
        )
        token = sign_claims(await self._tickets.signing_key(), claims)
        now_s = await self.guard.clock_s()
        return build_place(view, account_id, row, token, now_s)

    def _refuse_unless_joinable(self, status: RoomStatus) -> None:
        if status.state is RoomState.DRAINED:
            raise QueueSoldOut
        if status.state not in JOINABLE:
            raise QueueNotOpen(opens_at=status.opens_at)

    async def _require_proof(self, status: RoomStatus, joiner: Joiner) -> None:
        """Work by a browser without an account. It is for one guest, who gets one place."""
        bits, wait_s = self._config.puzzle_bits, self._config.puzzle_wait_s
        signing = await self._tickets.signing_key()
        key = hmac.digest(signing.secret, b"holdfast queue puzzle\0", "sha256")
        subject = f"queue {status.show_id} {status.opening} {joiner.account_id}"
        now_s = int(await self.guard.clock_s())
        if check_proof(key, subject, joiner.proof, now_s=now_s, bits=bits, wait_s=wait_s):
            return
        raise ProofNeeded(
            puzzle=new_puzzle(key, subject, now_s),
            bits=bits,
            policy="proof",
            limit=1,
            window_s=PUZZLE_LIFE_S,
            retry_after_s=wait_s,
        )
