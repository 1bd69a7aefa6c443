"""R26: freed seats are offered to waiting parties in order, and no other buyer gets them meanwhile."""

import asyncio

import pytest

from holdfast.app import App
from holdfast.bookings import BookingState, SeatsLost
from holdfast.holds import SeatsTaken, SoldOut
from holdfast.payments.saga import PaymentStep
from holdfast.waitlist.errors import AlreadyWaiting
from holdfast.waitlist.jobs import consumer
from tests.support.own_engines import Stage, hold
from tests.support.paid_bookings import bought, payment_request
from tests.support.show_fixture import an_owner
from tests.support.waitlist_hall import WaitlistHall, a_hall


@pytest.fixture
async def hall(app: App) -> WaitlistHall:
    """Ten seats in one row: five pairs, each held by another buyer."""
    hall = await a_hall(app)
    await hall.fill((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    return hall


class TestFromTheLapseToThePurchase:
    async def test_a_lapsed_hold_becomes_an_offer_that_is_paid_for(self, hall: WaitlistHall) -> None:
        party = await hall.join(2)
        await hall.lapse(hall.holders[4])

        reserved = await hall.reserved()
        await hall.step()
        offer = await hall.offer_to(party)
        assert offer is not None
        paid = await hall.app.saga_runner.pay(payment_request(offer))
        await hall.step()

        assert reserved == [4, 5]
        assert (offer.seats, offer.state, offer.owner_id) == ((4, 5), BookingState.HELD, party.owner_id)
        assert paid.payment is not None
        assert paid.payment.step is PaymentStep.PAID
        assert await hall.state_of(party) == "taken"
        assert await hall.till.facts(offer.number) == [
            *("booking.held", "waitlist.offered", "booking.paying", "booking.confirmed", "waitlist.ended")
        ]
        assert await hall.till.violations() == []
        assert await hall.shown() == "HHHHBBHHHH"

    async def test_the_offer_has_its_own_window_and_the_prices_of_this_moment(
        self, hall: WaitlistHall
    ) -> None:
        party = await hall.join(2)
        await hall.lapse(hall.holders[4])
        await hall.step()

        offer = await hall.offer_to(party)

        assert offer is not None
        assert (offer.expires_at - offer.opened_at).total_seconds() == hall.app.config.waitlist_offer_s
        assert offer.prices_minor == (1500, 1500)
        assert await hall.till.counted(party.owner_id) == 2


class TestNoOtherBuyerGetsAFreedSeat:
    async def test_by_name_or_as_best_available(self, hall: WaitlistHall) -> None:
        await hall.join(2)
        await hall.lapse(hall.holders[4])

        with pytest.raises(SeatsTaken):
            await hold(hall.app, hall.show, an_owner(), 4, 5)
        with pytest.raises(SoldOut):
            await hold(hall.app, hall.show, an_owner(), best=1)

        assert "A" not in await hall.shown()

    async def test_not_between_the_lapse_in_redis_and_the_sweep(self, hall: WaitlistHall) -> None:
        """The row is still there when the claim has ended: the hold that finds it must not inherit it."""
        await hall.join(2)
        await hall.till.lapse(hall.holders[4].number)

        lost = await hall.till.open(4, 5)

        assert isinstance(lost, SeatsLost)
        assert [rival.claim.claim_id for rival in lost.rivals] == ["waitlist", "waitlist"]
        assert await hall.reserved() == [4, 5]
        assert (await hall.till.booking(hall.holders[4].number)).state is BookingState.EXPIRED

    async def test_a_claim_that_redis_ends_is_not_sold_from_the_map(self, app: App) -> None:
        """With the flag, an ended claim leaves blocked bytes; without it, free ones."""
        hall = await a_hall(app, hold_ttl_s=1)
        await hall.fill((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
        await hall.join(2)
        await app.seatmap.rebuild(hall.show, "test")

        await asyncio.sleep(1.3)  # the claims end by Redis' own clock
        with pytest.raises(SoldOut):
            await hold(app, hall.show, an_owner(), best=1)

        assert await hall.shown() == "X" * 10

    async def test_nor_after_a_rebuild_of_the_map(self, hall: WaitlistHall) -> None:
        await hall.join(2)
        await hall.lapse(hall.holders[4])
        await hall.till.lapse(hall.holders[8].number)  # and no sweep has seen this one
        await hall.app.bookings.mark_map_stale(hall.show)

        await hall.app.seatmap.rebuild(hall.show, "test")

        assert await hall.shown() == "HHHHXXHHXX"

    async def test_seats_of_a_show_without_parties_are_free_at_once(self, hall: WaitlistHall) -> None:
        await hall.lapse(hall.holders[4])

        assert await hall.reserved() == []
        assert (await hold(hall.app, hall.show, an_owner(), 4, 5)).state is BookingState.HELD


class TestEveryWayASeatComesFree:
    async def test_released_by_its_buyer(self, hall: WaitlistHall) -> None:
        party = await hall.join(2)

        await hall.app.holds.cancel(hall.holders[4])
        await hall.step()

        assert await hall.offered_seats(party) == (4, 5)
        assert await hall.shown() == "H" * 10

    async def test_a_refunded_booking(self, app: App) -> None:
        hall = await a_hall(app, 4)
        await hall.fill((0, 1))
        sold = await bought(app, hall.show, 2, 3)
        party = await hall.join(1)

        await app.refunds.cancel(sold, (3,))
        await hall.step()

        assert await hall.offered_seats(party) == (3,)
        assert await hall.till.violations() == []

    async def test_a_released_block(self, app: App) -> None:
        hall = await a_hall(app, 4)
        await hall.fill((0, 1))
        number = await app.holds.block(hall.show, (2, 3), "press", 1)
        assert isinstance(number, int)
        party = await hall.join(2)

        (block,) = await app.bookings.blocks(hall.show)
        await app.holds.unblock(block, 1)
        await hall.step()

        assert await hall.offered_seats(party) == (2, 3)
        assert await hall.shown() == "HHHH"


class TestOrder:
    async def test_the_first_party_that_fits_is_first(self, hall: WaitlistHall) -> None:
        large, small = await hall.join(3), await hall.join(2)
        late = await hall.join(1)
        await hall.lapse(hall.holders[4])

        await hall.step()

        assert await hall.offered_seats(large) is None
        assert await hall.offered_seats(small) == (4, 5)
        assert await hall.offered_seats(late) is None

    async def test_people_of_the_drained_queue_come_first(self, hall: WaitlistHall) -> None:
        early = await hall.join(2)
        second = await hall.join(2, queue_position=9)
        first = await hall.join(2, queue_position=3)
        await hall.lapse(hall.holders[4])
        await hall.lapse(hall.holders[8])

        await hall.step()

        assert await hall.offer_to(early) is None
        offers = [await hall.offered_seats(party) for party in (first, second)]
        assert sorted(offers, key=str) == [(4, 5), (8, 9)]

    async def test_a_lapsed_offer_goes_to_the_next_and_its_party_is_out(self, hall: WaitlistHall) -> None:
        first, second = await hall.join(2), await hall.join(2)
        await hall.lapse(hall.holders[4])
        await hall.step()
        offer = await hall.offer_to(first)
        assert offer is not None

        await hall.lapse(offer)
        await hall.poll()

        assert await hall.state_of(first) == "lapsed"
        assert await hall.offered_seats(second) == (4, 5)

    async def test_a_buyer_at_the_limit_is_passed_over_and_keeps_the_place(self, app: App) -> None:
        hall = await a_hall(app, 4, owner_seats_max=2)
        full = an_owner()
        await hold(app, hall.show, full, 0, 1)
        await hall.fill((2, 3))
        first, second = await hall.join(2, owner=full), await hall.join(2)

        await hall.lapse(hall.holders[2])
        await hall.step()

        assert await hall.state_of(first) == "waiting"
        assert await hall.offered_seats(second) == (2, 3)


class TestEitherTriggerAlone:
    async def test_facts_make_offers_without_the_job(self, hall: WaitlistHall) -> None:
        party = await hall.join(2)
        await hall.lapse(hall.holders[4])
        makes_offers = consumer(hall.app.postgres, hall.app.waitlists.steps)
        before, settled = -1, 0
        while settled > before:
            before, settled = settled, await hall.app.outbox.settle(10_000)

        for fact in await hall.app.outbox.facts_after(0, 100_000):
            if fact.show_id == hall.show and makes_offers.wants(fact):
                await makes_offers.handle(fact)

        assert await hall.offered_seats(party) == (4, 5)

    async def test_the_job_makes_offers_without_facts(self, hall: WaitlistHall) -> None:
        party = await hall.join(2)
        await hall.lapse(hall.holders[4])
        await hall.till.postgres.execute("DELETE FROM outbox WHERE show_id = $1", hall.show)

        await hall.poll()

        assert await hall.offered_seats(party) == (4, 5)

    async def test_both_at_once_make_one_offer(self, hall: WaitlistHall) -> None:
        parties = [await hall.join(2) for _ in range(3)]
        await hall.lapse(hall.holders[4])

        await asyncio.gather(*(hall.step() for _ in range(6)))

        offered = [await hall.offered_seats(party) for party in parties]
        assert offered == [(4, 5), None, None]


class TestTheEndOfAList:
    async def test_a_cancelled_show_ends_all_waits_and_reserves_nothing(self, hall: WaitlistHall) -> None:
        party = await hall.join(4)
        await hall.lapse(hall.holders[4])
        await hall.till.postgres.execute(
            "UPDATE sale SET cancelled = true, revision = revision WHERE show_id = $1", hall.show
        )

        await hall.poll()
        await hall.lapse(hall.holders[6])

        assert await hall.state_of(party) == "closed"
        assert await hall.reserved() == []

    async def test_an_empty_list_ends_after_a_while_and_seats_are_free_at_once(
        self, hall: WaitlistHall
    ) -> None:
        party = await hall.join(2)
        await hall.app.waitlists.leave(hall.show, party.owner_id)
        await hall.till.postgres.execute(
            "UPDATE waitlist SET empty_at = empty_at - interval '1 h' WHERE show_id = $1", hall.show
        )

        await hall.poll()
        await hall.lapse(hall.holders[4])

        assert not await hall.till.postgres.fetchval(
            "SELECT has_waitlist FROM sale WHERE show_id = $1", hall.show
        )
        assert 4 not in await hall.till.taken()

    async def test_a_seat_that_was_reserved_at_the_last_moment_is_found(self, hall: WaitlistHall) -> None:
        """A sweep that began before the list ended commits after it: no list is live, and a seat is
        reserved."""
        party = await hall.join(2)
        await hall.app.waitlists.leave(hall.show, party.owner_id)
        await hall.lapse(hall.holders[4])
        await hall.till.postgres.execute("UPDATE waitlist SET is_live = false WHERE show_id = $1", hall.show)
        assert await hall.reserved() == [4, 5]

        await hall.poll()

        assert await hall.reserved() == []


class TestWhileRedisIsAway:
    async def test_the_ledger_alone_reserves_and_refuses(self, stage: Stage) -> None:
        hall = WaitlistHall(await stage.till(4))
        await hall.fill((0, 1), (2, 3))
        party = await hall.join(2)
        await stage.engines.valkey.hold()

        await hall.till.lapse(hall.holders[2].number)
        await hall.sweep()
        with pytest.raises(SoldOut):
            await hold(hall.app, hall.show, an_owner(), best=1)
        await hall.step()
        await stage.bring_valkey_back()
        await hall.app.seatmap.rebuild(hall.show, "test")

        assert await hall.offered_seats(party) == (2, 3)
        assert await hall.shown() == "HHHH"


class TestSeatsThatFitNoParty:
    async def test_they_wait_a_while_and_are_public_again(self, hall: WaitlistHall) -> None:
        await hall.join(4)
        await hall.lapse(hall.holders[4])
        await hall.step()
        before = await hall.reserved()

        await hall.age_reservations(hall.app.config.waitlist_keep_s)
        await hall.step()

        assert before == [4, 5]
        assert await hall.reserved() == []
        assert await hall.shown() == "HHHHAAHHHH"
        assert (await hold(hall.app, hall.show, an_owner(), 4, 5)).state is BookingState.HELD

    async def test_a_pair_becomes_a_four_when_its_neighbours_come_free(self, hall: WaitlistHall) -> None:
        party = await hall.join(4)
        await hall.lapse(hall.holders[4])
        await hall.step()
        await hall.lapse(hall.holders[6])

        await hall.step()

        assert await hall.offered_seats(party) == (4, 5, 6, 7)

    async def test_they_are_public_at_once_when_the_last_party_leaves(self, hall: WaitlistHall) -> None:
        party = await hall.join(4)
        await hall.lapse(hall.holders[4])
        await hall.step()

        await hall.app.waitlists.leave(hall.show, party.owner_id)

        assert await hall.reserved() == []
        assert await hall.state_of(party) == "left"


class TestJoining:
    async def test_the_same_wish_again_is_the_same_entry_and_another_is_refused(
        self, hall: WaitlistHall
    ) -> None:
        party = await hall.join(2)

        again = await hall.join(2, owner=party.owner_id)
        with pytest.raises(AlreadyWaiting):
            await hall.join(3, owner=party.owner_id)

        assert again.number == party.number

    async def test_two_at_once_are_one_entry(self, hall: WaitlistHall) -> None:
        owner = an_owner()

        entries = await asyncio.gather(*(hall.join(2, owner=owner) for _ in range(8)))

        assert {entry.number for entry in entries} == {1}

    async def test_a_wait_ends_in_time(self, hall: WaitlistHall) -> None:
        party = await hall.join(2)
        await hall.till.postgres.execute(
            "UPDATE waitlist_entry SET until = now() WHERE show_id = $1", hall.show
        )

        await hall.poll()

        assert await hall.state_of(party) == "timed_out"
