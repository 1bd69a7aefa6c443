"""Values cached in a process: what is dropped while it is being loaded does not come back."""

import asyncio

from holdfast.engines.cache import Cache


class Source:
    """Its value, read at once and returned when `may_return` is set."""

    def __init__(self, value: str) -> None:
        self.value = value
        self.may_return = asyncio.Event()
        self.reads = 0

    async def load(self, key: int) -> str:
        self.reads += 1
        read = self.value
        await self.may_return.wait()
        return read


def a_cache(source: Source) -> Cache[int, str]:
    return Cache(source.load, fresh_s=60)


async def begin(cache: Cache[int, str]) -> asyncio.Task[str]:
    loading = asyncio.create_task(cache.renew(1))
    await asyncio.sleep(0.01)
    return loading


async def test_a_load_that_began_before_a_drop_is_not_cached() -> None:
    """A membership that was read before its end would admit the removed member for seconds."""
    source = Source("member")
    cache = a_cache(source)
    loading = await begin(cache)

    source.value = "removed"
    cache.drop(1)
    source.may_return.set()

    assert await loading == "member"  # it was called before the change
    assert cache.peek(1) is None
    assert await cache.get(1) == "removed"
    assert cache.peek(1) == "removed"


async def test_after_a_drop_no_caller_joins_a_load_that_began_before() -> None:
    source = Source("before")
    cache = a_cache(source)
    loading = await begin(cache)
    source.value = "after"
    cache.drop(1)

    renewing = await begin(cache)
    source.may_return.set()

    assert (await loading, await renewing) == ("before", "after")
    assert cache.peek(1) == "after"
    assert source.reads == 2


async def test_callers_at_once_share_one_load() -> None:
    source = Source("one")
    cache = a_cache(source)
    loading, joining = await begin(cache), await begin(cache)
    source.may_return.set()

    assert {await loading, await joining, await cache.get(1)} == {"one"}
    assert source.reads == 1
