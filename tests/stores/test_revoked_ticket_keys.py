"""A ticket key that leaked is revoked: its codes and links open nothing, owners have new ones (R30)."""

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from holdfast.app import App
from holdfast.catalogue import NoSuchShow
from holdfast.checkin.offline import OfflineGate, open_pack
from holdfast.checkin.scan import Verdict, Way
from holdfast.tickets import Codes, EntryPolicy, IssuedTicket, NoSuchTicket, Tickets
from holdfast.tickets.transfer import Giver
from tests.support import shows as cast
from tests.support.door import Doorway, Stand, a_doorway
from tests.support.show_fixture import an_owner

DEVICE = X25519PrivateKey.generate()


@pytest.fixture
async def doorway(app: App) -> Doorway:
    return await a_doorway(app)


async def offline_gate(doorway: Doorway, stand: Stand) -> OfflineGate:
    """A gate with the pack of this moment."""
    await doorway.passes.bind_device(stand.pass_id, DEVICE.public_key().public_bytes_raw())
    pack = await doorway.app.checkin.pack(await doorway.app.checkin.standby(stand.account_id))
    keys = {key_id: key.public for key_id, key in (await doorway.app.tickets.keys()).items()}
    return OfflineGate(open_pack(pack, DEVICE.private_bytes_raw(), keys))


class TestOneShow:
    async def test_old_codes_are_refused_by_name_and_new_ones_admit(self, doorway: Doorway) -> None:
        tickets, north = doorway.app.tickets, await doorway.stand()
        ticket, old = await doorway.ticket(3)

        await doorway.revoke_keys()

        new = await tickets.fixed_code(await doorway.again(ticket))
        assert (await north.scans(old)).verdict is Verdict.REVOKED_CODE
        assert (await north.scans(new)).verdict is Verdict.ADMITTED

    async def test_codes_of_other_shows_stay_good(self, app: App, doorway: Doorway) -> None:
        elsewhere = await a_doorway(app)
        _, code = await elsewhere.ticket(3)

        await doorway.revoke_keys()

        assert (await (await elsewhere.stand()).scans(code)).verdict is Verdict.ADMITTED

    async def test_old_links_lead_nowhere_and_new_ones_to_the_ticket(self, doorway: Doorway) -> None:
        """The key makes links of tickets, too, and the page of a link shows the current code."""
        tickets = doorway.app.tickets
        ticket, _ = await doorway.ticket(3)
        old = await tickets.link(ticket)

        await doorway.revoke_keys()

        with pytest.raises(NoSuchTicket):
            await tickets.ticket_at(old)
        new = await tickets.link(await doorway.again(ticket))
        assert (await tickets.ticket_at(new)).serial == ticket.serial

    async def test_a_process_that_has_not_read_the_new_key_signs_with_it(
        self, app: App, doorway: Doorway
    ) -> None:
        elsewhere = Tickets(app.postgres, app.catalogue)
        await elsewhere.open()
        ticket, _ = await doorway.ticket(3)

        await doorway.revoke_keys()
        again = await doorway.again(ticket)

        code = await app.tickets.read(await elsewhere.fixed_code(again))
        assert code.key_id >= again.oldest_key
        assert (await elsewhere.ticket_at(await elsewhere.link(again))).serial == ticket.serial

    async def test_live_codes_follow(self, doorway: Doorway) -> None:
        tickets, north = doorway.app.tickets, await doorway.stand()
        await tickets.set_door(doorway.till.show, EntryPolicy(codes=Codes.LIVE))
        ticket, _ = await doorway.ticket(3)
        old, _ = await tickets.live_code(ticket)

        await doorway.revoke_keys()

        new, _ = await tickets.live_code(await doorway.again(ticket))
        assert (await north.scans(old)).verdict is Verdict.REVOKED_CODE
        assert (await north.scans(new)).verdict is Verdict.ADMITTED

    async def test_a_gate_with_a_new_pack_decides_the_same_without_a_network(self, doorway: Doorway) -> None:
        tickets, north = doorway.app.tickets, await doorway.stand()
        ticket, old = await doorway.ticket(3)

        await doorway.revoke_keys()
        gate = await offline_gate(doorway, north)

        new = await tickets.fixed_code(await doorway.again(ticket))
        now = gate.pack.made_at_s
        assert gate.decide(old, Way.ENTRY, now).verdict is Verdict.REVOKED_CODE
        assert gate.decide(new, Way.ENTRY, now).verdict is Verdict.ADMITTED

    async def test_every_owner_of_a_good_ticket_gets_the_new_one(self, app: App, doorway: Doorway) -> None:
        buyer, friend = an_owner(), an_owner()
        stays, given = await doorway.tickets(3, 4, owner_id=buyer)
        await give(doorway, given, friend)
        refunded, _ = await doorway.ticket(5)
        assert await doorway.gives_back(refunded)

        count = await doorway.revoke_keys()

        rows = await app.postgres.fetch(
            "SELECT number, (body ->> 'account_id')::bigint AS account_id FROM outbox"
            " WHERE show_id = $1 AND kind = 'tickets.sent_again'",
            doorway.till.show,
        )
        assert {(row["number"], row["account_id"]) for row in rows} == {
            (stays.number, buyer),
            (stays.number, friend),
        }
        assert count == 2

    async def test_a_show_that_does_not_exist_is_refused(self, app: App) -> None:
        with pytest.raises(NoSuchShow):
            await app.tickets.revoke_keys(999_999_999)


async def give(doorway: Doorway, ticket: IssuedTicket, to: int) -> None:
    giver = Giver(ticket.booked_by, "giver@example.com")
    await doorway.transfers.give(ticket.show_id, ticket.serial, giver, "friend@example.com")
    await doorway.app.postgres.execute(
        "UPDATE ticket SET owner_id = $3, owner_email = NULL WHERE show_id = $1 AND serial = $2",
        *(ticket.show_id, ticket.serial, to),
    )


async def test_a_key_is_revoked_at_every_show_also_at_those_to_come(app: App, doorway: Doorway) -> None:
    tickets, north = app.tickets, await doorway.stand()
    ticket, old = await doorway.ticket(3)
    leaked = await tickets.newest_key()

    await doorway.revoke_keys(at_every_show=True)

    new = await tickets.fixed_code(await doorway.again(ticket))
    assert (await north.scans(old)).verdict is Verdict.REVOKED_CODE
    assert (await north.scans(new)).verdict is Verdict.ADMITTED
    keys = await tickets.keys()
    assert {key_id for key_id, key in keys.items() if key.is_revoked} == set(range(1, leaked + 1))
    later = await cast.a_show(app, price_minor=0)
    assert await app.postgres.fetchval("SELECT oldest_ticket_key($1)", later) == leaked + 1
