"""Keys, owners, phones: what the ledger knows of tickets, and how they change hands (R30, T1)."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Postgres
from holdfast.tickets import BadCode, IssuedTicket, NoSuchTicket, Tickets
from holdfast.tickets.errors import (
    NothingToTakeBack,
    ResendMax,
    TicketUsed,
    TicketVoid,
    ToYourself,
    TransferMax,
)
from holdfast.tickets.store import KEY_KNOWN_AFTER_S, KEYS_MAX, RESENDS_AN_HOUR_MAX
from holdfast.tickets.transfer import TRANSFERS_MAX, Giver
from tests.support.account_processes import Clock
from tests.support.door import Doorway, a_doorway
from tests.support.show_fixture import an_owner


@pytest.fixture
async def doorway(app: App) -> Doorway:
    return await a_doorway(app)


@pytest.fixture
async def keys_apart(postgres: Postgres) -> AsyncIterator[Postgres]:
    """A ledger with ticket keys of its own: other tests are not affected."""
    schema = f"keys_{secrets.token_hex(4)}"
    await postgres.execute(f"CREATE SCHEMA {schema}")
    await postgres.execute(f"CREATE TABLE {schema}.ticket_key (LIKE ticket_key INCLUDING ALL)")
    url = f"{postgres._url}{'&' if '?' in postgres._url else '?'}search_path={schema}%2Cpublic"
    own = Postgres(url, pool_max=2, timeout_s=10)
    yield own
    await own.close()
    await postgres.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def address() -> Callable[[], str]:
    return lambda: f"receiver{an_owner()}@example.com"


async def test_every_seat_of_a_confirmed_booking_has_one_ticket(doorway: Doorway) -> None:
    tickets = await doorway.tickets(3, 4, 5)

    assert [ticket.seat for ticket in tickets] == [3, 4, 5]
    assert len({ticket.serial for ticket in tickets}) == 3
    assert await doorway.app.tickets.of_booking(doorway.till.show, 10**12) == []


class TestKeys:
    async def test_two_first_starts_at_once_make_one_key(self, app: App) -> None:
        offices = [Tickets(app.postgres, app.catalogue) for _ in range(5)]

        await asyncio.gather(*(office.open() for office in offices))

        assert {frozenset(await office.keys()) for office in offices} == {frozenset(await app.tickets.keys())}

    async def test_a_key_is_rotated_and_old_tickets_stay_good(self, app: App, doorway: Doorway) -> None:
        clock = Clock()
        here, there = (Tickets(app.postgres, app.catalogue, wall=clock.wall) for _ in range(2))
        await asyncio.gather(here.open(), there.open())
        ticket, _ = await doorway.ticket(3)
        old, old_key = await here.fixed_code(ticket), (await here.signing_key()).key_id

        await here.rotate_key()
        same = (await here.signing_key()).key_id
        clock.ahead_s += KEY_KNOWN_AFTER_S + 1
        new = await here.fixed_code(ticket)
        there._read_at -= 2  # a process that read its keys two seconds ago, and not the new one

        assert same == old_key
        assert (await there.read(old)).key_id == old_key
        assert (await there.read(new)).key_id == (await here.signing_key()).key_id != old_key
        assert (await there.read(new)).ticket == (await there.read(old)).ticket

    async def test_a_key_too_many_is_refused_and_the_others_stay(
        self, app: App, keys_apart: Postgres, doorway: Doorway
    ) -> None:
        office = Tickets(keys_apart, app.catalogue)
        await office.open()
        ticket, _ = await doorway.ticket(3)
        code = await office.fixed_code(ticket)
        for _ in range(KEYS_MAX - 1):
            await office.rotate_key()

        with pytest.raises(OperatorError):
            await office.rotate_key()

        assert len(await office.keys()) == KEYS_MAX
        assert (await office.read(code)).key_id == 1

    async def test_a_stranger_s_code_is_refused(self, app: App) -> None:
        with pytest.raises(BadCode):
            await app.tickets.read("A" * 116)


class TestLink:
    async def test_it_leads_to_the_ticket_until_it_changes_hands(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        ticket, _ = await doorway.ticket(3)
        link = await doorway.app.tickets.link(ticket)

        found = await doorway.app.tickets.ticket_at(link)
        await give(doorway, ticket, address())

        assert found == ticket
        with pytest.raises(NoSuchTicket):
            await doorway.app.tickets.ticket_at(link)

    async def test_a_code_with_one_changed_letter_finds_no_ticket(self, doorway: Doorway) -> None:
        link = await doorway.app.tickets.link((await doorway.ticket(3))[0])

        for at in range(len(link)):
            other = link[:at] + ("A" if link[at] != "A" else "B") + link[at + 1 :]
            with pytest.raises(NoSuchTicket):
                await doorway.app.tickets.ticket_at(other)


async def accepted(doorway: Doorway, ticket: IssuedTicket, email: str) -> Giver:
    """By an account with this address, which is proved: it can give the ticket on."""
    (account_id,) = await doorway.app.accounts.add_many([NewAccount(email, "Bob")])
    await doorway.app.acceptance.accept((ticket.show_id, ticket.serial), account_id, email)
    return Giver(account_id, email)


async def give(
    doorway: Doorway, ticket: IssuedTicket, email: str, giver: Giver | None = None
) -> IssuedTicket:
    giver = giver or Giver(ticket.booked_by, "giver@example.com")
    return await doorway.transfers.give(ticket.show_id, ticket.serial, giver, email)


class TestTransfer:
    async def test_it_waits_until_the_owner_of_the_address_accepts_it(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        """Whether or not the address has an account: the giver sees no difference."""
        ticket, _ = await doorway.ticket(3)
        email = address()
        (bob,) = await doorway.app.accounts.add_many([NewAccount(email, "Bob")])

        waiting = await give(doorway, ticket, email)
        offered = await doorway.app.tickets.of_owner([bob], email, before=2**62, limit=10)
        taken = await doorway.app.acceptance.accept((ticket.show_id, ticket.serial), bob, email)

        assert (waiting.edition, waiting.owner_id, waiting.owner_email) == (2, None, email)
        assert not waiting.is_of(bob)
        assert not waiting.is_of(ticket.booked_by)
        assert [(one.serial, one.is_offered_to(email)) for one in offered] == [(ticket.serial, True)]
        assert (taken.edition, taken.owner_id, taken.owner_email) == (2, bob, None)
        assert taken.is_of(bob)
        facts = ["ticket.transferred", "ticket.transferred", "tickets.sent_again"]
        assert await doorway.facts(ticket) == facts

    async def test_only_a_proved_address_accepts_it(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        """Signing up with the address proves nothing: anyone can type it."""
        ticket, _ = await doorway.ticket(3)
        email, place = address(), (ticket.show_id, ticket.serial)
        await give(doorway, ticket, email)
        mallory = await doorway.app.accounts.sign_up(email=email, password="her own choice", name="Mallory")
        claimed = mallory.account

        listed = await doorway.app.tickets.of_owner(
            [claimed.account_id], claimed.proved_email, before=2**62, limit=10
        )
        for proved in (claimed.proved_email, address()):
            with pytest.raises(NoSuchTicket):
                await doorway.app.acceptance.accept(place, claimed.account_id, proved)

        assert (claimed.email, claimed.proved_email, listed) == (email, None, [])
        assert (await doorway.again(ticket)).owner_email == email

    async def test_a_recipient_may_give_it_on(self, doorway: Doorway, address: Callable[[], str]) -> None:
        ticket, _ = await doorway.ticket(3)
        email = address()
        bob = await accepted(doorway, await give(doorway, ticket, email), email)

        onward = await give(doorway, ticket, address(), bob)

        assert onward.edition == 3

    async def test_of_acceptance_and_taking_back_at_once_one_succeeds(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        for seat in range(10):
            ticket, _ = await doorway.ticket(seat)
            email, place = address(), (ticket.show_id, ticket.serial)
            (bob,) = await doorway.app.accounts.add_many([NewAccount(email, "Bob")])
            await give(doorway, ticket, email)
            done = await asyncio.gather(
                doorway.app.acceptance.accept(place, bob, email),
                doorway.transfers.take_back(*place, Giver(ticket.booked_by, None)),
                return_exceptions=True,
            )
            assert sorted(isinstance(one, Exception) for one in done) == [False, True]

    async def test_what_waits_may_be_taken_back_and_what_has_arrived_may_not(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        ticket, _ = await doorway.ticket(3)
        giver = Giver(ticket.booked_by, "giver@example.com")
        place = (ticket.show_id, ticket.serial)
        await give(doorway, ticket, address())

        back = await doorway.transfers.take_back(*place, giver)

        assert (back.edition, back.owner_id) == (3, ticket.booked_by)
        with pytest.raises(NothingToTakeBack):
            await doorway.transfers.take_back(*place, giver)
        email = address()
        await accepted(doorway, await give(doorway, ticket, email), email)
        with pytest.raises(NothingToTakeBack):
            await doorway.transfers.take_back(*place, giver)

    async def test_only_the_owner_gives_and_never_to_themselves(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        ticket, _ = await doorway.ticket(3)

        with pytest.raises(NoSuchTicket):
            await give(doorway, ticket, address(), Giver(an_owner(), "thief@example.com"))
        with pytest.raises(ToYourself):
            await give(doorway, ticket, "giver@example.com")

    async def test_used_or_refunded_tickets_cannot_be_given_away(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        used, code = await doorway.ticket(3)
        void, _ = await doorway.ticket(4)
        await (await doorway.stand()).scans(code)
        await doorway.gives_back(void)

        with pytest.raises(TicketUsed):
            await give(doorway, used, address())
        with pytest.raises(TicketVoid):
            await give(doorway, void, address())

    async def test_as_often_as_the_limit_says(self, doorway: Doorway, address: Callable[[], str]) -> None:
        ticket, _ = await doorway.ticket(3)
        giver = Giver(ticket.booked_by, "giver@example.com")
        for _ in range(TRANSFERS_MAX):
            email = address()
            giver = await accepted(doorway, await give(doorway, ticket, email, giver), email)

        with pytest.raises(TransferMax):
            await give(doorway, ticket, address(), giver)

    async def test_two_at_once_give_it_to_one(self, doorway: Doorway, address: Callable[[], str]) -> None:
        for seat in range(20):
            ticket, _ = await doorway.ticket(seat)
            done = await asyncio.gather(
                give(doorway, ticket, address()), give(doorway, ticket, address()), return_exceptions=True
            )
            assert [type(one) for one in done if isinstance(one, Exception)] == [NoSuchTicket]
            assert (await doorway.again(ticket)).edition == 2

    async def test_a_gate_and_a_transfer_at_once_agree(
        self, doorway: Doorway, address: Callable[[], str]
    ) -> None:
        """The first owner entered with the old ticket; the receiver has a new one that is unused."""
        stand = await doorway.stand()
        for seat in range(30):
            ticket, code = await doorway.ticket(seat)
            scanned, given = await asyncio.gather(
                stand.scans(code), give(doorway, ticket, address()), return_exceptions=True
            )
            assert not isinstance(scanned, BaseException)
            assert (scanned.verdict == "admitted") == isinstance(given, TicketUsed)
            assert (scanned.verdict == "transferred") == isinstance(given, IssuedTicket)


async def test_tickets_are_sent_again_a_few_times_an_hour(doorway: Doorway) -> None:
    ticket, _ = await doorway.ticket(3)
    for _ in range(RESENDS_AN_HOUR_MAX):
        await doorway.app.tickets.resend(ticket.show_id, ticket.number, ticket.booked_by)

    with pytest.raises(ResendMax):
        await doorway.app.tickets.resend(ticket.show_id, ticket.number, ticket.booked_by)
    assert await doorway.facts(ticket) == ["tickets.sent_again"] * RESENDS_AN_HOUR_MAX
