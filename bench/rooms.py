"""What a waiting room costs buyers who came in: holds in a hall with a room, and in a hall without one.

Every buyer sends a pass of their own with each hold. As for access tokens, web workers have verified the
passes before: a person inside opens pages and tries seats, and a pass is verified once per process.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from bench.environment import (
    Environment,
    create_callers,
    create_shows,
    start_environment,
    start_workers,
    write_lines,
)
from bench.errors import require
from bench.figure import Figure
from bench.load import HoldLoad, LoadResult, load_holds
from bench.session import Session
from holdfast.waitingroom import RoomSettings
from holdfast.waitingroom.signed import QueueClaims, TokenKind, sign_claims
from holdfast.web.caller import Caller, Scope
from tests.support.shows import a_layout

SEATS, ROW = 50_000, 100
SECONDS, SLICES = 1, 3  # in two seconds, a fast machine would sell the hall out
PASS_S = 3600
TRIED = 100  # pairs of seats that are taken, and refused, before the holds that count
ACCOUNTS = 2_000
BAR = 0.90


@dataclass(frozen=True)
class RoomBench:
    env: Environment
    session: Session
    callers: list[Caller]
    url: str

    async def per_second(self, *, has_room: bool) -> float:
        """Holds in a new hall."""
        (show,) = await create_shows(self.env, a_layout(SEATS, row=ROW), 1)
        lines = [self.env.app.accounts.access_token(caller) for caller in self.callers]
        if has_room:
            passes = await self.open_room(show)
            lines = [f"{token} {text}" for token, text in zip(lines, passes, strict=True)]
        tokens = write_lines(self.env.folder / "tokens-room", lines)
        await self._load("warm", show, tokens)
        await self._load("sold_out", show, tokens, pairs=TRIED)  # every pass is verified
        held = (await self._load("hold", show, tokens)).expect(201, 409)
        require(held.statuses.get("409", 0) <= TRIED, f"unexpected refusals: {held.statuses}")
        return held.per_second

    async def _load(self, mode: str, show: int, tokens: Path, pairs: int = SEATS // 2) -> LoadResult:
        load = HoldLoad(mode, show, pairs=pairs, pairs_per_row=ROW // 2, seconds=SECONDS)
        return await load_holds(self.url, tokens, load)

    async def open_room(self, show: int) -> list[str]:
        """A pass for each caller."""
        app = self.env.app
        editor = app.room_editor(Scope(1, is_admin=True))
        await editor.set(show, RoomSettings())
        await editor.open(show)
        status = await app.waiting_rooms.status(show)
        assert status is not None
        key, now_s = await app.tickets.signing_key(), int(time.time())
        kind, until_s = TokenKind.ADMISSION, now_s + PASS_S
        return [
            sign_claims(
                key, QueueClaims(kind, show, status.opening, caller.account_id, number, now_s, until_s)
            )
            for number, caller in enumerate(self.callers)
        ]


async def measure_rooms(session: Session) -> list[Figure]:
    figure = Figure("holds with a waiting room", "holds/s", "the same holds without a room", BAR)
    async with start_environment() as env:
        session.report("creating accounts")
        callers = await create_callers(env, ACCOUNTS)
        async with start_workers(env, 2) as url:
            bench = RoomBench(env, session, callers, url)
            for has_room in (False, True):
                await bench.per_second(has_room=has_room)  # fills the caches of workers and plans
            async for attempt in session.repeat(figure):
                session.report(f"holds with and without a waiting room, attempt {attempt + 1}")
                rates = {True: 0.0, False: 0.0}
                for nth in range(SLICES):
                    for has_room in sorted(rates, reverse=bool(nth % 2)):  # neither is always the first
                        rates[has_room] += await bench.per_second(has_room=has_room) / SLICES
                figure.add(rates[True], rates[False])
    return [figure]
