"""Response cache: whole responses as bytes with their ETag, rendered at most once per second (R4).

    path and query ──► find_cached      cached and fresh: returned at once, before a Request is built
                   └─► respond_cached   else the request is parsed, and the response is rendered once for all
                                        callers that wait for it

JSON responses are in `ResponseCache`, pages of the site in the cache that `build_page_cache` returns.
While PostgreSQL is unreachable, the last response is returned, however old (stale-if-error).
"""

import gzip
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
from holdfast.web.responses import EncodedResponse
from holdfast.web.routing import get_app, scope_app

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Make = Callable[[], Awaitable[object]]
Address = tuple[str, bytes]  # path and query, as they were sent

STALE_FACTOR = 2  # the maximum age of a response, as a multiple of the time for which it is fresh
SLOW_FRESH, SLOW_STALE = 30, 60
CACHED_RESPONSES_MAX = 2_000
CACHED_QUERY_LENGTH_MAX = 200  # longer queries are not cached, so that clients cannot fill the memory
PAGE_FRESH_S, PAGE_STALE_S = 1.0, 2.0  # of the site's pages; they show how many seats are left
PAGE_GZIP_LEVEL = 5

# Short enough that counts are under 5 s old behind one more cache, long enough for a stampede.
SECONDS = "public, max-age=1, stale-while-revalidate=2"
MINUTE = "public, max-age=30, stale-while-revalidate=60"


@dataclass(frozen=True, slots=True)
class CacheableResponse:
    """Identifies a response, and renders it. Two with the same key are the same response."""

    key: tuple[Hashable, ...]
    make: Make = field(compare=False)
    cache_control: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CacheablePage:
    """Identifies a page of the site, and renders it."""

    key: tuple[Hashable, ...]
    make: Callable[[], Awaitable[bytes]] = field(compare=False)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    body: bytes
    packed: bytes  # gzipped
    etag: str


Encoded = Cache[CacheableResponse, EncodedResponse]


class ResponseCache:
    def __init__(self, fresh_s: float) -> None:
        self._fresh_s = fresh_s
        self.clear()

    def clear(self) -> None:
        """After a change: this process serves it at once, the others within seconds."""
        self._fast = _encoded_cache(self._fresh_s, self._fresh_s * STALE_FACTOR)
        self._slow = _encoded_cache(self._fresh_s * SLOW_FRESH, self._fresh_s * SLOW_STALE)
        self._addresses: dict[Address, tuple[Encoded, CacheableResponse]] = {}

    def find(self, address: Address) -> EncodedResponse | None:
        """Return the response that this address had before, if it is fresh; never waits."""
        known = self._addresses.get(address)
        return None if known is None else known[0].peek(known[1])

    async def get(
        self, response: CacheableResponse, address: Address | None = None, *, is_slow: bool = False
    ) -> EncodedResponse:
        """Render at most once per second, or twice per minute if the content changes slowly."""
        cache = self._slow if is_slow else self._fast
        encoded = await fresh_or_stale(cache, response)
        if (
            address is not None
            and address not in self._addresses
            and len(address[1]) <= CACHED_QUERY_LENGTH_MAX
        ):
            if len(self._addresses) >= CACHED_RESPONSES_MAX:
                self._addresses.clear()
            self._addresses[address] = (cache, response)
        return encoded


def find_cached(scope: Scope) -> Response | None:
    """Return a fresh response for this address. Reads only the address and If-None-Match of the request."""
    state = scope["state"]
    encoded = scope_app(scope).catalogue.pages.find((scope["path"], scope["query_string"]))
    return None if encoded is None else encoded.to(state["headers"])


async def respond_cached(
    request: Request, key: tuple[Hashable, ...], make: Make, *, is_slow: bool = False
) -> Response:
    """Return the response under this key; from now on `find_cached` finds it at this address, too."""
    response = CacheableResponse(key, make, MINUTE if is_slow else SECONDS)
    address = (request.scope["path"], request.scope["query_string"])
    encoded = await get_app(request).catalogue.pages.get(response, address, is_slow=is_slow)
    return encoded.to(request.state.headers)


async def fresh_or_stale(cache: Cache[Key, Value], key: Key) -> Value:
    """Return the cached value, or a new one; while the engine is down, the stale one (stale-if-error)."""
    try:
        return await cache.get(key)
    except EngineDown:
        if (old := cache.stale(key)) is None:
            raise
        return old


def build_page_cache() -> Cache[CacheablePage, RenderedPage]:
    """The cache for pages of the site that are the same for every visitor."""
    return Cache(_render_page, fresh_s=PAGE_FRESH_S, stale_max_s=PAGE_STALE_S, size_max=CACHED_RESPONSES_MAX)


async def _render_page(page: CacheablePage) -> RenderedPage:
    body = await page.make()
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return RenderedPage(body, gzip.compress(body, PAGE_GZIP_LEVEL, mtime=0), etag)


def _encoded_cache(fresh_s: float, stale_max_s: float) -> Encoded:
    return Cache(_encode, fresh_s=fresh_s, stale_max_s=stale_max_s, size_max=CACHED_RESPONSES_MAX)


async def _encode(response: CacheableResponse) -> EncodedResponse:
    body = msgspec.json.encode(await response.make())
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    return EncodedResponse(body, etag, response.cache_control)
