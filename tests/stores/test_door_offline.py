"""Scans that gates decided offline are recorded unchanged when uploaded; conflicts are raised (G2)."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.checkin.errors import BadPassCode, DeviceTaken, NoDevice, NoGatePass
from holdfast.checkin.offline import OfflineGate
from holdfast.checkin.scan import OfflineScan, UploadedScan, Verdict, Way
from holdfast.tickets import Codes, EntryPolicy, IssuedTicket
from holdfast.tickets.transfer import Giver
from tests.support.door import Doorway, Stand, a_doorway, a_scan

DEVICE = X25519PrivateKey.generate()
PUBLIC = DEVICE.public_key().public_bytes_raw()


@pytest.fixture
async def doorway(app: App) -> Doorway:
    return await a_doorway(app)


def ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)


def a_scan_of(code: str, minutes_ago: float, way: Way = Way.ENTRY) -> OfflineScan:
    verdict = Verdict.ADMITTED if way is Way.ENTRY else Verdict.LEFT
    return OfflineScan(a_scan(), code, verdict, ago(minutes_ago), way)


async def upload(stand: Stand, *scans: OfflineScan) -> list[UploadedScan]:
    return await stand.app.checkin.upload(stand.account_id, scans)


async def raised(doorway: Doorway) -> list[tuple[str, str | None, str]]:
    """(why, gate of the first, gate of the second)"""
    rows = await doorway.app.checkin.conflicts(doorway.till.show)
    return [(row["why"], row["first_gate"], row["second_gate"]) for row in rows]


class TestUploadedScans:
    async def test_a_scan_without_conflict_is_recorded(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        ticket, code = await doorway.ticket(3)

        (one,) = await upload(north, a_scan_of(code, 5))

        assert (one.recorded, one.conflict) == (True, None)
        now = await doorway.again(ticket)
        assert now.is_inside
        assert now.used_at is not None
        assert now.used_at < ago(4)
        assert await doorway.facts(ticket) == ["ticket.checked_in"]

    async def test_a_scan_uploaded_twice_is_recorded_once(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        ticket, code = await doorway.ticket(3)
        scan = a_scan_of(code, 5)

        first, again = await upload(north, scan), await upload(north, scan)

        assert first == again
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED]
        assert await raised(doorway) == []

    @pytest.mark.parametrize("first_to_tell", ["North", "South"])
    async def test_the_first_by_the_devices_clocks_is_the_first(
        self, doorway: Doorway, first_to_tell: str
    ) -> None:
        """25 of the cases: North scanned first, whichever gate uploads first."""
        north, south = await doorway.stand("North"), await doorway.stand("South")
        ticket, code = await doorway.ticket(3)
        acts = [(north, a_scan_of(code, 9)), (south, a_scan_of(code, 5))]
        if first_to_tell == "South":
            acts.reverse()

        for stand, scan in acts:
            await upload(stand, scan)

        assert await raised(doorway) == [("used", "North", "South")]
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED, Verdict.ADMITTED]
        assert "door.conflict_raised" in await doorway.facts(ticket)

    @pytest.mark.parametrize("order", list(permutations(range(3))))
    async def test_of_three_the_second_and_the_third_are_raised(
        self, doorway: Doorway, order: tuple[int, ...]
    ) -> None:
        """However close the scans were, and whichever gate uploads first."""
        stands = [await doorway.stand(gate) for gate in ("North", "South", "West")]
        _, code = await doorway.ticket(3)
        minutes = (9, 6, 5)  # the second is nearer to the third

        for place in order:
            await upload(stands[place], a_scan_of(code, minutes[place]))

        assert {(why, second) for why, _, second in await raised(doorway)} == {
            ("used", "South"),
            ("used", "West"),
        }

    async def test_one_of_two_undone_leaves_the_other_inside(self, doorway: Doorway) -> None:
        north, south = await doorway.stand("North"), await doorway.stand("South")
        ticket, code = await doorway.ticket(3)
        await south.scans(code)
        (one,) = await upload(north, a_scan_of(code, 5))
        assert one.check_in_id is not None
        show_id, check_in_id = from_public_id(one.check_in_id)

        await doorway.app.checkin.undo(north.account_id, show_id, check_in_id, a_scan())

        assert (await doorway.again(ticket)).is_inside
        assert (await north.scans(code)).verdict is Verdict.USED

    async def test_a_device_that_restarts_its_numbering_uploads_a_new_scan(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        tickets = [await doorway.ticket(seat) for seat in (3, 4)]

        done = [
            await upload(north, OfflineScan("1", code, Verdict.ADMITTED, ago(5))) for _, code in tickets * 2
        ]

        assert all(one.recorded and one.conflict is None for (one,) in done)
        for ticket, _ in tickets:
            assert await doorway.verdicts(ticket) == [Verdict.ADMITTED]

    async def test_an_online_admission_conflicts_with_an_offline_one(self, doorway: Doorway) -> None:
        north, south = await doorway.stand("North"), await doorway.stand("South")
        _, code = await doorway.ticket(3)
        await north.scans(code)

        (one,) = await upload(south, a_scan_of(code, 5))

        assert one.conflict == "used"
        assert await raised(doorway) == [("used", "South", "North")]

    async def test_entry_exit_entry_is_not_a_conflict_in_any_upload_order(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        ticket, code = await doorway.ticket(3)
        scans = [a_scan_of(code, 9), a_scan_of(code, 6, Way.EXIT), a_scan_of(code, 3)]

        done = await upload(north, scans[2], scans[0], scans[1])

        assert [one.scan_id for one in done] == [scans[2].scan_id, scans[0].scan_id, scans[1].scan_id]
        assert await raised(doorway) == []
        assert (await doorway.again(ticket)).is_inside

    async def test_a_holder_who_left_at_another_gate_is_not_inside(self, doorway: Doorway) -> None:
        north, south = await doorway.stand("North"), await doorway.stand("South")
        ticket, code = await doorway.ticket(3)
        await south.scans(code)
        await south.scans(code, Way.EXIT)

        await upload(north, a_scan_of(code, 9))

        assert not (await doorway.again(ticket)).is_inside

    async def test_a_ticket_given_back_is_raised_and_stays_given_back(self, doorway: Doorway) -> None:
        ticket, code = await doorway.ticket(3)
        await doorway.gives_back(ticket)

        (one,) = await upload(await doorway.stand("North"), a_scan_of(code, 5))

        assert one.conflict == "void"
        assert await raised(doorway) == [("void", None, "North")]
        assert (await doorway.again(ticket)).used_at is None

    async def test_a_ticket_given_away_is_raised(self, doorway: Doorway) -> None:
        ticket, code = await doorway.ticket(3)
        giver = Giver(ticket.booked_by, "giver@example.com")
        await doorway.transfers.give(ticket.show_id, ticket.serial, giver, "bob@example.com")

        (one,) = await upload(await doorway.stand("North"), a_scan_of(code, 5))

        assert one.conflict == "transferred"

    async def test_a_clock_that_is_ahead_is_put_back(self, doorway: Doorway) -> None:
        ticket, code = await doorway.ticket(3)

        await upload(await doorway.stand("North"), a_scan_of(code, -600))

        used_at = (await doorway.again(ticket)).used_at
        assert used_at is not None
        assert used_at <= datetime.now(UTC)

    async def test_our_lost_no_and_the_device_s_yes_are_both_on_record(self, doorway: Doorway) -> None:
        """The answer to a scan was lost, so the device decided alone: same scan, other verdict."""
        north, south = await doorway.stand("North"), await doorway.stand("South")
        ticket, code = await doorway.ticket(3)
        await south.scans(code)
        refused = await north.scans(code, scan_id="lost")
        scan = OfflineScan("lost", code, Verdict.ADMITTED, datetime.now(UTC))

        first, again = await upload(north, scan), await upload(north, scan)

        assert refused.verdict is Verdict.USED
        assert [one.conflict for one in (*first, *again)] == ["used", "used"]
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED, Verdict.USED, Verdict.ADMITTED]

    async def test_our_lost_yes_and_the_device_s_yes_are_one(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        ticket, code = await doorway.ticket(3)
        await north.scans(code, scan_id="lost")

        (one,) = await upload(north, OfflineScan("lost", code, Verdict.ADMITTED, datetime.now(UTC)))

        assert (one.recorded, one.conflict) == (True, None)
        assert await doorway.verdicts(ticket) == [Verdict.ADMITTED]

    async def test_a_forged_code_is_not_recorded(self, doorway: Doorway) -> None:
        (one,) = await upload(await doorway.stand("North"), a_scan_of("HELLO", 5))

        assert not one.recorded

    async def test_a_pass_that_is_over_may_tell_and_a_revoked_one_may_not(self, doorway: Doorway) -> None:
        over = await doorway.stand("North", starts_at=ago(600), ends_at=ago(5))
        revoked = await doorway.stand("South")
        _, code = await doorway.ticket(3)
        await doorway.passes.revoke(revoked.pass_id, None)

        assert (await upload(over, a_scan_of(code, 10)))[0].recorded
        with pytest.raises(NoGatePass):
            await upload(revoked, a_scan_of(code, 10))


class TestPack:
    async def test_a_device_reads_its_pack_and_decides_as_the_ledger_would(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        _, code_inside = await doorway.ticket(3)
        void, code_void = await doorway.ticket(4)
        _, code_good = await doorway.ticket(5)
        await north.scans(code_inside)
        await doorway.gives_back(void)

        gate = await doorway.offline_gate(north)
        _, sold_since = await doorway.ticket(6)

        used = gate.decide(code_inside, Way.ENTRY, datetime.now(UTC).timestamp())
        assert (used.verdict, used.first_gate) == (Verdict.USED, "North")
        assert used.first_at is not None
        assert used.first_at > ago(5)
        assert self.says(gate, code_void) is Verdict.VOID
        assert self.says(gate, code_good) is Verdict.ADMITTED
        assert self.says(gate, sold_since) is Verdict.ADMITTED

    async def test_live_codes_are_checked_without_a_network(self, doorway: Doorway) -> None:
        await doorway.app.tickets.set_door(doorway.till.show, EntryPolicy(codes=Codes.LIVE))
        ticket, paper = await doorway.ticket(3)
        await doorway.app.tickets.bind_phone([ticket], "phone-one")
        code, _ = await doorway.app.tickets.live_code(await doorway.again(ticket))

        gate = await doorway.offline_gate(await doorway.stand("North"))

        assert self.says(gate, paper) is Verdict.LIVE_CODE_NEEDED
        assert self.says(gate, code) is Verdict.ADMITTED

    async def test_it_is_for_the_first_device_alone(self, doorway: Doorway) -> None:
        north = await doorway.stand("North")
        with pytest.raises(NoDevice):
            await doorway.app.checkin.pack(await doorway.app.checkin.standby(north.account_id))
        await doorway.passes.bind_device(north.pass_id, PUBLIC)
        await doorway.passes.bind_device(north.pass_id, PUBLIC)

        with pytest.raises(DeviceTaken):
            await doorway.passes.bind_device(north.pass_id, b"x" * 32)
        with pytest.raises(BadPassCode):
            await doorway.passes.sign_in("A" * 32, PUBLIC)

    def says(self, gate: OfflineGate, code: str) -> Verdict:
        return gate.decide(code, Way.ENTRY, datetime.now(UTC).timestamp()).verdict


def test_a_ticket_has_no_name_in_it() -> None:
    assert "name" not in IssuedTicket.__dataclass_fields__
