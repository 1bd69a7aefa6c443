"""Signing up, staying signed in, and refusals, over HTTP (R31, R32)."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import product
from typing import Any

import httpx2 as httpx
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.conftest import started
from tests.support.mailed_links import prove_address
from tests.support.opened import asgi_app

API = "/api/v1"
PASSWORD = "correct horse battery"
SECRET_WORDS = ("password", "hash", "version", "argon2")


@pytest.fixture
def email() -> str:
    return f"{secrets.token_hex(8)}@example.org"


def key() -> dict[str, str]:
    return {"Idempotency-Key": secrets.token_hex(16)}


def bearer(signed_in: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {signed_in['access_token']}"}


async def signed_up(app: App, api: httpx.AsyncClient, email: str) -> dict[str, Any]:
    """The answer to the sign-up; afterwards the address is confirmed."""
    body = {"email": email, "password": PASSWORD, "name": "Ann"}
    answer = await api.post(f"{API}/accounts", json=body, headers=key())
    assert answer.status_code == 201, answer.text
    await prove_address(app.postgres, email)
    return dict(answer.json())


async def log_in(api: httpx.AsyncClient, email: str, password: str = PASSWORD) -> httpx.Response:
    return await api.post(f"{API}/auth/login", json={"email": email, "password": password})


async def me(api: httpx.AsyncClient, signed_in: dict[str, Any]) -> httpx.Response:
    return await api.get(f"{API}/me", headers=bearer(signed_in))


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


async def test_a_fan_signs_up_logs_in_and_is_known(app: App, api: httpx.AsyncClient, email: str) -> None:
    ann = await signed_up(app, api, email)
    again = await log_in(api, email)

    assert again.status_code == 200
    assert again.headers["cache-control"] == "no-store"
    assert again.json().keys() == {"account", "access_token", "token_type", "expires_in", "refresh_token"}
    assert (await me(api, again.json())).json() == ann["account"] | {"email_verified": True}
    assert ann["account"].keys() == {
        *("account_id", "email", "name", "role", "created_at", "locale", "email_verified")
    }
    assert (ann["account"]["email"], ann["account"]["role"]) == (email, "fan")


async def test_answers_hold_no_secret_of_the_account(app: App, api: httpx.AsyncClient, email: str) -> None:
    ann = await signed_up(app, api, email)

    assert not [word for word in SECRET_WORDS if word in (await me(api, ann)).text]
    assert PASSWORD not in str(ann)


@pytest.mark.parametrize("extra", ["role", "version", "account_id", "password_hash", "paid", "created_at"])
async def test_sign_up_ignores_privileged_fields(api: httpx.AsyncClient, email: str, extra: str) -> None:
    body = {"email": email, "password": PASSWORD, "name": "Ann", extra: "admin"}
    answer = await api.post(f"{API}/accounts", json=body, headers=key())

    assert refused(answer) == (422, "invalid")
    assert (await log_in(api, email)).status_code == 401


@pytest.mark.parametrize(
    "change",
    [
        {"email": "ann"},
        {"email": "ann@"},
        {"email": "@example.org"},
        {"email": "ann@localhost"},
        {"email": "a nn@example.org"},
        {"email": "ann@exämple.org"},
        {"email": f"{'a' * 250}@example.org"},
        {"email": None},
        {"email": ["ann@example.org"]},
        {"password": "short"},
        {"password": "x" * 129},
        {"password": 12345678},
        {"name": ""},
        {"name": "   "},
        {"name": "x" * 121},
        {"name": "Ann\u0000"},
        {"name": "Ann\u0007Lee"},
    ],
    ids=str,
)
async def test_a_sign_up_that_makes_no_sense_is_refused(
    api: httpx.AsyncClient, email: str, change: dict[str, object]
) -> None:
    body = {"email": email, "password": PASSWORD, "name": "Ann"} | change
    answer = await api.post(f"{API}/accounts", json=body, headers=key())

    assert refused(answer) == (422, "invalid")
    assert next(iter(change)) in answer.json()["field"]


async def test_the_answer_does_not_reveal_whether_an_address_is_taken(
    app: App, api: httpx.AsyncClient, email: str
) -> None:
    await signed_up(app, api, email)
    body = {"password": PASSWORD, "name": "Another"}

    taken, free = [
        await api.post(f"{API}/accounts", json={**body, "email": address}, headers=key())
        for address in (email.upper(), f"x{email}")
    ]

    assert taken.status_code == free.status_code == 201
    assert taken.json().keys() == free.json().keys()
    shown = [answer.json()["account"] for answer in (taken, free)]
    assert [one["email"] for one in shown] == [email, f"x{email}"]
    assert [one["email_verified"] for one in shown] == [False, False]
    guesses = [await log_in(api, one["email"], "another password") for one in shown]
    assert [refused(one) for one in guesses] == [(401, "bad_credentials")] * 2


async def test_a_sign_up_sent_fifty_times_with_one_key_makes_one_account(
    api: httpx.AsyncClient, email: str
) -> None:
    body, same = {"email": email, "password": PASSWORD, "name": "Ann"}, key()

    answers = await asyncio.gather(*(api.post(f"{API}/accounts", json=body, headers=same) for _ in range(50)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    other = await api.post(f"{API}/accounts", json=body | {"name": "Eve"}, headers=same)
    assert refused(other) == (422, "key_reused")


async def test_a_failed_login_is_the_same_for_a_stranger_and_a_wrong_password(
    app: App, api: httpx.AsyncClient, email: str
) -> None:
    await signed_up(app, api, email)

    answers = [await log_in(api, address, "a guess") for address in (email, f"x{email}")]

    assert [refused(answer) for answer in answers] == [(401, "bad_credentials")] * 2
    known, unknown = (answer.json() | {"request_id": ""} for answer in answers)
    assert known == unknown


@pytest.fixture
async def strict_api(config: Config) -> AsyncIterator[httpx.AsyncClient]:
    """The same box office with limits as they are on the street."""
    application = asgi_app(replace(config, logins_per_minute_max=10, requests_per_second_max=20))
    async with started(application):
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://box.office") as client:
            yield client


async def test_an_address_over_the_limit_is_refused(strict_api: httpx.AsyncClient) -> None:
    # Any method, query or forged address header: one bucket.
    other = "203.0.113.9"
    claims: tuple[dict[str, str], ...] = (
        {},
        {"X-Forwarded-For": other},
        {"Forwarded": f"for={other}"},
        {"X-Real-IP": other},
    )
    asks = (
        ("GET", "/me"),
        ("HEAD", "/me"),
        ("GET", "/me?x=1"),
        ("POST", "/auth/login"),
        ("POST", "/accounts"),
    )
    tricks = list(product(asks, claims))

    async def ask(turn: int) -> httpx.Response:
        (method, path), headers = tricks[turn % len(tricks)]
        return await strict_api.request(method, API + path, headers=headers)

    answers = await asyncio.gather(*(ask(turn) for turn in range(300)))

    refused_answers = [answer for answer in answers if answer.status_code == 429]
    assert len(refused_answers) >= 100
    assert {answer.headers["ratelimit-policy"] for answer in refused_answers} == {'"address";q=20;w=1'}
    assert {answer.headers["retry-after"] for answer in refused_answers} == {"1"}


async def test_password_guessing_gets_retry_after(strict_api: httpx.AsyncClient, email: str) -> None:
    answers = [await log_in(strict_api, email, f"guess number {n}") for n in range(12)]

    assert refused(answers[0]) == (401, "bad_credentials")
    assert refused(answers[-1]) == (429, "too_many_requests")
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert answers[-1].headers["ratelimit-policy"] == '"login";q=10;w=60'
    assert answers[-1].headers["ratelimit"].startswith('"login";r=0;t=')


async def test_a_refresh_token_works_once_and_coming_back_ends_it_all(
    app: App, api: httpx.AsyncClient, email: str
) -> None:
    ann = await signed_up(app, api, email)
    first, same = {"refresh_token": ann["refresh_token"]}, key()

    again = await api.post(f"{API}/auth/refresh", json=first, headers=same)
    assert again.status_code == 200
    assert (await me(api, again.json())).status_code == 200

    repeated = await api.post(f"{API}/auth/refresh", json=first, headers=same)
    assert repeated.json() == again.json()

    assert refused(await api.post(f"{API}/auth/refresh", json=first)) == (401, "token_invalid")
    second = {"refresh_token": again.json()["refresh_token"]}
    assert refused(await api.post(f"{API}/auth/refresh", json=second)) == (401, "token_invalid")
    assert refused(await me(api, again.json())) == (401, "token_invalid")


async def test_a_logout_is_felt_at_once_and_may_be_repeated(
    app: App, api: httpx.AsyncClient, email: str
) -> None:
    ann = await signed_up(app, api, email)
    assert (await me(api, ann)).status_code == 200

    answers = [await api.post(f"{API}/auth/logout", headers=bearer(ann)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [204, 204]
    assert refused(await me(api, ann)) == (401, "token_invalid")
    body = {"refresh_token": ann["refresh_token"]}
    assert refused(await api.post(f"{API}/auth/refresh", json=body)) == (401, "token_invalid")


async def test_a_changed_password_signs_the_others_out(app: App, api: httpx.AsyncClient, email: str) -> None:
    ann = await signed_up(app, api, email)
    elsewhere = (await log_in(api, email)).json()
    body = {"current_password": PASSWORD, "new_password": "another good one"}

    wrong = body | {"current_password": "a guess"}
    answer = await api.post(f"{API}/me/password", json=wrong, headers=bearer(ann) | key())
    assert refused(answer) == (403, "wrong_password")

    same = bearer(ann) | key()
    for _ in range(2):
        answer = await api.post(f"{API}/me/password", json=body, headers=same)
        assert answer.status_code == 204

    assert (await me(api, ann)).status_code == 200
    assert refused(await me(api, elsewhere)) == (401, "token_invalid")
    assert refused(await log_in(api, email)) == (401, "bad_credentials")
    assert (await log_in(api, email, "another good one")).status_code == 200


async def test_without_a_token_the_answer_says_what_is_missing(api: httpx.AsyncClient) -> None:
    for method, path in [("GET", "/me"), ("POST", "/me/password"), ("POST", "/auth/logout")]:
        answer = await api.request(method, API + path)

        assert refused(answer) == (401, "not_signed_in")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_forged_tokens_are_refused_with_their_code(
    app: App, api: httpx.AsyncClient, email: str
) -> None:
    ann = await signed_up(app, api, email)
    head, body, signature = ann["access_token"].split(".")
    none = "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0"

    for forged in (f"{none}.{body}.", f"{head}.{body}.{signature[::-1]}", ann["refresh_token"], "x" * 5_000):
        answer = await me(api, {"access_token": forged})
        assert refused(answer) == (401, "token_invalid")
