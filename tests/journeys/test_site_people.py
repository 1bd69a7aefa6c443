"""Mailed links, the account page and guests' bookings, in browsers without scripts (R31)."""

import json
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from holdfast.accounts import NewAccount, Purpose
from holdfast.app import App
from holdfast.config import Config
from holdfast.web.asgi import Application
from holdfast.web.caller import Role, Scope
from tests.support.browser_session import ANN, Visitor, a_visitor
from tests.support.mail_servers import Office, a_reader, an_office
from tests.support.mailed_links import a_link, mailed_link, mails_to, prove_address

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config, mail_page=1) as opened:
        yield opened


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(seats=20))


def an_address(name: str = "ann") -> str:
    return f"{name}-{secrets.token_hex(6)}@example.org"


async def signs_up(visitor: Visitor, email: str, name: str = "Ann") -> None:
    await visitor.goes("/sign-up")
    await visitor.sends("/sign-up", email=email, password=PASSWORD, name=name)


async def has_account(app: App, email: str, role: Role = Role.FAN) -> int:
    hashed = await app.accounts.hashed(PASSWORD)
    (account_id,) = await app.accounts.add_many([NewAccount(email, "Ann", role, hashed)])
    return account_id


class TestLinks:
    async def test_a_forgotten_password_is_replaced_by_mail(
        self, office: Office, app: App, ann: Visitor, eve: Visitor
    ) -> None:
        _, address = await a_reader(office.app, "Zoë")
        await ann.goes("/sign-in")
        assert 'href="/forgot-password"' in ann.text
        await ann.goes("/forgot-password")
        await ann.sends("/forgot-password", email=address)
        assert ann.says(f"If {address} has an account, a link is on its way.")
        path = f"/link/{await mailed_link(office, address)}"

        for _ in range(3):  # programs that check mails open links, too
            await eve.goes(path)
            assert (eve.status, eve.says("Choose a new password")) == (200, True)
        await ann.goes(path)
        await ann.sends(path, password="short")
        assert (ann.status, ann.says("Use at least 8 characters.")) == (422, True)
        await ann.sends(path, password="a new and long password")

        assert ann.at == "/my"
        assert ann.says("Zoë")
        await eve.goes(path)
        assert (eve.status, eve.says("This link no longer works")) == (410, True)
        assert await app.accounts.log_in(email=address, password="a new and long password", address="")

    async def test_unknown_addresses_see_the_same_page(self, office: Office, ann: Visitor) -> None:
        _, known = await a_reader(office.app)
        unknown = an_address()
        texts = []
        for address in (known, unknown):
            for path in ("/forgot-password", "/sign-in-link"):
                await ann.goes(path)
                await ann.sends(path, email=address)
                texts.append((ann.status, ann.text.replace(address, "")))

        assert texts[:2] == texts[2:]

    async def test_a_mailed_link_signs_a_new_person_in(self, office: Office, ann: Visitor) -> None:
        address = an_address()
        await ann.goes("/sign-in-link")
        await ann.sends("/sign-in-link", email=address)
        path = f"/link/{await mailed_link(office, address)}"
        await ann.goes(path)
        await ann.sends(path)

        assert ann.at == "/my"
        assert ann.says(address)
        await ann.goes("/account")
        assert ann.says("Set a password")
        assert not ann.says("Please confirm your email address")

    async def test_the_page_of_a_link_is_private(self, app: App, ann: Visitor) -> None:
        await ann.goes(f"/link/{await a_link(app, Purpose.SIGN_IN, an_address())}")

        assert ann.headers["referrer-policy"] == "strict-origin"
        assert ann.headers["cache-control"] == "no-store"
        assert ann.headers["x-robots-tag"] == "noindex"

    @pytest.mark.parametrize("language", ["de", "hi"])
    @pytest.mark.parametrize("purpose", [Purpose.VERIFY, Purpose.RESET, Purpose.SIGN_IN])
    async def test_it_speaks_the_language_of_the_reader(
        self, app: App, ann: Visitor, purpose: Purpose, language: str
    ) -> None:
        reader, address = await a_reader(app)
        ann.client.headers["accept-language"] = language
        await ann.goes(f"/link/{await a_link(app, purpose, address, reader)}")

        assert ann.status == 200
        assert f'<html lang="{language}-' in ann.text
        assert not ann.says("Sign in")

    async def test_a_sign_up_is_confirmed_here_or_elsewhere_with_the_password(
        self, office: Office, ann: Visitor, eve: Visitor
    ) -> None:
        address = an_address()
        await signs_up(ann, address)
        assert ann.says(f"Please confirm your email address {address}")
        path = f"/link/{await mailed_link(office, address)}"

        await eve.goes(path)
        assert 'name="password"' in eve.text
        await eve.sends(path, password="a guess")
        assert (eve.status, 'aria-invalid="true"' in eve.text) == (403, True)
        await ann.goes(path)
        assert 'name="password"' not in ann.text
        await ann.sends(path)

        assert ann.says("Your email address is confirmed.")
        await eve.goes("/sign-in")
        await eve.sends("/sign-in", email=address, password=PASSWORD)
        assert eve.at == "/my"


