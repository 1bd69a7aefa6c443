"""Sends the spans of a process to the operator's collector: docs/operating/tracing.md."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.loop import running
from holdfast.engines.metrics import metrics
from holdfast.engines.tracing import Span, find_trace_id, tracer

log = structlog.get_logger(__name__)

SENT_AT_ONCE_MAX = 512
FLUSH_PAUSE_S = 1.0
LAST_FLUSH_S = 3.0  # at the end of the process: a collector that does not answer must not block stopping


class Exporter(Protocol):
    def send(self, spans: Sequence[Span]) -> bool:
        """Blocks. False: they are lost."""

    def close(self) -> None: ...


class TraceSender:
    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    async def flush(self) -> int:
        """A job: send the spans that have ended, beside the loop."""
        if tracer.dropped:
            dropped, tracer.dropped = tracer.dropped, 0
            metrics.add("spans_dropped_total", dropped, why="too_many")
        while spans := tracer.take_ended(SENT_AT_ONCE_MAX):
            if not await asyncio.to_thread(self._exporter.send, spans):
                metrics.add("spans_dropped_total", len(spans), why="not_received")
                break
            metrics.add("spans_sent_total", len(spans))
        return 0


@asynccontextmanager
async def send_traces(config: Config, process: str) -> AsyncIterator[None]:
    """While the block runs. Without HOLDFAST_TRACES_URL nothing is imported and nothing happens."""
    if not config.traces_url:
        yield
        return
    exporter = open_exporter(config, process)
    sender = TraceSender(exporter)
    tracer.switch_on(config.traces_ratio)
    metrics.find_trace_id = find_trace_id
    try:
        async with running([(FLUSH_PAUSE_S, sender.flush)]):
            yield
    finally:
        tracer.switch_off()
        metrics.find_trace_id = None
        try:
            await asyncio.wait_for(sender.flush(), LAST_FLUSH_S)
        except TimeoutError:
            log.warning("the last spans were not sent: the collector does not answer")
        exporter.close()


def check_traces(config: Config) -> None:
    """OperatorError names a wrong setting, or the missing package. Nothing is opened."""
    url = urlsplit(config.traces_url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise OperatorError("HOLDFAST_TRACES_URL is not an address such as http://127.0.0.1:4318/v1/traces")
    if find_spec("opentelemetry") is None:
        raise OperatorError("traces need OpenTelemetry: pip install 'holdfast[tracing]'")


def open_exporter(config: Config, process: str) -> Exporter:
    check_traces(config)
    from holdfast.engines.otlp import OtlpExporter

    return OtlpExporter(config.traces_url, process)
