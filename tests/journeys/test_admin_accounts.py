"""Administrators and the command line: accounts with one-time links, roles, bans, erasure (R31)."""

import asyncio
import json
import secrets
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.config import Config
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.opened import engines_of
from tests.support.shows import API, Fan, problem

PASSWORD = "a long enough password"


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    (fan,) = await cast.fans(app, api, 1, Role.ADMIN)
    return fan


@pytest.fixture
def email() -> str:
    return f"{secrets.token_hex(6)}@office.example"


async def put(fan: Fan, path: str, body: Any) -> httpx2.Response:
    return await fan.api.put(API + path, headers=fan.headers, json=body)


async def log_in(api: httpx2.AsyncClient, email: str, password: str = PASSWORD) -> httpx2.Response:
    return await api.post(f"{API}/auth/login", json={"email": email, "password": password})


async def added(admin: Fan, email: str, role: str = "organiser") -> dict[str, Any]:
    """An account whose owner has chosen a password."""
    answer = await admin.post("/admin/accounts", {"email": email, "name": "Omar", "role": role})
    assert answer.status_code == 201, answer.text
    token = answer.json()["link"].rpartition("/")[2]
    body = {"token": token, "new_password": PASSWORD}
    assert (await admin.api.post(f"{API}/auth/reset-password", json=body)).status_code == 200
    return dict(answer.json()["account"])


async def test_an_account_is_added_with_a_link_that_works_once(admin: Fan, email: str) -> None:
    made = await admin.post("/admin/accounts", {"email": email, "name": "Omar", "role": "organiser"})
    token = made.json()["link"].rpartition("/")[2]
    before = await log_in(admin.api, email)

    body = {"token": token, "new_password": PASSWORD}
    used = [await admin.api.post(f"{API}/auth/reset-password", json=body) for _ in range(2)]
    again = await admin.post("/admin/accounts", {"email": email.upper(), "name": "Omar"})

    assert before.status_code == 401
    assert [answer.status_code for answer in used] == [200, 410]
    assert used[0].json()["account"]["role"] == "organiser"
    assert (await log_in(admin.api, email)).status_code == 200
    assert (again.status_code, problem(again)["code"]) == (409, "email_taken")


async def test_accounts_are_found_by_a_part_of_their_address(admin: Fan, email: str) -> None:
    account = await added(admin, email)

    found = (await admin.get("/admin/accounts", q=email[:8].upper())).json()
    gates = (await admin.get("/admin/accounts", q=email, role="gate")).json()

    assert [one["account_id"] for one in found["accounts"]] == [account["account_id"]]
    assert found["accounts"][0]["email_verified"]
    assert gates == {"accounts": [], "more": False}


async def test_a_ban_signs_out_at_once_and_refuses_every_way_in(admin: Fan, email: str) -> None:
    account = await added(admin, email, "fan")
    signed_in = (await log_in(admin.api, email)).json()
    fan = Fan(account["account_id"], signed_in["access_token"], admin.api)
    path = f"/admin/accounts/{account['account_id']}/ban"
    assert (await fan.get("/me")).status_code == 200

    banned = await admin.post(path)

    assert banned.json()["banned_at"] is not None
    assert (await fan.get("/me")).status_code == 401
    refresh = {"refresh_token": signed_in["refresh_token"]}
    assert (await admin.api.post(f"{API}/auth/refresh", json=refresh)).status_code == 401
    refused = await log_in(admin.api, email)
    assert (refused.status_code, problem(refused)["code"]) == (403, "account_banned")
    wrong = await log_in(admin.api, email, "a guess")
    assert problem(wrong)["code"] == "bad_credentials"
    assert (await admin.delete(path)).json()["banned_at"] is None
    assert (await log_in(admin.api, email)).status_code == 200


