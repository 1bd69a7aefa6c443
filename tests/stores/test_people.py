"""Mailed links and one's own account: who gets an address, and what ends with a new password (R31)."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.accounts import (
    AccountBanned,
    BadCredentials,
    EmailTaken,
    LinkGone,
    NewAccount,
    NoSuchSession,
    PasswordNeeded,
    Purpose,
    SignedIn,
    WrongPassword,
)
from holdfast.app import App
from holdfast.config import Config
from holdfast.web.caller import Caller, Role
from tests.support.account_processes import HERE, PASSWORD, bearer, is_let_in
from tests.support.mail_servers import Office, a_reader, an_office
from tests.support.mailed_links import a_link, mailed_link, mails_to

NEW = "a new and long password"


@pytest.fixture(scope="module")
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config, mail_page=1) as opened:
        yield opened


async def signs_up(app: App, email: str, password: str = PASSWORD) -> SignedIn:
    new = await app.accounts.sign_up(email=email, password=password, name="Ann")
    await app.people.request_confirmation(new.account.account_id, "en")
    return new


def caller(signed_in: SignedIn) -> Caller:
    return Caller(signed_in.account.account_id, Role.FAN, 0)


class TestConfirming:
    async def test_the_link_gives_the_address_to_the_account_that_is_signed_in(
        self, office: Office, email: str
    ) -> None:
        app, ann = office.app, await signs_up(office.app, email)
        with pytest.raises(BadCredentials):
            await app.accounts.log_in(email=email, password=PASSWORD, address=HERE)

        account = await app.people.confirm(
            await mailed_link(office, email), signed_in=ann.account.account_id, password=None, address=HERE
        )

        assert (account.account_id, account.email) == (ann.account.account_id, email)
        assert account.is_verified
        assert await app.accounts.log_in(email=email, password=PASSWORD, address=HERE)

    async def test_elsewhere_it_takes_the_password(self, office: Office, email: str) -> None:
        app = office.app
        ann = await signs_up(app, email)
        link = await mailed_link(office, email)

        with pytest.raises(PasswordNeeded):
            await app.people.confirm(link, signed_in=None, password=None, address=HERE)
        with pytest.raises(WrongPassword):
            await app.people.confirm(link, signed_in=None, password="a guess", address=HERE)
        account = await app.people.confirm(link, signed_in=None, password=PASSWORD, address=HERE)

        assert account.account_id == ann.account.account_id

    async def test_a_victim_cannot_confirm_the_account_of_a_stranger(
        self, office: Office, email: str
    ) -> None:
        """Mallory signs up with the victim's address and waits for them to open the link."""
        app = office.app
        mallory = await signs_up(app, email, "her own password")
        link = await mailed_link(office, email)
        (victim,) = await app.accounts.add_many([NewAccount(f"v{email}", "Victim")])

        for signed_in in (None, victim):
            with pytest.raises(PasswordNeeded):
                await app.people.confirm(link, signed_in=signed_in, password=None, address=HERE)
        await app.people.request_sign_in(email, "en")
        mine = await app.people.sign_in(await mailed_link(office, email), signed_in=None, locale="en")

        assert mine.account_id != mallory.account.account_id
        with pytest.raises(BadCredentials):
            await app.accounts.log_in(email=email, password="her own password", address=HERE)

    async def test_two_sign_ups_of_one_person_become_one_account(self, office: Office, email: str) -> None:
        app = office.app
        first, second = [await signs_up(app, email) for _ in range(2)]
        links = [await a_link(app, Purpose.VERIFY, email, one.account.account_id) for one in (first, second)]

        accounts = [
            await app.people.confirm(link, signed_in=one.account.account_id, password=None, address=HERE)
            for link, one in zip(links, (first, second), strict=True)
        ]

        assert {account.account_id for account in accounts} == {first.account.account_id}
        assert is_let_in(app.accounts, first)
        assert not is_let_in(app.accounts, second)

    async def test_of_sign_ups_that_confirm_at_once_one_has_the_address(
        self, office: Office, email: str
    ) -> None:
        app = office.app
        news = [await app.accounts.sign_up(email=email, password=PASSWORD, name="Ann") for _ in range(4)]
        links = [await a_link(app, Purpose.VERIFY, email, one.account.account_id) for one in news]

        accounts = await asyncio.gather(
            *(
                app.people.confirm(link, signed_in=one.account.account_id, password=None, address=HERE)
                for link, one in zip(links, news, strict=True)
            )
        )

        assert len({account.account_id for account in accounts}) == 1

    async def test_a_taken_address_is_mailed_a_notice_and_no_link(self, office: Office) -> None:
        _, address = await a_reader(office.app)
        await signs_up(office.app, address)

        (mail,) = await mails_to(office, address)

        assert "/link/" not in mail.as_string()
        assert "already an account" in mail.as_string()


