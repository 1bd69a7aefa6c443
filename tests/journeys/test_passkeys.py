"""Passkeys over the API, with an authenticator in software (R31)."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.support.authenticator import VERIFIED, Authenticator
from tests.support.mail_servers import Office, an_office
from tests.support.mailed_links import mails_to
from tests.support.second_factors import PASSWORD, Holder, a_holder, a_person
from tests.support.shows import API, problem


@pytest.fixture(scope="module")
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config, mail_page=1) as opened:
        yield opened


@pytest.fixture
async def zoe(app: App, api: httpx2.AsyncClient) -> Holder:
    return await a_person(app, api)


async def add(who: Holder, key: Authenticator, name: str = "My phone") -> httpx2.Response:
    begun = await who.post("/me/passkeys/options", current_password=PASSWORD)
    assert begun.status_code == 200, begun.text
    return await who.post("/me/passkeys", name=name, credential=key.create(begun.json()["public_key"]))


async def options(who: Holder, **body: str) -> dict[str, Any]:
    begun = await who.api.post(f"{API}/auth/passkey/options", json=body)
    assert begun.status_code == 200, begun.text
    found: dict[str, Any] = begun.json()["public_key"]
    return found


async def sign_in(who: Holder, credential: dict[str, Any]) -> httpx2.Response:
    return await who.api.post(f"{API}/auth/passkey", json={"credential": credential})


class TestPasskeys:
    async def test_one_signs_in_without_an_address(self, office: Office, zoe: Holder) -> None:
        key = Authenticator()
        added = (await add(zoe, key)).json()
        assert (added["passkey"]["name"], added["passkey"]["last_used_at"]) == ("My phone", None)
        assert len(added["recovery_codes"]) == 10
        assert (await mails_to(office, zoe.email))[-1]["subject"] == "A passkey was added"

        offered = await options(zoe)
        assert (offered["allowCredentials"], offered["userVerification"]) == ([], "required")
        signed_in = await sign_in(zoe, key.get(offered))

        assert signed_in.json()["account"]["email"] == zoe.email
        zoe.token = signed_in.json()["access_token"]
        sessions = (await zoe.api.get(f"{API}/me/sessions", headers=zoe.headers)).json()["sessions"]
        assert "passkey" in {one["signed_in_by"] for one in sessions}
        page = (await zoe.api.get(f"{API}/me/second-factor", headers=zoe.headers)).json()
        assert page["passkeys"][0]["last_used_at"] is not None

    async def test_one_is_the_second_step_of_a_password(self, app: App, zoe: Holder) -> None:
        key, other = Authenticator(), Authenticator()
        await add(zoe, key)
        await add(await a_person(app, zoe.api), other)
        offered = await options(zoe, token=await zoe.first_step())
        assert len(offered["allowCredentials"]) == 1

        stranger = await sign_in(zoe, other.get(offered))
        offered = await options(zoe, token=await zoe.first_step())
        mine = await sign_in(zoe, key.get(offered))

        assert (problem(stranger)["code"], mine.status_code) == ("bad_passkey", 200)

    async def test_a_challenge_works_once(self, zoe: Holder) -> None:
        key = Authenticator()
        await add(zoe, key)
        offered = await options(zoe)
        answers = [await sign_in(zoe, key.get(offered)) for _ in range(2)]
        assert (answers[0].status_code, problem(answers[1])["code"]) == (200, "sign_in_expired")

    @pytest.mark.parametrize("wrong", ["origin", "flags", "count", "signature"])
    async def test_what_cannot_be_verified_is_refused(self, zoe: Holder, wrong: str) -> None:
        key = Authenticator()
        key.count = 5
        await add(zoe, key)
        if wrong == "origin":
            key.origin = "https://box-office.evil.example"
        elif wrong == "flags":
            key.flags &= ~VERIFIED  # the authenticator did not ask for a PIN or a finger
        elif wrong == "count":
            key.count = 3  # a copy of the authenticator, which counts for itself
        credential = key.get(await options(zoe))
        if wrong == "signature":
            credential["response"]["signature"] = Authenticator().get(await options(zoe))["response"][
                "signature"
            ]
        assert problem(await sign_in(zoe, credential))["code"] == "bad_passkey"

    @pytest.mark.parametrize("credential", [{}, {"id": 7}, {"id": "ä", "response": {"clientDataJSON": "%"}}])
    async def test_nonsense_is_refused(self, zoe: Holder, credential: dict[str, Any]) -> None:
        assert problem(await sign_in(zoe, credential))["code"] == "bad_passkey"

    async def test_several_with_names_are_removed_one_by_one(self, app: App, zoe: Holder) -> None:
        first, second = Authenticator(), Authenticator()
        one = (await add(zoe, first)).json()["passkey"]["passkey_id"]
        two = (await add(zoe, second, "Key ring")).json()
        assert two["recovery_codes"] == []
        path = f"{API}/me/passkeys/{one}"
        renamed = await zoe.api.patch(path, json={"name": "Old phone"}, headers=zoe.headers)
        assert renamed.json()["name"] == "Old phone"
        eve = await a_person(app, zoe.api)
        foreign = await eve.post(f"/me/passkeys/{one}/remove", current_password=PASSWORD)
        refused = await zoe.post(f"/me/passkeys/{one}/remove", current_password="a guess")
        removed = await zoe.post(f"/me/passkeys/{one}/remove", current_password=PASSWORD)

        assert [problem(foreign)["code"], problem(refused)["code"]] == ["no_such_passkey", "wrong_password"]
        assert removed.status_code == 204
        gone, good = [await sign_in(zoe, key.get(await options(zoe))) for key in (first, second)]
        assert (problem(gone)["code"], good.status_code) == ("bad_passkey", 200)
        await zoe.post(f"/me/passkeys/{two['passkey']['passkey_id']}/remove", current_password=PASSWORD)
        assert (await zoe.log_in()).status_code == 200

    async def test_a_passkey_is_added_once_and_by_the_one_who_began(self, app: App, zoe: Holder) -> None:
        key, eve = Authenticator(), await a_holder(app, zoe.api)
        assert (await add(zoe, key)).status_code == 201
        assert problem(await add(eve, key))["code"] == "bad_passkey"
        begun = (await zoe.post("/me/passkeys/options", current_password=PASSWORD)).json()["public_key"]
        assert begun["excludeCredentials"][0]["type"] == "public-key"
        stolen = await eve.post("/me/passkeys", name="Eve", credential=Authenticator().create(begun))
        assert problem(stolen)["code"] == "bad_passkey"
