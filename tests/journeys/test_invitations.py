"""An invitation by mail: accepted or declined on a page, with and without an account (R31)."""

import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.config import Config
from holdfast.organisations.invitations import INVITATIONS_TO_ADDRESS_MAX
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.browser_session import Visitor
from tests.support.mail_servers import Office, an_office
from tests.support.mailed_links import mailed_link, mails_to
from tests.support.shows import Fan, problem


@pytest.fixture(scope="module")
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config, mail_page=1) as opened:
        yield opened


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


@pytest.fixture
async def team(admin: Fan) -> str:
    """The path of an organisation."""
    made = await admin.post("/admin/organisations", {"name": "The Paper Mill"})
    return f"/organisations/{made.json()['organisation_id']}"


def an_address() -> str:
    return f"omar-{secrets.token_hex(6)}@example.org"


async def invites(admin: Fan, team: str, email: str, *rights: str) -> int:
    made = await admin.post(f"{team}/invitations", {"email": email, "rights": list(rights)})
    assert made.status_code == 201, made.text
    return int(made.json()["invitation_id"])


async def members(admin: Fan, team: str) -> dict[str, Any]:
    found = (await admin.get(f"{team}/members")).json()["members"]
    return {one["email"]: (one["name"], one["rights"]) for one in found if not one["is_owner"]}


class TestAccepting:
    async def test_without_an_account(self, office: Office, admin: Fan, team: str, ann: Visitor) -> None:
        address = an_address()
        await invites(admin, team, address, "door", "refund")
        path = f"/link/{await mailed_link(office, address)}"

        for _ in range(2):  # programs that check mails open links, too
            await ann.goes(path)
        assert ann.says(f"{address} is invited to work for The Paper Mill.")
        assert ann.says("check tickets at the door")
        assert not ann.says("see sales figures")
        await ann.sends(path, name="Omar", answer="accept")

        assert await members(admin, team) == {address: ("Omar", ["refund", "door"])}
        await ann.goes("/account")
        assert ann.says(address)
        await ann.goes(path)
        assert (ann.status, ann.says("This link no longer works")) == (410, True)

    async def test_with_an_account_that_is_not_signed_in(
        self, office: Office, app: App, admin: Fan, team: str, ann: Visitor
    ) -> None:
        address = an_address()
        await app.accounts.add_many([NewAccount(address, "Omar")])
        await invites(admin, team, address, "catalogue")
        path = f"/link/{await mailed_link(office, address)}"
        await ann.goes(path)
        assert 'name="name"' not in ann.text
        await ann.sends(path, answer="accept")

        assert await members(admin, team) == {address: ("Omar", ["catalogue"])}
        await ann.goes("/account")
        assert ann.says(address)

    async def test_with_another_address_and_twice(
        self, office: Office, app: App, admin: Fan, team: str, ann: Visitor
    ) -> None:
        """The link proves the mailbox; the account that is signed in joins."""
        first, second, own = an_address(), an_address(), an_address()
        await app.accounts.add_many([NewAccount(own, "Omar")])
        await app.people.request_sign_in(own, "en")
        sign_in = f"/link/{await mailed_link(office, own)}"
        await ann.goes(sign_in)
        await ann.sends(sign_in)
        answers = []
        for address in (first, second):
            await invites(admin, team, address)
            path = f"/link/{await mailed_link(office, address)}"
            await ann.goes(path)
            assert ann.says(f"You'll join as Omar ({own}).")
            await ann.sends(path, answer="accept")
            answers.append(ann.status)

        assert answers == [200, 409]
        assert ann.says("You're a member already")
        assert await members(admin, team) == {own: ("Omar", [])}


class TestEnding:
    async def test_it_is_declined_without_an_account(
        self, office: Office, app: App, admin: Fan, team: str, ann: Visitor
    ) -> None:
        address = an_address()
        await invites(admin, team, address, "door")
        path = f"/link/{await mailed_link(office, address)}"
        await ann.goes(path)
        await ann.sends(path, answer="decline")

        assert ann.says("You declined")
        assert (await admin.get(f"{team}/invitations")).json()["invitations"] == []
        assert await app.accounts.find_account(address) is None
        await ann.goes(path)
        assert ann.status == 410

    async def test_withdrawn_before_its_mail_was_sent_no_mail_is_sent(
        self, office: Office, admin: Fan, team: str
    ) -> None:
        address = an_address()
        invitation = await invites(admin, team, address)
        await admin.delete(f"{team}/invitations/{invitation}")

        assert await mails_to(office, address) == []

    async def test_withdrawn_or_expired_its_link_ends(
        self, office: Office, app: App, admin: Fan, team: str, ann: Visitor
    ) -> None:
        for ending in ("withdrawn", "expired"):
            address = an_address()
            invitation = await invites(admin, team, address)
            path = f"/link/{await mailed_link(office, address)}"
            if ending == "withdrawn":
                await admin.delete(f"{team}/invitations/{invitation}")
            else:
                await app.postgres.execute(
                    "UPDATE invitation SET expires_at = now() WHERE id = $1", invitation
                )
            await ann.goes(path)
            assert ann.status == 410, ending
            posted = await ann.client.post(path, data={"answer": "accept", "name": "Omar"})
            assert posted.status_code == 410, ending
        assert await members(admin, team) == {}


class TestSendingAgain:
    async def test_only_the_newest_link_works(
        self, office: Office, admin: Fan, team: str, ann: Visitor
    ) -> None:
        address = an_address()
        invitation = await invites(admin, team, address, "door")
        old = f"/link/{await mailed_link(office, address)}"

        again = await admin.post(f"{team}/invitations/{invitation}/resend", {})
        gone = await admin.post(f"{team}/invitations/{invitation}/resend", {})

        assert (again.status_code, again.json()["rights"]) == (201, ["door"])
        assert problem(gone)["code"] == "no_such_invitation"
        await ann.goes(old)
        assert ann.status == 410
        await ann.goes(f"/link/{await mailed_link(office, address)}")
        assert ann.says("check tickets at the door")

    async def test_an_address_gets_a_few_a_day(self, office: Office, admin: Fan, team: str) -> None:
        address = an_address()
        invitation = await invites(admin, team, address)
        codes = []
        for _ in range(INVITATIONS_TO_ADDRESS_MAX):
            again = await admin.post(f"{team}/invitations/{invitation}/resend", {})
            codes.append(again.status_code)
            invitation = again.json().get("invitation_id", 0)

        assert codes == [201] * (INVITATIONS_TO_ADDRESS_MAX - 1) + [429]
        assert len(await mails_to(office, address)) == 1  # of those that were replaced none is sent


async def test_an_answer_is_the_same_whether_the_address_has_an_account(
    app: App, admin: Fan, team: str
) -> None:
    known, unknown = an_address(), an_address()
    await app.accounts.add_many([NewAccount(known, "Omar")])
    seen = []
    for address in (known, unknown):
        made = await admin.post(f"{team}/invitations", {"email": address, "rights": ["door"]})
        body = made.json()
        seen.append((made.status_code, sorted(body), body["rights"]))

    assert seen[0] == seen[1]
