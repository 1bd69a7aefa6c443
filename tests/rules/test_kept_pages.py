"""R4: whole answers, kept as bytes: made once for a stampede, found again by their address, and forgotten."""

import asyncio

import pytest

from holdfast.engines.errors import EngineDown
from holdfast.web.response_cache import PAGES_KEPT_MAX, QUERY_KEPT_LENGTH_MAX, KeptPages, Page
from holdfast.web.responses import Ready

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

    def page(self, *key: int) -> Page:
        return Page(("show", *key), self.make, "public, max-age=1")


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


async def test_a_stampede_is_one_making(kitchen: Kitchen) -> None:
    pages = KeptPages(1000)

    answers = await asyncio.gather(*(pages.get(kitchen.page(7), ADDRESS) for _ in range(200)))

    assert kitchen.made == 1
    assert len({id(answer) for answer in answers}) == 1


async def test_an_answer_lies_ready_at_every_address_it_was_asked_for(kitchen: Kitchen) -> None:
    pages, other = KeptPages(1000), ("/api/v1/shows/7", b"x=1")
    before = pages.at(ADDRESS)

    ready = await pages.get(kitchen.page(7), ADDRESS)
    await pages.get(kitchen.page(7), other)

    assert before is None
    assert pages.at(ADDRESS) is pages.at(other) is ready
    assert pages.at(("/api/v1/shows/8", b"")) is None


async def test_what_has_changed_does_not_lie_ready_any_more(kitchen: Kitchen) -> None:
    pages = KeptPages(1000)
    await pages.get(kitchen.page(7), ADDRESS)

    pages.forget()

    assert pages.at(ADDRESS) is None
    assert (await pages.get(kitchen.page(7), ADDRESS)).body == b'{"made":2}'


async def test_what_is_old_is_made_anew_and_what_cannot_be_is_told_as_it_was(kitchen: Kitchen) -> None:
    pages = KeptPages(0)
    first = await pages.get(kitchen.page(7), ADDRESS)
    second = await pages.get(kitchen.page(7), ADDRESS)

    kitchen.is_closed = True

    assert (first.body, second.body) == (b'{"made":1}', b'{"made":2}')
    assert await pages.get(kitchen.page(7), ADDRESS) is second
    with pytest.raises(EngineDown):
        await pages.get(kitchen.page(8))


async def test_strangers_do_not_fill_our_memory_with_addresses(kitchen: Kitchen) -> None:
    pages, long = KeptPages(1000), ("/api/v1/search", b"q=" + b"a" * QUERY_KEPT_LENGTH_MAX)

    await pages.get(kitchen.page(7), long)
    for n in range(PAGES_KEPT_MAX + 10):
        await pages.get(kitchen.page(7), ("/api/v1/search", b"%d" % n))

    assert pages.at(long) is None
    assert len(pages._addresses) <= PAGES_KEPT_MAX


@pytest.mark.parametrize(
    "known, status",
    [(None, 200), (b'"a"', 304), (b'W/"a"', 304), (b'"b", "a"', 304), (b"*", 304), (b'"b"', 200)],
)
def test_who_has_it_is_told_so_with_how_long_it_is_good(known: bytes | None, status: int) -> None:
    answer = Ready(b"{}", '"a"', "public, max-age=1").to({} if known is None else {b"if-none-match": known})

    assert answer.status_code == status
    assert (b"cache-control", b"public, max-age=1") in answer.raw_headers
    assert (b"etag", b'"a"') in answer.raw_headers
