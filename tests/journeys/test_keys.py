"""A request that is sent again, with its key, has one effect and gets the same answer."""

import asyncio
import secrets
from typing import Any

import httpx2 as httpx
import pytest

from holdfast.app import App
from tests.support.mailed_links import prove_address

ACCOUNTS = "/api/v1/accounts"
AT_ONCE = 50


@pytest.fixture
def body() -> dict[str, Any]:
    return {
        "email": f"{secrets.token_hex(8)}@example.org",
        "password": "correct horse battery",
        "name": "Ann",
    }


def key() -> dict[str, str]:
    return {"Idempotency-Key": secrets.token_hex(16)}


async def test_a_retry_gets_the_first_answer(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    headers = key()
    first = await api.post(ACCOUNTS, json=body, headers=headers)
    second = await api.post(ACCOUNTS, json=body, headers=headers)

    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert first.headers["content-type"] == second.headers["content-type"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"


async def test_fifty_at_once_have_one_effect(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    headers = key()
    answers = await asyncio.gather(*(api.post(ACCOUNTS, json=body, headers=headers) for _ in range(AT_ONCE)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1


async def test_without_a_key_the_effect_is_tried_again(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    first = await api.post(ACCOUNTS, json=body)
    second = await api.post(ACCOUNTS, json=body)

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["account"]["account_id"] != second.json()["account"]["account_id"]


async def test_the_same_key_for_another_body_is_refused(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    headers = key()
    await api.post(ACCOUNTS, json=body, headers=headers)
    other = await api.post(ACCOUNTS, json={**body, "name": "Bob"}, headers=headers)

    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


async def test_a_refusal_is_stored_too(app: App, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    await api.post(ACCOUNTS, json=body)
    login, headers = {"email": body["email"], "password": body["password"]}, key()
    first = await api.post("/api/v1/auth/login", json=login, headers=headers)
    await prove_address(app.postgres, body["email"])
    second = await api.post("/api/v1/auth/login", json=login, headers=headers)

    assert (first.status_code, first.json()["code"]) == (401, "bad_credentials")
    assert first.content == second.content


async def test_a_key_is_of_one_route(app: App, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    headers = key()
    made = await api.post(ACCOUNTS, json=body, headers=headers)
    await prove_address(app.postgres, body["email"])
    login = {"email": body["email"], "password": body["password"]}
    signed_in = await api.post("/api/v1/auth/login", json=login, headers=headers)

    assert (made.status_code, signed_in.status_code) == (201, 200)


async def test_a_key_is_of_one_account(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    headers = key()
    change = {"current_password": body["password"], "new_password": "another horse battery"}
    answers = []
    for name in ("ann", "bob"):
        account = {**body, "email": f"{name}-{body['email']}"}
        token = (await api.post(ACCOUNTS, json=account)).json()["access_token"]
        whose = {**headers, "Authorization": f"Bearer {token}"}
        answers.append(await api.post("/api/v1/me/password", json=change, headers=whose))

    assert [answer.status_code for answer in answers] == [204, 204]
    assert not [answer for answer in answers if "idempotency-replayed" in answer.headers]


@pytest.mark.parametrize("bad", ["", "a b", "x" * 256, "schlüssel"])
async def test_an_invalid_key_is_refused(api: httpx.AsyncClient, body: dict[str, Any], bad: str) -> None:
    sent = {b"Idempotency-Key": bad.encode()}
    refused = await api.post(ACCOUNTS, json=body, headers=sent)
    after = await api.post(ACCOUNTS, json=body)

    assert (refused.status_code, refused.json()["code"]) == (400, "bad_key")
    assert after.status_code == 201
