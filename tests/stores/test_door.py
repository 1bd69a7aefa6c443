"""One row decides each admission: once per ticket, latest edition, for this show, while valid (R30, S11)."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from holdfast.app import App
from holdfast.bookings import reference
from holdfast.checkin.errors import NoGatePass, NothingToUndo, ScanIdUsed, SearchMax
from holdfast.checkin.every_pod import search_tickets
from holdfast.checkin.scan import Verdict, Way
from holdfast.checkin.store import SEARCHES_PER_MINUTE_MAX
from holdfast.tickets import Codes, EntryPolicy
from holdfast.tickets.transfer import Giver
from tests.support.door import Doorway, a_doorway, a_scan

RACES = 60  # more, over HTTP, in tests/storms/test_door_races.py


@pytest.fixture
async def doorway(app: App) -> Doorway:
    return await a_doorway(app)


class TestOneTicket:
    async def test_is_admitted_once_and_then_shown_when_and_where(self, doorway: Doorway) -> None:
        north, south = await doorway.stand("North"), await doorway.stand("South")
        ticket, code = await doorway.ticket(3)

        first, second = await north.scans(code), await south.scans(code)

        assert (first.verdict, first.seat, first.number) == (Verdict.ADMITTED, 3, ticket.number)
        assert (second.verdict, second.first_gate) == (Verdict.USED, "North")
        assert second.first_at == first.scanned_at
        assert (await doorway.again(ticket)).used_at == first.scanned_at
        assert await doorway.facts(ticket) == ["ticket.checked_in"]

    async def test_the_same_scan_again_gets_the_same_answer(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        ticket, code = await doorway.ticket(3)

        first = await north.scans(code, scan_id="once")
        again = await north.scans(code, scan_id="once")

        assert (again.verdict, again.check_in_id) == (Verdict.ADMITTED, first.check_in_id)
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED]

    async def test_the_id_of_a_scan_opens_the_door_to_nothing_else(self, doorway: Doorway) -> None:
        """A device that counts from one again, after a restart: its first answer is not repeated."""
        north = await doorway.stand()
        ticket, code = await doorway.ticket(3)
        _, other = await doorway.ticket(4)
        first = await north.scans(code, scan_id="1")

        for act in (
            north.scans("HELLO", scan_id="1"),
            north.scans(other, scan_id="1"),
            north.scans(code, Way.EXIT, scan_id="1"),
            doorway.app.checkin.undo(north.account_id, first.show_id, first.check_in_id, "1"),
        ):
            with pytest.raises(ScanIdUsed):
                await act
        assert first.verdict is Verdict.ADMITTED
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED]
        assert (await north.scans(other, scan_id="2")).verdict is Verdict.ADMITTED

    async def test_the_id_of_an_edition_is_not_the_next_one_s(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        ticket, old = await doorway.ticket(3)
        giver = Giver(ticket.booked_by, "giver@example.com")
        given = await doorway.transfers.give(ticket.show_id, ticket.serial, giver, "bob@example.com")
        await north.scans(await doorway.app.tickets.fixed_code(given), scan_id="1")

        with pytest.raises(ScanIdUsed):
            await north.scans(old, scan_id="1")

    async def test_twins_with_one_id_for_two_tickets_are_one_and_a_refusal(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        for round in range(20):
            codes = [(await doorway.ticket(seat))[1] for seat in (2 * round, 2 * round + 1)]
            found = await asyncio.gather(
                *(north.scans(code, scan_id=f"twin-{round}") for code in codes), return_exceptions=True
            )
            assert sorted(type(one).__name__ for one in found) == ["CheckIn", "ScanIdUsed"]

    async def test_a_stranger_s_code_is_unknown_and_written_down(self, doorway: Doorway) -> None:
        north = await doorway.stand()

        found = await north.scans("HELLO")

        assert (found.verdict, found.seat, found.number) == (Verdict.UNKNOWN, None, None)
        (count,) = await doorway.app.checkin.counts([doorway.till.show])
        assert [(gate.gate, gate.refused) for gate in count.gates] == [("North", 1)]

    async def test_of_another_show_is_refused_there_and_good_here(self, app: App, doorway: Doorway) -> None:
        elsewhere = await a_doorway(app)
        _, code = await doorway.ticket(3)

        wrong = await (await elsewhere.stand()).scans(code)
        right = await (await doorway.stand()).scans(code)

        assert (wrong.verdict, wrong.seat) == (Verdict.WRONG_SHOW, None)
        assert right.verdict is Verdict.ADMITTED

    async def test_given_back_is_void(self, doorway: Doorway) -> None:
        ticket, code = await doorway.ticket(3)
        assert await doorway.gives_back(ticket)

        found = await (await doorway.stand()).scans(code)

        assert found.verdict is Verdict.VOID
        assert (await doorway.again(ticket)).used_at is None

    async def test_given_away_opens_nothing_and_the_new_code_does(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        ticket, old = await doorway.ticket(3)
        giver = Giver(ticket.booked_by, "giver@example.com")
        given = await doorway.transfers.give(ticket.show_id, ticket.serial, giver, "bob@example.com")

        refused = await north.scans(old)
        admitted = await north.scans(await doorway.app.tickets.fixed_code(given))

        assert refused.verdict is Verdict.TRANSFERRED
        assert admitted.verdict is Verdict.ADMITTED

    async def test_a_code_of_an_edition_that_was_lost_in_a_restore_is_refused_by_name(
        self, doorway: Doorway
    ) -> None:
        """Signed by us, but the transfer happened after the instant that the ledger was put back to."""
        ticket, _ = await doorway.ticket(3)
        giver = Giver(ticket.booked_by, "giver@example.com")
        given = await doorway.transfers.give(ticket.show_id, ticket.serial, giver, "bob@example.com")
        later = await doorway.app.tickets.fixed_code(given)
        await doorway.app.postgres.execute(
            "UPDATE ticket SET edition = 1, owner_id = NULL, owner_email = NULL WHERE serial = $1",
            ticket.serial,
        )

        assert (await (await doorway.stand()).scans(later)).verdict is Verdict.LOST_IN_RESTORE


class TestInAndOut:
    async def test_a_holder_scanned_out_may_enter_again_once(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        _, code = await doorway.ticket(3)

        verdicts = [
            (await north.scans(code, way)).verdict
            for way in (Way.EXIT, Way.ENTRY, Way.EXIT, Way.EXIT, Way.ENTRY, Way.ENTRY)
        ]

        assert verdicts == [
            Verdict.NOT_INSIDE,
            Verdict.ADMITTED,
            Verdict.LEFT,
            Verdict.NOT_INSIDE,
            Verdict.ADMITTED,
            Verdict.USED,
        ]

    async def test_re_entry_is_refused_if_the_show_forbids_it(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        await doorway.app.tickets.set_door(doorway.till.show, EntryPolicy(reentry=False))
        _, code = await doorway.ticket(3)

        verdicts = [(await north.scans(code, way)).verdict for way in (Way.ENTRY, Way.EXIT, Way.ENTRY)]

        assert verdicts == [Verdict.ADMITTED, Verdict.LEFT, Verdict.USED]

    async def test_a_holder_who_left_cannot_return_the_ticket(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        ticket, code = await doorway.ticket(3)
        await north.scans(code)
        await north.scans(code, Way.EXIT)

        assert not await doorway.gives_back(ticket)


class TestUndo:
    async def test_it_is_as_if_the_ticket_had_never_been_used(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        ticket, code = await doorway.ticket(3)
        done = await north.scans(code)

        await doorway.app.checkin.undo(north.account_id, done.show_id, done.check_in_id, a_scan())

        assert (await doorway.again(ticket)).used_at is None
        assert (await north.scans(code)).verdict is Verdict.ADMITTED
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED, Verdict.UNDONE, Verdict.ADMITTED]
        assert await doorway.facts(ticket) == [
            "ticket.checked_in",
            "ticket.check_in_undone",
            "ticket.checked_in",
        ]

    async def test_only_the_last_thing_that_happened(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        _, code = await doorway.ticket(3)
        first = await north.scans(code)
        await north.scans(code, Way.EXIT)

        with pytest.raises(NothingToUndo):
            await doorway.app.checkin.undo(north.account_id, first.show_id, first.check_in_id, a_scan())

    async def test_a_refusal_cannot_be_undone(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        _, code = await doorway.ticket(3)
        await north.scans(code)
        refused = await north.scans(code)

        with pytest.raises(NothingToUndo):
            await doorway.app.checkin.undo(north.account_id, refused.show_id, refused.check_in_id, a_scan())

    async def test_by_a_gate_of_this_show_only(self, app: App, doorway: Doorway) -> None:
        done = await (await doorway.stand()).scans((await doorway.ticket(3))[1])
        stranger = await (await a_doorway(app)).stand()

        with pytest.raises(NothingToUndo):
            await app.checkin.undo(stranger.account_id, done.show_id, done.check_in_id, a_scan())


class TestPasses:
    async def test_a_revoked_pass_asks_nothing_from_the_next_scan_on(self, doorway: Doorway) -> None:
        north = await doorway.stand()
        _, code = await doorway.ticket(3)
        await doorway.passes.revoke(north.pass_id, None)

        with pytest.raises(NoGatePass):
            await north.scans(code)
        with pytest.raises(NoGatePass):
            await doorway.app.checkin.standby(north.account_id)

    async def test_a_pass_is_good_on_its_day(self, doorway: Doorway) -> None:
        now = datetime.now(UTC)
        _, code = await doorway.ticket(3)
        tomorrow = await doorway.stand(
            "North", starts_at=now + timedelta(days=1), ends_at=now + timedelta(days=2)
        )
        yesterday = await doorway.stand(
            "North", starts_at=now - timedelta(days=2), ends_at=now - timedelta(days=1)
        )

        for stand in (tomorrow, yesterday):
            with pytest.raises(NoGatePass):
                await stand.scans(code)

    async def test_by_default_it_lasts_from_before_doors_open_until_after_the_show(
        self, doorway: Doorway
    ) -> None:
        stand = await doorway.stand("North", starts_at=None, ends_at=None)

        made = await doorway.passes.find(stand.pass_id, None)
        occasion = await doorway.app.tickets.occasion(doorway.till.show)

        assert made.starts_at == occasion.starts_at - timedelta(hours=6)
        assert made.ends_at == occasion.ends_at + timedelta(hours=2)


class TestLiveCodes:
    @pytest.fixture
    async def live(self, doorway: Doorway) -> Doorway:
        await doorway.app.tickets.set_door(doorway.till.show, EntryPolicy(codes=Codes.LIVE))
        return doorway

    async def test_the_code_of_the_phone_opens_and_paper_does_not(self, live: Doorway) -> None:
        north = await live.stand()
        ticket, paper = await live.ticket(3)
        await live.app.tickets.bind_phone([ticket], "phone-one")
        code, _ = await live.app.tickets.live_code(await live.again(ticket))

        on_paper, on_the_phone = await north.scans(paper), await north.scans(code)

        assert on_paper.verdict is Verdict.LIVE_CODE_NEEDED
        assert on_the_phone.verdict is Verdict.ADMITTED

    async def test_another_phone_makes_the_first_one_stale(self, live: Doorway) -> None:
        north = await live.stand()
        ticket, _ = await live.ticket(3)
        await live.app.tickets.bind_phone([ticket], "phone-one")
        old, _ = await live.app.tickets.live_code(await live.again(ticket))
        await live.app.tickets.bind_phone([ticket], "phone-two")

        assert (await north.scans(old)).verdict is Verdict.STALE_CODE

    async def test_the_same_phone_stays_the_same(self, live: Doorway) -> None:
        ticket, _ = await live.ticket(3)
        for _ in range(3):
            await live.app.tickets.bind_phone([ticket], "phone-one")

        assert (await live.again(ticket)).binding == 1

    async def test_paper_is_good_where_the_show_lets_it(self, live: Doorway) -> None:
        await live.app.tickets.set_door(live.till.show, EntryPolicy(codes=Codes.LIVE_OR_PAPER))
        _, paper = await live.ticket(3)

        assert (await (await live.stand()).scans(paper)).verdict is Verdict.ADMITTED


class TestSearch:
    async def test_by_reference_in_any_case(self, doorway: Doorway) -> None:
        ticket, _ = await doorway.ticket(3)
        standby = await doorway.app.checkin.standby((await doorway.stand()).account_id)

        found = await search_tickets(doorway.app, standby, reference(ticket.show_id, ticket.number).lower())

        assert [one.serial for one, _ in found] == [ticket.serial]

    async def test_only_in_the_shows_of_the_pass(self, app: App, doorway: Doorway) -> None:
        ticket, _ = await doorway.ticket(3)
        stranger = await app.checkin.standby((await (await a_doorway(app)).stand()).account_id)

        assert await search_tickets(app, stranger, reference(ticket.show_id, ticket.number)) == []

    async def test_not_more_often_than_the_limit(self, doorway: Doorway) -> None:
        standby = await doorway.app.checkin.standby((await doorway.stand()).account_id)
        for _ in range(SEARCHES_PER_MINUTE_MAX):
            await search_tickets(doorway.app, standby, "unknown")

        with pytest.raises(SearchMax):
            await search_tickets(doorway.app, standby, "unknown")

    async def test_searches_of_an_earlier_minute_no_longer_count_and_are_deleted(
        self, doorway: Doorway
    ) -> None:
        standby = await doorway.app.checkin.standby((await doorway.stand()).account_id)
        await doorway.app.postgres.execute(
            "INSERT INTO gate_search SELECT $1, now() - interval '2 minutes' - i * interval '1 second'"
            " FROM generate_series(1, $2) AS i",
            *(standby.pass_id, SEARCHES_PER_MINUTE_MAX),
        )

        await search_tickets(doorway.app, standby, "unknown")

        stored = await doorway.app.postgres.fetchval(
            "SELECT count(*) FROM gate_search WHERE pass_id = $1", standby.pass_id
        )
        assert stored == 1


async def test_recorded_scans_cannot_be_changed(doorway: Doorway) -> None:
    await (await doorway.stand()).scans((await doorway.ticket(3))[1])

    for change in ("UPDATE check_in SET verdict = 'used'", "DELETE FROM check_in"):
        with pytest.raises(asyncpg.CheckViolationError):
            await doorway.app.postgres.execute(change)


async def test_the_same_code_at_two_gates_at_once_is_admitted_once(app: App) -> None:
    """24 of the cases: G1 at two gates within 50 ms."""
    doorway = await a_doorway(app, RACES)
    north, south = await doorway.stand("North"), await doorway.stand("South")

    for seat in range(RACES):
        _, code = await doorway.ticket(seat)
        found = await asyncio.gather(north.scans(code), south.scans(code))

        by_verdict = {one.verdict: one for one in found}
        assert set(by_verdict) == {Verdict.ADMITTED, Verdict.USED}
        won, lost = by_verdict[Verdict.ADMITTED], by_verdict[Verdict.USED]
        assert (lost.first_gate, lost.first_at) == (won.gate, won.scanned_at)
    assert (await app.checkin.counts([doorway.till.show]))[0].inside == RACES


async def test_a_ticket_is_used_or_given_back_and_never_both(app: App) -> None:
    """27 of the cases: a refund racing the door. Whichever comes first, the other finds it so."""
    doorway = await a_doorway(app, RACES)
    north = await doorway.stand()
    outcomes = set()

    for seat in range(RACES):
        ticket, code = await doorway.ticket(seat)
        if seat % 2:
            scanned, is_void = await asyncio.gather(north.scans(code), doorway.gives_back(ticket))
        else:
            is_void, scanned = await asyncio.gather(doorway.gives_back(ticket), north.scans(code))

        now = await doorway.again(ticket)
        assert (now.used_at is None) != (now.voided_at is None)
        assert (scanned.verdict is Verdict.ADMITTED) != is_void
        outcomes.add(scanned.verdict)
    assert outcomes <= {Verdict.ADMITTED, Verdict.VOID}