class TestChangingTheAddress:
    async def test_the_new_address_confirms_and_the_old_one_gets_a_notice(
        self, office: Office, email: str
    ) -> None:
        app = office.app
        reader, old = await a_reader(app)
        await app.people.request_reset(old, "en")
        stale = await mailed_link(office, old)
        session = await app.accounts.sign_in(await app.people.rename(reader, "Zoë"))
        await app.people.request_change(caller(session), email=email, password="", address=HERE, locale="en")

        account = await app.people.confirm(
            await mailed_link(office, email), signed_in=reader, password=None, address=HERE
        )

        assert account.email == email
        notice = (await mails_to(office, old))[-1]
        assert "was changed" in str(notice["Subject"])
        assert email not in notice.as_string()
        with pytest.raises(LinkGone):
            await app.people.reset(stale, NEW)

    async def test_it_takes_the_password(self, office: Office, email: str) -> None:
        ann = await signs_up(office.app, email)

        with pytest.raises(WrongPassword):
            await office.app.people.request_change(
                caller(ann), email=f"x{email}", password="a guess", address=HERE, locale="en"
            )
        assert await office.rows(f"x{email}") == []

    async def test_an_address_that_another_account_has_by_then_is_refused(
        self, office: Office, email: str
    ) -> None:
        reader, _ = await a_reader(office.app)
        link = await a_link(office.app, Purpose.VERIFY, email, reader)
        await office.app.accounts.add_many([NewAccount(email, "Faster")])

        with pytest.raises(EmailTaken):
            await office.app.people.confirm(link, signed_in=reader, password=None, address=HERE)


class TestForgottenPassword:
    async def test_the_link_sets_a_password_once_and_ends_every_session(self, office: Office) -> None:
        app = office.app
        reader, address = await a_reader(app)
        elsewhere = await app.accounts.sign_in(await app.people.rename(reader, "Zoë"))
        await app.people.request_reset(address.upper(), "en")
        link = await mailed_link(office, address)

        account = await app.people.reset(link, NEW)

        assert account.account_id == reader
        assert not is_let_in(app.accounts, elsewhere)
        assert await app.accounts.log_in(email=address, password=NEW, address=HERE)
        with pytest.raises(LinkGone):
            await app.people.reset(link, "another password")
        assert "was changed" in str((await mails_to(office, address))[-1]["Subject"])

    async def test_unknown_addresses_do_the_same_work_and_get_no_mail(
        self, office: Office, email: str
    ) -> None:
        """The request writes one row for every address; what it is worth is decided later, by a worker."""
        _, known = await a_reader(office.app)
        for address in (known, email):
            await office.app.people.request_reset(address, "en")

        written = [[dict(row) for row in await office.rows(address)] for address in (known, email)]
        mails = [len(await mails_to(office, address)) for address in (known, email)]

        ((first,), (second,)) = written
        for name in first.keys() - {"id", "address", "written_at", "due_at"}:
            assert first[name] == second[name], name
        assert mails == [1, 0]

    async def test_an_address_gets_a_few_mails_an_hour(self, office: Office) -> None:
        _, address = await a_reader(office.app)

        for _ in range(20):
            await office.app.people.request_reset(address, "en")
            await office.app.people.request_sign_in(address, "en")

        assert len(await mails_to(office, address)) == 6


