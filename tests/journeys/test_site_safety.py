"""Every page and form in the route table: allowed content, allowed senders, redirect targets."""

import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import holdfast.site.pages as site_routes
from holdfast.accounts import MailToken, NewAccount, Purpose
from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.config import Config
from holdfast.engines.postgres import require_row
from holdfast.legal import HOUSE, LegalKind
from holdfast.legal.text import LegalBody
from holdfast.routes import ROUTES
from holdfast.site.templates_env import assets_version
from holdfast.web.asgi import Application
from holdfast.web.caller import Role
from holdfast.web.routing import Route
from tests.fakes.oidc_provider_process import OidcProvider, as_setting
from tests.support.browser_session import ANN, Visitor, a_site, a_visitor
from tests.support.mailed_links import prove_address
from tests.support.site_paths import (
    AWAY,
    EVIL,
    GATEWAY_RETURN_PATH,
    NON_PAGE_PATHS,
    PROVIDER_PATHS,
    served_paths,
)
from tests.support.waiting_room import a_room

FORMS: dict[str, dict[str, Any]] = {
    "/language": {"language": "de"},
    "/city": {"city": ""},
    "/shows/{show:int}/hold": {"seats": ["A-9"]},
    "/shows/{show:int}/queue": {},
    "/shows/{show:int}/queue/enter": {},
    "/shows/{show:int}/queue/leave": {},
    "/shows/{show:int}/waitlist": {"seats": "2"},
    "/shows/{show:int}/waitlist/leave": {},
    "/sign-in": {"email": "ann@example.org", "password": "correct horse battery"},
    "/sign-up": {"email": "eve@evil.example", "password": "correct horse battery", "name": "Eve"},
    "/sign-out": {},
    "/forgot-password": {"email": "ann@example.org"},
    "/sign-in-link": {"email": "ann@example.org"},
    "/link/{token}": {"password": "correct horse battery"},
    "/begin": {"name": "Eve", "organisation": "Eve", "currency": "EUR", "timezone": "UTC"},
    "/account/name": {"name": "Eve"},
    "/account/password": {"current_password": "", "new_password": "correct horse battery"},
    "/account/email": {"email": "eve@evil.example", "current_password": ""},
    "/account/confirmation": {},
    "/account/end-session": {"session": "1"},
    "/account/end-sessions": {},
    "/account/delete": {"current_password": ""},
    "/account/connect/{provider}": {},
    "/account/disconnect": {"issuer": "https://evil.example", "subject": "eve"},
    "/account/security/totp": {"current_password": "correct horse battery"},
    "/account/security/totp/confirm": {"code": "000000"},
    "/account/security/totp/remove": {"current_password": "correct horse battery"},
    "/account/security/recovery-codes": {"current_password": "correct horse battery"},
    "/account/security/passkeys": {"name": "Eve's", "credential": "{}"},
    "/account/security/passkeys/options": {"current_password": "correct horse battery"},
    "/account/security/passkeys/remove": {"passkey": "1"},
    "/sign-in/second": {"token": "x", "code": "000000"},
    "/sign-in/passkey": {"credential": "{}"},
    "/sign-in/passkey/options": {},
    "/my/accept": {"ticket": "x"},
    "/bookings/{booking}/extend": {},
    "/bookings/{booking}/release": {},
    "/bookings/{booking}/details": {"name": "Eve", "email": "eve@evil.example"},
    "/bookings/{booking}/pay": {"attempt": "1", **ANN},
    "/bookings/{booking}/call-off": {},
    "/bookings/{booking}/again": {},
    "/bookings/{booking}/resend": {},
    "/bookings/{booking}/transfer": {"ticket": "x", "email": "eve@evil.example"},
    "/bookings/{booking}/take-back": {"ticket": "x"},
    "/bookings/{booking}/cancel": {},
    "/bookings/{booking}/merge": {"other": "x"},
    "/bookings/{booking}/swap": {"other": "x"},
    "/bookings/{booking}/decline": {},
    "/bookings/{booking}/sell-back": {},
    "/bookings/{booking}/keep": {},
    GATEWAY_RETURN_PATH: {},
}
CHANGED = "SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} AS t"
TABLES = (
    *("account", "booking", "payment", "ticket", "refund", "session", "mail_token", "notice"),
    *("queue_place", "waitlist_entry"),
    *("totp", "passkey", "recovery_code", "sign_in_step", "oidc_identity"),
)
FOR_ACCOUNTS = {"/account", "/account/security", "/account/security/totp"}  # guests sign in first
FOR_ADMINS = {"/begin", "/desk/house"}  # no such pages for others


