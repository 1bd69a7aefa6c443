"""Links to Redis or Valkey, each knowing which server it talks to.

Retries of the client are off: a lost reply means *unknown*, and only the caller, with its request id,
may ask again (with retries on, one INCR was seen to run eleven times).

A link remembers the server's run id. A restarted server breaks every link, so a script that gets
the link's run id can tell whether the keys it finds were written by this very server or came back
from a disk that may be a second behind.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as LinkLost
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as LinkTimeout

from holdfast.engines.errors import EngineDown

# After a failure no caller tries for this long: a dead Redis costs a moment, not one time-out per caller.
DOWN_FOR_S = 0.25
LOST = (OSError, TimeoutError, LinkLost, LinkTimeout, ReadOnlyError)
# LOADING, MASTERDOWN, CLUSTERDOWN, OOM, MISCONF: it answers, but it cannot serve.
UNFIT = ("LOADING", "MASTERDOWN", "CLUSTERDOWN", "OOM", "MISCONF", "TRYAGAIN", "BUSY ")
KEY_LINE = re.compile(r"^-- KEYS\[(\d+)\]", re.MULTILINE)
INCLUDE = re.compile(r"^-- include (?:([\w.]+)/)?(\w+)$", re.MULTILINE)


class Script:
    """A Lua file of a package. Its header names the keys; `-- include name` inserts another file."""

    def __init__(self, package: str, name: str) -> None:
        own = _text(package, name)
        self.name = name
        self.source = _include(package, own)
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        self.key_count = len(KEY_LINE.findall(own))


def _include(package: str, text: str) -> str:
    """The text with its includes, and theirs."""
    return INCLUDE.sub(
        lambda found: _include(found[1] or package, _text(found[1] or package, found[2])), text
    )


def _text(package: str, name: str) -> str:
    return (resources.files(package) / f"{name}.lua").read_text()


class Link:
    """One connection, and the run id of the server at its other end."""

    def __init__(self, connection: AbstractConnection, run_id: str) -> None:
        self.connection = connection
        self.run_id = run_id

    async def call(self, *command: Any) -> Any:
        await self.connection.send_command(*command)
        return await self.connection.read_response()

    async def script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        assert len(keys) == script.key_count, "the header names the keys; pass exactly those"
        try:
            return await self.call("EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:  # new server, restart, SCRIPT FLUSH
            return await self.call("EVAL", script.source, len(keys), *keys, *args)

    async def scripts(
        self, script: Script, calls: Sequence[tuple[Sequence[str], Sequence[Any]]]
    ) -> list[Any | ResponseError]:
        """The same script for several sets of keys in one round trip. A failed call has its error as reply:
        the others were carried out, and their callers get their answers."""
        if len(calls) == 1:
            return [await self._reply_or_error(self.script(script, *calls[0]))]
        commands = [("EVALSHA", script.sha, len(keys), *keys, *args) for keys, args in calls]
        await self.connection.send_packed_command(self.connection.pack_commands(commands))
        replies = [await self._reply_or_error(self.connection.read_response()) for _ in calls]
        for position, (keys, args) in enumerate(calls):
            if isinstance(replies[position], NoScriptError):
                replies[position] = await self._reply_or_error(self.script(script, keys, args))
        return replies

    async def _reply_or_error(self, reply: Awaitable[Any]) -> Any | ResponseError:
        """Errors of one call are replies; those of the server (read-only, out of memory, …) are raised."""
        try:
            return await reply
        except ResponseError as error:
            is_of_call = type(error) in (ResponseError, NoScriptError) and not str(error).startswith(UNFIT)
            if not is_of_call:
                raise
            return error


class Redis:
    def __init__(self, url: str, *, links_max: int, timeout_s: float, name: str = "holds") -> None:
        self._pool = ConnectionPool.from_url(
            url, retry=Retry(NoBackoff(), 0), socket_timeout=None, socket_connect_timeout=timeout_s
        )
        self._timeout_s = timeout_s
        self._name = name  # in errors
        self._idle: list[Link] = []
        self._places = asyncio.Semaphore(links_max)
        self._down_until = 0.0

    @property
    def is_down(self) -> bool:
        return time.monotonic() < self._down_until

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().connection.disconnect(nowait=True)

    async def call(self, *command: Any) -> Any:
        async with self.lease() as link:
            return await link.call(*command)

    async def script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        async with self.lease() as link:
            return await link.script(script, keys, args)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Link]:
        """A link for a few calls. Trouble closes it: what was sent on it may have been carried out."""
        async with self._places:
            link = self._idle.pop() if self._idle else await self._connect()
            try:
                async with asyncio.timeout(self._timeout_s):
                    yield link
            except LOST as error:
                await self._drop(link)
                raise self._down(unknown=True) from error
            except ResponseError as error:
                await self._drop(link)
                if str(error).startswith(UNFIT):
                    raise self._down(unknown=False) from error
                raise
            except BaseException:
                await self._drop(link)
                raise
            self._idle.append(link)

    async def _connect(self) -> Link:
        if self.is_down:
            raise EngineDown(self._name)
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(self._timeout_s):
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_command("INFO", "server")
                return Link(connection, _run_id(await connection.read_response()))
        except (*LOST, RedisError) as error:
            await connection.disconnect(nowait=True)
            raise self._down(unknown=False) from error

    async def _drop(self, link: Link) -> None:
        await link.connection.disconnect(nowait=True)

    def _down(self, *, unknown: bool) -> EngineDown:
        self._down_until = time.monotonic() + DOWN_FOR_S
        idle, self._idle = self._idle, []
        for link in idle:  # they talk to the same server; a fresh link finds out which one it is now
            link.connection._close()  # type: ignore[no-untyped-call]
        return EngineDown(self._name, unknown=unknown)


def _run_id(info: bytes | str) -> str:
    text = info.decode() if isinstance(info, bytes) else info
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("run_id:"))
