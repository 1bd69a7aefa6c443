"""A cluster of Redis or Valkey: the slot of a key says which node has it, and each node fails for itself.

    key ─► slot ─► node ─┬─► reply
                         ├─► MOVED: another node has the slot now ─► noted, the table is loaded again ─► there
                         ├─► ASK: this key has moved already, the slot has not ─► there, for this call alone
                         ├─► TRYAGAIN: its keys are on two nodes for a moment ─► again, a few times
                         └─► no reply, CLUSTERDOWN ─► EngineDown: the shows of this node, and no others

Why not redis-py's RedisCluster: docs/decisions/0035. Which failures the steps guard against:
- A script gets the run id of the node that runs it, also after a redirection: with that of the node before,
  it would trust a map that came over in a fail-over and may lack the last claims.
- A node that does not reply is left alone (`is_away`) until it has answered `look`. A batch has calls
  for several nodes: without this, each batch would wait for the time-out of the dead one.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

from redis.exceptions import AskError, ClusterDownError, MovedError, ResponseError, TryAgainError

from holdfast.engines.errors import EngineDown
from holdfast.engines.redis import (
    DOWN_FOR_S,
    OF_SLOT,
    Call,
    Link,
    Redis,
    RedisServer,
    Script,
    StreamsRead,
    parse_streams,
)
from holdfast.engines.redis_url import SLOTS, Address, RedisPlace, find_key, slot_of

REDIRECTS_MAX = 5
TRY_AGAIN_S = 0.005  # then twice as long: a map that moves is on two nodes for some milliseconds
LOAD_PAUSE_S = 0.1  # the table of slots is not loaded more often than this
READ_PAUSE_S = 0.05  # between two looks at streams: nodes do not wait for streams of different slots
TO_ALL = frozenset({"PING", "FLUSHALL", "FLUSHDB"})

T = TypeVar("T")


class ClusterNode(RedisServer):
    """Links to one node. While it is away no caller waits for it; `look` finds out when it is back."""

    address: Address
    is_away = False

    async def look(self) -> bool:
        """Whether it answers; it is used again then."""
        try:
            link = await super()._connect()
        except EngineDown:
            return False
        self._idle.append(link)
        self.is_away = False
        return True

    async def _connect(self) -> Link:
        if self.is_away:
            raise EngineDown(self._name)
        return await super()._connect()

    def _is_of_slot(self, error: ResponseError) -> bool:
        return isinstance(error, OF_SLOT)


class AskingLink(Link):
    """A link to the node that a slot is moving to: each command says that it was sent there by the other."""

    async def _ask(self, *command: Any) -> Any:
        connection = self.connection
        await connection.send_packed_command(connection.pack_commands([("ASKING",), command]))
        await connection.read_response()
        return await connection.read_response()


class RedisCluster(Redis):
    def __init__(self, place: RedisPlace, *, links_max: int, timeout_s: float, name: str = "holds") -> None:
        self._place = place
        self._name = name
        self._links_max, self._timeout_s = links_max, timeout_s
        self._nodes: dict[Address, ClusterNode] = {}
        self._owners: list[ClusterNode | None] = [None] * SLOTS
        self._loading: asyncio.Task[None] | None = None
        self._loaded_at = -LOAD_PAUSE_S
        self._tasks: set[asyncio.Task[None]] = set()

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, *command: Any) -> Any:
        if command[0] in TO_ALL:
            nodes = await self.primaries()
            replies = await asyncio.gather(*(self._call_node(node, *command) for node in nodes))
            return replies[0]
        return await self._ask(_slot_for(command), lambda link: link.call(*command))

    async def call_with_run_id(self, *command: Any) -> tuple[Any, str]:
        async def ask(link: Link) -> tuple[Any, str]:
            return await link.call(*command), link.run_id

        return await self._ask(_slot_for(command), ask)

    async def script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        return await self._ask(slot_of(keys[0]), lambda link: link.script(script, keys, args))

    async def scripts(self, script: Script, calls: Sequence[Call]) -> list[Any | ResponseError | EngineDown]:
        async def send(node: ClusterNode, part: Sequence[Call]) -> list[Any | ResponseError]:
            async with node.lease() as link:
                return await link.scripts(script, part)

        async def send_alone(call: Call) -> Any:
            return await self.script(script, *call)

        return await self._send_by_node(calls, [keys[0] for keys, _ in calls], send, send_alone)

    async def read_streams(self, after: Mapping[str, str], *, count: int, block_ms: int) -> StreamsRead:
        """One round trip per node, and a pause if there is nothing: a cluster refuses to wait for streams of
        several slots at once."""
        commands = [("XREAD", "COUNT", count, "STREAMS", key, last) for key, last in after.items()]

        async def send(node: ClusterNode, part: Sequence[tuple[Any, ...]]) -> list[Any | ResponseError]:
            async with node.lease() as link:
                return await link.calls(part)

        async def send_alone(command: tuple[Any, ...]) -> Any:
            return await self.call(*command)

        replies = await self._send_by_node(commands, list(after), send, send_alone)
        pairs = list(zip(after, replies, strict=True))
        if error := next((reply for reply in replies if isinstance(reply, ResponseError)), None):
            raise error
        found = [parse_streams(reply) for reply in replies if not isinstance(reply, EngineDown)]
        if not any(found):
            await asyncio.sleep(min(block_ms / 1000, READ_PAUSE_S))
        unread = [key for key, reply in pairs if isinstance(reply, EngineDown)]
        return StreamsRead(list(chain.from_iterable(found)), unread)

    async def primaries(self) -> list[ClusterNode]:
        """Every node that has slots."""
        if not any(self._owners):
            await self._load()
        return list(dict.fromkeys(node for node in self._owners if node is not None))

    async def is_reachable(self) -> bool:
        try:
            primaries = await self.primaries()
        except EngineDown:
            return False
        pings = (self._call_node(node, "PING") for node in primaries)
        return not all(
            isinstance(one, EngineDown) for one in await asyncio.gather(*pings, return_exceptions=True)
        )

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError, EngineDown):
                await task
        for node in self._nodes.values():
            await node.close()

    async def _call_node(self, node: ClusterNode, *command: Any) -> Any:
        try:
            return await node.call(*command)
        except EngineDown:
            self._leave_alone(node)
            raise

    # ── routes ───────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, slot: int, ask: Callable[[Link], Awaitable[T]]) -> T:
        """From the node that has the slot, wherever it moves meanwhile. Only refused calls are repeated: a
        node that redirects has done nothing."""
        target: ClusterNode | None = None  # where a slot is moving to, for one try
        for attempt in range(REDIRECTS_MAX):
            node = target or self._owners[slot] or await self._find_owner(slot)
            is_asking, target = target is not None, None
            try:
                async with node.lease() as link:
                    return await ask(AskingLink(link.connection, link.run_id) if is_asking else link)
            except MovedError as moved:
                self._owners[slot] = self._node_at(moved, node)
                self._load_soon()
            except AskError as elsewhere:
                target = self._node_at(elsewhere, node)
            except TryAgainError:
                await asyncio.sleep(TRY_AGAIN_S * 2**attempt)
            except ClusterDownError as error:  # the node is well, but the slot is not served, or none is
                self._load_soon()
                raise EngineDown(self._name) from error
            except EngineDown:
                self._leave_alone(node)
                raise
        raise EngineDown(self._name)

    async def _send_by_node(
        self,
        items: Sequence[T],
        keys: Sequence[str],
        send: Callable[[ClusterNode, Sequence[T]], Awaitable[list[Any | ResponseError]]],
        send_alone: Callable[[T], Awaitable[Any]],
    ) -> list[Any | ResponseError | EngineDown]:
        """One round trip per node, all at once; what was redirected is sent once more, alone. Each item has
        its own reply: a dead node is the reply of its items only."""
        by_node: dict[ClusterNode, list[int]] = {}
        replies: list[Any | ResponseError | EngineDown] = [EngineDown(self._name)] * len(items)
        for position, key in enumerate(keys):
            slot = slot_of(key)
            try:
                node = self._owners[slot] or await self._find_owner(slot)
            except EngineDown:
                continue
            by_node.setdefault(node, []).append(position)

        async def alone(item: T) -> Any | ResponseError | EngineDown:
            try:
                return await send_alone(item)
            except (EngineDown, ResponseError) as error:
                return error

        async def to_node(node: ClusterNode, positions: list[int]) -> None:
            try:
                found = await send(node, [items[i] for i in positions])
            except EngineDown as down:
                self._leave_alone(node)
                for position in positions:
                    replies[position] = down
                return
            for position, reply in zip(positions, found, strict=True):
                replies[position] = reply
            redirected = [i for i in positions if isinstance(replies[i], OF_SLOT)]
            if redirected:
                again = await asyncio.gather(*(alone(items[i]) for i in redirected))
                for position, reply in zip(redirected, again, strict=True):
                    replies[position] = reply

        if len(by_node) == 1:
            await to_node(*next(iter(by_node.items())))
        else:
            await asyncio.gather(*(to_node(*part) for part in by_node.items()))
        return replies

    def _node_at(self, redirection: AskError, node: ClusterNode) -> ClusterNode:
        return self._node((redirection.host or node.address[0], int(redirection.port)))

    def _node(self, address: Address) -> ClusterNode:
        if (node := self._nodes.get(address)) is None:
            url, name = self._place.server_url(address), self._name
            node = ClusterNode(url, links_max=self._links_max, timeout_s=self._timeout_s, name=name)
            node.address, self._nodes[address] = address, node
        return node

    # ── the table of slots ───────────────────────────────────────────────────────────────────────────────

    async def _find_owner(self, slot: int) -> ClusterNode:
        if time.monotonic() >= self._loaded_at + LOAD_PAUSE_S:
            await self._load()
        if (node := self._owners[slot]) is None:
            raise EngineDown(self._name)
        return node

    async def _load(self) -> None:
        """Once for all callers; raises EngineDown if no node answers."""
        if self._loading is None or self._loading.done():
            self._loading = self._start(self._load_table())
        await asyncio.shield(self._loading)

    def _load_soon(self) -> None:
        if time.monotonic() >= self._loaded_at + LOAD_PAUSE_S and (
            self._loading is None or self._loading.done()
        ):
            self._loading = self._start(self._load_table())

    async def _load_table(self) -> None:
        # Any node knows the table. In another order each time: one that was cut off has an outdated one.
        known = {node for node in self._owners if node is not None}
        nodes = [*known, *(seed for seed in map(self._node, self._place.hosts) if seed not in known)]
        random.shuffle(nodes)
        for node in sorted(nodes, key=lambda node: node.is_away):
            with suppress(EngineDown, ResponseError):
                self._take_table(await node.call("CLUSTER", "SLOTS"), node.address[0])
                return
        self._loaded_at = time.monotonic()
        raise EngineDown(self._name)

    def _take_table(self, rows: Iterable[Any], answering_host: str) -> None:
        owners: list[ClusterNode | None] = [None] * SLOTS
        for first, last, primary, *_ in rows:
            host = (primary[0] or b"").decode()
            node = self._node((answering_host if host in ("", "?") else host, int(primary[1])))
            owners[first : last + 1] = [node] * (last + 1 - first)
        before, self._owners = self._owners, owners
        for former in set(before) - set(owners):
            if former is not None:
                former.drop_idle()
        self._loaded_at = time.monotonic()

    # ── nodes that are away ──────────────────────────────────────────────────────────────────────────────

    def _leave_alone(self, node: ClusterNode) -> None:
        if not node.is_away:
            node.is_away = True
            self._start(self._wait_for(node))

    async def _wait_for(self, node: ClusterNode) -> None:
        """Until it answers, or another node has taken over its slots."""
        while node.is_away:
            await asyncio.sleep(DOWN_FOR_S)
            with suppress(EngineDown):
                await self._load()
            if node not in self._owners:
                node.is_away = False  # another caller may be sent there again, and finds out for itself
            else:
                await node.look()

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a load that failed is repeated; its callers have got its error


def _slot_for(command: tuple[Any, ...]) -> int:
    """Commands without a key go to the node of the first slot: the same one for all processes."""
    key = find_key(command)
    return 0 if key is None else slot_of(key)
