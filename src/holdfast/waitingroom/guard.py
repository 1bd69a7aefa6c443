"""Whether a person may hold seats of a show: the one check that every way of holding seats goes through.

    hold ─► show has a room? ── no ──► goes on: one look into a dict
                 └─ yes ─► pass: signature ─► show, opening, account ─► time ─► ended early? ─► goes on

The list of guarded shows and of passes that ended early is read from PostgreSQL once a second and process. A
pass is verified from its signature alone, so Redis is not needed. If the list is older than STALE_MAX_S,
holds of guarded shows are refused (503): the place of a person who left is given to the next one only after
END_GRACE_S, when no process can still accept the old pass. Times are the ledger's: its clock is read with the
list.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from holdfast.engines.cache import Cache
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries
from holdfast.tickets import Tickets
from holdfast.waitingroom.errors import (
    NotAdmitted,
    QueueTokenExpired,
    QueueTokenKeyUnknown,
    QueueTokenOfOtherShow,
    QueueTokenUsed,
)
from holdfast.waitingroom.signed import QueueClaims, TokenKind, check_claims, read_claims

Q = Queries("holdfast.waitingroom")

FRESH_S = 1.0
FOLLOW_S = 0.75  # pause of the job that reads it
STALE_MAX_S = 3.0
AGE_MAX_S = 4.0  # of what a pass is checked with, counted from the question
END_GRACE_S = 5  # longer than AGE_MAX_S
# Shows without a room are sold this long from an old list. It is also the time after which every process
# guards a room that was opened: one that could not read it refuses then.
OPEN_STALE_MAX_S = 5.0
OPEN_WAIT_S = 0.25  # and wait this long for a new one
PASS_LIFE_MAX_S = 7200  # the longest window
OVERLAP_S = 30  # a commit may come this late after its own time
READ_MAX = 50_000  # verified passes remembered per process
PASSES_MAX = 3  # in one cookie, for several shows
SEPARATOR = "."
Ended = tuple[int, int, int]  # show, opening, number
ALL = "all"


@dataclass(frozen=True, slots=True)
class GuardedRoom:
    opening: int
    is_guarding: bool  # False: it opens by itself above so many holds per second, or viewers
    opens_above_holds_per_second: int  # 0: not by holds


@dataclass(frozen=True, slots=True)
class GuardedShows:
    rooms: dict[int, GuardedRoom]
    now: datetime  # by the ledger's clock
    read_at_s: float  # monotonic, before the question: the estimate below is never behind the ledger's clock

    def clock_s(self, monotonic_s: float) -> float:
        return self.now.timestamp() + monotonic_s - self.read_at_s


@dataclass(slots=True)
class EndedPasses:
    """Passes whose visit ended before their time, with when that was."""

    ended: dict[Ended, datetime] = field(default_factory=dict)
    since: datetime | None = None

    def add(self, rows: list[tuple[Ended, datetime]], now: datetime) -> None:
        for key, ended_at in rows:
            self.ended[key] = ended_at
        oldest = now - timedelta(seconds=PASS_LIFE_MAX_S)
        if rows:
            self.ended = {key: at for key, at in self.ended.items() if at > oldest}
        self.since = now - timedelta(seconds=OVERLAP_S)


class AdmissionGuard:
    def __init__(
        self, postgres: Postgres, tickets: Tickets, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._postgres = postgres
        self._tickets = tickets
        self._monotonic = monotonic
        self._shows: Cache[str, GuardedShows] = Cache(self._load, fresh_s=FRESH_S, stale_max_s=STALE_MAX_S)
        self._passes = EndedPasses()
        self._read: dict[str, tuple[int, QueueClaims]] = {}  # text → key id, claims
        self._holds: dict[int, tuple[int, int]] = {}  # show → second, holds in it
        self.holds_seen: Counter[int] = Counter()  # by show, while its room may open by itself
        # Opens the room of a show that very many people want; set by WaitingRooms.
        self.on_demand: Callable[[int], Awaitable[None]] | None = None

    def is_open_to_all(self, show_id: int) -> bool:
        """Whether the show certainly has no room. Never waits: for the hold path."""
        shows = self._shows.peek(ALL)
        return shows is not None and show_id not in shows.rooms

    async def require(self, show_id: int, account_id: int, admission: str) -> None:
        """Returns if this account may hold seats of this show now; otherwise a refusal."""
        shows = await self._load_shows(show_id)
        room = shows.rooms.get(show_id)
        if room is not None and not room.is_guarding and self._is_demand(show_id, room):
            shows = await self._open_by_demand(show_id)
            room = shows.rooms.get(show_id)
        if room is None or not room.is_guarding:
            return
        if self._monotonic() - shows.read_at_s > AGE_MAX_S:  # the answer itself took long
            raise EngineDown("ledger")
        if not admission:
            metrics.add("admissions_checked_total", outcome="none")
            raise NotAdmitted
        await self._check(shows, room, (show_id, account_id), admission)
        metrics.add("admissions_checked_total", outcome="good")

    def known_rooms(self) -> dict[int, GuardedRoom]:
        """As they were read last, however long ago; never waits."""
        shows = self._shows.stale(ALL)
        return {} if shows is None else shows.rooms

    async def clock_s(self) -> float:
        """The time by the ledger's clock, in seconds since 1970."""
        return (await self._shows.get(ALL)).clock_s(self._monotonic())

    async def follow(self) -> int:
        """A job of every web process: no hold waits for the list."""
        with suppress(EngineDown):
            await self._shows.renew(ALL)
        return 0

    async def refresh(self) -> None:
        """After a change: this process knows it at once, others within STALE_MAX_S."""
        self._shows.drop(ALL)
        await self._shows.get(ALL)

    async def _check(
        self, shows: GuardedShows, room: GuardedRoom, who: tuple[int, int], admission: str
    ) -> None:
        show_id, account_id = who
        claims = await self._find_claims(show_id, admission)
        check_claims(claims, TokenKind.ADMISSION, show_id, room.opening, account_id)
        if claims.until_s <= shows.clock_s(self._monotonic()):
            raise QueueTokenExpired
        if (show_id, claims.opening, claims.number) in self._passes.ended:
            raise QueueTokenUsed

    async def _find_claims(self, show_id: int, admission: str) -> QueueClaims:
        """Of the pass for this show, if there are several in a cookie."""
        found = [await self.read(text) for text in admission.split(SEPARATOR, PASSES_MAX)[:PASSES_MAX]]
        if not any(claims.show_id == show_id for claims in found):
            raise QueueTokenOfOtherShow
        # The newest: after signing in, or joining again, there may be an older one.
        return max(
            (one for one in found if one.show_id == show_id), key=lambda one: (one.opening, one.until_s)
        )

    async def read(self, text: str) -> QueueClaims:
        """The claims of a place or pass that we signed. Signatures are slow: verified ones are remembered."""
        keys = await self._tickets.public_keys()
        known = self._read.get(text)
        if known is not None and known[0] in keys:
            return known[1]
        key_id, claims = await self._tickets.read_with_keys(
            lambda public: read_claims(text, public), QueueTokenKeyUnknown
        )
        if len(self._read) >= READ_MAX:
            self._read.clear()
        self._read[text] = (key_id, claims)
        return claims

    async def _load_shows(self, show_id: int) -> GuardedShows:
        # Losing holds need no PostgreSQL: while it is slow or away, a show that had no room a moment ago
        # answers them from the map as ever.
        old = self._shows.peek(ALL, age_max_s=OPEN_STALE_MAX_S)
        if old is None or show_id in old.rooms:
            return await self._shows.get(ALL)
        try:
            async with asyncio.timeout(OPEN_WAIT_S):
                return await self._shows.get(ALL)
        except (EngineDown, TimeoutError):
            return old

    async def _load(self, _: str) -> GuardedShows:
        began_s = self._monotonic()
        found = await self._postgres.fetch(Q.guarded_rooms)
        now, rows = found[0]["now"], [row for row in found if row["show_id"] is not None]
        if any(row["is_guarding"] for row in rows):
            since = self._passes.since or datetime.fromtimestamp(now.timestamp() - PASS_LIFE_MAX_S, UTC)
            ended = await self._postgres.fetch(Q.ended_passes, since)
            self._passes.add(
                [((row["show_id"], row["opening"], row["number"]), row["ended_at"]) for row in ended], now
            )
        names = ("opening", "is_guarding", "opens_above_holds_per_second")
        rooms = {row["show_id"]: GuardedRoom(**{name: row[name] for name in names}) for row in rows}
        return GuardedShows(rooms, now, began_s)

    def _is_demand(self, show_id: int, room: GuardedRoom) -> bool:
        """Counts a hold; whether this process alone sees more in this second than the room allows.

        The job adds up those of all processes (room_in_demand), up to two seconds later.
        """
        self.holds_seen[show_id] += 1
        second, holds = self._holds.get(show_id, (0, 0))
        now = int(self._monotonic())
        self._holds[show_id] = (now, holds + 1 if second == now else 1)
        return 0 < room.opens_above_holds_per_second < self._holds[show_id][1]

    async def _open_by_demand(self, show_id: int) -> GuardedShows:
        assert self.on_demand is not None
        await self.on_demand(show_id)
        await self.refresh()
        return await self._shows.get(ALL)
