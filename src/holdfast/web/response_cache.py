"""Whole answers, kept as bytes with their ETag: made once a second at most, however many ask (R4).

    path and query ──► ready_page   lies ready and is fresh: given at once, before a Request is made
                   └─► kept_page    else what is asked for is understood, and made or waited for, once for all

While PostgreSQL cannot be reached the last answer is given, however old.
"""

import hashlib
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from holdfast.engines.cache import Cache
from holdfast.engines.errors import EngineDown
from holdfast.web.context import get_app, scope_app
from holdfast.web.responses import Ready

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Make = Callable[[], Awaitable[object]]
Address = tuple[str, bytes]  # path and query, as they were sent

PAGE_STALE = 2  # how old a page may get, as a multiple of how often it is made
SLOW_FRESH, SLOW_STALE = 30, 60
PAGES_KEPT_MAX = 2_000
QUERY_KEPT_LENGTH_MAX = 200  # a stranger may send longer ones, and should not fill our memory with them

# Short enough that counts are under 5 s old for who reads through one more cache, long enough for a stampede.
SECONDS = "public, max-age=1, stale-while-revalidate=2"
MINUTE = "public, max-age=30, stale-while-revalidate=60"


@dataclass(frozen=True, slots=True)
class Page:
    """Which answer, and how to make it. Two with the same key are the same answer."""

    key: tuple[Hashable, ...]
    make: Make = field(compare=False)
    keep: str = field(default="", compare=False)  # its Cache-Control


class KeptPages:
    def __init__(self, fresh_s: float) -> None:
        self._fresh_s = fresh_s
        self.forget()

    def forget(self) -> None:
        """Something was changed here: this process tells it at once, the others within seconds."""
        self._pages = _page_cache(self._fresh_s, self._fresh_s * PAGE_STALE)
        self._slow_pages = _page_cache(self._fresh_s * SLOW_FRESH, self._fresh_s * SLOW_STALE)
        self._addresses: dict[Address, tuple[Cache[Page, Ready], Page]] = {}

    def at(self, address: Address) -> Ready | None:
        """What was asked for at this address before, if it is fresh; never waits."""
        known = self._addresses.get(address)
        return None if known is None else known[0].peek(known[1])

    async def get(self, page: Page, address: Address | None = None, *, is_slow: bool = False) -> Ready:
        """Made at most once a second; what is slow to change, twice a minute."""
        cache = self._slow_pages if is_slow else self._pages
        ready = await young_or_old(cache, page)
        if (
            address is not None
            and address not in self._addresses
            and len(address[1]) <= QUERY_KEPT_LENGTH_MAX
        ):
            if len(self._addresses) >= PAGES_KEPT_MAX:
                self._addresses.clear()
            self._addresses[address] = (cache, page)
        return ready


def ready_page(scope: Scope) -> Response | None:
    """What lies ready for this address. Of the request, nothing is read but that and If-None-Match."""
    state = scope["state"]
    ready: Ready | None = scope_app(scope).catalogue.pages.at((scope["path"], scope["query_string"]))
    return None if ready is None else ready.to(state["headers"])


async def kept_page(
    request: Request, key: tuple[Hashable, ...], make: Make, *, is_slow: bool = False
) -> Response:
    """The answer under this key; from now on `ready_page` finds it at this address, too."""
    page, address = (
        Page(key, make, MINUTE if is_slow else SECONDS),
        (request.scope["path"], request.scope["query_string"]),
    )
    ready: Ready = await get_app(request).catalogue.pages.get(page, address, is_slow=is_slow)
    return ready.to(request.state.headers)


async def young_or_old(cache: Cache[Key, Value], key: Key) -> Value:
    """What is kept, if it is young enough; else a new one; else, while the engine is down, the old one."""
    try:
        return await cache.get(key)
    except EngineDown:
        if (old := cache.stale(key)) is None:
            raise
        return old


def _page_cache(fresh_s: float, stale_max_s: float) -> Cache[Page, Ready]:
    return Cache(_make_ready, fresh_s=fresh_s, stale_max_s=stale_max_s, size_max=PAGES_KEPT_MAX)


async def _make_ready(page: Page) -> Ready:
    body = msgspec.json.encode(await page.make())
    return Ready(body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"', page.keep)
