"""Each fact becomes one notice per recipient; outdated notices are not sent (R29)."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from holdfast.accounts import PersonMail
from holdfast.app import App
from holdfast.config import Config
from holdfast.notifications.errors import NoSuchNotice
from holdfast.notifications.jobs import GROUP, begin_now, consumer
from holdfast.notifications.notice import PAUSES_S, Channel, NoticeKind, NoticesQuery, NoticeState
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import ShowEditor
from holdfast.outbox import from_json, to_json
from holdfast.outbox.relay import ConsumerWorker
from holdfast.tickets.transfer import Giver
from holdfast.web.caller import Scope
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.mail_servers import Office, a_reader, an_office
from tests.support.opened import engines_of, where_sold
from tests.support.own_engines import hold
from tests.support.paid_bookings import bought, payment_request, refund_jobs


@pytest.fixture
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config) as opened:
        yield opened


@pytest.fixture
async def free_show(app: App) -> int:
    return await cast.a_show(app, 20, price_minor=0)


def schedule(app: App) -> ShowEditor:
    return ShowEditor(app.postgres, app.catalogue, app.config, Scope(account_id=0, is_admin=True))


class TestFactsBecomeNotices:
    async def test_a_confirmed_booking_is_notified_once_for_repeated_facts(
        self, office: Office, free_show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, free_show, account_id, 1, 2)
        await office.consume()

        facts = await office.app.outbox.facts_after(0, 1_000_000)
        for fact in [one for one in facts if one.show_id == free_show] * 3:
            await office.consumer_worker._consumer.handle(from_json(to_json(fact)))

        assert await office.kinds(address) == ["tickets"]

    async def test_a_declined_payment_and_a_lapsed_hold_are_notified(self, office: Office) -> None:
        account_id, address = await a_reader(office.app)
        show = await cast.a_show(office.app, 20)
        booking = await hold(office.app, show, account_id, 1)
        await office.app.saga_runner.pay(payment_request(booking, "tok_declined"))
        await office.app.postgres.execute("UPDATE booking SET expires_at = now() WHERE show_id = $1", show)
        await office.app.bookings.sweep(1000)

        await office.consume()

        assert await office.kinds(address) == ["declined", "hold_lapsed"]

    async def test_an_owner_without_an_account_gets_no_notice(self, office: Office, free_show: int) -> None:
        await hold(office.app, free_show, 6_999_999, 1)

        await office.consume()

        query = "SELECT count(*) FROM notice WHERE show_id = $1"
        assert await office.app.postgres.fetchval(query, free_show) == 0

    async def test_a_guest_is_notified_only_at_the_address_they_gave(
        self, office: Office, free_show: int
    ) -> None:
        wanted, made_up = f"guest-{secrets.token_hex(6)}@example.org", secrets.token_hex(8)
        query = (
            "INSERT INTO account (email, name, contact_email, verified_at)"
            " VALUES ($1, 'Gil', $2, now()) RETURNING id"
        )
        postgres = office.app.postgres
        named = await postgres.fetchval(query, f"{made_up}@guest.invalid", wanted)
        silent = await postgres.fetchval(query, f"{made_up}2@guest.invalid", None)
        for seat, guest in enumerate((named, silent)):
            await hold(office.app, free_show, guest, seat)
        await schedule(office.app).change_show(free_show, ShowChange(cancelled=True))
        paid_show = await cast.a_show(office.app, 20)
        for seat, guest in enumerate((named, silent)):
            await hold(office.app, paid_show, guest, seat)
        await TestWarning().lapsing_in(office, paid_show, 120)

        await office.consume()
        warned = await office.post.warn()

        assert sorted(await office.kinds(wanted)) == ["hold_lapsing", "show_cancelled", "tickets"]
        assert warned == 1
        unreachable = "SELECT count(*) FROM notice WHERE address LIKE '%@guest.invalid'"
        assert await postgres.fetchval(unreachable) == 0

    async def test_giver_and_receiver_of_a_ticket_are_notified(self, office: Office, free_show: int) -> None:
        giver_id, giver = await a_reader(office.app)
        _, getter = await a_reader(office.app)
        stranger = getter.replace("reader", "stranger")
        booking = await hold(office.app, free_show, giver_id, 1, 2)
        first, second = await office.app.tickets.of_booking(free_show, booking.number)
        transfers = office.app.transfers

        await transfers.give(free_show, first.serial, Giver(giver_id, giver), getter)
        await transfers.give(free_show, second.serial, Giver(giver_id, giver), stranger)
        await office.consume()

        assert await office.kinds(giver) == ["tickets", "ticket_given", "ticket_given"]
        assert await office.kinds(getter) == ["ticket_got"]
        (to_stranger,) = await office.rows(stranger)
        assert (to_stranger["kind"], to_stranger["account_id"]) == ("ticket_got", None)

    async def test_a_refund_notice_names_the_amount(self, office: Office) -> None:
        account_id, address = await a_reader(office.app)
        show = await cast.a_show(office.app, 20)
        booking = await bought(office.app, show, 1, 2, owner=account_id)
        await office.app.refunds.cancel(booking, None)
        jobs = refund_jobs(office.app)
        await jobs.carry_out()
        await jobs.wait_until_idle()

        await office.consume()

        assert await office.kinds(address) == ["tickets", "refunded"]
        assert '"amount_minor": 3000' in (await office.rows(address))[1]["body"]


class TestShows:
    async def test_a_new_time_is_sent_to_all_ticket_holders_and_a_new_price_to_none(
        self, office: Office, free_show: int
    ) -> None:
        people = [await a_reader(office.app) for _ in range(3)]
        for seat, (account_id, _) in enumerate(people):
            await hold(office.app, free_show, account_id, seat)
            await hold(office.app, free_show, account_id, seat + 10)
        card = await office.app.catalogue.show_detail(free_show)

        await schedule(office.app).change_show(free_show, ShowChange(owner_seats_max=9))
        later = card["starts_at"] + timedelta(minutes=45)
        await schedule(office.app).change_show(
            free_show, ShowChange(starts_at=later, ends_at=later + timedelta(hours=2))
        )
        await office.consume()

        for _, address in people:
            assert sorted(await office.kinds(address)) == ["show_changed", "tickets", "tickets"]
        (notice,) = [row for row in await office.rows(people[0][1]) if row["kind"] == "show_changed"]
        assert card["starts_at"].strftime("%Y-%m-%dT%H:%M") in notice["body"]

    async def test_a_cancelled_show_is_also_notified_to_buyers_refunded_first(self, office: Office) -> None:
        show = await cast.a_show(office.app, 20)
        account_id, address = await a_reader(office.app)
        await bought(office.app, show, 1, owner=account_id)
        gone_id, gone = await a_reader(office.app)
        booking = await bought(office.app, show, 2, owner=gone_id)
        await office.app.refunds.cancel(booking, None)

        await schedule(office.app).change_show(show, ShowChange(cancelled=True))
        jobs = refund_jobs(office.app)
        while await office.app.refunds.cancel_batch(show) + await jobs.carry_out():
            await jobs.wait_until_idle()
        await office.consume()

        assert "show_cancelled" in await office.kinds(address)
        assert "refunded" in await office.kinds(address)
        assert "show_cancelled" not in await office.kinds(gone), "they had given theirs back before"


class TestWarning:
    async def lapsing_in(self, office: Office, booking_show: int, seconds: int) -> None:
        await office.app.postgres.execute(
            "UPDATE booking SET expires_at = now() + $2 * interval '1 s',"
            " opened_at = now() - interval '8 min' WHERE show_id = $1",
            booking_show,
            float(seconds),
        )

    async def test_a_hold_about_to_lapse_is_warned_of_once(self, office: Office) -> None:
        account_id, address = await a_reader(office.app)
        show = await cast.a_show(office.app, 20)
        await hold(office.app, show, account_id, 1)

        await office.post.warn()
        early = await office.kinds(address)
        await self.lapsing_in(office, show, 120)
        await asyncio.gather(*(office.post.warn() for _ in range(4)))
        await office.post.warn()

        assert early == []
        assert await office.kinds(address) == ["hold_lapsing"]

    async def test_a_short_hold_is_not_warned_of(self, office: Office) -> None:
        account_id, address = await a_reader(office.app)
        show = await cast.a_show(office.app, 20, hold_ttl_s=150)
        await hold(office.app, show, account_id, 1)

        await office.post.warn()

        assert await office.kinds(address) == []

    async def test_a_buyer_who_paid_meanwhile_gets_no_payment_reminder(self, config: Config) -> None:
        async with an_office(config, mail_page=1) as office:
            account_id, address = await a_reader(office.app)
            show = await cast.a_show(office.app, 20)
            booking = await hold(office.app, show, account_id, 1)
            await self.lapsing_in(office, show, 120)
            await office.post.warn()
            await office.app.saga_runner.pay(payment_request(booking))

            await office.send()

            (row,) = await office.rows(address)
            assert (row["kind"], row["state"]) == ("hold_lapsing", "obsolete")


class TestTurns:
    async def test_without_a_sender_notices_are_set_aside_and_not_rendered(
        self, office: Office, free_show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, free_show, account_id, 1)

        await office.consume_and_send()

        (row,) = await office.rows(address)
        assert row["state"] == "unsent"
        query = "SELECT count(*) FROM stored_message WHERE notice_id = $1"
        assert await office.app.postgres.fetchval(query, row["id"]) == 0

    async def test_of_many_workers_one_has_a_notice_until_its_lease_ends(
        self, office: Office, free_show: int
    ) -> None:
        for seat in range(6):
            account_id, _ = await a_reader(office.app)
            await hold(office.app, free_show, account_id, seat)
        await office.consume()
        notices = office.app.notifications

        taken = await asyncio.gather(*(notices.take_due(3, [Channel.MAIL]) for _ in range(4)))
        ids = [due.id for some in taken for due in some]
        assert len(ids) == len(set(ids)) == 6
        assert not await notices.take_due(10, [Channel.MAIL])
        await office.no_pause()
        again = {due.id: due for due in await notices.take_due(10, [Channel.MAIL])}
        late = next(due for some in taken for due in some)  # two of the four got none
        assert not await notices.end(late, NoticeState.DEAD), "its lease has ended: another lane has it"
        assert await notices.end(again[late.id], NoticeState.SENT)

    async def test_workers_of_two_releases_leave_each_other_the_kinds_they_do_not_know(
        self, office: Office
    ) -> None:
        """The worker of the release before fails on a kind it cannot read, with its whole batch."""
        notices, postgres = office.app.notifications, office.app.postgres
        seen_before = "SELECT id FROM notice WHERE due_at <= now() AND address = $1"
        account_id, address = await a_reader(office.app)
        mail = PersonMail.RESET_PASSWORD
        await notices.request(postgres, mail, email=address, account_id=account_id, locale="en")
        newer = "INSERT INTO notice (kind, channel, address, name, locale, show_id)"
        await postgres.execute(f"{newer} VALUES ('of_tomorrow', 'mail', $1, '', 'en', 0)", address)

        unseen = [await postgres.fetch(seen_before, address)]
        (due,) = await notices.take_due(10, [Channel.MAIL])
        await notices.leases.give_back([due.lease], "unreachable")
        unseen.append(await postgres.fetch(seen_before, address))
        (again,) = await notices.take_due(10, [Channel.MAIL])

        assert unseen == [[], []]
        assert (due.kind, again.id) == (NoticeKind.RESET_PASSWORD, due.id)

    async def test_a_new_booking_notice_is_not_delayed_by_a_show_wide_notice(
        self, office: Office, free_show: int
    ) -> None:
        people = [await a_reader(office.app) for _ in range(4)]
        for seat, (account_id, _) in enumerate(people[:3]):
            await hold(office.app, free_show, account_id, seat)
        await schedule(office.app).change_show(free_show, ShowChange(cancelled=True))
        await office.consume()
        other = await cast.a_show(office.app, 20, price_minor=0)
        await hold(office.app, other, people[3][0], 1)
        await office.consume()

        taken = await office.app.notifications.take_due(4, [Channel.MAIL])

        assert {due.kind for due in taken} == {NoticeKind.TICKETS}
        assert people[3][1] in {due.address for due in taken}

    async def test_facts_from_before_the_start_cause_no_notices(self, office: Office, free_show: int) -> None:
        account_id, address = await a_reader(office.app)
        await office.app.outbox.forget_group(GROUP)
        await hold(office.app, free_show, account_id, 1)

        await begin_now(office.app.outbox)
        app = office.app
        notices = consumer(app.notifications, app.waiting_rooms)
        consumer_worker = ConsumerWorker(app.outbox, notices, app.config, wait_s=0.02)
        while await consumer_worker.consume():
            pass

        assert await office.kinds(address) == []

    async def test_after_many_tries_a_notice_is_dead_and_an_operator_can_resend_it(
        self, office: Office, free_show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, free_show, account_id, 1)
        await office.consume()
        notices = office.app.notifications

        states = []
        for _ in range(len(PAUSES_S) + 1):
            await office.no_pause()
            (due,) = [one for one in await notices.take_due(100, [Channel.MAIL]) if one.address == address]
            states.append(await notices.put_off(due, "no"))
        dead = (await notices.newest(NoticesQuery(state="dead"))).notices
        page = await notices.replay(due.id)

        assert states == [*[NoticeState.QUEUED] * len(PAUSES_S), NoticeState.DEAD]
        assert address in [one.address for one in dead]
        assert (page.state, page.tries, page.reason) == (NoticeState.QUEUED, 0, None)

    async def test_replaying_an_unknown_notice_is_refused(self, office: Office) -> None:
        with pytest.raises(NoSuchNotice):
            await office.app.notifications.replay(2**40)

    async def test_old_notices_are_purged_and_dead_ones_stay(self, office: Office, free_show: int) -> None:
        people = [await a_reader(office.app) for _ in range(2)]
        for seat, (account_id, _) in enumerate(people):
            await hold(office.app, free_show, account_id, seat)
        await office.consume()
        taken = {due.address: due for due in await office.app.notifications.take_due(100, [Channel.MAIL])}
        await office.app.notifications.end(taken[people[0][1]], NoticeState.SENT)
        await office.app.notifications.end(taken[people[1][1]], NoticeState.DEAD, "no")
        await office.app.postgres.execute(
            "UPDATE notice SET ended_at = now() - interval '91 days' WHERE show_id = $1", free_show
        )

        await office.post.forget()

        assert [len(await office.rows(address)) for _, address in people] == [0, 1]


class TestCommands:
    async def test_an_operator_lists_dead_notices_and_resends_them(
        self, office: Office, free_show: int
    ) -> None:
        account_id, address = await a_reader(office.app)
        await hold(office.app, free_show, account_id, 1)
        await office.consume()
        taken = {due.address: due for due in await office.app.notifications.take_due(100, [Channel.MAIL])}
        await office.app.notifications.end(taken[address], NoticeState.DEAD, "550 no such mailbox")
        urls = office.app.config
        env = engines_of(where_sold(urls))

        listed = await run_holdfast("notices", "list", "--json", **env)
        replayed = await run_holdfast("notices", "replay", str(taken[address].id), **env)
        unclear = await run_holdfast("notices", "replay", **env)

        (page,) = [one for one in json.loads(listed.output) if one["address"] == address]
        assert (page["state"], page["reason"]) == ("dead", "550 no such mailbox")
        assert f"tickets to {address} by mail" in replayed.output
        assert (await office.rows(address))[0]["state"] == "queued"
        assert (unclear.code, "name one notice" in unclear.words) == (2, True)
