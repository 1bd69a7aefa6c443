"""Mail as a real mail server receives it: once, whole, in every language; whatever the server does (R29)."""

import asyncio
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

import pypdfium2  # type: ignore[import-untyped]
import pytest
import zxingcpp
from icalendar import Calendar
from PIL import Image

from holdfast.app import App
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.notifications.message_data import Composer
from holdfast.notifications.notice import LEASE_S, Channel, SenderBody
from holdfast.notifications.person_messages import PersonMessages
from holdfast.notifications.senders import SmtpSender, build_senders
from holdfast.tickets import Codes, EntryPolicy
from holdfast.tickets.transfer import Giver
from tests.support import shows as cast
from tests.support.mail_servers import MAIL_FROM, MailServer, Office, a_mail_server, a_reader, an_office
from tests.support.mailed_links import link_in
from tests.support.own_engines import hold
from tests.support.wait import until

PUBLIC = "https://hall.example"


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with a_mail_server().up() as opened:
        yield opened


@pytest.fixture
async def office(config: Config, server: MailServer) -> AsyncIterator[Office]:
    settings = {"mail_url": server.url, "mail_from": MAIL_FROM, "public_url": PUBLIC}
    async with an_office(config, **settings) as opened:
        yield opened


@pytest.fixture
async def show(app: App) -> int:
    return await cast.a_show(app, 20, price_minor=0)


def files_of(mail: EmailMessage) -> dict[str, Any]:
    return {part.get_content_type(): part for part in mail.iter_attachments()}


