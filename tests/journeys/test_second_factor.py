"""Two-step sign-in over the API: authenticator apps, recovery codes, limits and races (R31)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from holdfast.accounts import Purpose
from holdfast.accounts.second_factor import STEP_TRIES_MAX
from holdfast.app import App
from holdfast.config import Config
from holdfast.web.caller import Role
from tests.conftest import started
from tests.support import shows as cast
from tests.support.mail_servers import Office, an_office
from tests.support.mailed_links import a_link, mails_to
from tests.support.opened import asgi_app
from tests.support.second_factors import PASSWORD, Holder, a_holder, a_person
from tests.support.shows import API, problem


@pytest.fixture(scope="module")
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config, mail_page=1) as opened:
        yield opened


@pytest.fixture
async def zoe(app: App, api: httpx2.AsyncClient) -> Holder:
    return await a_holder(app, api)


async def log_of(app: App, account_id: int) -> list[str]:
    rows = await app.postgres.fetch(
        "SELECT action FROM audit_entry WHERE subject_kind = 'account' AND subject_id = $1 ORDER BY number",
        str(account_id),
    )
    return [row["action"] for row in rows]


async def codes_of(*requests: httpx2.Response) -> list[str]:
    return [str(one.status_code) if one.is_success else problem(one)["code"] for one in requests]


class TestSettingUp:
    async def test_an_app_is_in_use_after_its_first_code(
        self, office: Office, app: App, api: httpx2.AsyncClient
    ) -> None:
        zoe = await a_person(app, api)
        elsewhere = (await zoe.log_in()).json()["access_token"]
        begun = (await zoe.post("/me/second-factor/totp", current_password=PASSWORD)).json()
        uri = urlsplit(begun["uri"])
        assert (uri.scheme, uri.netloc) == ("otpauth", "totp")
        assert parse_qs(uri.query) == {"secret": [begun["secret"]], "issuer": ["Holdfast"]}
        zoe.secret = begun["secret"]
        assert (await zoe.log_in()).status_code == 200  # not in use yet

        wrong = await zoe.post("/me/second-factor/totp/confirm", code="000 000")
        done = await zoe.post("/me/second-factor/totp/confirm", code=await zoe.code())

        assert await codes_of(wrong, done) == ["wrong_code", "200"]
        assert len(set(done.json()["recovery_codes"])) == 10
        await zoe.first_step()
        page = (await api.get(f"{API}/me/second-factor", headers=zoe.headers)).json()
        assert page["totp_since"] is not None
        assert (page["recovery_codes_left"], page["passkeys"]) == (10, [])
        there = await api.get(f"{API}/me", headers={"authorization": f"Bearer {elsewhere}"})
        assert problem(there)["code"] == "token_invalid"  # it had signed in with one factor
        assert (await mails_to(office, zoe.email))[-1]["subject"] == "An authenticator app was added"
        assert (await log_of(app, zoe.account_id))[-1] == "account.totp_added"

    async def test_it_takes_the_password(self, app: App, api: httpx2.AsyncClient) -> None:
        zoe = await a_person(app, api)
        refused = await zoe.post("/me/second-factor/totp", current_password="a guess")
        assert problem(refused)["code"] == "wrong_password"

    async def test_there_is_one_app(self, zoe: Holder) -> None:
        again = await zoe.post("/me/second-factor/totp", current_password=PASSWORD)
        confirmed = await zoe.post("/me/second-factor/totp/confirm", code=await zoe.code())
        assert await codes_of(again, confirmed) == ["second_factor_exists", "no_second_factor"]

    async def test_the_ledger_has_neither_codes_nor_secret(self, app: App, config: Config) -> None:
        """With a key in the settings, a copy of the database signs in nowhere."""
        application = asgi_app(replace(config, totp_key="a key from the settings, an older one"))
        async with started(application):
            transport = httpx2.ASGITransport(application)
            async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as api:
                zoe = await a_holder(app, api)
                stored = await app.postgres.fetchval(
                    "SELECT secret FROM totp WHERE account_id = $1", zoe.account_id
                )
                assert stored[:1] == b"\x01"
                signed_in = await zoe.second_step(await zoe.first_step(), await zoe.code())
                assert signed_in.status_code == 200
        hashes = await app.postgres.fetch(
            "SELECT hash FROM recovery_code WHERE account_id = $1", zoe.account_id
        )
        assert not {code.encode() for code in zoe.codes} & {row["hash"] for row in hashes}


class TestSigningIn:
    async def test_with_password_and_code(self, zoe: Holder) -> None:
        signed_in = await zoe.second_step(await zoe.first_step(), await zoe.code())

        assert signed_in.json()["account"]["email"] == zoe.email
        zoe.token = signed_in.json()["access_token"]
        sessions = (await zoe.api.get(f"{API}/me/sessions", headers=zoe.headers)).json()["sessions"]
        assert {one["signed_in_by"] for one in sessions} == {"password", "password+totp"}

    async def test_a_wrong_password_is_refused_as_ever(self, zoe: Holder) -> None:
        assert problem(await zoe.log_in("a guess"))["code"] == "bad_credentials"

    async def test_a_clock_may_be_one_step_off(self, zoe: Holder) -> None:
        signed_in = await zoe.second_step(await zoe.first_step(), await zoe.code(1))
        assert signed_in.status_code == 200

    async def test_codes_of_other_times_are_wrong(self, zoe: Holder) -> None:
        token = await zoe.first_step()
        later = [await zoe.second_step(token, await zoe.code(steps)) for steps in (-4, 4)]
        assert await codes_of(*later) == ["wrong_code", "wrong_code"]

    async def test_a_code_works_once(self, zoe: Holder) -> None:
        code = await zoe.code()
        first = await zoe.second_step(await zoe.first_step(), code)
        again = await zoe.second_step(await zoe.first_step(), code)
        assert await codes_of(first, again) == ["200", "wrong_code"]

    async def test_of_two_uses_of_a_code_at_once_one_gets_in(self, zoe: Holder) -> None:
        tokens, code = [await zoe.first_step() for _ in range(4)], await zoe.code()
        answers = await asyncio.gather(*(zoe.second_step(token, code) for token in tokens))
        assert sorted(await codes_of(*answers)) == ["200", "wrong_code", "wrong_code", "wrong_code"]

    async def test_a_token_works_once(self, zoe: Holder) -> None:
        token = await zoe.first_step()
        answers = await asyncio.gather(*(zoe.second_step(token, code) for code in zoe.codes[:3]))
        assert sorted(await codes_of(*answers)) == ["200", "sign_in_expired", "sign_in_expired"]
        left = (await zoe.api.get(f"{API}/me/second-factor", headers=zoe.headers)).json()
        assert left["recovery_codes_left"] == 9  # a refused request uses no code up

    async def test_a_token_ends_after_wrong_codes_and_after_minutes(self, app: App, zoe: Holder) -> None:
        token = await zoe.first_step()
        wrong = [await zoe.second_step(token, "ABCD-EFGH") for _ in range(STEP_TRIES_MAX)]
        wrong.append(await zoe.second_step(token, await zoe.code()))
        assert await codes_of(*wrong) == ["wrong_code"] * STEP_TRIES_MAX + ["sign_in_expired"]

        late = await zoe.first_step()
        await app.postgres.execute(
            "UPDATE sign_in_step SET expires_at = now() WHERE account_id = $1", zoe.account_id
        )
        assert problem(await zoe.second_step(late, await zoe.code()))["code"] == "sign_in_expired"
        await app.accounts.prune()
        assert not await app.postgres.fetchval(
            "SELECT count(*) FROM sign_in_step WHERE account_id = $1", zoe.account_id
        )

    async def test_wrong_codes_are_limited_like_wrong_passwords(self, app: App, config: Config) -> None:
        application = asgi_app(replace(config, logins_per_account_hour_max=3))
        async with started(application):
            transport = httpx2.ASGITransport(application)
            async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as api:
                zoe = await a_holder(app, api)
                token = await zoe.first_step()
                wrong = [await zoe.second_step(token, "ABCD-EFGH") for _ in range(4)]
                assert await codes_of(*wrong) == ["wrong_code"] * 3 + ["too_many_requests"]
                right = await zoe.second_step(await zoe.first_step(), await zoe.code())
                assert problem(right)["code"] == "too_many_requests"

    async def test_a_ban_ends_the_sign_in(self, app: App, zoe: Holder) -> None:
        token = await zoe.first_step()
        await app.account_admin.ban(zoe.account_id)
        assert problem(await zoe.second_step(token, await zoe.code()))["code"] == "sign_in_expired"

    @pytest.mark.parametrize("purpose", [Purpose.SIGN_IN, Purpose.RESET])
    async def test_mailed_links_take_the_second_step_too(
        self, app: App, zoe: Holder, purpose: Purpose
    ) -> None:
        link = await a_link(app, purpose, zoe.email, zoe.account_id if purpose is Purpose.RESET else None)
        if purpose is Purpose.RESET:
            body = {"token": link, "new_password": "another long password"}
            refused = await zoe.api.post(f"{API}/auth/reset-password", json=body)
        else:
            refused = await zoe.api.post(f"{API}/auth/sign-in-link/use", json={"token": link})
        assert problem(refused)["code"] == "second_factor_required"
        assert problem(refused)["methods"] == ["totp", "recovery"]

        signed_in = await zoe.second_step(problem(refused)["token"], await zoe.code())

        assert signed_in.status_code == 200, signed_in.text
        by = await app.postgres.fetchval(
            "SELECT signed_in_by FROM session WHERE account_id = $1 ORDER BY id DESC LIMIT 1", zoe.account_id
        )
        assert by == "link+totp"


class TestRecovery:
    async def test_each_code_works_once_and_is_mailed(self, office: Office, app: App, zoe: Holder) -> None:
        typed = zoe.codes[0].lower().replace("-", " ")
        first = await zoe.second_step(await zoe.first_step(), typed)
        again = await zoe.second_step(await zoe.first_step(), zoe.codes[0])
        assert await codes_of(first, again) == ["200", "wrong_code"]
        assert (await mails_to(office, zoe.email))[-1]["subject"] == "A recovery code was used"
        assert (await log_of(app, zoe.account_id))[-1] == "account.recovery_code_used"

    async def test_of_two_uses_at_once_one_gets_in(self, zoe: Holder) -> None:
        tokens = [await zoe.first_step() for _ in range(2)]
        answers = await asyncio.gather(*(zoe.second_step(token, zoe.codes[0]) for token in tokens))
        assert sorted(await codes_of(*answers)) == ["200", "wrong_code"]

    async def test_new_codes_end_the_old_ones(self, app: App, zoe: Holder) -> None:
        refused = await zoe.post("/me/second-factor/recovery-codes", current_password="a guess")
        renewed = await zoe.post("/me/second-factor/recovery-codes", code=await zoe.code())
        assert await codes_of(refused, renewed) == ["wrong_password", "200"]
        old = await zoe.second_step(await zoe.first_step(), zoe.codes[0])
        new = await zoe.second_step(await zoe.first_step(), renewed.json()["recovery_codes"][0])
        assert await codes_of(old, new) == ["wrong_code", "200"]
        assert "account.recovery_codes_renewed" in await log_of(app, zoe.account_id)


class TestRequired:
    async def test_by_an_organisation(self, app: App, zoe: Holder) -> None:
        member = await a_person(app, zoe.api)
        made = await app.organisations.create("Lotus", zoe.account_id)
        await app.organisations.add_member(made.organisation_id, member.account_id, ["settings"])
        path = f"{API}/organisations/{made.organisation_id}"
        rule = {"required": True}
        answer = await zoe.api.put(f"{path}/second-factor", json=rule, headers=zoe.headers)
        assert answer.json()["second_factor_required"] is True

        held_back = await zoe.api.get(f"{path}/members", headers=member.headers)
        assert problem(held_back)["code"] == "second_factor_needed"
        await member.sets_up_the_app()
        assert (await zoe.api.get(f"{path}/members", headers=member.headers)).status_code == 200
        assert (await zoe.api.get(f"{path}/members", headers=zoe.headers)).status_code == 200

    async def test_only_an_owner_with_one_requires_it(self, app: App, zoe: Holder) -> None:
        owner = await a_person(app, zoe.api)
        made = await app.organisations.create("Lotus", owner.account_id)
        path = f"{API}/organisations/{made.organisation_id}/second-factor"
        refused = await zoe.api.put(path, json={"required": True}, headers=owner.headers)
        assert problem(refused)["code"] == "second_factor_needed"
        stranger = await zoe.api.put(path, json={"required": True}, headers=zoe.headers)
        assert problem(stranger)["code"] == "not_a_member"

    @pytest.mark.parametrize("needed", ["admins", "staff"])
    async def test_by_the_house(self, app: App, config: Config, needed: str) -> None:
        application = asgi_app(replace(config, second_factor_for=needed))
        async with started(application):
            transport = httpx2.ASGITransport(application)
            async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as api:
                admin = await a_person(app, api, Role.ADMIN)
                organiser = await a_person(app, api, Role.ORGANISER)
                paths = {admin: "/admin/accounts", organiser: "/admin/events"}
                got = [await api.get(API + path, headers=who.headers) for who, path in paths.items()]
                in_all = await api.get(f"{API}/admin/events", headers=admin.headers)
                expected = "200" if needed == "admins" else "second_factor_needed"
                assert await codes_of(*got, in_all) == [
                    "second_factor_needed",
                    expected,
                    "second_factor_needed",
                ]
                for who, path in paths.items():
                    await who.sets_up_the_app()
                    assert (await api.get(API + path, headers=who.headers)).status_code == 200


class TestRemoving:
    async def test_it_takes_the_password_or_a_code(self, office: Office, app: App, zoe: Holder) -> None:
        refused = [
            await zoe.post("/me/second-factor/totp/remove"),
            await zoe.post("/me/second-factor/totp/remove", code="ABCD-EFGH"),
        ]
        assert await codes_of(*refused) == ["wrong_password", "wrong_code"]
        assert (await zoe.post("/me/second-factor/totp/remove", code=await zoe.code())).status_code == 204

        assert (await zoe.log_in()).status_code == 200
        page = (await zoe.api.get(f"{API}/me/second-factor", headers=zoe.headers)).json()
        assert page == {"totp_since": None, "passkeys": [], "recovery_codes_left": 0}
        assert (await mails_to(office, zoe.email))[-1]["subject"] == "The authenticator app was removed"

    async def test_without_a_password_a_code_proves_who_it_is(self, app: App, zoe: Holder) -> None:
        await app.postgres.execute("UPDATE account SET password_hash = NULL WHERE id = $1", zoe.account_id)
        refused = await zoe.post("/me/second-factor/totp/remove")
        removed = await zoe.post("/me/second-factor/totp/remove", code=zoe.codes[3])
        assert await codes_of(refused, removed) == ["wrong_code", "204"]

    async def test_an_administrator_removes_a_lost_one(self, office: Office, app: App, zoe: Holder) -> None:
        (admin,) = await cast.fans(app, zoe.api, 1, Role.ADMIN)
        path = f"{API}/admin/accounts/{zoe.account_id}/second-factor"
        assert (await zoe.api.delete(path, headers=admin.headers)).status_code == 204

        again = await zoe.api.delete(path, headers=admin.headers)
        assert problem(again)["code"] == "no_second_factor"
        ended = await zoe.api.get(f"{API}/me", headers=zoe.headers)
        assert problem(ended)["code"] == "token_invalid"
        assert (await zoe.log_in()).status_code == 200
        assert (await mails_to(office, zoe.email))[-1]["subject"] == "Two-step sign-in was switched off"
        assert "account.second_factor_removed" in await log_of(app, zoe.account_id)

    async def test_erasing_a_person_erases_it(self, app: App, zoe: Holder) -> None:
        await app.erasure.erase(zoe.account_id)
        for table in ("totp", "recovery_code", "sign_in_step"):
            rows = await app.postgres.fetchval(
                f"SELECT count(*) FROM {table} WHERE account_id = $1",  # noqa: S608
                zoe.account_id,
            )
            assert rows == 0
