"""Signing up, in and out in a browser without scripts, and what a guest account retains."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.accounts import Session
from holdfast.app import App
from holdfast.config import Config
from tests.conftest import started
from tests.support.html_page import reading
from tests.support.mailed_links import prove_address
from tests.support.opened import asgi_app

HTML = {"accept": "text/html", "accept-language": "en"}
SENT_BY_US = {**HTML, "sec-fetch-site": "same-origin"}
PASSWORD = "correct horse battery staple"
COOKIE = "holdfast"


@pytest.fixture
async def browser(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser without scripts: it stores cookies and does not follow redirects by itself."""
    application = asgi_app(config)
    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://box.office", headers=SENT_BY_US
        ) as client:
            yield client


async def sent(browser: httpx2.AsyncClient, path: str, **fields: str) -> httpx2.Response:
    return await browser.post(path, data=fields)


async def whose(app: App, browser: httpx2.AsyncClient) -> Session | None:
    cookie = browser.cookies.get(COOKIE)
    return await app.sessions.load(cookie) if cookie else None


async def a_guest(app: App, browser: httpx2.AsyncClient) -> Session:
    browser.cookies.set(COOKIE, await app.sessions.open_guest("en"), domain="box.office")
    visit = await whose(app, browser)
    assert visit is not None
    return visit


def an_email(number: list[int] = [0]) -> str:  # noqa: B006
    number[0] += 1
    return f"visitor{number[0]}@browsers.example"


async def test_signing_up_leads_back_to_the_previous_page_signed_in(
    app: App, browser: httpx2.AsyncClient
) -> None:
    email = an_email()
    answer = await sent(
        browser, "/sign-up", email=email, password=PASSWORD, name="Ann", back="/shows/7?seats=2"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/shows/7?seats=2")
    visit = await whose(app, browser)
    assert visit is not None
    assert (visit.account.name, visit.email, visit.is_guest) == ("Ann", email, False)


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(browser: httpx2.AsyncClient) -> None:
    answer = await sent(browser, "/sign-up", email=an_email(), password=PASSWORD, name="Ann")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Domain" not in cookie


async def test_a_guest_that_signs_up_stays_the_same_account_with_a_new_cookie(
    app: App, browser: httpx2.AsyncClient
) -> None:
    guest, planted = await a_guest(app, browser), browser.cookies[COOKIE]
    await sent(browser, "/sign-up", email=an_email(), password=PASSWORD, name="Ann")
    visit = await whose(app, browser)
    assert visit is not None
    assert (visit.account_id, visit.is_guest) == (guest.account_id, False)
    assert browser.cookies[COOKIE] != planted
    assert await app.sessions.load(planted) is None, "a cookie planted before is worth nothing after"


async def test_holds_of_a_guest_move_to_the_account_it_signs_in_to(
    app: App, browser: httpx2.AsyncClient
) -> None:
    email = an_email()
    await sent(browser, "/sign-up", email=email, password=PASSWORD, name="Ann")
    await prove_address(app.postgres, email)
    account = await whose(app, browser)
    await sent(browser, "/sign-out")
    guest = await a_guest(app, browser)
    await sent(browser, "/sign-in", email=email, password=PASSWORD)
    visit = await whose(app, browser)
    assert account is not None
    assert visit is not None
    assert visit.owner_ids == (account.account_id, guest.account_id)


async def test_signing_in_does_not_adopt_the_previous_account(app: App, browser: httpx2.AsyncClient) -> None:
    first, second = an_email(), an_email()
    for email in (first, second):
        browser.cookies.clear()
        await sent(browser, "/sign-up", email=email, password=PASSWORD, name="Ann")
        await prove_address(app.postgres, email)
    await sent(browser, "/sign-in", email=first, password=PASSWORD)
    visit = await whose(app, browser)
    assert visit is not None
    assert visit.owner_ids == (visit.account_id,)


async def test_a_guest_is_written_to_where_they_say_and_an_account_of_that_address_gains_nothing(
    app: App, browser: httpx2.AsyncClient
) -> None:
    email = an_email()
    await sent(browser, "/sign-up", email=email, password=PASSWORD, name="Ann")
    account = await whose(app, browser)
    browser.cookies.clear()
    guest = await a_guest(app, browser)
    await app.sessions.name_guest(guest, email=email.upper(), name="Ann Other")
    named = await whose(app, browser)
    assert named is not None
    assert (named.email, named.account.name) == (email, "Ann Other")
    assert account is not None
    assert named.account_id != account.account_id


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"email": "ann", "password": PASSWORD, "name": "Ann"}, 422, "Enter a valid email address"),
        ({"email": "ann@a.example", "password": "short", "name": "Ann"}, 422, "at least 8 characters"),
        ({"email": "ann@a.example", "password": PASSWORD, "name": ""}, 422, "Enter your name."),
        ({}, 422, "Enter a valid email address"),
    ],
)
async def test_an_invalid_form_is_shown_again_with_the_typed_values(
    browser: httpx2.AsyncClient, fields: dict[str, str], status: int, says: str
) -> None:
    answer = await sent(browser, "/sign-up", **fields)
    assert answer.status_code == status
    assert says in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert all(value in answer.text for name, value in fields.items() if name != "password")
    assert PASSWORD not in answer.text


async def test_a_taken_address_looks_like_a_new_one_and_gains_nothing(
    app: App, browser: httpx2.AsyncClient
) -> None:
    email = an_email()
    await sent(browser, "/sign-up", email=email, password=PASSWORD, name="Ann")
    await prove_address(app.postgres, email)
    account = await whose(app, browser)
    browser.cookies.clear()
    guest = await a_guest(app, browser)

    answer = await sent(browser, "/sign-up", email=email, password="another password", name="Eve")

    assert (answer.status_code, answer.headers["location"]) == (303, "/my")
    visit = await whose(app, browser)
    assert visit is not None
    assert account is not None
    assert (visit.account_id, visit.account.is_verified) == (guest.account_id, False)
    browser.cookies.clear()
    again = await sent(browser, "/sign-in", email=email, password="another password")
    assert again.status_code == 401


