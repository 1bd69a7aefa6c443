"""Sign-in with an OpenID Connect provider: a real one, in a process of its own (R31)."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.oidc import Attempt
from holdfast.web.asgi import Application
from tests.fakes.oidc_provider_process import OidcProvider, as_setting
from tests.support.browser_session import SITE, Visitor, a_site, a_visitor
from tests.support.second_factors import a_holder

BUTTON = "Sign in with Acme"


@pytest.fixture(scope="module")
async def site(config: Config, acme: OidcProvider) -> AsyncIterator[Application]:
    """With a second provider, which is down."""
    set_up = replace(config, oidc_providers=as_setting(acme.issuer, "http://127.0.0.1:1"), oidc_timeout_s=5)
    async with a_site(set_up) as application:
        yield application


def a_person() -> tuple[str, str]:
    """Subject and address."""
    name = secrets.token_hex(6)
    return f"sub-{name}", f"ann-{name}@example.org"


async def leaves(visitor: Visitor, back: str = "") -> str:
    """Begins a sign-in; the address at the provider."""
    await visitor.goes("/sign-in/with/acme" + (f"?back={back}" if back else ""))
    assert visitor.status == 303, visitor.text
    return visitor.at


async def comes_back(visitor: Visitor, url: str) -> None:
    assert url.startswith(f"{SITE}/sign-in/with/acme/callback?"), url
    await visitor.goes(url.removeprefix(SITE))


async def signs_in(visitor: Visitor, acme: OidcProvider, sub: str, back: str = "") -> None:
    await comes_back(visitor, await acme.signs_in(await leaves(visitor, back), sub))


async def connects(visitor: Visitor, acme: OidcProvider, sub: str) -> None:
    """From the account page, through the page that leads to the provider."""
    await visitor.goes("/account")
    await visitor.sends("/account/connect/acme")
    assert visitor.says("Continue to Acme")
    (_, _, rest) = visitor.text.partition('class="button" href="')
    url = rest.partition('"')[0].replace("&amp;", "&")
    await comes_back(visitor, await acme.signs_in(url, sub))


async def account_with(app: App, email: str, password: str = "correct horse battery") -> int:
    hashed = await app.accounts.hashed(password)
    (account_id,) = await app.accounts.add_many([NewAccount(email, "Ann", password_hash=hashed)])
    return account_id


class TestSignIn:
    async def test_a_verified_address_gets_an_account_and_later_the_same(
        self, app: App, acme: OidcProvider, ann: Visitor, eve: Visitor
    ) -> None:
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True, name="Ann Otter")
        await ann.goes("/sign-in")
        assert ann.says(BUTTON)

        await signs_in(ann, acme, sub)

        assert ann.at == "/my"
        account = await app.accounts.find_account(email)
        assert account is not None
        assert (account.name, account.is_verified) == ("Ann Otter", True)
        await acme.knows(sub, email=f"new-{email}", email_verified=True)
        await signs_in(eve, acme, sub)
        await eve.goes("/account")
        assert eve.says(email)
        assert await app.accounts.find_account(f"new-{email}") is None

    async def test_back_to_the_page_before(self, acme: OidcProvider, ann: Visitor) -> None:
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)

        await signs_in(ann, acme, sub, back="/account")
        assert ann.at == "/account"

        await signs_in(ann, acme, sub, back="//evil.example")
        assert ann.at == "/my"

    @pytest.mark.parametrize("claims", [{}, {"email_verified": False}, {"email_verified": "no"}])
    async def test_an_address_that_the_provider_has_not_verified(
        self, app: App, acme: OidcProvider, ann: Visitor, claims: dict[str, object]
    ) -> None:
        sub, email = a_person()
        await acme.knows(sub, email=email, **claims)

        await signs_in(ann, acme, sub)

        assert ann.status == 403
        assert ann.says("hasn't confirmed your email address")
        assert await app.accounts.find_account(email) is None

    async def test_a_banned_account(self, app: App, acme: OidcProvider, ann: Visitor) -> None:
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        await signs_in(ann, acme, sub)
        account = await app.accounts.find_account(email)
        assert account is not None
        await app.account_admin.ban(account.account_id)

        await signs_in(ann, acme, sub)

        assert ann.status == 403

    async def test_in_german_and_hindi(self, ann: Visitor) -> None:
        for language, words in (("de", "Mit Acme anmelden"), ("hi", "Acme से साइन इन करें")):
            ann.client.headers["accept-language"] = language
            await ann.goes("/sign-in")
            assert ann.says(words)


class TestConnecting:
    async def test_an_address_with_an_account_is_never_connected_silently(
        self, app: App, acme: OidcProvider, ann: Visitor
    ) -> None:
        sub, email = a_person()
        account_id = await account_with(app, email)
        await acme.knows(sub, email=email.upper(), email_verified=True)

        await signs_in(ann, acme, sub)

        assert ann.status == 409
        assert ann.says("You already have an account")
        assert await app.identities.list(account_id) == []
        await ann.goes("/account")
        assert ann.at == "/sign-in"

        await ann.sends("/sign-in", email=email, password="correct horse battery")
        await connects(ann, acme, sub)
        assert ann.says("The service is connected")
        await ann.sends("/sign-out")
        await signs_in(ann, acme, sub)
        assert ann.at == "/my"

        await ann.goes("/account")
        await ann.sends("/account/disconnect")
        assert ann.says("The service is disconnected")
        assert await app.identities.list(account_id) == []

    async def test_an_identity_has_one_account(
        self, app: App, acme: OidcProvider, ann: Visitor, eve: Visitor
    ) -> None:
        sub, email = a_person()
        _, other = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        await signs_in(ann, acme, sub)
        other_id = await account_with(app, other)
        await eve.goes("/sign-in")
        await eve.sends("/sign-in", email=other, password="correct horse battery")

        await connects(eve, acme, sub)

        assert eve.status == 409
        assert await app.identities.list(other_id) == []

    async def test_another_site_cannot_begin_it(self, app: App, acme: OidcProvider, ann: Visitor) -> None:
        _, email = a_person()
        await account_with(app, email)
        await ann.goes("/sign-in")
        await ann.sends("/sign-in", email=email, password="correct horse battery")

        answer = await ann.client.post("/account/connect/acme", headers={"sec-fetch-site": "cross-site"})

        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers

    async def test_the_session_changes_in_between(self, app: App, acme: OidcProvider, ann: Visitor) -> None:
        """What one account began is not finished in another one's session."""
        sub, email = a_person()
        _, other = a_person()
        other_id = await account_with(app, other)
        await account_with(app, email)
        await acme.knows(sub, email=email, email_verified=True)
        await ann.goes("/sign-in")
        await ann.sends("/sign-in", email=email, password="correct horse battery")
        await ann.goes("/account")
        await ann.sends("/account/connect/acme")
        url = ann.text.partition('class="button" href="')[2].partition('"')[0].replace("&amp;", "&")
        back = await acme.signs_in(url, sub)
        await ann.goes("/account")
        await ann.sends("/sign-out")
        await ann.goes("/sign-in")
        await ann.sends("/sign-in", email=other, password="correct horse battery")

        await comes_back(ann, back)

        assert ann.status == 400
        assert await app.identities.list(other_id) == []

    async def test_a_second_factor_is_needed_as_well(
        self, app: App, api: httpx2.AsyncClient, acme: OidcProvider, ann: Visitor
    ) -> None:
        """Who gets into an account at the service has one step, not two."""
        holder, (sub, _) = await a_holder(app, api), a_person()
        await acme.knows(sub, email=holder.email, email_verified=True)
        await app.postgres.execute(
            "INSERT INTO oidc_identity (issuer, subject, account_id, email) VALUES ($1, $2, $3, $4)",
            *(acme.issuer, sub, holder.account_id, holder.email),
        )

        await signs_in(ann, acme, sub)

        await ann.goes("/account")
        assert ann.at == "/sign-in"

    async def test_data_and_erasure(self, app: App, acme: OidcProvider, ann: Visitor) -> None:
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        await signs_in(ann, acme, sub)
        account = await app.accounts.find_account(email)
        assert account is not None

        data = await app.personal_data.load(account.account_id)
        assert [one["subject"] for one in data["sign_in_services"]] == [sub]
        await app.erasure.erase(account.account_id)

        assert await app.identities.list(account.account_id) == []


