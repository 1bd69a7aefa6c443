"""Limits of guests, address ranges and unpaid holds are decided in the step that takes the seats.

Redis decides first, PostgreSQL decides for good: each of them alone holds every limit.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, Bookings, BookingState, HoldLimits, OpeningRefused, address_party
from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from holdfast.holds import CoolDown, Held, HoldOpen, OverLimit, RangeLimit
from holdfast.holds.request import RangeFull
from holdfast.payments.saga import PaymentStep
from tests.support.ledger_payments import request_for
from tests.support.limited_holds import end_unpaid, forget_map, guest_holds, guest_request, most_at_once
from tests.support.mail_servers import a_reader
from tests.support.opened import open_app, where_sold
from tests.support.own_engines import Stage, hold
from tests.support.paid_bookings import payment_request, violations
from tests.support.show_fixture import Till, an_owner
from tests.support.shows import a_show

HERE, NEXT_DOOR, FAR = "203.0.113.7", "203.0.113.200", "198.51.100.7"
SEATS_MAX, LAPSES_MAX, RANGE_LAPSES_MAX = 6, 2, 4


@pytest.fixture(scope="module")
async def strict(config: Config) -> AsyncIterator[App]:
    limited = replace(
        config,
        range_seats_max=SEATS_MAX,
        lapses_per_hour_max=LAPSES_MAX,
        range_lapses_per_hour_max=RANGE_LAPSES_MAX,
    )
    async with open_app(limited) as app:
        yield app


@pytest.fixture(scope="module")
async def other(strict: App) -> AsyncIterator[App]:
    """A second process."""
    async with open_app(strict.config) as app:
        yield app


class TestRanges:
    def test_neighbours_are_one_range(self) -> None:
        def party(address: str) -> str:
            return address_party(address, 24, 56)

        assert party(HERE) == party(NEXT_DOOR) == party(f"::ffff:{HERE}") != party(FAR)
        assert party("2001:db8:0:100::1") == party("2001:db8:0:1ff::2") != party("2001:db8:0:200::1")
        assert party("fe80::1%eth0") == party("fe80::2")
        assert party("") == ""
        assert party("a name") != party("another name")

    async def test_a_range_has_so_many_unpaid_seats(self, strict: App) -> None:
        show = await a_show(strict, 50)
        held = [await guest_holds(strict, show, HERE, *seats) for seats in ((1, 2, 3), (4, 5))]

        over = await guest_holds(strict, show, NEXT_DOOR, 6, 7)
        fits = await guest_holds(strict, show, NEXT_DOOR, 6)
        elsewhere = await guest_holds(strict, show, FAR, 10, 11)

        assert all(isinstance(one, Booking) for one in (*held, fits, elsewhere))
        assert isinstance(over, RangeLimit)
        assert over.details["limit"] == SEATS_MAX
        assert await violations(strict, show) == []

    async def test_an_account_with_a_verified_address_does_not_count(self, strict: App) -> None:
        show = await a_show(strict, 50)
        await guest_holds(strict, show, HERE, *range(SEATS_MAX))

        assert isinstance(await hold(strict, show, an_owner(), 10, 11), Booking)

    @pytest.mark.parametrize("end", ["paid", "released", "lapsed"])
    async def test_seats_that_are_no_longer_held_make_room(self, strict: App, end: str) -> None:
        show = await a_show(strict, 50)
        booking = await guest_holds(strict, show, HERE, *range(SEATS_MAX))
        assert isinstance(booking, Booking)
        if end == "paid":
            paid = await strict.saga_runner.pay(payment_request(booking))
            assert paid.payment is not None
            assert paid.payment.step is PaymentStep.PAID
        elif end == "released":
            await strict.holds.cancel(booking)
        else:
            await end_unpaid(strict, booking)

        again = [await guest_holds(strict, show, HERE, seat, seat + 1) for seat in (20, 22, 24, 26)]

        assert [type(one) for one in again] == [Booking, Booking, Booking, RangeLimit]
        assert await violations(strict, show) == []

    async def test_free_seats_count_until_they_are_given_back(self, strict: App) -> None:
        show = await a_show(strict, 50, price_minor=0)
        first = await guest_holds(strict, show, HERE, *range(SEATS_MAX - 1))
        assert isinstance(first, Booking)
        assert first.state is BookingState.CONFIRMED

        over = await guest_holds(strict, show, NEXT_DOOR, 20, 21)
        fits = await guest_holds(strict, show, NEXT_DOOR, 20)
        await strict.refunds.cancel(first, None)
        again = await guest_holds(strict, show, HERE, 21, 22)

        assert [type(one) for one in (over, fits, again)] == [RangeLimit, Booking, Booking]
        assert await violations(strict, show) == []

    async def test_two_processes_and_many_guests_never_exceed_it(self, strict: App, other: App) -> None:
        show = await a_show(strict, 100)
        crowd = [
            guest_holds((strict, other)[n % 2], show, HERE if n % 3 else FAR, 2 * n, 2 * n + 1)
            for n in range(40)
        ]

        answers = await asyncio.gather(*crowd)

        assert sum(isinstance(one, Booking) for one in answers) == 2 * SEATS_MAX // 2
        assert (await most_at_once(strict.postgres, show)).party_seats == SEATS_MAX
        assert await violations(strict, show) == []

    async def test_redis_decides_alone_without_the_ledger(self, strict: App) -> None:
        """In one batch, too: a flood over the limit costs no statement in PostgreSQL."""
        show = await a_show(strict, 50)
        await guest_holds(strict, show, HERE, 40)
        requests = [
            await guest_request(strict, show, HERE, *seats, owner=owner)
            for owner, seats in ((an_owner(), (1, 2, 3)), (an_owner(), (4, 5, 6)), (an_owner(), (7, 8)))
        ]

        outcomes = await strict.hold_scripts.hold_many(requests)

        assert [type(one) for one in outcomes] == [Held, RangeFull, Held]

    async def test_a_map_that_is_built_again_has_counted_them(self, strict: App) -> None:
        show = await a_show(strict, 50)
        await guest_holds(strict, show, HERE, 1, 2, 3, 4)
        await forget_map(strict, show)

        answers = [await guest_holds(strict, show, HERE, *seats) for seats in ((5, 6, 7), (5, 6))]

        assert [type(one) for one in answers] == [RangeLimit, Booking]


class TestGuests:
    async def test_a_guest_holds_seats_of_a_show_once_at_a_time(self, strict: App) -> None:
        show, guest = await a_show(strict, 50), an_owner()
        first = await guest_holds(strict, show, HERE, 1, owner=guest)
        second = await guest_holds(strict, show, FAR, 2, owner=guest)
        account = [await guest_holds(strict, show, HERE, n, owner=guest + 1, is_guest=False) for n in (3, 4)]
        assert isinstance(first, Booking)
        await strict.holds.cancel(first)

        third = await guest_holds(strict, show, HERE, 2, owner=guest)

        assert isinstance(second, HoldOpen)
        assert [type(one) for one in (*account, third)] == [Booking] * 3

    async def test_many_requests_of_one_guest_at_once(self, strict: App, other: App) -> None:
        show, guest = await a_show(strict, 50), an_owner()
        crowd = [guest_holds((strict, other)[n % 2], show, HERE, n, owner=guest) for n in range(20)]

        answers = await asyncio.gather(*crowd)

        assert sum(isinstance(one, Booking) for one in answers) == 1
        assert (await most_at_once(strict.postgres, show)).owner_holds == 1

    async def test_what_a_guest_has_counts_for_the_account_they_sign_in_to(self, strict: App) -> None:
        show = await a_show(strict, 50, owner_seats_max=4)
        guest = await strict.sessions.load(await strict.sessions.open_guest("en"))
        assert guest is not None
        held = await guest_holds(strict, show, HERE, 1, 2, 3, owner=guest.account_id)
        assert isinstance(held, Booking)
        account, _ = await a_reader(strict)
        before = await hold(strict, show, account, 10)
        await strict.sessions.open_account(account, guest)

        with pytest.raises(OverLimit):
            await hold(strict, show, account, 11)
        await strict.holds.cancel(held)
        after = await hold(strict, show, account, 11, 12, 13)

        assert before.number != after.number
        assert await violations(strict, show) == []

    async def test_the_same_request_from_another_network_is_the_same_hold(self, strict: App) -> None:
        """A phone may change its network between a request and its repetition."""
        show, guest = await a_show(strict, 50), an_owner()

        first = await guest_holds(strict, show, HERE, 1, owner=guest, request_id="key")
        again = await guest_holds(strict, show, FAR, 1, owner=guest, request_id="key")

        assert isinstance(first, Booking)
        assert isinstance(again, Booking)
        assert again.number == first.number


class TestLapses:
    async def test_an_owner_has_a_budget_of_unpaid_holds(self, strict: App) -> None:
        show, owner = await a_show(strict, 50), an_owner()
        for seat in range(LAPSES_MAX):
            await end_unpaid(strict, await hold(strict, show, owner, seat))

        with pytest.raises(CoolDown) as refused:
            await hold(strict, show, owner, 10)

        assert 0 < int(str(refused.value.details["retry_after_s"])) <= strict.config.lapse_cooldown_s
        assert isinstance(await hold(strict, show, an_owner(), 10), Booking)

    async def test_it_is_over_after_the_cool_down(self, strict: App, config: Config) -> None:
        show, owner = await a_show(strict, 50), an_owner()
        for seat in range(LAPSES_MAX):
            await end_unpaid(strict, await hold(strict, show, owner, seat))

        async with open_app(replace(strict.config, lapse_cooldown_s=0)) as later:
            assert isinstance(await hold(later, show, owner, 10), Booking)

    async def test_a_payment_that_ends_without_money_uses_it_too(self, strict: App) -> None:
        show, owner = await a_show(strict, 50), an_owner()
        for seat in range(LAPSES_MAX):
            booking = await hold(strict, show, owner, seat)
            payment = (await strict.payments.start(request_for(booking))).payment
            assert payment is not None
            await strict.saga_runner._release(payment, is_sure=True)

        with pytest.raises(CoolDown):
            await hold(strict, show, owner, 10)

    async def test_a_range_has_one_too(self, strict: App) -> None:
        show = await a_show(strict, 50)
        for seat in range(RANGE_LAPSES_MAX):
            booking = await guest_holds(strict, show, HERE, seat)
            assert isinstance(booking, Booking)
            await end_unpaid(strict, booking)

        assert isinstance(await guest_holds(strict, show, NEXT_DOOR, 10), CoolDown)
        assert isinstance(await guest_holds(strict, show, FAR, 10), Booking)

    async def test_seats_that_are_paid_for_or_given_back_early_use_none_of_it(self, strict: App) -> None:
        show, owner = await a_show(strict, 50), an_owner()
        for seat in range(LAPSES_MAX + 2):
            await strict.holds.cancel(await hold(strict, show, owner, seat))

        assert isinstance(await hold(strict, show, owner, 10), Booking)

    async def test_a_map_that_is_built_again_remembers(self, strict: App) -> None:
        show, owner = await a_show(strict, 50), an_owner()
        for seat in range(LAPSES_MAX):
            await end_unpaid(strict, await hold(strict, show, owner, seat))
        await forget_map(strict, show)

        with pytest.raises(CoolDown):
            await hold(strict, show, owner, 10)


class TestTheLedgerAlone:
    """What Redis would refuse reaches PostgreSQL: two processes, no map."""

    @pytest.fixture
    async def till(self, app: App) -> Till:
        return Till(app, await a_show(app, 100))

    @pytest.fixture
    async def ledgers(self, config: Config) -> AsyncIterator[list[Bookings]]:
        limits = HoldLimits(SEATS_MAX, 1, LAPSES_MAX, RANGE_LAPSES_MAX, 900)
        pools = [Postgres(where_sold(config).database_url, pool_max=4, timeout_s=10) for _ in range(2)]
        yield [Bookings(pool, limits, batch_max=128, waiting_max=1000) for pool in pools]
        for pool in pools:
            await pool.close()

    async def test_a_range_never_exceeds_its_limit(self, till: Till, ledgers: list[Bookings]) -> None:
        openings = [
            till.opening(2 * n, 2 * n + 1, owner_id=an_owner(), claim_id=f"c{n}@range", is_guest=True)
            for n in range(40)
        ]
        batches = [till.open_many(openings[n : n + 5], ledgers[n // 5 % 2]) for n in range(0, 40, 5)]

        answers = [one for batch in await asyncio.gather(*batches) for one in batch]

        assert sum(isinstance(one, Booking) for one in answers) == SEATS_MAX // 2
        assert set(map(type, answers)) == {Booking, OpeningRefused}
        assert (await most_at_once(till.postgres, till.show)).party_seats == SEATS_MAX
        assert await till.violations() == []

    async def test_a_guest_has_one_hold(self, till: Till, ledgers: list[Bookings]) -> None:
        openings = [till.opening(n, claim_id=f"c{n}@r{n}", is_guest=True) for n in range(12)]
        batches = [till.open_many(openings[n : n + 3], ledgers[n // 3 % 2]) for n in range(0, 12, 3)]

        answers = [one for batch in await asyncio.gather(*batches) for one in batch]

        refused = {one.reason for one in answers if isinstance(one, OpeningRefused)}
        assert (sum(isinstance(one, Booking) for one in answers), refused) == (1, {"has_hold"})
        assert await till.violations() == []

    async def test_unpaid_holds_use_up_the_budget(self, till: Till, ledgers: list[Bookings]) -> None:
        for seat in range(LAPSES_MAX):
            (held,) = await till.open_many([till.opening(seat)], ledgers[0])
            assert isinstance(held, Booking)
            await till.lapse(held.number)
            await till.ledger.sweep(1000)

        (refused,) = await till.open_many([till.opening(10)], ledgers[1])

        assert refused == OpeningRefused("cooling")

    async def test_a_lapsed_hold_is_counted_when_its_seat_is_taken(
        self, till: Till, ledgers: list[Bookings]
    ) -> None:
        """Before any sweep: the hold that takes the seat closes the old one, and counts it."""
        for _ in range(LAPSES_MAX):
            (held,) = await till.open_many([till.opening(3)], ledgers[0])
            assert isinstance(held, Booking)
            await till.lapse(held.number)

        (next_one,) = await till.open_many([till.opening(3, owner_id=an_owner())], ledgers[0])
        (refused,) = await till.open_many([till.opening(10)], ledgers[1])

        assert isinstance(next_one, Booking)
        assert refused == OpeningRefused("cooling")
        assert await till.violations() == []

    async def test_the_sale_without_redis_keeps_them(self, stage: Stage) -> None:
        show = await a_show(stage.app, 50)
        await stage.engines.valkey.hold()
        try:
            async with open_app(replace(stage.app.config, range_seats_max=2)) as app:
                first = await guest_holds(app, show, HERE, 1, 2)
                second = await guest_holds(app, show, NEXT_DOOR, 3)
        finally:
            await stage.bring_valkey_back()

        assert isinstance(first, Booking)
        assert isinstance(second, RangeLimit)


class TestTheHistoryCanFail:
    async def test_a_limit_beside_the_step_is_exceeded_and_found(self, app: App, config: Config) -> None:
        """Count first, hold then: requests at the same time all find room. The history shows it."""
        show, count = await a_show(app, 100), "SELECT sum(seats) FROM party_count WHERE show_id = $1"
        async with open_app(replace(config, range_seats_max=0)) as careless:

            async def looks_then_holds(n: int) -> None:
                if (await careless.postgres.fetchval(count, show) or 0) + 2 <= SEATS_MAX:
                    await guest_holds(careless, show, HERE, 2 * n, 2 * n + 1)

            await asyncio.gather(*(looks_then_holds(n) for n in range(10)))

        assert (await most_at_once(app.postgres, show)).party_seats > SEATS_MAX
