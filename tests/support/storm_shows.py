"""A few shows sold at once while something breaks, and what must be true of them afterwards."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.box_office import Crowd, Office
from tests.support.crowd import Report, Wish
from tests.support.promise_check import lost, shared_seats
from tests.support.shows import Fan, a_layout
from tests.support.storm_requests import best, neighbours, places

CONNECTIONS = 120
PAUSE_S = 0.1  # enough to keep everything busy, not enough to sell out before the end
SHORT_TTL_S = 3


@dataclass(frozen=True)
class Programme:
    shows: tuple[int, ...]
    wishes: Sequence[Wish]
    people: Sequence[Fan]


async def a_programme(stage: Office) -> Programme:
    """A large hall, a free show with standing places, and a small hall whose holds lapse and go round."""
    large_hall, small_hall, club = a_layout(30_000, row=60), a_layout(200), a_layout(1_000, standing=9_000)
    large = await stage.a_show(layout=large_hall, owner_seats_max=1000)
    small = await stage.a_show(layout=small_hall, owner_seats_max=1000, hold_ttl_s=SHORT_TTL_S)
    free = await stage.a_show(layout=club, owner_seats_max=1000, price_minor=0)
    wishes = [
        *neighbours(large, large_hall, 6_000),
        *[best(large, 2)] * 1_000,
        *neighbours(small, small_hall, 3_000, sizes=(1, 2, 3)),
        *neighbours(free, club, 1_000),
        *[places(free, "Floor", 2)] * 500,
    ]
    return Programme((large, small, free), wishes, await stage.fans(CONNECTIONS))


@asynccontextmanager
async def on_sale(stage: Office, programme: Programme, seconds_max: float = 90) -> AsyncIterator[Crowd]:
    """A crowd that never gives up: a client without an answer retries with the same key."""
    async with stage.crowd(
        programme.people,
        programme.wishes,
        connections=CONNECTIONS,
        seconds_max=seconds_max,
        pause_s=PAUSE_S,
        keyed=True,
    ) as crowd:
        await crowd.held(300)
        yield crowd


async def assert_promises_hold(stage: Office, programme: Programme, storm: Report) -> None:
    """No promise is lost, no seat was two people's at any time, and the map is the ledger's."""
    print(
        f"{len(storm.promises)} holds, {storm.answers} answers in {storm.seconds:.1f} s, "
        f"{storm.dropped} dropped, p99 {storm.p99_ms:.0f} ms; {storm.statuses} {storm.codes}"
    )
    assert not storm.broken, (storm.broken[0], stage.last_words())
    assert not storm.unfair, storm.unfair
    assert {promise.state for promise in storm.promises} == {"held", "confirmed"}
    assert len({promise.key for promise in storm.promises}) == len(
        {promise.booking_id for promise in storm.promises}
    )
    gone = await lost(stage, storm.promises, programme.people)
    assert not gone, gone
    shared = await shared_seats(stage, programme.shows)
    assert not shared, shared
    await stage.settled()


def sold_between(storm: Report, begin: float, end: float) -> int:
    return sum(begin < promise.at <= end for promise in storm.promises)


def first_sale_after(storm: Report, moment: float) -> float:
    """How long nothing was sold, in seconds from then."""
    return min(promise.at for promise in storm.promises if promise.at > moment) - moment
