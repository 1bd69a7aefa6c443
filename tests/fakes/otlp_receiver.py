"""A collector of OpenTelemetry: takes spans by OTLP over HTTP, as protobuf, and returns them to the test."""

import gzip
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.support.wait import until

PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True)
class ReceivedSpan:
    name: str
    trace_id: str
    span_id: str
    parent_id: str  # empty: the first of its trace
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]  # trace and span
    resource: dict[str, Any]
    took_ns: int
    is_failed: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.trace_id, self.span_id


@dataclass
class OtlpReceiver:
    url: str = ""
    status: int = 200
    spans: list[ReceivedSpan] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        assert (request.path, request.content_type) == ("/v1/traces", PROTOBUF)
        raw = await request.read()
        if request.headers.get("Content-Encoding") == "gzip" and raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        if self.status == 200:
            self.spans += decode(raw)
        content = ExportTraceServiceResponse().SerializeToString()
        return web.Response(status=self.status, body=content, content_type=PROTOBUF)

    def of_trace(self, trace_id: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.trace_id == trace_id]

    async def has(self, found: Callable[[Sequence[ReceivedSpan]], bool], within_s: float = 15) -> None:
        """Wait until the spans that have come are these."""

        async def is_there() -> bool:
            return found(self.spans)

        await until(is_there, within_s=within_s)


def decode(raw: bytes) -> list[ReceivedSpan]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(raw)
    return [
        ReceivedSpan(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            attributes=read_values(span.attributes),
            links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            resource=read_values(part.resource.attributes),
            took_ns=span.end_time_unix_nano - span.start_time_unix_nano,
            is_failed=span.status.code == span.status.STATUS_CODE_ERROR,
        )
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]


def read_values(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in pairs}


@asynccontextmanager
async def otlp_receiver() -> AsyncIterator[OtlpReceiver]:
    receiver = OtlpReceiver()
    app = web.Application()
    app.router.add_post("/v1/traces", receiver.receive)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