class TestAttacks:
    async def test_a_callback_in_a_browser_that_did_not_begin(
        self, acme: OidcProvider, ann: Visitor, eve: Visitor
    ) -> None:
        """Otherwise a link could sign a person in to the account of another."""
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        back = await acme.signs_in(await leaves(eve), sub)

        await comes_back(ann, back)
        assert ann.status == 400
        await leaves(ann)
        await comes_back(ann, back)

        assert ann.status == 400
        assert ann.says("The sign-in wasn't finished")
        await ann.goes("/account")
        assert ann.at == "/sign-in"

    async def test_a_code_of_another_attempt(self, acme: OidcProvider, ann: Visitor, eve: Visitor) -> None:
        """PKCE and nonce: a stolen code is worth nothing in another browser, even with its own state."""
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        stolen = parse_qs(urlsplit(await acme.signs_in(await leaves(ann), sub)).query)["code"][0]
        state = parse_qs(urlsplit(await leaves(eve)).query)["state"][0]

        await eve.goes(f"/sign-in/with/acme/callback?{urlencode({'code': stolen, 'state': state})}")

        assert eve.status == 400

    async def test_a_callback_works_once(self, acme: OidcProvider, ann: Visitor) -> None:
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        back = await acme.signs_in(await leaves(ann), sub)
        await comes_back(ann, back)

        await comes_back(ann, back)

        assert ann.status == 400

    async def test_another_issuer_and_bad_values(self, acme: OidcProvider, ann: Visitor) -> None:
        state = parse_qs(urlsplit(await leaves(ann)).query)["state"][0]
        for sent in (
            {"state": state, "code": "x", "iss": "https://evil.example"},
            {"state": state, "error": "server_error"},
            {"state": state},
            {"state": state, "code": "unknown"},
            {"state": "é" * 10, "code": "x"},
            {"code": "x" * 9000, "state": state},
        ):
            await ann.goes(f"/sign-in/with/acme/callback?{urlencode(sent)}")
            assert ann.status == 400, sent
        await ann.goes(f"/sign-in/with/acme/callback?{urlencode({'state': state, 'error': 'access_denied'})}")
        assert ann.at == "/sign-in"

    async def test_a_changed_cookie(self) -> None:
        """Where to go then, and for which account, is covered by the state."""
        begun = Attempt("s" * 43, "acme", "/my")
        changed = Attempt("s" * 43, "acme", "/my", account_id=7)
        assert Attempt.from_cookie(begun.cookie) == begun
        assert begun.state != changed.state
        for broken in ("", "x", "x.y", "s" * 43, "s" * 43 + ".e30", begun.cookie[43:]):
            assert Attempt.from_cookie(broken) is None


