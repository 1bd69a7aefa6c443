"""Addresses of Redis or Valkey: one server, a primary that Sentinels watch, or a cluster. No I/O.

    redis://user:password@host:6379/0                         one server
    rediss://…                                                the same, with TLS; so with all that follow
    unix:///path/to/socket                                    one server
    redis+sentinel://user:password@host:26379,host/service/0  the primary of `service`; any of the Sentinels
    redis+cluster://user:password@host:6379,host              any nodes of the cluster; it names the others

User, password and the query are for the servers. `sentinel_username` and `sentinel_password` in the query are
for the Sentinels. Options of redis-py, such as `ssl_ca_certs`, go into the query, too.
"""

from binascii import crc_hqx
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

SLOTS = 16_384
DEFAULT_PORTS = {"sentinel": 26379, "cluster": 6379}
SLOTS_CACHED_MAX = 20_480  # keys; each show has five, and one of them is looked up
# Where the key is in commands that do not have it right behind their name.
KEY_AT = {"XINFO": 2, "EVAL": 3, "EVALSHA": 3}
WITHOUT_KEY = frozenset(
    {"PING", "TIME", "INFO", "FLUSHALL", "FLUSHDB", "CLIENT", "CONFIG", "CLUSTER", "SCRIPT"}
)

HOST = "\0"  # in no URL

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RedisPlace:
    kind: Literal["server", "sentinel", "cluster"]
    hosts: tuple[Address, ...]  # none for one server
    service: str
    # Of one server; of others with HOST in place of host and port. Never in a repr: it has the password.
    url: str = field(repr=False)
    sentinel_url: str = field(repr=False)  # the same for a Sentinel

    def server_url(self, address: Address) -> str:
        return self.url.replace(HOST, _host_and_port(address))

    def url_of_sentinel(self, address: Address) -> str:
        return self.sentinel_url.replace(HOST, _host_and_port(address))


def parse_redis_url(url: str) -> RedisPlace:
    """Raises ValueError with what is wrong, without the password."""
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    if kind == "":
        return RedisPlace("server", (), "", url, "")
    if scheme not in ("redis", "rediss") or kind not in ("sentinel", "cluster"):
        raise ValueError("use redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://")
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    addresses = tuple(_parse_host(host, DEFAULT_PORTS[kind]) for host in hosts.split(","))
    path = [part for part in parts.path.split("/") if part]
    options = dict(parse_qsl(parts.query))
    login = {name: options.pop(f"sentinel_{name}", "") for name in ("username", "password")}
    query = f"?{urlencode(options)}" if options else ""
    if kind == "cluster":
        if path not in ([], ["0"]) or options.get("db", "0") != "0":
            raise ValueError("a cluster has database 0 only: leave the database out")
        return RedisPlace("cluster", addresses, "", f"{scheme}://{user}{at}{HOST}/0{query}", "")
    if len(path) not in (1, 2) or not (path[1:] or ["0"])[0].isdigit():
        raise ValueError("name the service: redis+sentinel://host:26379,host:26379/service/0")
    database = (path[1:] or ["0"])[0]
    own = (
        f"{quote(login['username'], safe='')}:{quote(login['password'], safe='')}@"
        if any(login.values())
        else ""
    )
    return RedisPlace(
        "sentinel",
        addresses,
        path[0],
        f"{scheme}://{user}{at}{HOST}/{database}{query}",
        f"{scheme}://{own}{HOST}{query}",
    )


def _parse_host(text: str, default_port: int) -> Address:
    parsed = urlsplit(f"//{text}")
    if not parsed.hostname:
        raise ValueError("a host is missing: name hosts as host:port,host:port")
    return parsed.hostname, parsed.port or default_port


def _host_and_port(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(maxsize=SLOTS_CACHED_MAX)
def slot_of(key: str) -> int:
    """Keys with the same part in braces have the same slot."""
    start = key.find("{") + 1
    end = key.find("}", start)
    return crc_hqx((key[start:end] if 0 < start < end else key).encode(), 0) % SLOTS


def find_key(command: tuple[Any, ...]) -> str | None:
    """The first key of a command; None: it has none."""
    name = command[0]
    if name in WITHOUT_KEY:
        return None
    if name == "XREAD":
        return str(command[command.index("STREAMS") + 1])
    return str(command[KEY_AT.get(name, 1)])
