"""Terms and other legal texts: published in versions, agreed to, readable for good (R31)."""

import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.legal import HOUSE, LegalKind
from holdfast.legal.text import LegalBody
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.browser_session import ANN, Visitor
from tests.support.shows import Fan, problem
from tests.support.wait import until

ENGLISH = "# What you buy\n\nA seat for one night.\n\n- no refunds\n- no umbrellas\n"
GERMAN = "# Was du kaufst\n\nEinen Platz für einen Abend.\n"


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(seats=20))


@pytest.fixture(autouse=True)
async def _no_terms(app: App) -> AsyncIterator[None]:
    """After a test: what it published is withdrawn."""
    yield
    for text in await app.postgres.fetch("SELECT DISTINCT organisation_id, kind FROM legal_text"):
        await app.legal.publish(text["organisation_id"], LegalKind(text["kind"]), LegalBody({}))


async def publishes(admin: Fan, kind: str, **texts: str) -> dict[str, Any]:
    sent = await admin.api.put(f"/api/v1/admin/legal/{kind}", headers=admin.headers, json={"texts": texts})
    assert sent.status_code == 200, sent.text
    found: dict[str, Any] = sent.json()
    return found


async def consents(app: App, show: int) -> list[tuple[int, str, int]]:
    rows = await app.postgres.fetch("SELECT * FROM consent WHERE show_id = $1 ORDER BY organisation_id", show)
    return [(row["organisation_id"], row["kind"], row["version"]) for row in rows]


class TestReading:
    async def test_a_text_in_the_language_of_the_reader(self, admin: Fan, ann: Visitor) -> None:
        await publishes(admin, "imprint", en=ENGLISH, de=GERMAN)
        await ann.goes("/legal/imprint")
        assert "<h2>What you buy</h2>" in ann.text
        assert "<li>no umbrellas</li>" in ann.text
        ann.client.headers["accept-language"] = "de"
        await ann.goes("/legal/imprint")
        assert ann.says("Einen Platz für einen Abend.")
        ann.client.headers["accept-language"] = "hi"
        await ann.goes("/legal/imprint")
        assert '<div lang="en">' in ann.text

    async def test_every_version_stays_readable(self, admin: Fan, ann: Visitor) -> None:
        first = await publishes(admin, "refunds", en="No refunds.")
        second = await publishes(admin, "refunds", en="Refunds within a <day>.")

        assert second["version"] == first["version"] + 1
        await ann.goes("/legal/refunds")
        assert "Refunds within a &lt;day&gt;." in ann.text
        await ann.goes(f"/legal/refunds/{first['version']}")
        assert (ann.says("No refunds."), ann.says("This is an earlier version.")) == (True, True)
        old = await ann.client.get("/api/v1/legal/refunds", params={"version": first["version"]})
        assert old.json()["texts"] == {"en": "No refunds."}

    async def test_the_foot_of_pages_links_to_those_there_are(self, admin: Fan, ann: Visitor) -> None:
        async def is_linked() -> bool:
            await ann.goes("/sign-in")
            return 'href="/legal/privacy"' in ann.text

        assert not await is_linked()
        await publishes(admin, "privacy", en="We forget.")
        await until(is_linked)  # other processes follow within seconds

    async def test_what_is_not_there_is_not_found(self, ann: Visitor, admin: Fan) -> None:
        for path in ("/legal/terms/99", "/legal/recipes", "/organisations/1/legal/terms"):
            await ann.goes(path)
            assert ann.status == 404, path
        refused = await admin.api.put(
            "/api/v1/admin/legal/recipes", headers=admin.headers, json={"texts": {"en": "Soup"}}
        )
        assert problem(refused)["code"] == "no_such_text"


