"""R4: whole responses cached as bytes: rendered once for a stampede, found by their address, and cleared."""

import asyncio

import pytest

from holdfast.engines.errors import EngineDown
from holdfast.web.response_cache import (
    CACHED_QUERY_LENGTH_MAX,
    CACHED_RESPONSES_MAX,
    CacheableResponse,
    ResponseCache,
)
from holdfast.web.responses import EncodedResponse

ADDRESS = ("/api/v1/shows/7", b"")


class Kitchen:
    """Makes answers, counts them, and may be closed."""

    def __init__(self) -> None:
        self.made = 0
        self.is_closed = False

    async def make(self) -> object:
        await asyncio.sleep(0)
        if self.is_closed:
            raise EngineDown("ledger")
        self.made += 1
        return {"made": self.made}

    def page(self, *key: int) -> CacheableResponse:
        return CacheableResponse(("show", *key), self.make, "public, max-age=1")


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


async def test_a_stampede_is_one_making(kitchen: Kitchen) -> None:
    pages = ResponseCache(1000)

    answers = await asyncio.gather(*(pages.get(kitchen.page(7), ADDRESS) for _ in range(200)))

    assert kitchen.made == 1
    assert len({id(answer) for answer in answers}) == 1


async def test_a_response_is_found_at_every_address_it_was_requested_from(kitchen: Kitchen) -> None:
    pages, other = ResponseCache(1000), ("/api/v1/shows/7", b"x=1")
    before = pages.find(ADDRESS)

    ready = await pages.get(kitchen.page(7), ADDRESS)
    await pages.get(kitchen.page(7), other)

    assert before is None
    assert pages.find(ADDRESS) is pages.find(other) is ready
    assert pages.find(("/api/v1/shows/8", b"")) is None


async def test_cleared_responses_are_rendered_again(kitchen: Kitchen) -> None:
    pages = ResponseCache(1000)
    await pages.get(kitchen.page(7), ADDRESS)

    pages.clear()

    assert pages.find(ADDRESS) is None
    assert (await pages.get(kitchen.page(7), ADDRESS)).body == b'{"made":2}'


async def test_a_stale_response_is_rendered_again_or_served_as_it_was(kitchen: Kitchen) -> None:
    pages = ResponseCache(0)
    first = await pages.get(kitchen.page(7), ADDRESS)
    second = await pages.get(kitchen.page(7), ADDRESS)

    kitchen.is_closed = True

    assert (first.body, second.body) == (b'{"made":1}', b'{"made":2}')
    assert await pages.get(kitchen.page(7), ADDRESS) is second
    with pytest.raises(EngineDown):
        await pages.get(kitchen.page(8))


async def test_strangers_do_not_fill_our_memory_with_addresses(kitchen: Kitchen) -> None:
    pages, long = ResponseCache(1000), ("/api/v1/search", b"q=" + b"a" * CACHED_QUERY_LENGTH_MAX)

    await pages.get(kitchen.page(7), long)
    for n in range(CACHED_RESPONSES_MAX + 10):
        await pages.get(kitchen.page(7), ("/api/v1/search", b"%d" % n))

    assert pages.find(long) is None
    assert len(pages._addresses) <= CACHED_RESPONSES_MAX


@pytest.mark.parametrize(
    "known, status",
    [(None, 200), (b'"a"', 304), (b'W/"a"', 304), (b'"b", "a"', 304), (b"*", 304), (b'"b"', 200)],
)
def test_a_client_with_the_current_version_gets_a_304_with_the_cache_headers(
    known: bytes | None, status: int
) -> None:
    answer = EncodedResponse(b"{}", '"a"', "public, max-age=1").to(
        {} if known is None else {b"if-none-match": known}
    )

    assert answer.status_code == status
    assert (b"cache-control", b"public, max-age=1") in answer.raw_headers
    assert (b"etag", b'"a"') in answer.raw_headers