@pytest.fixture(scope="module")
async def site(config: Config, acme: OidcProvider) -> AsyncIterator[Application]:
    """With a sign-in service."""
    async with a_site(replace(config, oidc_providers=as_setting(acme.issuer))) as application:
        yield application


@pytest.fixture
async def bought(ann: Visitor, app: App, a_show: Callable[..., Any]) -> dict[str, str]:
    """A booking with tickets, and the values for the placeholders of a path."""
    show = await a_show(seats=20)
    link = await app.mail_tokens.issue(MailToken(purpose=Purpose.SIGN_IN, email="ann@example.org"))
    path = await ann.holds(show, "A-1")
    await ann.pays(**ANN)
    organisation = await app.postgres.fetchval(
        "SELECT organiser_id FROM show_organiser WHERE show_id = $1", show
    )
    await a_room(app, show, is_open=False)
    for owner in (HOUSE, organisation):
        await app.legal.publish(owner, LegalKind.PRIVACY, LegalBody({"en": "<script>alert(1)</script>"}))
    return {
        "{show:int}": str(show),
        "{booking}": path.rpartition("/")[2],
        "{edition}": assets_version(),
        "{token}": link,
        "{text}": "privacy",
        "{version:int}": "1",
        "{organisation:int}": str(organisation),
        "{provider}": "acme",
    }


async def placed(path: str, named: dict[str, str], app: App) -> str:
    show = await app.catalogue.show_detail(int(named["{show:int}"]))
    known = {**named, "{event:int}": str(show["event_id"]), "{venue:int}": str(show["venue_id"])}
    for name, value in known.items():
        path = path.replace(name, value)
    assert "{" not in path, path
    return path


