"""One person's data: complete in the download, gone after erasure, while the books stay."""

import json
import secrets

import msgspec
import pytest

from holdfast.accounts import LinkGone, NewAccount, Purpose, StaffAccount
from holdfast.app import App
from holdfast.background import build_pod_erasure
from holdfast.tickets import Giver
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.account_processes import bearer, is_let_in
from tests.support.mail_servers import a_reader
from tests.support.mailed_links import a_link
from tests.support.paid_bookings import bought
from tests.support.show_fixture import Till
from tests.support.wait import until
from tests.support.waitlist_hall import WaitlistHall, a_hall

NAME = "Zoë Łukasiewicz"
BOOKS = (
    "SELECT (SELECT count(*) FROM booking WHERE owner_id = $1),"
    " (SELECT count(*) FROM payment WHERE owner_id = $1),"
    " (SELECT count(*) FROM journal WHERE show_id = $2),"
    " (SELECT sum(amount_minor) FROM booking WHERE owner_id = $1)"
)


async def everywhere(app: App, text: str) -> list[str]:
    """The tables that have this text in a row."""
    tables = await app.postgres.fetch(
        "SELECT table_name FROM information_schema.tables"
        " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    )
    found = []
    for row in tables:
        name = row["table_name"]
        has = f"SELECT EXISTS (SELECT FROM {name} AS t WHERE strpos(t::text, $1) > 0)"  # noqa: S608
        if await app.postgres.fetchval(has, text):
            found.append(name)
    return sorted(found)


async def erase(app: App, account_id: int) -> None:
    """At home, and where the workers go on."""
    await app.erasure.erase(account_id)
    await until(lambda: _is_erased_in_pods(app))


async def _is_erased_in_pods(app: App) -> bool:
    await build_pod_erasure(app.catalogue_home).finish()
    return not await app.postgres.fetchval("SELECT count(*) FROM erasure_due")


async def test_the_download_has_everything_of_a_person_and_nothing_of_others(app: App) -> None:
    reader, address = await a_reader(app, NAME)
    other, _ = await a_reader(app, "Bob")
    show = await cast.a_show(app, 20)
    mine = await bought(app, show, 1, 2, owner=reader)
    await bought(app, show, 3, owner=other)
    hall = WaitlistHall(Till(app, show))
    await hall.join(2, owner=reader)
    await hall.join(3, owner=other)

    data = json.loads(msgspec.json.encode(await app.personal_data.load(reader)))

    assert data["accounts"][0]["email"] == address
    assert [one["amount_minor"] for one in data["bookings"]] == [mine.amount_minor]
    assert [one["amount_minor"] for one in data["payments"]] == [mine.amount_minor]
    assert len(data["tickets"]) == 2
    assert [(one["show_id"], one["seats"]) for one in data["waitlists"]] == [(show, 2)]
    assert "Bob" not in json.dumps(data)


async def test_erasure_deletes_the_person_and_leaves_the_books(app: App) -> None:
    name = f"Zoë {secrets.token_hex(6)}"
    reader, address = await a_reader(app, name)
    show = await cast.a_show(app, 20)
    booking = await bought(app, show, 1, 2, owner=reader)
    ticket, _ = await app.tickets.of_booking(show, booking.number)
    code = await app.tickets.fixed_code(ticket)
    giver, giver_address = await a_reader(app, "Bob")
    gift = await bought(app, show, 3, owner=giver)
    (given,) = await app.tickets.of_booking(show, gift.number)
    await app.transfers.give(show, given.serial, Giver(giver, giver_address), address)
    session = await app.accounts.sign_in(await app.people.rename(reader, name))
    link = await a_link(app, Purpose.RESET, address, reader)
    await app.people.request_reset(address, "en")
    before = tuple(await app.postgres.fetchrow(BOOKS, reader, show) or ())

    await erase(app, reader)

    assert tuple(await app.postgres.fetchrow(BOOKS, reader, show) or ()) == before
    assert await everywhere(app, address) == []
    assert await everywhere(app, name) == []
    assert not is_let_in(app.accounts, session)
    with pytest.raises(LinkGone):
        await app.people.reset(link, "a new and long password")
    assert (await app.tickets.read(code)).ticket == ticket.ticket
    back = await app.transfers.take_back(show, given.serial, Giver(giver, giver_address))
    assert back.is_of(giver)
    assert bearer(session)


async def test_an_erased_person_waits_no_longer(app: App) -> None:
    reader, _ = await a_reader(app)
    hall = await a_hall(app)
    entry = await hall.join(2, owner=reader)

    await erase(app, reader)

    assert await hall.state_of(entry) == "left"


async def test_the_address_is_free_again(app: App) -> None:
    reader, address = await a_reader(app)
    await erase(app, reader)

    (again,) = await app.accounts.add_many([NewAccount(address, "Zoë")])

    assert again != reader
    assert await app.bookings.bookings_of(again, before=2**62, limit=10) == []


async def test_guests_of_the_person_are_erased_too(app: App) -> None:
    reader, address = await a_reader(app)
    guest = await app.sessions.load(await app.sessions.open_guest("en"))
    assert guest is not None
    typed = f"typed-{address}"
    await app.sessions.name_guest(guest, email=typed, name="Zoë")
    await app.sessions.open_account(reader, guest)

    await erase(app, reader)

    assert await everywhere(app, typed) == []


@pytest.mark.parametrize("role", [Role.ORGANISER, Role.GATE, Role.ADMIN])
async def test_staff_become_fans_first(app: App, role: Role) -> None:
    reader, _ = await a_reader(app)
    await app.accounts.set_role(reader, role)

    with pytest.raises(StaffAccount):
        await erase(app, reader)
