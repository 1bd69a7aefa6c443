"""The session cookie under https: only this site can set it, and it travels encrypted only (R31)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.conftest import started
from tests.support.browser_session import LIKE_A_BROWSER
from tests.support.mailed_links import prove_address
from tests.support.opened import asgi_app

SITE = "https://tickets.example"
_numbers = count(1)


@pytest.fixture(scope="module")
async def secure(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without a cookie jar: each test sends what it says."""
    application = asgi_app(replace(config, public_url=SITE))
    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url=SITE, headers=LIKE_A_BROWSER) as client:
            yield client


def person() -> dict[str, str]:
    name = f"cookie{next(_numbers)}{uuid4().hex}"  # digits alone could be those of a card
    return {"name": name, "email": f"{name}@example.org", "password": "a long enough password"}


async def sent(client: httpx2.AsyncClient, path: str, form: dict[str, str], **headers: Any) -> dict[str, str]:
    """The cookies that are set, by name, with their attributes."""
    client.cookies.clear()
    answer = await client.post(path, data=form, headers=headers)
    assert answer.status_code == 303, answer.text
    pairs = (one.partition("=") for one in answer.headers.get_list("set-cookie"))
    return {name: rest for name, _, rest in pairs}


async def is_signed_in(client: httpx2.AsyncClient, name: str, cookie: str) -> bool:
    client.cookies.clear()
    page = await client.get("/my", headers={"cookie": cookie})
    return page.status_code == 200 and name in page.text


async def test_the_cookie_has_the_host_prefix_and_works(secure: httpx2.AsyncClient) -> None:
    ann = person()

    cookies = await sent(secure, "/sign-up", ann)

    assert set(cookies) == {"__Host-holdfast", "holdfast_name"}
    assert {"Secure", "Path=/", "SameSite=Lax"} <= set(cookies["holdfast_name"].split("; "))
    value, *attributes = cookies["__Host-holdfast"].split("; ")
    assert {"Secure", "Path=/", "HttpOnly", "SameSite=Lax"} <= set(attributes)
    assert not [one for one in attributes if one.startswith("Domain")]  # with one, a browser refuses it
    assert await is_signed_in(secure, ann["name"], f"__Host-holdfast={value}")


async def test_a_session_of_the_old_name_continues_and_is_renamed_at_the_next_sign_in(
    app: App, api: httpx2.AsyncClient, secure: httpx2.AsyncClient
) -> None:
    ann = person()
    old = (await sent(api, "/sign-up", ann, **LIKE_A_BROWSER))["holdfast"].split("; ")[0]
    assert await is_signed_in(secure, ann["name"], f"holdfast={old}")
    await prove_address(app.postgres, ann["email"])

    cookies = await sent(secure, "/sign-in", ann, cookie=f"holdfast={old}")

    assert "Max-Age=0" in cookies["holdfast"]
    new = cookies["__Host-holdfast"].split("; ")[0]
    assert await is_signed_in(secure, ann["name"], f"holdfast=planted; __Host-holdfast={new}")


async def test_signing_out_clears_both_names(secure: httpx2.AsyncClient) -> None:
    ann = person()
    value = (await sent(secure, "/sign-up", ann))["__Host-holdfast"].split("; ")[0]

    cookies = await sent(secure, "/sign-out", {}, cookie=f"holdfast=old; __Host-holdfast={value}")

    assert all("Max-Age=0" in cookies[name] for name in ("holdfast", "__Host-holdfast"))
    assert not await is_signed_in(secure, ann["name"], f"__Host-holdfast={value}")
