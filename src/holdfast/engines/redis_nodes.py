"""Every server behind an address of Redis, for the checks at the start and by `holdfast doctor`."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError, ResponseError

from holdfast.engines.redis_url import SLOTS, Address, RedisPlace

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client

ANSWER_WITHIN_S = 5.0
FULL_COVERAGE = "cluster-require-full-coverage"


@dataclass(frozen=True, slots=True)
class RedisNode:
    name: str  # host:port; empty if it is the only one
    url: str
    is_primary: bool


@asynccontextmanager
async def connected(url: str) -> AsyncIterator["Client"]:
    # Here: processes that sell import this module and never connect, and redis-py's clients take 19 MB.
    from redis.asyncio import Redis as Client

    client = Client.from_url(url, socket_timeout=ANSWER_WITHIN_S, socket_connect_timeout=ANSWER_WITHIN_S)
    try:
        yield client
    finally:
        await client.aclose()


async def find_nodes(place: RedisPlace) -> list[RedisNode]:
    """Primaries and replicas. Raises the error of the last host if none of them knows."""
    if place.kind == "server":
        return [RedisNode("", place.url, is_primary=True)]
    is_sentinel = place.kind == "sentinel"
    url_of, ask = (
        (place.url_of_sentinel, _ask_sentinel) if is_sentinel else (place.server_url, _ask_cluster_node)
    )
    trouble: Exception | None = None
    for host in place.hosts:
        try:
            async with connected(url_of(host)) as client:
                found = await ask(client, place.service, host)
        except (RedisError, OSError, TimeoutError) as error:
            trouble = error
        else:
            pairs = dict.fromkeys(found)
            return [RedisNode(f"{at[0]}:{at[1]}", place.server_url(at), is_first) for at, is_first in pairs]
    assert trouble is not None
    raise trouble


async def _ask_sentinel(client: "Client", service: str, _: Address) -> list[tuple[Address, bool]]:
    primary = await _execute(client, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", service)
    if not primary:
        raise ResponseError(f"the Sentinel does not watch {service!r}")
    replicas = await _execute(client, "SENTINEL", "REPLICAS", service)
    return [
        (_address(primary[0], primary[1]), True),
        *((_address(one["ip"], one["port"]), False) for one in map(_fields, replicas)),
    ]


async def _ask_cluster_node(client: "Client", _: str, own: Address) -> list[tuple[Address, bool]]:
    """In the order of their slots; the servers of one row are a primary and its replicas."""
    found: list[tuple[Address, bool]] = []
    for _first, _last, *servers in await _execute(client, "CLUSTER", "SLOTS"):
        for position, (host, port, *_rest) in enumerate(servers):
            named = _text(host or b"")
            found.append(((own[0] if named in ("", "?") else named, int(port)), position == 0))
    return sorted(found, key=lambda pair: not pair[1])


async def find_cluster_faults(client: "Client") -> tuple[list[str], list[str]]:
    """What is wrong with the cluster as a whole, as this node sees it: faults, and warnings."""
    faults, warnings = [], []
    lines = _text(await _execute(client, "CLUSTER", "INFO")).splitlines()
    info = dict(line.split(":", 1) for line in lines if ":" in line)
    if int(info["cluster_slots_assigned"]) < SLOTS:
        missing = SLOTS - int(info["cluster_slots_assigned"])
        faults.append(f"{missing} slots of the cluster have no node: assign them with CLUSTER ADDSLOTSRANGE")
    elif info["cluster_state"] != "ok":
        warnings.append("a part of the cluster is down: its shows are sold by PostgreSQL alone, slower")
    if await _needs_full_coverage(client):
        warnings.append(
            f"the cluster has {FULL_COVERAGE} yes: one dead part stops all others; set it to no on every node"
        )
    return faults, warnings


async def _needs_full_coverage(client: "Client") -> bool:
    try:
        found = await _execute(client, "CONFIG", "GET", FULL_COVERAGE)
    except ResponseError:  # hosted servers do not tell
        return False
    return _fields(found).get(FULL_COVERAGE) == "yes"


async def _execute(client: "Client", *command: str) -> Any:
    """The reply as the server sends it: redis-py parses some replies, differently in its versions."""
    connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        await connection.send_command(*command)
        return await connection.read_response()
    finally:
        await client.connection_pool.release(connection)


def _fields(reply: Any) -> dict[str, str]:
    """A map in RESP3; in RESP2 its names and values in turn."""
    pairs: Iterable[tuple[Any, Any]] = (
        reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    )
    return {_text(name): _text(value) for name, value in pairs}


def _address(host: Any, port: Any) -> Address:
    return _text(host), int(port)


def _text(word: bytes | str) -> str:
    return word.decode() if isinstance(word, bytes) else word
