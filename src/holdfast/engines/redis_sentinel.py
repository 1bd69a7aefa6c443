"""Links to the primary that Sentinels name. A fail-over closes links; the next one is to the new primary.

    connect ─► any Sentinel: who is the primary of `service`? ─► that server: are you? ─┬─ yes ─► link
               (none answers: the primary that was named last)                         └─ no ──► down, for now

A primary that died breaks its links. One that became a replica refuses writes (READONLY), which breaks them,
too. The new primary has another run id: seat maps are rebuilt before seats are sold from them.
"""

import asyncio

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ConnectionError as LinkLost
from redis.exceptions import RedisError

from holdfast.engines.redis import Link, RedisServer, build_pool
from holdfast.engines.redis_url import Address, RedisPlace

SENTINEL_WITHIN_S = (
    0.5  # at most half of the time-out of a connection, so that a second one has time to answer
)


class SentinelServer(RedisServer):
    def __init__(self, place: RedisPlace, *, links_max: int, timeout_s: float, name: str = "holds") -> None:
        super().__init__(
            place.server_url(place.hosts[0]), links_max=links_max, timeout_s=timeout_s, name=name
        )
        self._place = place
        self._sentinels = [build_pool(place.url_of_sentinel(host), timeout_s) for host in place.hosts]
        self._primary: Address | None = None

    async def _new_connection(self) -> AbstractConnection:
        primary = await self._find_primary()
        if primary != self._primary:
            self._primary, self._pool = primary, build_pool(self._place.server_url(primary), self._timeout_s)
        return await super()._new_connection()

    async def _find_primary(self) -> Address:
        """As the first Sentinel says that answers and watches the service."""
        within_s = min(SENTINEL_WITHIN_S, self._timeout_s / 2)
        for sentinel in list(self._sentinels):
            try:
                async with asyncio.timeout(within_s):
                    found = await self._ask(sentinel)
            except (OSError, TimeoutError, RedisError):
                found = None
            if found is not None:
                return found
            self._sentinels.append(self._sentinels.pop(0))  # the next attempt begins with another one
        if self._primary is None:
            raise LinkLost(f"no Sentinel names a primary of {self._place.service!r}")
        return self._primary  # Sentinels are away, and it may still be the primary: see _check

    async def _ask(self, sentinel: ConnectionPool) -> Address | None:
        """None: this Sentinel does not watch the service."""
        connection: AbstractConnection = sentinel.make_connection()  # type: ignore[no-untyped-call]
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            await connection.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._place.service)
            found = await connection.read_response()
        finally:
            await connection.disconnect(nowait=True)
        return (found[0].decode(), int(found[1])) if found else None

    async def _check(self, link: Link) -> None:
        role = (await link.call("ROLE"))[0]
        if role != b"master":  # a Sentinel that does not know of the fail-over yet
            raise LinkLost(f"{self._primary} is a {role.decode()} by now")