class TestSignInLinks:
    async def test_an_unknown_address_gets_an_account_without_a_password(
        self, office: Office, email: str
    ) -> None:
        await office.app.people.request_sign_in(email, "de")

        account = await office.app.people.sign_in(
            await mailed_link(office, email), signed_in=None, locale="de"
        )

        assert (account.email, account.is_verified, account.locale) == (email, True, "de")
        assert not await office.app.people.has_password(account.account_id)
        assert not await office.app.people.is_guest(account.account_id)

    async def test_the_same_browser_keeps_the_account_it_signed_up_with(
        self, office: Office, email: str
    ) -> None:
        ann = await signs_up(office.app, email)
        link = await a_link(office.app, Purpose.SIGN_IN, email)

        account = await office.app.people.sign_in(link, signed_in=ann.account.account_id, locale="en")

        assert account.account_id == ann.account.account_id
        assert account.is_verified
        assert await office.app.accounts.log_in(email=email, password=PASSWORD, address=HERE)

    async def test_an_account_that_never_confirmed_its_address_loses_its_password(
        self, office: Office, email: str
    ) -> None:
        """Of an earlier release: the password may be that of another person who typed the address."""
        app = office.app
        hashed = await app.accounts.hashed("of a squatter")
        old = NewAccount(email, "Squatter", password_hash=hashed, is_verified=False)
        (account_id,) = await app.accounts.add_many([old])
        squatter = await app.accounts.log_in(email=email, password="of a squatter", address=HERE)

        link = await a_link(app, Purpose.SIGN_IN, email)
        account = await app.people.sign_in(link, signed_in=None, locale="en")

        assert account.account_id == account_id
        assert not is_let_in(app.accounts, squatter)
        with pytest.raises(BadCredentials):
            await app.accounts.log_in(email=email, password="of a squatter", address=HERE)

    async def test_a_banned_account_is_let_in_by_no_link(self, office: Office) -> None:
        app = office.app
        reader, address = await a_reader(app)
        links = [
            await a_link(app, Purpose.SIGN_IN, address),
            await a_link(app, Purpose.RESET, address, reader),
        ]
        await app.account_admin.ban(reader)
        late = await a_link(app, Purpose.SIGN_IN, address)

        with pytest.raises(LinkGone):
            await app.people.sign_in(links[0], signed_in=None, locale="en")
        with pytest.raises(LinkGone):
            await app.people.reset(links[1], NEW)
        with pytest.raises(AccountBanned):
            await app.people.sign_in(late, signed_in=None, locale="en")
        await app.people.request_sign_in(address, "en")
        assert await mails_to(office, address) == []


class TestSessions:
    async def test_they_are_listed_and_ended_one_by_one(self, office: Office) -> None:
        app = office.app
        reader, _ = await a_reader(app)
        account = await app.people.rename(reader, "Zoë")
        here, there = [await app.accounts.sign_in(account, device) for device in ("Firefox", "curl/8")]
        this = app.accounts.verify(bearer(here)).session_id

        listed = await app.people.sessions(reader, this)
        other = next(one for one in listed if not one.is_this)
        await app.people.end_session(reader, other.session_id)

        assert {(one.device, one.is_this) for one in listed} == {("Firefox", True), ("curl/8", False)}
        assert (is_let_in(app.accounts, here), is_let_in(app.accounts, there)) == (True, False)
        with pytest.raises(NoSuchSession):
            await app.people.end_session(reader, other.session_id)

    async def test_the_last_use_is_noted_every_few_minutes(self, office: Office) -> None:
        app = office.app
        reader, _ = await a_reader(app)
        cookie = await app.sessions.open_account(reader, None, "Firefox")
        old = "UPDATE session SET last_used_at = now() - $2 * interval '1 min' WHERE account_id = $1"
        noted = []

        for minutes in (5, 15):
            await app.postgres.execute(old, reader, float(minutes))
            before = (await app.people.sessions(reader, 0))[0].last_used_at
            assert await app.sessions.load(cookie) is not None
            noted.append((await app.people.sessions(reader, 0))[0].last_used_at > before)

        assert noted == [False, True]

    async def test_those_of_another_account_are_out_of_reach(self, office: Office) -> None:
        app = office.app
        (mine, _), (theirs, _) = [await a_reader(app) for _ in range(2)]
        session = await app.accounts.sign_in(await app.people.rename(theirs, "Bob"))

        with pytest.raises(NoSuchSession):
            await app.people.end_session(mine, app.accounts.verify(bearer(session)).session_id)
        assert is_let_in(app.accounts, session)

    async def test_all_but_this_one_end_at_once(self, office: Office) -> None:
        app = office.app
        reader, _ = await a_reader(app)
        account = await app.people.rename(reader, "Zoë")
        signed_in = [await app.accounts.sign_in(account) for _ in range(3)]
        this = app.accounts.verify(bearer(signed_in[0])).session_id

        ended = await app.people.end_sessions(reader, this)

        assert ended == 2
        assert [is_let_in(app.accounts, one) for one in signed_in] == [True, False, False]
        assert await app.people.end_sessions(reader) == 1