class TestTransfers:
    async def test_the_mailed_link_brings_the_ticket_without_an_account(
        self, office: Office, app: App, ann: Visitor, eve: Visitor, site: Application, show: int
    ) -> None:
        """Eve signs up with the address first: she gets nothing."""
        friend = an_address("friend")
        await signs_up(eve, friend, "Mallory")
        path = await ann.holds(show, "A-1")
        await ann.pays(**{**ANN, "email": an_address()})
        await ann.sends("/transfer", email=friend)
        link = f"/link/{await mailed_link(office, friend)}"
        await eve.goes("/my")
        assert eve.says("No tickets yet")

        async with a_visitor(site) as bob:
            await bob.goes(link)
            assert bob.says("A ticket for you")
            await bob.sends(link)
            assert bob.at.startswith("/tickets/")
            await bob.goes("/my")
            assert bob.says("A-1") or bob.says("Row A")
            await bob.goes(link)
            assert bob.status == 410
        await ann.goes(path)
        assert 'action="' + path + '/take-back"' not in ann.text
        await eve.goes("/my")
        assert eve.says("No tickets yet")

    async def test_an_account_with_the_proved_address_accepts_it_on_its_page(
        self, office: Office, app: App, ann: Visitor, eve: Visitor, show: int
    ) -> None:
        friend = an_address("friend")
        await has_account(app, friend)
        await eve.goes("/sign-in")
        await eve.sends("/sign-in", email=friend, password=PASSWORD)
        await ann.holds(show, "A-1")
        await ann.pays(**{**ANN, "email": an_address()})
        await ann.sends("/transfer", email=friend)

        await eve.goes("/my")
        assert eve.says("Sent to you")
        await eve.sends("/my/accept")

        assert eve.at.startswith("/tickets/")
        await eve.goes("/my")
        assert not eve.says("Sent to you")

    async def test_a_ticket_that_was_taken_back_is_not_accepted(
        self, office: Office, ann: Visitor, eve: Visitor, show: int
    ) -> None:
        friend = an_address("friend")
        await ann.holds(show, "A-1")
        await ann.pays(**{**ANN, "email": an_address()})
        await ann.sends("/transfer", email=friend)
        link = f"/link/{await mailed_link(office, friend)}"
        await ann.sends("/take-back")

        await eve.goes(link)
        if eve.status == 200:
            await eve.sends(link)

        assert eve.status == 404


