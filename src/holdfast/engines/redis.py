"""Links to Redis or Valkey, each knowing which server it talks to.

Retries of the client are off: a lost reply means *unknown*, and only the caller, with its request id,
may ask again (with retries on, one INCR was seen to run eleven times).

A link remembers the server's run id. A restarted server breaks every link, so a script that gets
the link's run id can tell whether the keys it finds were written by this very server or came back
from a disk that may be a second behind. The same holds for a replica that became the primary, and for a key
that moved to another node of a cluster.

`Redis` is what the rest of the code uses. Its kinds: `RedisServer` here, `redis_sentinel.py`,
`redis_cluster.py`; `open_redis.py` chooses one by the address.
"""

import asyncio
import hashlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, NamedTuple

from hiredis import pack_command  # in C; redis-py uses it for connections without asyncio alone
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    ClusterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LinkLost
from redis.exceptions import TimeoutError as LinkTimeout

from holdfast.engines.errors import EngineDown
from holdfast.engines.tracing import child, note

# After a failure no caller tries for this long: a dead Redis costs a moment, not one time-out per caller.
DOWN_FOR_S = 0.25
LOST = (OSError, TimeoutError, LinkLost, LinkTimeout, ReadOnlyError)
# It answers, but it cannot serve. Other such errors have a class of their own, and no code in their text.
UNFIT = ("MISCONF", "BUSY ", "NOREPLICAS", "UNBLOCKED")
# About one slot of a cluster: the link and its server are well.
OF_SLOT = (AskError, TryAgainError, ClusterDownError)
UNFIT_KINDS = (OutOfMemoryError, *OF_SLOT)
KEY_LINE = re.compile(r"^-- KEYS\[(\d+)\]", re.MULTILINE)
RUN_ID_LINE = re.compile(r"^-- ARGV +run id\b", re.MULTILINE)
INCLUDE = re.compile(r"^-- include (?:([\w.]+)/)?(\w+)$", re.MULTILINE)

SPAN_OF_REDIS = {"db.system.name": "redis"}
Call = tuple[Sequence[str], Sequence[Any]]  # keys and arguments of a script


class Script:
    """A Lua file of a package. Its header names the keys; `-- include name` inserts another file.

    If its first argument is the run id, the link adds it: which server runs the script is known only when a
    link to it was chosen.
    """

    def __init__(self, package: str, name: str) -> None:
        own = _text(package, name)
        self.name = name
        self.source = _include(package, own)
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        self.key_count = len(KEY_LINE.findall(own))
        self.takes_run_id = RUN_ID_LINE.search(own) is not None


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
        with child("redis", command[0], "client", SPAN_OF_REDIS):
            return await self._ask(*command)

    async def _ask(self, *command: Any) -> Any:
        """Every single command goes through here: redis_cluster.py adds ASKING to it."""
        await self.connection.send_packed_command(pack_command(command))
        return await self.connection.read_response()

    async def script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        assert len(keys) == script.key_count, "the header names the keys; pass exactly those"
        if script.takes_run_id:
            args = (self.run_id, *args)
        with child("redis", script.name, "client", SPAN_OF_REDIS):
            try:
                return await self._ask("EVALSHA", script.sha, len(keys), *keys, *args)
            except NoScriptError:  # new server, restart, SCRIPT FLUSH
                return await self._ask("EVAL", script.source, len(keys), *keys, *args)

    async def scripts(self, script: Script, calls: Sequence[Call]) -> list[Any | ResponseError]:
        """The same script for several sets of keys in one round trip. A failed call has its error as reply:
        the others were carried out, and their callers get their answers."""
        if len(calls) == 1:
            return [await self._reply_or_error(self.script(script, *calls[0]))]
        first = (self.run_id,) if script.takes_run_id else ()
        with child("redis", script.name, "client", SPAN_OF_REDIS):
            note("db.operation.batch.size", len(calls))
            replies = await self.calls(
                [("EVALSHA", script.sha, len(keys), *keys, *first, *args) for keys, args in calls]
            )
        for position, (keys, args) in enumerate(calls):
            if isinstance(replies[position], NoScriptError):
                replies[position] = await self._reply_or_error(self.script(script, keys, args))
        return replies

    async def calls(self, commands: Sequence[tuple[Any, ...]]) -> list[Any | ResponseError]:
        """Several commands in one round trip; errors as for `scripts`."""
        await self.connection.send_packed_command(b"".join(map(pack_command, commands)))
        return [await self._reply_or_error(self.connection.read_response()) for _ in commands]

    async def _reply_or_error(self, reply: Awaitable[Any]) -> Any | ResponseError:
        """Errors of one call are replies; those of the server (read-only, out of memory, …) are raised."""
        try:
            return await reply
        except ResponseError as error:
            is_of_call = type(error) in (ResponseError, NoScriptError) and not str(error).startswith(UNFIT)
            if not is_of_call and not isinstance(error, OF_SLOT):
                raise
            return error


