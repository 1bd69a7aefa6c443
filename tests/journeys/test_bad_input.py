"""Any bad input gets a problem code that names the error, and changes nothing (R12, R39)."""

import base64
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.accounts import SigningKey, claims_for, sign
from holdfast.app import App
from holdfast.web.audiences import DOCUMENTS
from holdfast.web.caller import Caller, Role
from tests.support.shows import API, Fan, problem

Shows = Callable[..., Any]


async def untouched(fan: Fan, show_id: int) -> bool:
    """Nothing is held, neither in the map nor in the ledger."""
    seats = (await fan.api.get(f"{API}/shows/{show_id}/seats")).json()["states"]
    bookings = (await fan.get("/bookings")).json()["bookings"]
    return set(seats) == {"A"} and bookings == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"seats": []}, 422, "invalid"),
        ({"seats": [f"A-{n}" for n in range(1, 11)] + ["B-1"]}, 422, "invalid"),
        ({"seats": ["A-1", "A-1"]}, 422, "invalid"),
        ({"seats": ["Z-99"]}, 422, "unknown_seat"),
        ({"seats": ["A-1", "\u0000"]}, 422, "invalid"),
        ({"seats": "A-1"}, 422, "invalid"),
        ({"seats": [1]}, 422, "invalid"),
        ({"seats": None}, 422, "invalid"),
        ({"seats": ["A-1"], "best": {"count": 1}}, 422, "invalid"),
        ({"seats": ["A-1"], "price_minor": 0}, 422, "invalid"),
        ({"best": {"count": 0}}, 422, "invalid"),
        ({"best": {"count": 11}}, 422, "invalid"),
        ({"best": {"count": 10**30}}, 422, "invalid"),
        ({"best": {"count": 1.5}}, 422, "invalid"),
        ({"best": {"count": 2, "category": "Moon"}}, 422, "unknown_seat"),
        ({"best": {"count": 2, "prefer": "roof"}}, 422, "invalid"),
        ({"places": {"area": "Floor", "count": 2}}, 422, "unknown_seat"),
        ({}, 422, "invalid"),
        ([], 422, "invalid"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_wish_that_makes_no_sense_is_refused(
    alice: Fan, a_show: Shows, body: Any, status: int, code: str
) -> None:
    show_id = await a_show(seats=20)
    answer = await alice.api.post(f"{API}/shows/{show_id}/holds", json=body, headers=alice.headers)

    assert (answer.status_code, problem(answer)["code"]) == (status, code)
    assert await untouched(alice, show_id)


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b'{"seats": ["A-1"]} {}', 400, "malformed"),
        (b'{"seats": ["A-1\xff"]}', 400, "malformed"),
        (b'{"seats": ["\\ud800"]}', 400, "malformed"),
        (b"\xef\xbb\xbf{}", 400, "malformed"),
        (b"null", 422, "invalid"),
        (b'{"x":' * 5000, 422, "invalid"),
        (b'{"seats": ["' + b"A" * 70_000 + b'"]}', 413, "body_too_large"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_unreadable_input_is_refused(
    alice: Fan, a_show: Shows, raw: bytes, status: int, code: str
) -> None:
    show_id = await a_show(seats=20)
    answer = await alice.api.post(f"{API}/shows/{show_id}/holds", content=raw, headers=alice.headers)

    assert (answer.status_code, problem(answer)["code"]) == (status, code)
    assert await untouched(alice, show_id)


async def test_a_form_is_not_json(alice: Fan, a_show: Shows) -> None:
    show_id = await a_show(seats=20)
    answer = await alice.api.post(
        f"{API}/shows/{show_id}/holds", data={"seats": "A-1"}, headers=alice.headers
    )

    assert (answer.status_code, problem(answer)["code"]) == (415, "unsupported_media_type")
    assert await untouched(alice, show_id)


@pytest.mark.parametrize(
    ("show", "code"),
    [
        ("0", "no_such_show"),
        ("999999999999", "no_such_show"),
        (str(2**63 - 1), "no_such_show"),
        (str(2**63), "no_such_route"),
        ("-1", "no_such_route"),
        ("x", "no_such_route"),
        ("%00", "no_such_route"),
    ],
)
async def test_an_unknown_show_is_a_404(alice: Fan, show: str, code: str) -> None:
    for answer in (
        await alice.api.get(f"{API}/shows/{show}/seats"),
        await alice.api.post(f"{API}/shows/{show}/holds", json={"seats": ["A-1"]}, headers=alice.headers),
    ):
        assert (answer.status_code, problem(answer)["code"]) == (404, code)


@pytest.mark.parametrize("window", [{"opens_in_s": 3600}, {"opens_in_s": -7200, "closes_in_s": -3600}])
async def test_a_show_is_sold_within_its_window_alone(
    alice: Fan, a_show: Shows, window: dict[str, float]
) -> None:
    show_id = await a_show(seats=20, **window)
    answer = await alice.holds(show_id, "A-1")

    assert (answer.status_code, problem(answer)["code"]) == (403, "not_on_sale")
    assert await untouched(alice, show_id)


async def test_another_buyers_booking_does_not_exist(alice: Fan, bob: Fan, a_show: Shows) -> None:
    booking = (await alice.holds(await a_show(seats=20), "A-1")).json()
    path = f"/bookings/{booking['booking_id']}"

    for answer in (await bob.get(path), await bob.post(f"{path}/extend"), await bob.delete(path)):
        assert (answer.status_code, problem(answer)["code"]) == (404, "no_such_booking")
    assert (await alice.get(path)).json()["state"] == "held"


@pytest.mark.parametrize("booking", ["x", "0", "1", "%00", "b" * 500, "ö", "-", "..", "%F0%9F%8E%9F"])
async def test_an_invalid_booking_id_is_not_found(alice: Fan, booking: str) -> None:
    answer = await alice.get(f"/bookings/{booking}")

    assert answer.status_code == 404
    assert problem(answer)["code"] in ("no_such_booking", "no_such_route")


def unsigned(header: dict[str, str], claims: bytes) -> str:
    def wrapped(part: bytes) -> str:
        return base64.urlsafe_b64encode(part).rstrip(b"=").decode()

    return f"{wrapped(msgspec.json.encode(header))}.{wrapped(claims)}."


def bad_tokens(app: App, account_id: int) -> dict[str, tuple[str, str]]:
    """By what is wrong with it: an Authorization header, and the code it should be answered with."""
    key, caller = app.accounts.signing_key, Caller(account_id, Role.ADMIN, secrets.randbits(40))
    good = claims_for(caller, version=1, now=time.time(), ttl_s=600)
    old = claims_for(caller, version=1, now=time.time() - 3600, ttl_s=600)
    stranger = SigningKey.from_json(SigningKey.new_json(), 0)
    plain = msgspec.json.encode(good)
    head, body, signature = sign(key, good).split(".")
    return {
        "none": ("", "not_signed_in"),
        "other scheme": (f"Basic {head}", "not_signed_in"),
        "expired": (f"Bearer {sign(key, old)}", "token_expired"),
        "forged": (f"Bearer {sign(stranger, good)}", "token_invalid"),
        "alg none": (f"Bearer {unsigned({'alg': 'none', 'typ': 'at+jwt'}, plain)}", "token_invalid"),
        "alg none, our key id": (
            f"Bearer {unsigned({'alg': 'none', 'typ': 'at+jwt', 'kid': key.kid}, plain)}",
            "token_invalid",
        ),
        "no signature": (f"Bearer {head}.{body}.", "token_invalid"),
        "other body": (f"Bearer {head}.{body[:-2]}AA.{signature}", "token_invalid"),
        "not a token": ("Bearer hello", "token_invalid"),
        "nothing": ("Bearer ", "token_invalid"),
        "huge": ("Bearer " + "x" * 5000, "token_invalid"),
        "strange letters": ("Bearer \xe4\xf6", "token_invalid"),
    }


async def test_a_bad_token_opens_nothing(app: App, alice: Fan, a_show: Shows) -> None:
    show_id = await a_show(seats=20)
    for what, (authorization, code) in bad_tokens(app, alice.account_id).items():
        headers = {b"Authorization": authorization.encode("latin-1")} if authorization else {}
        for answer in (
            await alice.api.get(f"{API}/me", headers=headers),
            await alice.api.post(f"{API}/shows/{show_id}/holds", json={"seats": ["A-1"]}, headers=headers),
        ):
            assert (answer.status_code, problem(answer)["code"]) == (401, code), what
            assert answer.headers["www-authenticate"] == "Bearer"

    assert await untouched(alice, show_id)


async def test_a_buyer_cannot_use_admin_routes(alice: Fan, api: httpx2.AsyncClient) -> None:
    documents = [(await api.get(about.path)).json() for about in DOCUMENTS.values()]
    requests = [
        (method.upper(), path, "not_a_member" if "{organisation}" in path else "not_allowed")
        for document in documents
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation.get("x-role", "fan") != "fan"
    ]
    for method, path, code in requests:
        filled = re.sub(r"{\w+}", "1", path)
        answer = await api.request(method, API + filled, headers=alice.headers, json={})
        assert (answer.status_code, problem(answer)["code"]) == (403, code), (method, path)

    assert requests
