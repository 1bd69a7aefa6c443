"""hold.lua, batched and direct: named seats, best available and standing places, all or none."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.app import App
from holdfast.catalogue import OrphanRule
from holdfast.claim import LimitReached, MapMissing, NotEnoughUnits, PoolClosed, UnitsTaken
from holdfast.holds import AlreadyHeld, Held, Orphan
from holdfast.layouts import Prefer
from tests.support.claim_pool import HOUR_MS
from tests.support.hall_map import Hall, a_hall, best_of, named, rows

OFF, WARN, REFUSE = OrphanRule.OFF, OrphanRule.WARN, OrphanRule.REFUSE


@pytest.fixture
def hall(either_app: App) -> Callable[..., Any]:
    """A hall of rows of ten, or whatever a test asks for."""

    async def build(*sizes: int, states: str = "", standing: int = 0, **window: Any) -> Hall:
        layout = rows(*(sizes or (10, 10)), standing=standing)
        return await a_hall(either_app.redis, layout, states, batch_max=either_app.config.batch_max, **window)

    return build


class TestNamedSeats:
    async def test_are_held_by_the_first_request(self, hall: Callable[..., Any]) -> None:
        here = await hall()

        first = await here.seats("A-3", "A-4")
        second = await here.seats("A-4", "A-5", owner_id=2)

        assert first == Held((2, 3), 1, None, True)
        assert second == UnitsTaken((3,))
        assert await here.states() == "AAHHAAAAAA" + "A" * 10

    async def test_may_be_anywhere_in_the_hall(self, hall: Callable[..., Any]) -> None:
        here = await hall()

        assert isinstance(await here.seats("A-1", "B-10"), Held)
        assert await here.states() == "HAAAAAAAAAAAAAAAAAAH"

    async def test_fifty_at_once_on_one_pair_make_one_owner(self, hall: Callable[..., Any]) -> None:
        here = await hall()

        outcomes = await asyncio.gather(*(here.seats("A-3", "A-4", owner_id=owner) for owner in range(1, 51)))

        assert sorted(type(one).__name__ for one in outcomes) == ["Held"] + ["UnitsTaken"] * 49
        assert sum([await here.pool.has(owner) for owner in range(1, 51)]) == 2

    async def test_shows_do_not_get_in_each_others_way(self, hall: Callable[..., Any]) -> None:
        here, there = await hall(), await hall()

        outcomes = await asyncio.gather(here.seats("A-3"), there.seats("A-3"), there.seats("A-3", owner_id=2))

        assert [type(one) for one in outcomes] == [Held, Held, UnitsTaken]


class TestTheOrphanRule:
    """Seats 2 and 3 of a row of ten leave seat 1 alone; 1 and 2 do not, and are the nearest that do not."""

    async def test_off_gives_no_warning(self, hall: Callable[..., Any]) -> None:
        here = await hall()

        assert await here.seats("A-2", "A-3", rule=OFF) == Held((1, 2), 1, None, True)

    async def test_warn_holds_and_suggests_better_seats(self, hall: Callable[..., Any]) -> None:
        here = await hall()

        assert await here.seats("A-2", "A-3", rule=WARN) == Held((1, 2), 1, (0, 1), True)

    async def test_refuse_holds_nothing_and_suggests_better_seats(self, hall: Callable[..., Any]) -> None:
        here = await hall()

        assert await here.seats("A-2", "A-3", rule=REFUSE) == Orphan((0, 1))
        assert await here.states() == "A" * 20

    @pytest.mark.parametrize("pair", [("A-1", "A-2"), ("A-3", "A-4"), ("A-9", "A-10")])
    async def test_a_choice_that_leaves_no_single_is_fine(
        self, hall: Callable[..., Any], pair: tuple[str, str]
    ) -> None:
        here = await hall()

        outcome = await here.seats(*pair, rule=REFUSE)

        assert isinstance(outcome, Held)
        assert outcome.better is None

    async def test_it_is_relaxed_when_a_single_is_unavoidable(self, hall: Callable[..., Any]) -> None:
        here = await hall(3)

        assert isinstance(await here.seats("A-2", "A-3", rule=REFUSE), Held)

    async def test_an_already_existing_single_seat_is_not_reported(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, states="AHAAAAAAAA")

        assert isinstance(await here.seats("A-3", "A-4", rule=REFUSE), Held)

    async def test_every_row_of_a_choice_is_looked_at(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, 10)

        outcome = await here.seats("A-1", "A-2", "B-2", "B-3", rule=REFUSE)

        assert outcome == Orphan((0, 1, 10, 11))

    async def test_taken_comes_before_orphan(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, states="AHAAAAAAAA")

        assert await here.seats("A-2", "A-3", rule=REFUSE) == UnitsTaken((1,))


class TestBestAvailable:
    async def test_is_nearest_the_stage_and_side_by_side(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, 10)

        outcome = await here.best(2)

        assert isinstance(outcome, Held)
        assert outcome.seats in ((2, 3), (4, 5), (6, 7))
        assert outcome.together

    async def test_chosen_in_one_batch_are_all_different(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, 10)

        requests = [here.ask(best_of(2), owner_id=owner) for owner in range(1, 13)]
        outcomes = await asyncio.gather(*requests)

        seats = [seat for one in outcomes if isinstance(one, Held) for seat in one.seats]
        assert sorted(seats) == list(range(20))
        assert [one for one in outcomes if not isinstance(one, Held)] == [NotEnoughUnits(0)] * 2

    async def test_goes_around_seats_named_in_the_same_batch(self, hall: Callable[..., Any]) -> None:
        here = await hall(10)

        best, picked = await asyncio.gather(here.best(2), here.seats("A-5", "A-6", owner_id=2))

        assert isinstance(best, Held)
        if isinstance(picked, Held):  # one at a time, best may have come first
            assert set(best.seats).isdisjoint(picked.seats)
        else:
            assert picked == UnitsTaken((4, 5))

    async def test_together_or_not_at_all(self, hall: Callable[..., Any]) -> None:
        here = await hall(4, states="AHAA")

        assert await here.best(3) == NotEnoughUnits(3)
        assert await here.states() == "AHAA"

    async def test_split_if_allowed(self, hall: Callable[..., Any]) -> None:
        here = await hall(4, states="AHAA")

        outcome = await here.best(3, together=False)

        assert isinstance(outcome, Held)
        assert (outcome.seats, outcome.together) == ((0, 2, 3), False)

    async def test_a_split_that_fails_takes_nothing(self, hall: Callable[..., Any]) -> None:
        here = await hall(4, states="AHAA")

        assert await here.best(4, together=False) == NotEnoughUnits(3)
        assert await here.best(2) == Held((2, 3), 1, None, True)

    async def test_reports_an_unavoidable_single_seat(self, hall: Callable[..., Any]) -> None:
        here = await hall(3)

        outcome = await here.best(2)

        assert isinstance(outcome, Held)
        assert outcome.leaves_single

    async def test_a_refused_wish_does_not_spoil_the_next_of_its_batch(
        self, hall: Callable[..., Any]
    ) -> None:
        """Selection the script noted as taken for one over his limit is free for the next."""
        here = await hall(4)

        over, fine = await asyncio.gather(
            here.ask(best_of(2), owner_id=1, limit=1), here.ask(best_of(4), owner_id=2)
        )

        assert over == LimitReached(0)
        assert fine == Held((0, 1, 2, 3), 1, None, True)

    async def test_a_refused_split_does_not_either(self, hall: Callable[..., Any]) -> None:
        here = await hall(4, states="AHAA")

        over, fine = await asyncio.gather(
            here.ask(best_of(3, together=False), owner_id=1, limit=2), here.ask(best_of(2), owner_id=2)
        )

        assert over == LimitReached(0)
        assert fine == Held((2, 3), 1, None, True)

    async def test_by_the_aisle_is_at_the_end_of_a_row(self, hall: Callable[..., Any]) -> None:
        here = await hall(10)

        outcome = await here.best(2, prefer=Prefer.AISLE)

        assert isinstance(outcome, Held)
        assert outcome.seats in ((0, 1), (8, 9))


class TestStandingPlaces:
    async def test_are_the_first_free_ones(self, hall: Callable[..., Any]) -> None:
        here = await hall(4, standing=6, states="AAAA" + "HAHAAA")

        assert await here.places(3) == Held((5, 7, 8), 1, None, True)

    async def test_are_refused_when_too_few_are_left(self, hall: Callable[..., Any]) -> None:
        here = await hall(4, standing=3, states="AAAA" + "HAH")

        assert await here.places(2) == NotEnoughUnits(1)
        assert await here.states() == "AAAA" + "HAH"

    async def test_best_available_never_gives_one(self, hall: Callable[..., Any]) -> None:
        here = await hall(2, standing=6, states="HH" + "A" * 6)

        assert isinstance(await here.best(1), NotEnoughUnits)


class TestLimits:
    @pytest.mark.parametrize("kind", ["seats", "best", "places"])
    async def test_hold_for_every_kind_of_request(self, hall: Callable[..., Any], kind: str) -> None:
        here = await hall(10, standing=10)
        await here.seats("A-1", "A-2", limit=3)
        whats = {"seats": named(here.layout, "A-3", "A-4"), "best": best_of(2)}

        outcome = await here.places(2, limit=3) if kind == "places" else await here.ask(whats[kind], limit=3)

        assert outcome == LimitReached(2)
        assert (await here.states()).count("H") == 2

    async def test_are_counted_within_a_batch(self, hall: Callable[..., Any]) -> None:
        here = await hall(10)

        outcomes = await asyncio.gather(*(here.ask(best_of(2), limit=5) for _ in range(4)))

        assert sorted(type(one).__name__ for one in outcomes) == [
            "Held",
            "Held",
            "LimitReached",
            "LimitReached",
        ]
        assert await here.pool.has(1) == 4


class TestTheSameRequest:
    async def test_holds_the_same_seats_again(self, hall: Callable[..., Any]) -> None:
        here = await hall(10)
        first = await here.ask(best_of(2), claim_id="retry")
        assert isinstance(first, Held)

        again = await here.ask(best_of(2), claim_id="retry")

        assert again == AlreadyHeld(first.seats, 1)
        assert await here.pool.has(1) == 2

    async def test_fifty_at_once_hold_once(self, hall: Callable[..., Any]) -> None:
        here = await hall(10)

        outcomes = await asyncio.gather(*(here.ask(best_of(2), claim_id="fifty") for _ in range(50)))

        assert sorted({type(one).__name__ for one in outcomes}) == ["AlreadyHeld", "Held"]
        assert (await here.states()).count("H") == 2

    async def test_is_answered_even_after_the_sale_has_closed(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, window_ms=(-HOUR_MS, 400))
        await here.seats("A-1", claim_id="late")
        await asyncio.sleep(0.41)

        assert await here.seats("A-1", claim_id="late") == AlreadyHeld((0,), 1)


class TestTheWindow:
    async def test_shut_before_it_opens_and_open_on_time(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, window_ms=(300, HOUR_MS))
        early = await here.seats("A-1")
        await asyncio.sleep(0.31)

        assert early == PoolClosed()
        assert isinstance(await here.seats("A-1"), Held)

    async def test_shut_after_it_closes(self, hall: Callable[..., Any]) -> None:
        here = await hall(10, window_ms=(-HOUR_MS, 0))

        assert await here.seats("A-1") == PoolClosed()
        assert await here.best(1) == PoolClosed()


@pytest.mark.alone
class TestTime:
    async def test_seats_of_a_lapsed_hold_go_to_the_next_owner(self, hall: Callable[..., Any]) -> None:
        here = await hall(10)
        await here.seats("A-1", ttl_s=0)
        too_early = await here.seats("A-1", owner_id=2)
        await asyncio.sleep(0.31)

        assert too_early == UnitsTaken((0,))
        assert isinstance(await here.seats("A-1", owner_id=2), Held)
        assert (await here.pool.has(1), await here.pool.has(2)) == (0, 1)


async def test_a_show_without_a_map_is_not_sold_from(hall: Callable[..., Any]) -> None:
    here = await hall(10)
    await here.pool.redis.call("DEL", here.pool.key("meta"))

    assert await here.seats("A-1") == MapMissing()