class TestTrouble:
    async def test_a_provider_that_is_down(self, ann: Visitor) -> None:
        await ann.goes("/sign-in/with/other")

        assert ann.status == 503
        assert ann.says("The sign-in service isn't answering")

    async def test_an_unknown_provider(self, ann: Visitor) -> None:
        await ann.goes("/sign-in/with/unknown")
        assert ann.status == 404

    async def test_new_keys_and_an_outage_in_between(self, acme: OidcProvider, ann: Visitor) -> None:
        """The provider starts again with another key: its tokens are accepted at once."""
        sub, email = a_person()
        await acme.knows(sub, email=email, email_verified=True)
        await signs_in(ann, acme, sub)
        await ann.goes("/account")
        await ann.sends("/sign-out")
        url = await leaves(ann)
        back = await acme.signs_in(url, sub)
        await acme.stop()
        await comes_back(ann, back)
        assert ann.status == 503

        await acme.start()
        await acme.knows(sub, email=email, email_verified=True)
        await signs_in(ann, acme, sub)

        assert ann.at == "/my"

    async def test_the_doctor_reads_the_configuration(self, config: Config, acme: OidcProvider) -> None:
        set_up = replace(config, oidc_providers=as_setting(acme.issuer, "http://127.0.0.1:1"))
        found = {one.what: one async for one in findings(set_up)}
        assert found["sign-in with acme"].health == "ok"
        assert found["sign-in with other"].health == "fail"
        wrong = replace(config, oidc_providers='[{"id": "acme"}]')
        found = {one.what: one async for one in findings(wrong)}
        assert "name" in found["sign-in services"].fix


async def test_without_providers_there_are_no_buttons(config: Config) -> None:
    async with a_site(config) as application, a_visitor(application) as visitor:
        await visitor.goes("/sign-in")
        assert visitor.status == 200
        assert "/sign-in/with/" not in visitor.text