class TestGuests:
    async def test_the_link_in_the_mail_opens_the_booking_on_another_device(
        self, office: Office, ann: Visitor, eve: Visitor, show: int
    ) -> None:
        address = an_address()
        path = await ann.holds(show, "A-1", "A-2")
        await ann.pays(**{**ANN, "email": address})
        link = f"/link/{await mailed_link(office, address)}"
        await eve.goes(path)
        assert eve.at == "/sign-in"

        for _ in range(2):  # as often as the guest wants
            await eve.goes(link)
            await eve.sends(link)
            assert eve.at == path
        invoice = await eve.client.get(f"{path}/invoice.pdf")
        await eve.goes(path)
        await eve.sends("/transfer", email=an_address("friend"))
        await eve.goes(f"{path}/cancel")

        assert (invoice.status_code, invoice.headers["content-type"]) == (200, "application/pdf")
        assert eve.status == 200
        assert f'action="{path}/cancel"' in eve.text

    async def test_it_opens_beside_the_account_that_is_signed_in(
        self, office: Office, app: App, ann: Visitor, eve: Visitor, show: int
    ) -> None:
        address, own = an_address(), an_address("eve")
        path = await ann.holds(show, "A-1")
        await ann.pays(**{**ANN, "email": address})
        link = f"/link/{await mailed_link(office, address)}"
        await has_account(app, own)
        await eve.goes("/sign-in")
        await eve.sends("/sign-in", email=own, password=PASSWORD)

        await eve.goes(link)
        await eve.sends(link)
        assert eve.at == path
        await eve.goes("/account")
        assert eve.says(own)

    async def test_free_tickets_are_mailed_when_the_address_is_confirmed(
        self, office: Office, ann: Visitor, eve: Visitor, a_show: Callable[..., Any]
    ) -> None:
        """Otherwise anyone could have tickets sent to anyone. The page has them at once."""
        address = an_address()
        await ann.holds(await a_show(seats=20, price_minor=0), "A-1")
        await ann.sends("/pay", **{**ANN, "email": address})
        assert ann.says(f"We've sent a link to {address}.")
        assert 'class="qr"' in ann.text
        path = f"/link/{await mailed_link(office, address)}"

        await eve.goes(path)
        await eve.sends(path)

        assert eve.says("Your tickets are on their way")
        subjects = [str(mail["Subject"]) for mail in await mails_to(office, address)]
        assert subjects[0] == "Confirm your email address"
        assert subjects[-1].startswith("Your ticket for")

    async def test_another_address_ends_the_links_of_the_first(
        self, office: Office, ann: Visitor, eve: Visitor, show: int
    ) -> None:
        """Who mistyped the first address sent the link to a stranger."""
        wrong = an_address("wrong")
        await ann.holds(show, "A-1")
        await ann.pays(**{**ANN, "email": wrong})
        link = f"/link/{await mailed_link(office, wrong)}"
        await ann.sends("/details", name="Ann", email=an_address())

        await eve.goes(link)

        assert eve.status == 410


