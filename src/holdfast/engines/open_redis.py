"""Opens the Redis that an address names: one server, a primary watched by Sentinels, or a cluster."""

from holdfast.engines.redis import Redis, RedisServer
from holdfast.engines.redis_cluster import RedisCluster
from holdfast.engines.redis_sentinel import SentinelServer
from holdfast.engines.redis_url import parse_redis_url


def open_redis(url: str, *, links_max: int, timeout_s: float, name: str = "holds") -> Redis:
    """Nothing is contacted yet. `links_max`: per server. Raises ValueError for an address of another kind."""
    place = parse_redis_url(url)
    match place.kind:
        case "sentinel":
            return SentinelServer(place, links_max=links_max, timeout_s=timeout_s, name=name)
        case "cluster":
            return RedisCluster(place, links_max=links_max, timeout_s=timeout_s, name=name)
        case _:
            return RedisServer(url, links_max=links_max, timeout_s=timeout_s, name=name)
