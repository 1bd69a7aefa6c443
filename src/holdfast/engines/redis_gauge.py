"""Memory and evictions of the Redis servers for holds, as metrics."""

import structlog

from holdfast.engines.errors import OperatorError
from holdfast.engines.metrics import metrics

PAUSE_S = 10.0

log = structlog.get_logger(__name__)


class RedisGauge:
    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url

    async def look(self) -> int:
        """A job; always returns 0: there is no backlog. Servers that are away keep their last values."""
        from holdfast.engines.startup_checks import holds_facts  # loads redis-py's clients: 19 MB

        try:
            memory = (await holds_facts(self._redis_url)).memory
        except OperatorError as trouble:  # HoldfastRedisAway reports that
            log.info("memory of Redis not read", reason=str(trouble))
            return 0
        metrics.measure("redis_evicts", memory.evicts)
        metrics.measure("redis_evicted_keys", memory.evicted)
        metrics.measure("redis_memory_share", memory.share)
        return 0
