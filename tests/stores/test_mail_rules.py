"""Mail goes to addresses that are proved or paid with; others get links that prove them, no names (R29)."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from holdfast.accounts import PersonMail, Session
from holdfast.app import App
from holdfast.config import Config
from holdfast.notifications.notice import NewNotice, NoticeKind
from holdfast.tickets import Giver
from tests.support import shows as cast
from tests.support.mail_servers import Office, a_reader, an_office
from tests.support.mailed_links import link_in, mailed_link, mails_to
from tests.support.own_engines import hold
from tests.support.paid_bookings import bought

WORDS = "Dear customer your account is blocked call 0900-123"


@pytest.fixture(scope="module")
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config, mail_page=1) as opened:
        yield opened


async def a_guest(app: App, email: str, name: str = WORDS) -> Session:
    """Who typed this address and this name."""
    session = await app.sessions.load(await app.sessions.open_guest("en"))
    assert session is not None
    await app.sessions.name_guest(session, email=email, name=name)
    return session


@pytest.fixture
def victim() -> str:
    return f"victim-{secrets.token_hex(6)}@example.org"


async def test_holds_that_lapse_send_nothing_to_an_address_that_was_only_typed(
    office: Office, victim: str
) -> None:
    app, show = office.app, await cast.a_show(office.app, 20)
    for seat in range(5):
        guest = await a_guest(app, victim)
        await hold(app, show, guest.account_id, seat)
    await app.postgres.execute(
        "UPDATE booking SET expires_at = now() + interval '2 min', opened_at = now() - interval '8 min'"
        " WHERE show_id = $1",
        show,
    )
    warned = await office.post.warn()
    await app.postgres.execute("UPDATE booking SET expires_at = now() WHERE show_id = $1", show)
    await app.bookings.sweep(1000)

    assert warned == 0
    assert await mails_to(office, victim) == []


async def test_who_has_paid_gets_the_tickets_without_a_name_in_front(office: Office, victim: str) -> None:
    guest = await a_guest(office.app, victim)
    await bought(office.app, await cast.a_show(office.app, 20), 1, owner=guest.account_id)

    (mail,) = await mails_to(office, victim)

    assert "Your ticket for" in str(mail["Subject"])
    assert WORDS not in mail.as_string()
    assert str(mail["To"]) == victim


async def test_an_address_named_after_the_payment_is_not_paid_with(office: Office, victim: str) -> None:
    """Otherwise one cheap ticket would open the mail to everyone."""
    own = f"own-{victim}"
    guest = await a_guest(office.app, own)
    booking = await bought(office.app, await cast.a_show(office.app, 20), 1, owner=guest.account_id)
    assert len(await mails_to(office, own)) == 1

    await office.app.sessions.name_guest(guest, email=victim, name=WORDS)
    for _ in range(3):
        await office.app.tickets.resend(booking.show_id, booking.number, guest.account_id)
    mails = await mails_to(office, victim)

    assert {str(mail["Subject"]) for mail in mails} == {"Confirm your email address"}
    assert all(WORDS not in mail.as_string() for mail in mails)


async def test_free_tickets_are_mailed_once_the_address_is_confirmed(office: Office, victim: str) -> None:
    app, show = office.app, await cast.a_show(office.app, 20, price_minor=0)
    guest = await a_guest(app, victim, "Gil")
    booking = await hold(app, show, guest.account_id, 1)

    (first,) = await mails_to(office, victim)
    link = link_in(first)
    await app.people.confirm(link, signed_in=None, password=None, address="")
    await app.tickets.resend(show, booking.number, guest.account_id)
    *_, last = await mails_to(office, victim)

    assert str(first["Subject"]) == "Confirm your email address"
    assert "Your ticket for" in str(last["Subject"])
    assert "Hello Gil" in last.as_string()


async def test_a_sign_up_gets_only_the_link_that_confirms_it(office: Office, victim: str) -> None:
    app, show = office.app, await cast.a_show(office.app, 20)
    new = await app.accounts.sign_up(email=victim, password="correct horse battery", name=WORDS)
    await app.people.request_confirmation(new.account.account_id, "en")
    await hold(app, show, new.account.account_id, 1)
    await app.postgres.execute("UPDATE booking SET expires_at = now() WHERE show_id = $1", show)
    await app.bookings.sweep(1000)

    (mail,) = await mails_to(office, victim)

    assert str(mail["Subject"]) == "Confirm your email address"
    assert WORDS not in mail.as_string()


async def test_addresses_from_before_the_rule_are_written_to(office: Office, victim: str) -> None:
    """They may have tickets: a cancelled show must reach them."""
    app, show = office.app, await cast.a_show(office.app, 20, price_minor=0)
    old = await app.postgres.fetchval(
        "INSERT INTO account (email, name) VALUES ($1, 'Old') RETURNING id", victim
    )
    await hold(app, show, old, 1)

    (mail,) = await mails_to(office, victim)

    assert "Your ticket for" in str(mail["Subject"])
    assert "Hello," in mail.as_string()


async def test_a_guest_who_signs_in_to_an_unconfirmed_account_is_not_written_to(
    office: Office, victim: str
) -> None:
    app, show = office.app, await cast.a_show(office.app, 20, price_minor=0)
    new = await app.accounts.sign_up(email=victim, password="correct horse battery", name=WORDS)
    guest = await app.sessions.load(await app.sessions.open_guest("en"))
    assert guest is not None
    await hold(app, show, guest.account_id, 1)
    await app.sessions.open_account(new.account.account_id, guest)

    mails = await mails_to(office, victim)

    assert "Your ticket" not in "".join(str(mail["Subject"]) for mail in mails)


async def test_tickets_given_to_a_stranger_send_a_few_mails_an_hour_without_names(
    office: Office, victim: str
) -> None:
    app, show = office.app, await cast.a_show(office.app, 20, price_minor=0)
    giver, address = await a_reader(app, WORDS)
    booking = await hold(app, show, giver, *range(10))
    for ticket in await app.tickets.of_booking(show, booking.number):
        await app.transfers.give(show, ticket.serial, Giver(giver, address), victim)
        await app.transfers.take_back(show, ticket.serial, Giver(giver, address))
        await app.transfers.give(show, ticket.serial, Giver(giver, address), victim)

    mails = await mails_to(office, victim)

    assert len(await office.rows(victim)) == 6
    assert {str(mail["Subject"])[:24] for mail in mails} == {"You've been sent a ticke"}
    assert all(WORDS not in mail.as_string() for mail in mails)


async def test_requests_at_the_same_moment_send_no_more(office: Office, victim: str) -> None:
    """Of one database: with pods, each counts what it sends."""
    app = office.app
    given = NewNotice(fact_id=None, kind=NoticeKind.TICKET_GOT, show_id=1, number=None, email=victim)

    await asyncio.gather(
        *(app.people.request_reset(victim, "en") for _ in range(12)),
        *(app.people.request_sign_in(victim, "en") for _ in range(12)),
        app.catalogue_home.notifications.add_many([given] * 12),
    )

    assert len(await office.rows(victim)) == 6


async def test_a_flood_of_links_does_not_hide_that_a_password_was_changed(
    office: Office, victim: str
) -> None:
    app = office.app
    proved, address = await a_reader(app)
    new = await app.accounts.sign_up(email=victim, password="correct horse battery", name=WORDS)
    for _ in range(8):
        await app.people.request_reset(address, "en")

    for account_id, email in ((proved, address), *[(new.account.account_id, victim)] * 8):
        await app.notifications.request(
            app.postgres, PersonMail.PASSWORD_CHANGED, email=email, account_id=account_id, locale="en"
        )

    assert await office.kinds(address) == ["reset_password"] * 6 + ["password_changed"]
    assert len(await office.kinds(victim)) == 6


async def test_an_account_that_is_proved_is_written_to_as_before(office: Office) -> None:
    app, show = office.app, await cast.a_show(office.app, 20)
    reader, address = await a_reader(app, "Zoë")
    await hold(app, show, reader, 1)
    await app.postgres.execute("UPDATE booking SET expires_at = now() WHERE show_id = $1", show)
    await app.bookings.sweep(1000)

    (mail,) = await mails_to(office, address)

    assert "has expired" in str(mail["Subject"])
    assert str(mail["To"]) == f"Zoë <{address}>"


async def test_a_guest_opens_the_booking_by_the_link_until_they_name_another_address(
    office: Office, victim: str
) -> None:
    app = office.app
    guest = await a_guest(app, victim, "Gil")
    booking = await bought(app, await cast.a_show(app, 20), 1, owner=guest.account_id)
    link = await mailed_link(office, victim)

    opened = [await app.people.guest_of_link(link) for _ in range(2)]
    await app.sessions.name_guest(guest, email=f"new-{victim}", name="Gil")

    assert {(one.account_id, one.show_id, one.number) for one in opened} == {
        (guest.account_id, booking.show_id, booking.number)
    }
    with pytest.raises(Exception, match="link_gone"):
        await app.people.guest_of_link(link)
