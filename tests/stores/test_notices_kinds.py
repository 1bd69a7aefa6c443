"""Every kind of notice, from the fact to the delivered mail (R29)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

import pytest

from holdfast.accounts import NewAccount, PersonMail, Purpose
from holdfast.app import App
from holdfast.bookings import Booking, public_id
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.notifications import NoticeKind
from holdfast.notifications.message_data import load_templates
from holdfast.notifications.notice import PERSON_KINDS
from holdfast.notifications.render import compose_message
from holdfast.notifications.sample_data import SAMPLE
from holdfast.organisations.organisation import NewInvitation
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import ShowEditor
from holdfast.tickets.transfer import Giver, Transfers
from holdfast.waitingroom import Joiner
from holdfast.waitlist.entry import NewEntry
from holdfast.web.caller import Caller, Role, Scope
from tests.support import shows as cast
from tests.support.ledger_payments import confirmed
from tests.support.mail_servers import MAIL_FROM, MailServer, Office, a_mail_server, a_reader, an_office
from tests.support.mailed_links import a_link
from tests.support.own_engines import hold
from tests.support.paid_bookings import bought, payment_request, refund_jobs
from tests.support.show_fixture import an_owner
from tests.support.waiting_room import a_room

PUBLIC = "https://hall.example"


@dataclass(frozen=True)
class Scene:
    office: Office
    show: int
    reader: int
    address: str

    @property
    def app(self) -> App:
        return self.office.app

    async def change(self, change: ShowChange) -> None:
        keeper = Scope(account_id=0, is_admin=True)
        desk = ShowEditor(self.app.postgres, self.app.catalogue, self.app.config, keeper)
        await desk.change_show(self.show, change)

    async def ends_in(self, seconds: float) -> None:
        """Of a hold that has lasted eight minutes."""
        await self.app.postgres.execute(
            "UPDATE booking SET expires_at = now() + $2 * interval '1 s',"
            " opened_at = now() - interval '8 min' WHERE show_id = $1",
            self.show,
            seconds,
        )


async def lapsing(scene: Scene) -> Booking:
    booking = await hold(scene.app, scene.show, scene.reader, 1)
    await scene.ends_in(120)
    await scene.office.post.warn()
    return booking


async def lapsed(scene: Scene) -> Booking:
    booking = await hold(scene.app, scene.show, scene.reader, 1)
    await scene.ends_in(0)
    await scene.app.bookings.sweep(1000)
    return booking


async def declined(scene: Scene) -> Booking:
    booking = await hold(scene.app, scene.show, scene.reader, 1)
    await scene.app.saga_runner.pay(payment_request(booking, "tok_declined"))
    return booking


async def buys(scene: Scene) -> Booking:
    return await bought(scene.app, scene.show, 1, 2, owner=scene.reader)


async def pays_late(scene: Scene, *, may_book: bool) -> Booking:
    booking = await hold(scene.app, scene.show, scene.reader, 1)
    (started,) = await scene.app.payments.start_many([payment_request(booking)])
    assert started.payment is not None
    gone = await scene.app.payments.release(started.payment, is_sure=False)
    await scene.app.holds.update_map(scene.show, Settlement("release", started.payment.claim))
    late = await confirmed(scene.app, gone)
    await scene.app.payments.book_late(late, may_book=may_book)
    return booking


async def is_booked_late(scene: Scene) -> Booking:
    return await pays_late(scene, may_book=True)


async def is_refunded_late(scene: Scene) -> Booking:
    return await pays_late(scene, may_book=False)


async def gives_back(scene: Scene) -> Booking:
    booking = await buys(scene)
    await scene.app.refunds.cancel(booking, None)
    jobs = refund_jobs(scene.app)
    await jobs.carry_out()
    await jobs.wait_until_idle()
    return booking


async def is_moved(scene: Scene) -> Booking:
    booking = await buys(scene)
    later = (await scene.app.catalogue.show_detail(scene.show))["starts_at"] + timedelta(minutes=45)
    await scene.change(ShowChange(starts_at=later, ends_at=later + timedelta(hours=2)))
    return booking


async def is_cancelled(scene: Scene) -> Booking:
    booking = await buys(scene)
    await scene.change(ShowChange(cancelled=True))
    return booking


async def gives_away(scene: Scene) -> Booking:
    booking = await buys(scene)
    ticket, _ = await scene.app.tickets.of_booking(scene.show, booking.number)
    giver = Giver(scene.reader, scene.address)
    await Transfers(scene.app.postgres).give(scene.show, ticket.serial, giver, f"to-{scene.address}")
    return booking


async def is_given(scene: Scene) -> Booking:
    giver_id, giver = await a_reader(scene.app, "Ann")
    booking = await bought(scene.app, scene.show, 1, owner=giver_id)
    (ticket,) = await scene.app.tickets.of_booking(scene.show, booking.number)
    await Transfers(scene.app.postgres).give(scene.show, ticket.serial, Giver(giver_id, giver), scene.address)
    return booking


async def is_taken_back(scene: Scene) -> Booking:
    """Zoë sends a ticket to a proved address and takes it back: that address gets a mail."""
    await scene.app.accounts.add_many([NewAccount(f"to-{scene.address}", "Bob")])
    booking, giver = await gives_away(scene), Giver(scene.reader, scene.address)
    given = await scene.app.tickets.of_booking(scene.show, booking.number)
    (waiting,) = [one for one in given if one.owner_email is not None]
    await Transfers(scene.app.postgres).take_back(scene.show, waiting.serial, giver)
    return booking


async def waits(scene: Scene) -> None:
    new = NewEntry(
        show_id=scene.show,
        owner_id=scene.reader,
        seats=1,
        categories=(),
        price_minor_max=None,
        together=True,
        until=datetime.now(UTC) + timedelta(hours=1),
    )
    await scene.app.waitlists.store.add(new)


async def is_offered(scene: Scene) -> Booking:
    other = await hold(scene.app, scene.show, an_owner(), 1)
    await waits(scene)
    await scene.app.holds.cancel(other)
    await scene.app.waitlists.steps.run(scene.show)
    entry = await scene.app.waitlists.store.live_entry(scene.show, scene.reader)
    assert entry is not None
    booking = await scene.app.waitlists.store.offer_of(entry)
    assert booking is not None
    return booking


async def misses_the_offer(scene: Scene) -> Booking:
    booking = await is_offered(scene)
    await scene.ends_in(0)
    await scene.app.bookings.sweep(1000)
    await scene.app.waitlists.steps.run(scene.show)
    return booking


async def is_called(scene: Scene) -> None:
    room = await a_room(scene.app, scene.show)
    await scene.app.waiting_rooms.join(scene.show, Joiner(scene.reader))
    await room.draw()
    await room.admit()


async def waits_in_vain(scene: Scene) -> None:
    room = await a_room(scene.app, scene.show)
    await scene.app.waiting_rooms.join(scene.show, Joiner(scene.reader))
    await room.draw()
    await scene.app.bookings.block(scene.show, list(range(20)), "sold elsewhere", 1)
    await room.step()


async def signs_up(scene: Scene) -> None:
    """With an address that has an account: the mail says so."""
    people, password = scene.app.accounts, "correct horse battery"
    new = await people.sign_up(email=scene.address, password=password, name="Zoë")
    await scene.app.people.request_confirmation(new.account.account_id, "en")


async def forgets(scene: Scene) -> None:
    await scene.app.people.request_reset(scene.address, "en")


async def wants_a_link(scene: Scene) -> None:
    await scene.app.people.request_sign_in(scene.address, "en")


async def moves(scene: Scene) -> None:
    link = await a_link(scene.app, Purpose.VERIFY, f"new-{scene.address}", scene.reader)
    await scene.app.people.confirm(link, signed_in=scene.reader, password=None, address="")


async def changes_password(scene: Scene) -> None:
    caller = Caller(scene.reader, Role.FAN, 1)
    await scene.app.people.change_password(caller, current="", new="a long password", address="")


async def is_invited(scene: Scene) -> None:
    (owner_id,) = await scene.app.accounts.add_many([NewAccount(f"owner-{scene.address}", "Ann")])
    made = await scene.app.organisations.create("The Paper Mill", owner_id)
    house = Scope(owner_id, True, made.organisation_id)
    await scene.app.invitations.invite(house, NewInvitation(email=scene.address, rights=["door"]))


async def is_disputed(scene: Scene, *states: str) -> Booking:
    """Zoë organises the show; another person has paid."""
    made = await scene.app.organisations.create("The Paper Mill", scene.reader)
    await scene.app.postgres.execute(
        "UPDATE event SET organiser_id = $2 WHERE id = (SELECT event_id FROM show WHERE id = $1)",
        scene.show,
        made.organisation_id,
    )
    payer, _ = await a_reader(scene.app, "Ann")
    booking = await bought(scene.app, scene.show, 1, owner=payer)
    for state in states:
        await scene.app.postgres.execute(
            "SELECT record_chargeback($1, $2, 1, 'dp_1', $3::text::chargeback_state, 1500, 'forged', true)",
            scene.show,
            booking.number,
            state,
        )
    return booking


async def is_disputed_now(scene: Scene) -> Booking:
    return await is_disputed(scene, "open")


async def wins_the_dispute(scene: Scene) -> Booking:
    return await is_disputed(scene, "open", "won")


async def loses_the_dispute(scene: Scene) -> Booking:
    return await is_disputed(scene, "open", "lost")


def changes(mail: PersonMail) -> Callable[[Scene], Awaitable[None]]:
    """Written as by a change of the second factor."""

    async def request(scene: Scene) -> None:
        person: dict[str, Any] = {"email": scene.address, "account_id": scene.reader, "locale": "en"}
        await scene.app.notifications.request(scene.app.postgres, mail, **person)

    return request


# What happens, what the mail is called, what it says, and what is attached to it.
HAPPENS: dict[NoticeKind, tuple[Callable[[Scene], Awaitable[Booking | None]], str, str, set[str]]] = {
    NoticeKind.HOLD_LAPSING: (lapsing, "Pay now", "2 minutes left", set()),
    NoticeKind.HOLD_LAPSED: (lapsed, "has expired", "been charged", set()),
    NoticeKind.TICKETS: (buys, "Your 2 tickets", "€30.00", {"tickets.pdf", "tickets.ics"}),
    NoticeKind.DECLINED: (declined, "was declined", "your seats are still reserved", set()),
    NoticeKind.LATE_BOOKED: (is_booked_late, "are confirmed", "were still available", set()),
    NoticeKind.LATE_REFUNDED: (is_refunded_late, "refunding it", "refunding the full amount", set()),
    NoticeKind.REFUNDED: (gives_back, "€30.00", "to your original payment method", set()),
    NoticeKind.SHOW_CHANGED: (is_moved, "New start time", "still valid", {"tickets.ics"}),
    NoticeKind.SHOW_CANCELLED: (is_cancelled, "has been cancelled", "full refund", {"tickets.ics"}),
    NoticeKind.TICKET_GIVEN: (gives_away, "You transferred", "no longer works", set()),
    NoticeKind.TICKET_GOT: (is_given, "been sent a ticket", "Ann sent you a ticket", set()),
    NoticeKind.TICKET_TAKEN_BACK: (is_taken_back, "Zoë took back", "before you accepted it", set()),
    NoticeKind.QUEUE_TURN: (is_called, "your turn", "Go in by", set()),
    NoticeKind.QUEUE_SOLD_OUT: (waits_in_vain, "sold out before your turn", "place in the queue", set()),
    NoticeKind.WAITLIST_JOINED: (waits, "on the waitlist", "leave the waitlist at any time", set()),
    NoticeKind.WAITLIST_OFFER: (is_offered, "A seat for you", "Pay before the time runs out", set()),
    NoticeKind.WAITLIST_ENDED: (misses_the_offer, "has ended", "went to the next party", set()),
    NoticeKind.CONFIRM_ADDRESS: (signs_up, "Confirm your email", "already an account", set()),
    NoticeKind.RESET_PASSWORD: (forgets, "new password", "works once", set()),
    NoticeKind.SIGN_IN_LINK: (wants_a_link, "sign-in link", "works once", set()),
    NoticeKind.ADDRESS_CHANGED: (moves, "address was changed", "no longer signs in", set()),
    NoticeKind.PASSWORD_CHANGED: (changes_password, "password was changed", "signed out", set()),
    NoticeKind.INVITATION: (is_invited, "join a team", "“The Paper Mill”", set()),
    NoticeKind.CHARGEBACK_OPEN: (is_disputed_now, "€15.00", "are suspended", set()),
    NoticeKind.CHARGEBACK_WON: (wins_the_dispute, "in your favour", "valid again", set()),
    NoticeKind.CHARGEBACK_LOST: (loses_the_dispute, "was lost", "be paid out to you", set()),
    **{
        NoticeKind(mail): (changes(mail), subject, words, set())
        for mail, subject, words in (
            (PersonMail.TOTP_ADDED, "app was added", "takes a code"),
            (PersonMail.TOTP_REMOVED, "app was removed", "no longer takes a code"),
            (PersonMail.PASSKEY_ADDED, "passkey was added", "without a password"),
            (PersonMail.PASSKEY_REMOVED, "passkey was removed", "no longer signs in"),
            (PersonMail.RECOVERY_CODE_USED, "code was used", "works once"),
            (PersonMail.RECOVERY_CODES_RENEWED, "new recovery codes", "no longer work"),
            (PersonMail.SECOND_FACTOR_REMOVED, "switched off", "removed the second step"),
        )
    },
}
LEADS_TO_LINK = {
    NoticeKind.TICKET_GOT,
    NoticeKind.RESET_PASSWORD,
    NoticeKind.SIGN_IN_LINK,
    NoticeKind.INVITATION,
}
LEADS_TO_BOOKING = {
    *(
        NoticeKind.HOLD_LAPSING,
        NoticeKind.DECLINED,
        NoticeKind.LATE_BOOKED,
        NoticeKind.REFUNDED,
        NoticeKind.SHOW_CHANGED,
        NoticeKind.TICKETS,
        NoticeKind.TICKET_GIVEN,
        NoticeKind.WAITLIST_OFFER,
    ),
}


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[MailServer]:
    async with a_mail_server().up() as opened:
        yield opened


@pytest.fixture(scope="module")
async def office(config: Config, server: MailServer) -> AsyncIterator[Office]:
    settings = {"mail_url": server.url, "mail_from": MAIL_FROM, "public_url": PUBLIC}
    async with an_office(config, **settings) as opened:
        yield opened


@pytest.fixture
async def scene(office: Office) -> Scene:
    return Scene(office, await cast.a_show(office.app, 20), *await a_reader(office.app, "Zoë"))


def test_no_kind_is_left_out() -> None:
    assert HAPPENS.keys() == set(NoticeKind)


@pytest.mark.parametrize("kind", NoticeKind)
async def test_each_kind_of_fact_becomes_a_complete_mail(
    scene: Scene, server: MailServer, kind: NoticeKind
) -> None:
    happen, subject, words, files = HAPPENS[kind]

    booking = await happen(scene)
    await scene.office.consume_and_send()

    address = f"to-{scene.address}" if kind is NoticeKind.TICKET_TAKEN_BACK else scene.address
    (row,) = [one for one in await scene.office.rows(address) if one["kind"] == kind]
    assert (row["state"], row["tries"]) == ("sent", 1)
    (mail,) = [one for one in server.to(address) if f"notice.{row['id']}." in one["Message-ID"]]
    assert subject in mail["Subject"]
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"].datetime == row["written_at"].replace(microsecond=0)
    assert {part.get_filename() for part in mail.iter_attachments()} - {None} == files
    page = f"{PUBLIC}/bookings/{public_id(scene.show, booking.number if booking else 0)}"
    for form in ("plain", "html"):
        body = body_of(mail, form)
        assert words in body
        assert ("Zoë" in body) == (kind not in PERSON_KINDS)
        assert (page in body) == (kind in LEADS_TO_BOOKING)
        assert (f"{PUBLIC}/link/" in body) == (kind in LEADS_TO_LINK)


def test_an_organiser_whose_house_suspends_no_tickets_reads_that_they_stay_valid() -> None:
    lenient = replace(SAMPLE, is_suspended=False)

    letter = compose_message(NoticeKind.CHARGEBACK_OPEN, lenient, "en", load_templates())

    assert "stay valid" in letter.lines[0]
    assert "organise" in letter.foot


def body_of(mail: EmailMessage, form: str) -> str:
    part = mail.get_body((form,))
    assert part is not None
    return str(part.get_content())