async def test_a_reset_ends_the_old_password_and_the_sessions(admin: Fan, email: str) -> None:
    account = await added(admin, email, "fan")
    signed_in = (await log_in(admin.api, email)).json()
    fan = Fan(account["account_id"], signed_in["access_token"], admin.api)

    answer = await admin.post(f"/admin/accounts/{account['account_id']}/reset")

    assert answer.json()["link"].startswith("/link/")
    assert (await log_in(admin.api, email)).status_code == 401
    assert (await fan.get("/me")).status_code == 401


async def test_the_last_administrator_stays_one(app: App) -> None:
    """Of two who are demoted at once, one stays while there is no third."""
    new = [NewAccount(f"{secrets.token_hex(6)}@office.example", "Ada", Role.ADMIN) for _ in range(2)]
    ids = await app.accounts.add_many(new)
    others = await app.postgres.fetch(
        "UPDATE account SET banned_at = now()"
        " WHERE role = 'admin' AND banned_at IS NULL AND NOT id = ANY ($1::bigint[]) RETURNING id",
        ids,
    )
    changes = (app.account_admin.set_role(ids[0], Role.FAN), app.account_admin.ban(ids[1]))
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    await app.postgres.execute(
        "UPDATE account SET banned_at = NULL WHERE id = ANY ($1::bigint[])", [row["id"] for row in others]
    )

    assert [str(one) for one in outcomes if isinstance(one, Exception)] == ["last_admin"]


async def test_only_administrators_administer(app: App, api: httpx2.AsyncClient, alice: Fan) -> None:
    path = f"/admin/accounts/{alice.account_id}"
    (organiser,) = await cast.fans(app, api, 1, Role.ORGANISER)
    for fan in (alice, organiser):
        answers = [
            await fan.get("/admin/accounts"),
            await fan.get(path),
            await fan.get(f"{path}/export"),
            await fan.post("/admin/accounts", {"email": "eve@evil.example", "name": "Eve"}),
            await fan.post(f"{path}/ban"),
            await fan.post(f"{path}/reset"),
            await fan.post(f"{path}/erase"),
            await put(fan, f"{path}/role", {"role": "admin"}),
        ]
        assert {answer.status_code for answer in answers} == {403}


async def test_the_commands_do_the_same(
    config: Config, api: httpx2.AsyncClient, app: App, tmp_path: Path
) -> None:
    urls = engines_of(config)
    stays, gone, out = (f"{secrets.token_hex(6)}@office.example" for _ in range(3))
    hashed = await app.accounts.hashed(PASSWORD)
    await app.accounts.add_many([NewAccount(one, "Omar", password_hash=hashed) for one in (stays, gone, out)])

    async def run(*words: str) -> Any:
        return await run_holdfast("account", *words, "--data", str(tmp_path), **urls)

    listed, exported, banned, unsure = await asyncio.gather(
        run("list", stays[:8], "--json"), run("export", stays), run("ban", out), run("erase", gone)
    )
    (staff,) = await app.accounts.add_many([NewAccount(f"staff-{out}", "Sam", Role.GATE)])
    erased, reset, unknown, refused = await asyncio.gather(
        run("erase", gone, "--yes"),
        run("reset", stays),
        run("unban", "nowhere@office.example"),
        run("erase", f"staff-{out}", "--yes"),
    )

    assert [one["email"] for one in json.loads(listed.output)] == [stays]
    assert json.loads(exported.output)["accounts"][0]["email"] == stays
    assert (banned.code, erased.code, reset.code) == (0, 0, 0), (banned, erased, reset)
    assert (unsure.code, "--yes" in unsure.words) == (2, True)
    assert (unknown.code, "holdfast account list" in unknown.words) == (2, True)
    assert (refused.code, "must make it a fan first" in refused.words, staff > 0) == (2, True, True)
    codes = [problem(await log_in(api, one))["code"] for one in (stays, gone, out)]
    assert codes == ["bad_credentials", "bad_credentials", "account_banned"]
    token = reset.output.strip().rpartition("/link/")[2]
    chosen = await api.post(
        f"{API}/auth/reset-password", json={"token": token, "new_password": "another good one"}
    )
    assert chosen.status_code == 200
