"""A log in Valkey or Redis: a stream whose entry ids are the positions."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.exceptions import ResponseError

from holdfast.engines.bus import BusPlace, Message, OutOfStep, Reader
from holdfast.engines.errors import EngineDown
from holdfast.engines.open_redis import open_redis
from holdfast.engines.redis import Script

APPEND = Script("holdfast.engines.buses", "append")
LINKS_MAX = 16  # a reader that waits keeps one
WAIT_MAX_S = 1.0


class ValkeyBus:
    def __init__(self, place: BusPlace) -> None:
        timeout_s = place.timeout_s + WAIT_MAX_S
        self._redis = open_redis(place.url, links_max=LINKS_MAX, timeout_s=timeout_s)
        self._key = f"bus:{{{place.name}}}"
        self._messages_max = place.messages_max

    async def append(self, messages: Sequence[Message], end: int) -> None:
        words: list[Any] = [end, self._messages_max]
        for message in messages:
            words += [message.position, message.after, message.body]
        match await self._ask(self._redis.script(APPEND, [self._key], words)):
            case [b"appended"]:
                return
            case [b"last", position]:
                raise OutOfStep(int(position))
            case reply:
                raise AssertionError(f"append.lua answered {reply!r}")

    async def last(self) -> int:
        try:
            info = await self._ask(self._redis.call("XINFO", "STREAM", self._key))
        except ResponseError:  # no such key
            return 0
        # A map in RESP3; in RESP2 its names and values in turn.
        found = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=True))
        return int(found[b"last-generated-id"].split(b"-")[0])

    async def clear(self) -> None:
        await self._ask(self._redis.call("DEL", self._key))

    def reader(self) -> Reader:
        return self

    async def read(self, after: int, limit: int, wait_s: float) -> list[Message]:
        wait_ms = int(min(wait_s, WAIT_MAX_S) * 1000)
        waiting = ("BLOCK", wait_ms) if wait_ms else ()
        found = await self._ask(
            self._redis.call("XREAD", "COUNT", limit, *waiting, "STREAMS", self._key, f"{after}-0")
        )
        if not found:
            return []
        [(_key, entries)] = found.items() if isinstance(found, dict) else found
        return [_message(*entry) for entry in entries]

    async def close(self) -> None:
        await self._redis.close()

    async def _ask(self, asking: Any) -> Any:
        try:
            return await asking
        except EngineDown as down:
            raise EngineDown("bus", unknown=down.unknown) from down
        except asyncio.CancelledError:
            raise


def _message(entry_id: bytes, words: list[bytes]) -> Message:
    fields = dict(zip(words[::2], words[1::2], strict=True))
    return Message(int(entry_id.split(b"-")[0]), int(fields[b"after"]), fields[b"body"])