async def test_sign_up_names_every_mistake_at_once(browser: httpx2.AsyncClient) -> None:
    answer = await sent(browser, "/sign-up", email="ann", password="short", name="")

    for sentence in ("Enter your name.", "Enter a valid email address", "Use at least 8 characters."):
        assert sentence in answer.text


async def test_the_sign_in_page_names_the_account_that_is_signed_in(browser: httpx2.AsyncClient) -> None:
    await sent(browser, "/sign-up", email=an_email(), password=PASSWORD, name="Ann")

    page = await browser.get("/sign-in")

    assert "signed in as Ann" in page.text
    assert 'name="password"' not in page.text
    assert 'href="/account"' in page.text


async def test_a_redirect_to_sign_in_gives_its_reason(browser: httpx2.AsyncClient) -> None:
    answer = await browser.get("/account")
    page = await browser.get(answer.headers["location"])

    assert answer.headers["location"] == "/sign-in?back=%2Faccount&why=private"
    assert "Please sign in to see that page." in page.text


async def test_a_failed_sign_in_does_not_reveal_which_field_was_wrong(browser: httpx2.AsyncClient) -> None:
    email = an_email()
    await sent(browser, "/sign-up", email=email, password=PASSWORD, name="Ann")
    browser.cookies.clear()
    wrong = await sent(browser, "/sign-in", email=email, password="something else")
    unknown = await sent(browser, "/sign-in", email=an_email(), password="something else")
    assert (wrong.status_code, unknown.status_code) == (401, 401)
    assert "Wrong email or password" in wrong.text
    assert "Wrong email or password" in unknown.text
    assert COOKIE not in browser.cookies


async def test_after_signing_out_the_cookie_is_anonymous(app: App, browser: httpx2.AsyncClient) -> None:
    await sent(browser, "/sign-up", email=an_email(), password=PASSWORD, name="Ann")
    copied = browser.cookies[COOKIE]
    answer = await sent(browser, "/sign-out")
    assert answer.status_code == 303
    assert COOKIE not in browser.cookies
    assert await app.sessions.load(copied) is None


@pytest.mark.parametrize("path", ["/sign-up", "/sign-in", "/sign-out", "/language"])
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site", "origin": "https://other.box.office"},
        {"sec-fetch-site": "", "origin": "https://evil.example"},
        {"sec-fetch-site": "", "origin": "null"},
    ],
)
async def test_a_form_of_another_site_is_refused(
    app: App, browser: httpx2.AsyncClient, path: str, headers: dict[str, str]
) -> None:
    await sent(browser, "/sign-up", email=an_email(), password=PASSWORD, name="Ann")
    before = await whose(app, browser)
    if not headers["sec-fetch-site"]:
        del browser.headers["sec-fetch-site"]
    fields = {"email": an_email(), "password": PASSWORD, "name": "Eve", "language": "de"}
    given = {name: value for name, value in headers.items() if value}
    answer = await browser.post(path, data=fields, headers=given)
    assert answer.status_code == 403
    assert await whose(app, browser) == before


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/\tx",
        "x" * 900,
        "",
    ],
)
async def test_a_back_address_on_another_site_is_ignored(browser: httpx2.AsyncClient, back: str) -> None:
    answer = await sent(browser, "/sign-up", email=an_email(), password=PASSWORD, name="Ann", back=back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/my")


@pytest.mark.parametrize("cookie", ["", "x", "a" * 5000, "ä", "=;=", "\x01"])
async def test_a_broken_cookie_counts_as_signed_out(browser: httpx2.AsyncClient, cookie: str) -> None:
    answer = await browser.get("/sign-in", headers={b"cookie": f"{COOKIE}={cookie}".encode()})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("accepted", "language", "says"),
    [("de-AT,de;q=0.9", "de", "Anmelden"), ("hi", "hi", "साइन इन करें"), ("fr", "en", "Sign in")],
)
async def test_a_page_speaks_the_language_of_the_browser(
    browser: httpx2.AsyncClient, accepted: str, language: str, says: str
) -> None:
    answer = await browser.get("/sign-in", headers={"accept-language": accepted})
    assert f'<html lang="{language}-' in answer.text
    assert says in answer.text


async def test_a_language_that_was_chosen_stays(browser: httpx2.AsyncClient) -> None:
    answer = await sent(browser, "/language", language="de", back="/sign-in")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "Anmelden" in (await browser.get("/sign-in")).text


async def test_every_page_has_the_strict_policy_and_nothing_inline(browser: httpx2.AsyncClient) -> None:
    for path in ("/", "/sign-in", "/sign-up", "/nowhere"):
        answer: Any = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "<style" not in answer.text
        assert " style=" not in answer.text
        assert not re.search(r"<[^>]+\son[a-z]+=", answer.text)


async def test_fields_are_described_by_texts_that_exist(browser: httpx2.AsyncClient) -> None:
    """A screen reader follows the ids of aria-describedby; an id without an element is silence."""
    wrong = await sent(browser, "/sign-in", email="ann at example", password="x")
    for text in (
        (await browser.get("/sign-in")).text,
        (await browser.get("/sign-up")).text,
        wrong.text,
    ):
        page = reading(text)
        ids = {had["id"] for _, had in page.elements if "id" in had}
        named = {one for _, had in page.elements for one in had.get("aria-describedby", "").split()}
        assert named <= ids
