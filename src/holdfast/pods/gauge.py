"""How far pods are behind home, and shows that a move has left closed, as metrics."""

from collections.abc import Mapping

import structlog

from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres
from holdfast.pods.place import HOME
from holdfast.pods.store import FENCED_MAX_S, PodStore

log = structlog.get_logger(__name__)


class PodGauge:
    def __init__(self, databases: Mapping[str, Postgres]) -> None:
        """The home database has no name."""
        self._databases = databases

    async def look(self) -> int:
        """A job; always returns 0: nothing waits for it. A pod that is away keeps its last count of shows."""
        links = await PodStore(self._databases[HOME]).links()
        for name, postgres in self._databases.items():
            if name != HOME:
                link = links.get(name)
                metrics.measure("pod_cut_off", 0 if link is not None and link.is_active else 1, pod=name)
                if link is not None and link.behind_bytes is not None:
                    metrics.measure("pod_behind_bytes", link.behind_bytes, pod=name)
                    metrics.measure("pod_log_retained_bytes", link.retained_bytes or 0, pod=name)
            try:
                fenced = await PodStore(postgres).fenced_shows(FENCED_MAX_S)
            except EngineDown:  # its shows refuse, and HoldfastErrors reports that
                log.info("fenced shows not counted", pod=name)
                continue
            metrics.measure("fenced_shows", len(fenced), pod=name or "home")
        return 0