class TestConsent:
    async def test_without_terms_there_is_no_checkbox(self, app: App, ann: Visitor, show: int) -> None:
        await ann.holds(show, "A-1")
        assert 'name="agreed"' not in ann.text
        await ann.pays(**ANN)

        assert await consents(app, show) == []

    async def test_a_buyer_agrees_to_the_terms_of_house_and_organiser(
        self, app: App, admin: Fan, ann: Visitor, show: int
    ) -> None:
        organiser = await app.postgres.fetchval(
            "SELECT organiser_id FROM show_organiser WHERE show_id = $1", show
        )
        house = await publishes(admin, "terms", en=ENGLISH)
        own = await app.legal.publish(organiser, LegalKind.TERMS, LegalBody({"en": "Be kind."}))
        path = await ann.holds(show, "A-2")
        await ann.sends("/pay", **ANN)
        assert (ann.status, ann.says("Please agree to the terms")) == (422, True)
        assert await consents(app, show) == []

        mark = f"0:{house['version']},{organiser}:{own.version}"
        assert f'value="{mark}"' in ann.text
        await ann.pays(**ANN, agreed=mark)

        await ann.goes(path)
        assert await consents(app, show) == [
            (HOUSE, "terms", house["version"]),
            (organiser, "terms", own.version),
        ]

    async def test_terms_that_changed_meanwhile_are_shown_first(
        self, app: App, admin: Fan, ann: Visitor, show: int
    ) -> None:
        old = await publishes(admin, "terms", en=ENGLISH)
        await ann.holds(show, "A-3")
        new = await publishes(admin, "terms", en="Other terms.")
        await ann.sends("/pay", **ANN, agreed=f"0:{old['version']}")

        assert (ann.status, await consents(app, show)) == (422, [])
        assert f'value="0:{new["version"]}"' in ann.text

    async def test_who_signs_up_agrees_and_finds_it_in_their_data(
        self, app: App, admin: Fan, ann: Visitor
    ) -> None:
        terms = await publishes(admin, "terms", en=ENGLISH)
        person = {"email": f"{secrets.token_hex(6)}@example.org", "password": "correct horse battery"}
        await ann.goes("/sign-up")
        await ann.sends("/sign-up", name="Ann", **person)
        assert (ann.status, ann.says("Please agree to the terms")) == (422, True)
        await ann.sends("/sign-up", name="Ann", **person, agreed=f"0:{terms['version']}")

        data = (await ann.client.get("/account/data.json")).json()
        (agreed,) = data["consents"]
        assert (agreed["kind"], agreed["version"], agreed["show_id"]) == ("terms", terms["version"], 0)
        session = await app.sessions.load(ann.client.cookies["holdfast"])
        assert session is not None
        await app.erasure.erase(session.account_id)
        count = "SELECT count(*) FROM consent WHERE account_id = $1"
        assert await app.postgres.fetchval(count, session.account_id) == 1


class TestConsentOverTheApi:
    async def test_of_a_buyer(self, app: App, admin: Fan, show: int) -> None:
        alice, bob = await cast.fans(app, admin.api, 2)
        organiser = await app.postgres.fetchval(
            "SELECT organiser_id FROM show_organiser WHERE show_id = $1", show
        )
        house = await publishes(admin, "terms", en=ENGLISH)
        own = await app.legal.publish(organiser, LegalKind.TERMS, LegalBody({"en": "Be kind."}))
        terms = [
            {"organisation_id": HOUSE, "version": house["version"]},
            {"organisation_id": organiser, "version": own.version},
        ]
        held = (await alice.holds(show, "A-4")).json()["booking_id"]

        foreign = await bob.post(f"/bookings/{held}/pay", {"method": "tok_ok", "agreed": terms})
        half = await alice.post(f"/bookings/{held}/pay", {"method": "tok_ok", "agreed": terms[:1]})

        assert (foreign.status_code, problem(foreign)["code"]) == (404, "no_such_booking")
        assert (half.status_code, problem(half)["code"], problem(half)["terms"]) == (
            409,
            "terms_changed",
            terms,
        )
        assert await consents(app, show) == []
        paid = await alice.post(f"/bookings/{held}/pay", {"method": "tok_ok", "agreed": terms})
        assert paid.status_code == 200, paid.text
        assert await consents(app, show) == [
            (HOUSE, "terms", house["version"]),
            (organiser, "terms", own.version),
        ]

    async def test_of_a_person_who_signs_up(self, app: App, admin: Fan) -> None:
        terms = await publishes(admin, "terms", en=ENGLISH)
        person = {
            "email": f"{secrets.token_hex(6)}@example.org",
            "password": "correct horse battery",
            "name": "Ann",
        }

        async def sign_up(version: int) -> httpx2.Response:
            body = {**person, "agreed": [{"version": version}]}
            return await admin.api.post("/api/v1/accounts", json=body)

        assert problem(await sign_up(terms["version"] + 1))["code"] == "terms_changed"
        made = await sign_up(terms["version"])

        rows = await app.postgres.fetch(
            "SELECT version, show_id FROM consent WHERE account_id = $1", made.json()["account"]["account_id"]
        )
        assert [tuple(row) for row in rows] == [(terms["version"], 0)]