class StreamsRead(NamedTuple):
    found: list[tuple[str, Any]]  # key and entries of the streams that have some
    unread: list[str]  # keys whose node of a cluster cannot be reached now


class Redis(ABC):
    """One server, or several that share the keys. Every method raises EngineDown if the one is away that
    has the key; `scripts` and `read_streams` return what the others have answered."""

    @abstractmethod
    async def call(self, *command: Any) -> Any: ...

    @abstractmethod
    async def call_with_run_id(self, *command: Any) -> tuple[Any, str]:
        """The reply, and the run id of the server that gave it."""

    @abstractmethod
    async def script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any: ...

    @abstractmethod
    async def scripts(
        self, script: Script, calls: Sequence[Call]
    ) -> Sequence[Any | ResponseError | EngineDown]:
        """The same script for several sets of keys, in one round trip per server."""

    @abstractmethod
    async def read_streams(self, after: Mapping[str, str], *, count: int, block_ms: int) -> StreamsRead:
        """Entries of each stream after the given id, at most `count`; waits up to `block_ms` for one."""

    @abstractmethod
    async def is_reachable(self) -> bool:
        """Whether any server answers."""

    @abstractmethod
    async def close(self) -> None: ...


class RedisServer(Redis):
    """Links to one server."""

    def __init__(self, url: str, *, links_max: int, timeout_s: float, name: str = "holds") -> None:
        self._pool = build_pool(url, timeout_s)
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

    async def call_with_run_id(self, *command: Any) -> tuple[Any, str]:
        async with self.lease() as link:
            return await link.call(*command), link.run_id

    async def script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        async with self.lease() as link:
            return await link.script(script, keys, args)

    async def scripts(self, script: Script, calls: Sequence[Call]) -> list[Any | ResponseError]:
        async with self.lease() as link:
            return await link.scripts(script, calls)

    async def read_streams(self, after: Mapping[str, str], *, count: int, block_ms: int) -> StreamsRead:
        found = await self.call(
            "XREAD", "COUNT", count, "BLOCK", block_ms, "STREAMS", *after, *after.values()
        )
        return StreamsRead(parse_streams(found), [])

    async def is_reachable(self) -> bool:
        try:
            return bool(await self.call("PING"))
        except EngineDown:
            return False

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
                if self._is_of_slot(error):
                    self._idle.append(link)
                    raise
                await self._drop(link)
                if isinstance(error, UNFIT_KINDS) or str(error).startswith(UNFIT):
                    raise self._down(unknown=False) from error
                raise
            except BaseException:
                await self._drop(link)
                raise
            self._idle.append(link)

    def _is_of_slot(self, error: ResponseError) -> bool:
        """Whether a router has to look at it; the link has read its whole reply."""
        return False

    async def _connect(self) -> Link:
        if self.is_down:
            raise EngineDown(self._name)
        connection: AbstractConnection | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._new_connection()
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_command("INFO", "server")
                link = Link(connection, parse_run_id(await connection.read_response()))
                await self._check(link)
                return link
        except (*LOST, RedisError) as error:
            if connection is not None:
                await connection.disconnect(nowait=True)
            raise self._down(unknown=False) from error

    async def _new_connection(self) -> AbstractConnection:
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]
        return connection

    async def _check(self, link: Link) -> None:
        """Raises LinkLost if this is not the server to use."""

    async def _drop(self, link: Link) -> None:
        await link.connection.disconnect(nowait=True)

    def _down(self, *, unknown: bool) -> EngineDown:
        self._down_until = time.monotonic() + DOWN_FOR_S
        self.drop_idle()  # they talk to the same server; a fresh link finds out which one it is now
        return EngineDown(self._name, unknown=unknown)

    def drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for link in idle:
            link.connection._close()  # type: ignore[no-untyped-call]


def build_pool(url: str, timeout_s: float) -> ConnectionPool:
    """It only makes connections; raises ValueError for a URL that it cannot parse."""
    return ConnectionPool.from_url(
        url, retry=Retry(NoBackoff(), 0), socket_timeout=None, socket_connect_timeout=timeout_s
    )


def parse_run_id(info: bytes | str) -> str:
    text = info.decode() if isinstance(info, bytes) else info
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("run_id:"))


def parse_streams(found: Any) -> list[tuple[str, Any]]:
    """XREAD answers nothing, pairs, or with a newer protocol a map."""
    pairs = found.items() if isinstance(found, dict) else found or ()
    return [(key.decode(), entries) for key, entries in pairs]