def text_of(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def codes_in(image: Image.Image) -> set[str]:
    return {one.text for one in zxingcpp.read_barcodes(image)}


class TestWhole:
    async def test_tickets_have_codes_that_open_the_door_on_screen_and_paper_and_a_date(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        account_id, address = await a_reader(office.app, "Zoë Łukasiewicz")
        booking = await hold(office.app, show, account_id, 3, 4)

        await office.consume_and_send()

        (mail,) = server.to(address)
        tickets = await office.app.tickets.of_booking(show, booking.number)
        codes = {await office.app.tickets.fixed_code(one) for one in tickets}
        pictures = [part for part in mail.walk() if part.get_content_type() == "image/png"]
        shown = [codes_in(Image.open(io.BytesIO(one.get_content()))) for one in pictures]
        assert set().union(*shown) == codes
        files = files_of(mail)
        sheet = pypdfium2.PdfDocument(files["application/pdf"].get_content())[0].render(scale=2).to_pil()
        assert codes_in(sheet) == codes
        (entry,) = Calendar.from_ical(files["text/calendar"].get_payload(decode=True)).walk("VEVENT")
        assert entry["STATUS"] == "CONFIRMED"
        text = mail.get_body(("plain",))
        assert text is not None
        assert "Hello Zoë Łukasiewicz," in text.get_content()
        for one in tickets:
            assert f"{PUBLIC}/tickets/{await office.app.tickets.link(one)}" in text.get_content()

    @pytest.mark.parametrize(
        ("name", "locale", "greeting"),
        [("ज़ोया कुमार", "hi", "नमस्ते ज़ोया कुमार,"), ("Jürgen Groß", "de", "Hallo Jürgen Groß,")],
    )
    async def test_each_account_gets_mail_in_its_language(
        self, office: Office, server: MailServer, show: int, name: str, locale: str, greeting: str
    ) -> None:
        account_id, address = await a_reader(office.app, name, locale)
        await hold(office.app, show, account_id, 5 if locale == "hi" else 7)

        await office.consume_and_send()

        (mail,) = server.to(address)
        assert mail["Content-Language"] == locale
        assert [one.display_name for one in mail["To"].addresses] == [name]
        for form in ("plain", "html"):
            body = mail.get_body((form,))
            assert body is not None
            assert greeting in body.get_content()

    async def test_letters_go_out_under_the_organisers_name_from_the_operators_address(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await office.app.notifications.set_sender(1, SenderBody("Théâtre, Paris", "hello@theatre.example"))
        await hold(office.app, show, account_id, 1)

        await office.consume_and_send()
        await office.app.postgres.execute("DELETE FROM organiser_sender")

        (mail,) = server.to(address)
        assert str(mail["From"].addresses[0].addr_spec) == "tickets@hall.example"
        assert str(mail["From"].addresses[0].display_name) == "Théâtre Paris"
        assert [one.addr_spec for one in mail["Reply-To"].addresses] == ["hello@theatre.example"]

    async def test_where_codes_change_there_is_a_link_and_no_picture(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await office.app.tickets.set_door(show, EntryPolicy(Codes.LIVE))
        await hold(office.app, show, account_id, 1)

        await office.consume_and_send()

        (mail,) = server.to(address)
        assert "image/png" not in [part.get_content_type() for part in mail.walk()]
        assert set(files_of(mail)) == {"text/calendar"}
        page = mail.get_body(("html",))
        assert page is not None
        assert f'href="{PUBLIC}/tickets/' in page.get_content()

    async def test_a_recipient_gets_a_link_and_no_code_and_strangers_no_names(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        giver_id, giver = await a_reader(office.app, "Ann")
        _, getter = await a_reader(office.app)
        stranger = getter.replace("reader", "stranger")
        booking = await hold(office.app, show, giver_id, 1, 2)
        first, second = await office.app.tickets.of_booking(show, booking.number)
        transfers = office.app.transfers
        await transfers.give(show, first.serial, Giver(giver_id, giver), getter)
        await transfers.give(show, second.serial, Giver(giver_id, giver), stranger)

        await office.consume_and_send()

        (got,), (waits,) = server.to(getter), server.to(stranger)
        for mail in (got, waits):
            assert "You've been sent a ticket" in str(mail["Subject"])
            assert not files_of(mail)
            assert "image/png" not in [part.get_content_type() for part in mail.walk()]
            assert "tickets/" not in mail.as_string()
            assert len(link_in(mail)) == 43
        assert "Ann sent you a ticket" in text_of(got)
        assert "Ann" not in waits.as_string()
        assert (str(got["To"]), str(waits["To"])) == (f"Zoë <{getter}>", stranger)
        assert not [mail for mail in server.to(giver) if "Your" in str(mail["Subject"])], "all are given away"


class TestTrouble:
    async def test_a_server_that_is_down_and_up_again_gets_each_mail_once_and_no_try_is_counted(
        self, config: Config, show: int
    ) -> None:
        server = a_mail_server()
        async with an_office(config, mail_url=server.url, mail_from=MAIL_FROM) as office:
            people = [await a_reader(office.app) for _ in range(6)]
            for seat, (account_id, _) in enumerate(people):
                await hold(office.app, show, account_id, seat)
            await office.consume_and_send()
            waiting = [(await office.rows(address))[0] for _, address in people]

            async with server.up():

                async def all_arrived() -> bool:
                    await asyncio.gather(office.send(), office.send())
                    return len(server.mails) >= 6

                await until(all_arrived, within_s=20)
                await office.send()

        assert {(row["state"], row["tries"]) for row in waiting} == {("queued", 0)}
        assert any("127.0.0.1" in (row["reason"] or "") for row in waiting)
        assert [len(server.to(address)) for _, address in people] == [1] * 6

    async def test_a_server_that_thinks_for_long_about_a_mail_gets_it_once(
        self, config: Config, server: MailServer, show: int
    ) -> None:
        """The server already has the mail: closing the connection now would send it twice."""
        server.thinks_s = 2.5
        settings = {"mail_url": server.url, "mail_from": MAIL_FROM, "mail_timeout_s": 1}
        async with an_office(config, **settings) as office:
            account_id, address = await a_reader(office.app)
            await hold(office.app, show, account_id, 1)

            await office.consume_and_send()
            await office.no_pause()
            await office.send()

            assert len(server.to(address)) == 1
            assert (await office.rows(address))[0]["state"] == "sent"

    async def test_a_lane_owns_its_notices_until_another_lane_claims_them(
        self, office: Office, show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, show, account_id, 1)
        await office.consume()
        notices = office.app.notifications
        queue = notices.leases

        (first,) = [due for due in await notices.take_due(9, [Channel.MAIL]) if due.address == address]
        assert await queue.renew([first.lease], LEASE_S) == {(first.id,)}
        await office.no_pause()
        (second,) = [due for due in await notices.take_due(9, [Channel.MAIL]) if due.address == address]

        assert await queue.renew([first.lease], LEASE_S) == set(), "its lease has ended"
        assert await queue.renew([second.lease], LEASE_S) == {(second.id,)}
        await queue.give_back([first.lease], "late")
        assert (await office.rows(address))[0]["tries"] == 2, "nor can it be given back"

    @pytest.mark.parametrize("where", ["says", "takes"])
    async def test_not_now_is_tried_again(
        self, office: Office, server: MailServer, show: int, where: str
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, show, account_id, 1)
        setattr(server, where, lambda to: "450 busy" if to == address else None)

        await office.consume_and_send()
        (row,) = await office.rows(address)
        setattr(server, where, lambda _: None)
        await office.no_pause()
        await office.send()

        assert (row["state"], row["tries"], row["reason"]) == ("queued", 1, "450 busy")
        assert len(server.to(address)) == 1
        assert (await office.rows(address))[0]["state"] == "sent"

    async def test_a_bouncing_address_does_not_delay_other_mail(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        people = [await a_reader(office.app) for _ in range(6)]
        wrong = people[2][1]
        server.says = lambda to: "550 no such mailbox" if to == wrong else None
        for seat, (account_id, _) in enumerate(people):
            await hold(office.app, show, account_id, seat)

        await office.consume_and_send()
        await office.no_pause()
        await office.send()

        (row,) = await office.rows(wrong)
        assert (row["state"], row["reason"]) == ("dead", "550 no such mailbox")
        assert server.recipients[wrong] == 1
        assert [len(server.to(address)) for _, address in people] == [1, 1, 0, 1, 1, 1]

    async def test_a_server_that_hangs_up_loses_nothing(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        people = [await a_reader(office.app) for _ in range(5)]
        for seat, (account_id, _) in enumerate(people):
            await hold(office.app, show, account_id, seat)
        goodbyes = ["421 closing"] * 2
        server.says = lambda _: goodbyes.pop() if goodbyes else None

        await office.consume_and_send()
        await office.no_pause()
        await office.send()

        assert [len(server.to(address)) for _, address in people] == [1] * 5

    async def test_a_worker_that_dies_after_sending_has_sent_the_same_mail(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, show, account_id, 1)
        await office.consume()
        app = office.app
        persons = PersonMessages(app.postgres, app.mail_tokens, app.invitations)
        writer = Composer(app.postgres, app.catalogue, app.bookings, app.tickets, persons, app.config)
        (due,) = [
            one for one in await app.notifications.take_due(100, [Channel.MAIL]) if one.address == address
        ]
        message = await writer.compose(due)
        assert message is not None
        async with SmtpSender(app.config).open() as link:
            await link.send(await writer.build_outgoing(due, message))
        # It is dead now: nothing is written down, and its lease ends.
        await office.no_pause()

        await office.send()

        first, again = server.to(address)
        assert first["Message-ID"] == again["Message-ID"]
        assert first["Date"] == again["Date"]
        assert (await office.rows(address))[0]["state"] == "sent"

    async def test_a_mail_resent_by_an_operator_is_a_new_mail(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, show, account_id, 1)
        await office.consume_and_send()
        (row,) = await office.rows(address)

        await office.app.notifications.replay(row["id"])
        await office.send()

        first, again = server.to(address)
        assert first["Message-ID"] != again["Message-ID"]

    async def test_tickets_given_back_before_the_mail_goes_out_are_not_sent(
        self, office: Office, server: MailServer, show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        booking = await hold(office.app, show, account_id, 1)
        await office.app.refunds.cancel(booking, None)

        await office.consume_and_send()

        assert server.to(address) == []
        assert (await office.rows(address))[0]["state"] == "obsolete"


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "named"),
        [
            ({"mail_url": "mail.example:25", "mail_from": MAIL_FROM}, "HOLDFAST_MAIL_URL"),
            ({"mail_url": "smtp://mail.example"}, "HOLDFAST_MAIL_FROM"),
            ({"mail_url": "smtp://mail.example", "mail_from": "Box office"}, "HOLDFAST_MAIL_FROM"),
            ({"sms_url": "ftp://x"}, "HOLDFAST_SMS_URL"),
        ],
    )
    def test_an_invalid_setting_is_named(self, settings: dict[str, str], named: str) -> None:
        with pytest.raises(OperatorError, match=named):
            build_senders(Config(**settings))  # type: ignore[arg-type]

    def test_a_password_is_in_no_log(self, config: Config) -> None:
        shown = repr(replace(config, mail_url="smtp://ann:s3cret@mail.example", mail_from=MAIL_FROM))

        assert "s3cret" not in shown