class Inline(HTMLParser):
    """Collects inline content that a strict policy would block."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        is_data = given.get("type", "") in ("application/json", "application/ld+json")
        if tag == "script" and "src" not in given and not is_data:
            self.found.append("script without an address")
        if tag == "style" or "style" in given:
            self.found.append(f"style in {tag}")
        self.found += [f"{name} of {tag}" for name in given if name.startswith("on")]
        for name in ("src", "href", "action"):
            if given.get(name, "").strip().lower().startswith(("javascript:", "vbscript:")):
                self.found.append(f"a script in {name} of {tag}")


def directives(policy: str) -> dict[str, list[str]]:
    pairs = (part.split() for part in policy.split(";"))
    return {words[0]: words[1:] for words in pairs if words}


def check(answer: Any, *, has_style: bool = False) -> None:
    """`has_style`: a page in one file; its style is named by its hash."""
    where = str(answer.request.url)
    assert answer.headers["content-type"].startswith("text/html"), where
    policy = answer.headers["content-security-policy"]
    directive_values = directives(policy)
    for bad in ("unsafe-inline", "unsafe-eval", "wasm-unsafe-eval", "unsafe-hashes", "*"):
        assert bad not in policy, (where, policy)
    assert directive_values["default-src"] == ["'none'"], where
    assert directive_values["frame-ancestors"] == ["'none'"], where
    assert directive_values["base-uri"] == ["'none'"], where
    assert set(directive_values.get("script-src", [])) <= {"'self'"}, (where, policy)
    assert answer.headers["x-content-type-options"] == "nosniff", where
    found = Inline(answer.text).found
    if has_style:
        found = [one for one in found if one != "style in style"]
    assert not found, (where, found)


async def test_every_page_has_the_strict_policy_and_obeys_it(
    ann: Visitor, app: App, bought: dict[str, str]
) -> None:
    pages = served_paths("GET") - NON_PAGE_PATHS - FOR_ADMINS - PROVIDER_PATHS
    for path in sorted(pages):
        answer = await ann.client.get(await placed(path, bought, app))
        if answer.status_code == 303:  # back from the gateway: to the page
            assert path in {GATEWAY_RETURN_PATH, *FOR_ACCOUNTS}
            continue
        assert answer.status_code == 200, path
        check(answer)


async def test_pages_of_an_account_keep_to_it_too(ann: Visitor, app: App) -> None:
    hashed = await app.accounts.hashed("correct horse battery")
    email = f"{secrets.token_hex(6)}@example.org"
    await app.accounts.add_many([NewAccount(email, "<b>Ann</b>", Role.ADMIN, hashed)])
    await ann.client.post("/sign-in", data={"email": email, "password": "correct horse battery"})
    await ann.client.post("/account/security/totp", data={"current_password": "correct horse battery"})
    for path in sorted(FOR_ACCOUNTS | FOR_ADMINS):
        answer = await ann.client.get(path)
        assert answer.status_code == 200, path
        check(answer)
        assert "<b>Ann" not in answer.text
    check(await ann.client.post("/account/connect/acme"))


async def test_a_sign_in_service_is_the_only_place_away_from_here(ann: Visitor, acme: OidcProvider) -> None:
    leaving = await ann.client.get("/sign-in/with/acme", params={"back": EVIL})
    assert (leaving.status_code, urlsplit(leaving.headers["location"]).netloc) == (
        303,
        urlsplit(acme.issuer).netloc,
    )
    assert "evil.example" not in leaving.headers["location"]
    for path in ("/sign-in/with/other", "/sign-in/with/acme/callback?code=x&state=%3Cscript%3E"):
        refused = await ann.client.get(path)
        assert refused.status_code in (400, 404), path
        check(refused)


def test_paths_that_are_not_pages_are_listed() -> None:
    assert not NON_PAGE_PATHS - served_paths("GET")


async def test_files_are_never_taken_for_pages(ann: Visitor, app: App, bought: dict[str, str]) -> None:
    private = {"/account/data.json"}  # of an account; ann is a guest
    for path in sorted(
        NON_PAGE_PATHS - private - {path for path in NON_PAGE_PATHS if path.startswith("/static/")}
    ):
        answer = await ann.client.get(await placed(path, bought, app))
        assert answer.status_code == 200, path
        assert not answer.headers["content-type"].startswith("text/html"), path
    for name in ("icon.svg", "css/base.css", "js/base.js", "js/seats/show.js"):
        answer = await ann.client.get(f"/static/{assets_version()}/{name}")
        assert answer.headers["x-content-type-options"] == "nosniff", name


async def test_pages_of_tickets_keep_to_it_too(ann: Visitor, bought: dict[str, str]) -> None:
    await ann.goes(f"/bookings/{bought['{booking}']}")
    link = ann.text.partition('href="/tickets/')[2].partition('"')[0]
    check(await ann.client.get(f"/tickets/{link}"), has_style=True)


async def test_pages_that_say_no_keep_to_it_too(ann: Visitor, bought: dict[str, str]) -> None:
    path, show = f"/bookings/{bought['{booking}']}", bought["{show:int}"]
    foreign = {"sec-fetch-site": "cross-site"}
    answers = [
        (404, await ann.client.get("/nowhere/<script>alert(1)</script>")),
        (404, await ann.client.get("/shows/999999999")),
        (404, await ann.client.get("/bookings/%3Cimg%20src=x%3E")),
        (405, await ann.client.get("/city")),
        (403, await ann.client.post("/city", data={"city": ""}, headers=foreign)),
        (422, await ann.client.post("/language", data={"language": "<b>"})),
        (413, await ann.client.post("/language", data={"back": "x" * 100_000})),
        (422, await ann.client.post(f"/shows/{show}/hold", data={})),
        (422, await ann.client.post(f"/shows/{show}/hold", data={"seats": '"><img src=x onerror=alert(1)>'})),
        (401, await ann.client.post("/sign-in", data={"email": '"><b>', "password": "x"})),
        (404, await ann.client.post(f"{path}/transfer", data={"ticket": "<b>", "email": "a@b.example"})),
    ]
    for status, answer in answers:
        assert answer.status_code == status, (answer.request.url, answer.text[:300])
        check(answer)


def test_every_form_is_tried() -> None:
    assert served_paths("POST") == set(FORMS)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": EVIL},
        {"sec-fetch-site": "same-site", "origin": "http://other.box.office"},
        {"origin": EVIL},
        {"origin": "null"},
    ],
    ids=["cross-site", "same-site", "old browser", "sandboxed frame"],
)
async def test_another_site_cannot_submit_forms_for_a_visitor(
    headers: dict[str, str], ann: Visitor, app: App, bought: dict[str, str]
) -> None:
    if "sec-fetch-site" not in headers:
        ann.client.headers.pop("sec-fetch-site")
    before = await everything(app, bought)
    for path, fields in FORMS.items():
        there = await placed(path, bought, app)
        for accept in ("text/html", "application/json"):
            answer = await ann.client.post(there, data=fields, headers=headers | {"accept": accept})
            if path == GATEWAY_RETURN_PATH:
                assert answer.headers["location"] == there
            else:
                assert answer.status_code == 403, (path, accept, answer.status_code)
            assert "set-cookie" not in answer.headers, path
    assert await everything(app, bought) == before


async def everything(app: App, named: dict[str, str]) -> list[Any]:
    """Checksums of every table that a form could change."""
    rows = [require_row(await app.postgres.fetchrow(CHANGED.format(table=table))) for table in TABLES]
    show_id, _ = from_public_id(named["{booking}"])
    return [*(tuple(row) for row in rows), (await app.seatmap.newest(show_id)).states]


LEADING = {  # fields that name a path, and the forms and pages that take them
    "SignInForm": "/sign-in",
    "SignUpForm": "/sign-up",
    "LanguageForm": "/language",
    "CityForm": "/city",
    "BackQuery": "/sign-in",
    "SecondStepForm": "/sign-in/second",  # these two in test_site_second_factor.py
    "PasskeyForm": "/sign-in/passkey",
}
OURS = re.compile(r"#|/(?![/\\])")


def structs(parent: type[msgspec.Struct] = msgspec.Struct) -> Iterator[type[msgspec.Struct]]:
    for child in parent.__subclasses__():
        yield child
        yield from structs(child)


def test_every_field_that_names_a_path_is_tried() -> None:
    names = {"back", "path", "next", "url", "to", "go", "return_to", "redirect"}
    ours = [kind for kind in structs() if kind.__module__.startswith("holdfast.site")]
    leading = {kind.__name__ for kind in ours if names & set(kind.__struct_fields__)}
    assert leading == set(LEADING)


async def _signs_in(visitor: Visitor, app: App, form: dict[str, str]) -> Any:
    await prove_address(app.postgres, form["email"])
    return await visitor.client.post("/sign-in", data=form)


@pytest.mark.parametrize("back", AWAY)
async def test_no_form_and_no_page_leads_away(back: str, site: Application, app: App, ann: Visitor) -> None:
    async with a_visitor(site) as visitor:
        person = {
            "name": "Ann",
            "email": f"ann-{secrets.token_hex(4)}@example.org",
            "password": "correct horse!",
        }
        answers = [
            await visitor.client.post("/language", data={"language": "de", "back": back}),
            await visitor.client.post("/city", data={"city": "", "back": back}),
            await visitor.client.post("/sign-up", data={**person, "back": back}),
            await _signs_in(visitor, app, {**person, "back": back}),
        ]
    for answer in answers:
        assert answer.status_code == 303, (answer.request.url, answer.text[:200])
        assert answer.headers["location"] in ("/", "/my"), answer.request.url
    for path in ("/sign-in", "/sign-up"):
        shown = await ann.client.get(path, params={"back": back})
        assert "evil.example" not in shown.text
        assert "javascript:" not in shown.text
    refused = await ann.client.get("/nowhere", headers={"referer": back.strip().replace("\r\n", " ")})
    assert all(OURS.match(href) for href in re.findall(r'href="([^"]*)"', refused.text))


async def test_an_error_page_links_back_to_the_previous_page(ann: Visitor) -> None:
    base = str(ann.client.base_url).rstrip("/")
    refused = await ann.client.get("/nowhere", headers={"referer": f"{base}/find?q=a"})
    assert 'href="/find?q=a"' in refused.text


async def test_a_return_path_may_use_any_script(ann: Visitor) -> None:
    answer = await ann.client.post("/language", data={"language": "hi", "back": "/find?q=हिन्दी"})
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/find?q=%E0%A4%B9%E0%A4%BF%E0%A4%A8%E0%A5%8D%E0%A4%A6%E0%A5%80",
    )


def test_the_policy_of_pages_is_as_strict_as_it_reads() -> None:
    assert "unsafe" not in site_routes.content_security_policy()
    assert all(isinstance(route, Route) for route in ROUTES)