class TestMyAccount:
    @pytest.fixture
    async def signed_in(self, app: App, ann: Visitor) -> Visitor:
        address = an_address()
        await signs_up(ann, address)
        await prove_address(app.postgres, address)
        return await ann.goes("/account")

    async def test_name_and_password_are_changed(self, signed_in: Visitor) -> None:
        ann = signed_in
        await ann.sends("/account/name", name="Ann Other")
        assert ann.says("Your name was changed.")
        assert ann.says("Ann Other")
        wrong = {"current_password": "a guess", "new_password": "another good one"}
        await ann.sends("/account/password", **wrong)
        assert (ann.status, 'aria-invalid="true"' in ann.text) == (422, True)
        await ann.sends("/account/password", current_password=PASSWORD, new_password="another good one")
        assert ann.says("Your password was changed.")

    async def test_a_new_password_signs_other_devices_out(
        self, app: App, signed_in: Visitor, eve: Visitor
    ) -> None:
        ann = signed_in
        cookie = ann.client.cookies["holdfast"]
        session = await app.sessions.load(cookie)
        assert session is not None
        await eve.goes("/sign-in")
        await eve.sends("/sign-in", email=session.account.email, password=PASSWORD)
        assert eve.at == "/my"

        await ann.sends("/account/password", current_password=PASSWORD, new_password="another good one")

        await eve.goes("/account")
        assert eve.at == "/sign-in"
        await ann.goes("/account")
        assert ann.at == "/account"

    async def test_a_device_is_signed_out_from_the_list(
        self, app: App, signed_in: Visitor, eve: Visitor
    ) -> None:
        ann = signed_in
        session = await app.sessions.load(ann.client.cookies["holdfast"])
        assert session is not None
        eve.client.headers["user-agent"] = "Mozilla/5.0 (Android 14; Mobile) Gecko/130.0 Firefox/130.0"
        await eve.goes("/sign-in")
        await eve.sends("/sign-in", email=session.account.email, password=PASSWORD)
        other = await app.sessions.load(eve.client.cookies["holdfast"])
        assert other is not None
        await ann.goes("/account")
        assert ann.says("Firefox, Android")
        assert ann.says("This device")

        await ann.client.post("/account/end-session", data={"session": str(other.session_id)})

        await eve.goes("/account")
        assert eve.at == "/sign-in"

    async def test_my_data_is_a_file_and_no_stranger_s(self, signed_in: Visitor, eve: Visitor) -> None:
        answer = await signed_in.client.get("/account/data.json")
        refused = await eve.client.get("/account/data.json")

        data = json.loads(answer.text)
        assert data["accounts"][0]["name"] == "Ann"
        assert "attachment" in answer.headers["content-disposition"]
        assert refused.status_code == 303

    async def test_the_account_is_deleted_with_its_password(self, app: App, signed_in: Visitor) -> None:
        ann = signed_in
        session = await app.sessions.load(ann.client.cookies["holdfast"])
        assert session is not None
        await ann.sends("/account/delete", current_password="a guess")
        assert ann.status == 422
        await ann.sends("/account/delete", current_password=PASSWORD)

        assert ann.says("Your account was deleted")
        await ann.goes("/account")
        assert ann.at == "/sign-in"
        listed = await app.account_admin.find(session.account_id)
        assert (listed.account.name, listed.erased_at is not None) == ("Erased", True)

    async def test_the_header_shows_who_is_signed_in(self, signed_in: Visitor, eve: Visitor) -> None:
        await signed_in.goes("/my")
        await eve.goes("/my")

        assert '<span class="who-name">Ann</span>' in signed_in.text
        assert '<span class="who-name">Sign in</span>' in eve.text
        assert signed_in.client.cookies["holdfast_name"] == "Ann"


@pytest.mark.parametrize(
    ("role", "page"),
    [(Role.FAN, "/my"), (Role.ORGANISER, "/desk/{id}"), (Role.GATE, "/desk"), (Role.ADMIN, "/desk/house")],
)
async def test_each_role_lands_where_its_work_is(app: App, ann: Visitor, role: Role, page: str) -> None:
    address = an_address()
    page = page.format(id=await has_account(app, address, role))
    await ann.goes("/sign-in")
    await ann.sends("/sign-in", email=address, password=PASSWORD)

    assert (ann.at, ann.status) == (page, 200)
    await ann.goes("/desk")
    assert ann.at == page


@pytest.mark.parametrize("rights", [["catalogue"], ["door"]])
async def test_a_member_lands_at_the_desk_until_they_leave(app: App, ann: Visitor, rights: list[str]) -> None:
    """Whatever the role of the account is."""
    address = an_address()
    account_id, owner_id = await has_account(app, address), await has_account(app, an_address())
    organisation = await app.organisations.create("The Paper Mill", owner_id)
    await app.organisations.add_member(organisation.organisation_id, account_id, rights)
    await ann.goes("/sign-in")
    await ann.sends("/sign-in", email=address, password=PASSWORD)

    assert (ann.at.startswith("/desk"), ann.status) == (True, 200)
    await ann.goes("/account")
    assert 'href="/desk"' in ann.text
    await app.organisations.remove(Scope(owner_id, False, organisation.organisation_id), account_id)
    await ann.goes("/account")
    assert 'href="/desk"' not in ann.text
