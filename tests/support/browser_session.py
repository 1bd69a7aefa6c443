"""A visitor whose browser runs no scripts: it stores cookies, follows redirects and sends forms."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.config import Config
from holdfast.web.asgi import Application
from tests.conftest import started
from tests.support.opened import asgi_app

ANN = {"name": "Ann Otter", "email": "ann@example.org"}
SITE = "http://box.office"
LIKE_A_BROWSER = {"accept": "text/html", "accept-language": "en-GB,en", "sec-fetch-site": "same-origin"}
REDIRECTS_MAX = 5


def booking_key(path: str) -> tuple[int, int]:
    """Show and number of the booking with this page."""
    return from_public_id(path.split("/")[2])


async def state_of(app: App, path: str) -> str:
    """Of the booking with this page, as the ledger has it."""
    booking = await app.bookings.booking(*booking_key(path))
    assert booking is not None
    return booking.state


@dataclass
class Form:
    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)


class Forms(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Form] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(given.get("method", "get"), given.get("action", "")))
            self.inside = True
        is_sent = given.get("type") not in ("checkbox", "radio") or "checked" in given
        if tag in ("input", "button") and self.inside and given.get("name") and is_sent:
            self.found[-1].fields.append((given["name"], given.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "form"


@dataclass
class Visitor:
    client: httpx2.AsyncClient
    text: str = ""
    at: str = "/"
    status: int = 0
    headers: Any = None

    async def goes(self, path: str) -> "Visitor":
        await self._see(await self.client.get(path), path)
        return self

    async def holds(self, show: int, *seats: str) -> str:
        """Through the form of the show; the page of the booking is open afterwards. Its path."""
        answer = await self.client.post(f"/shows/{show}/hold", data={"seats": list(seats)})
        await self._see(answer, f"/shows/{show}/hold")
        assert self.at.startswith("/bookings/"), self.text
        return self.at

    async def sends(self, what: str, **fields: str | list[str]) -> "Visitor":
        """The form of the page whose address ends so, as it is, with what is typed into it."""
        form = next((f for f in Forms(self.text).found if f.action.endswith(what)), None)
        assert form is not None, f"no form {what} at {self.at}"
        data: dict[str, Any] = {}
        for name, value in form.fields:
            data.setdefault(name, []).append(value)
        await self._see(await self.client.post(form.action, data={**data, **fields}), form.action)
        return self

    async def pays(self, choice: str = "pay", **fields: str) -> "Visitor":
        """The form, then the gateway's page, then back to where it sends them."""
        await self.sends("/pay", **fields)
        return await self.chooses(choice)

    async def chooses(self, choice: str) -> "Visitor":
        """On the gateway's page, which is open."""
        async with aiohttp.ClientSession() as session:
            async with session.post(self.at, data={"choice": choice}, allow_redirects=False) as answer:
                assert answer.status == 303, await answer.text()
                back = urlsplit(answer.headers["Location"])
        assert f"{back.scheme}://{back.netloc}" == str(self.client.base_url).rstrip("/")
        return await self.goes(back.path)

    async def sees_states(self, show: int, states: str) -> bool:
        """Whether the map has these states; a snapshot may be cached for a moment."""
        return bool((await self.client.get(f"/api/v1/shows/{show}/seats")).json()["states"] == states)

    def says(self, sentence: str) -> bool:
        return sentence in " ".join(unescape(self.text).split())

    async def _see(self, answer: httpx2.Response, path: str) -> None:
        for _ in range(REDIRECTS_MAX):
            if answer.status_code != 303:
                break
            path = answer.headers["location"]
            if not path.startswith("/"):  # away, to the gateway
                self.at, self.text, self.status = path, "", 303
                return
            answer = await self.client.get(path)
        self.at, self.status, self.headers = path.partition("?")[0], answer.status_code, answer.headers
        self.text = answer.text


@asynccontextmanager
async def a_site(config: Config) -> AsyncIterator[Application]:
    application = asgi_app(config)
    async with started(application):
        yield application


@asynccontextmanager
async def a_visitor(application: Application) -> AsyncIterator[Visitor]:
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url=SITE, headers=LIKE_A_BROWSER) as client:
        yield Visitor(client)
