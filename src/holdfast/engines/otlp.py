"""Sends spans to a collector by OTLP over HTTP, with OpenTelemetry's exporter. Loaded only if traces are on.

Its own variables work as everywhere: OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE,
OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME. What is sampled and where it goes are our own settings.
"""

import os
from collections.abc import Sequence
from importlib.metadata import version
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from holdfast.engines.tracing import Span, TraceParent

TIMEOUT_S = 5.0  # of a request with its repetitions; then its spans are dropped
SIGNAL_PATH = "/v1/traces"  # of a collector, if the address names none
KINDS = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
}
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
FAILED, UNSET = Status(StatusCode.ERROR), Status(StatusCode.UNSET)


class OtlpExporter:
    def __init__(self, url: str, process: str) -> None:
        self._exporter = OTLPSpanExporter(
            build_endpoint(url), timeout=TIMEOUT_S, compression=Compression.Gzip
        )
        self._scope = InstrumentationScope("holdfast", version("holdfast"))
        self._resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME", "holdfast"),
                "service.version": version("holdfast"),
                "holdfast.process": process,
                "process.pid": os.getpid(),
            }
        )

    def send(self, spans: Sequence[Span]) -> bool:
        return self._exporter.export([self._convert(span) for span in spans]) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _convert(self, span: Span) -> ReadableSpan:
        parent = TraceParent(span.trace_id, span.parent_id) if span.parent_id else None
        return ReadableSpan(
            name=span.name,
            context=_context(span),
            parent=None if parent is None else _context(parent),
            resource=self._resource,
            attributes=span.attributes,
            links=[Link(_context(other)) for other in span.links],
            kind=KINDS[span.kind],
            status=FAILED if span.is_failed else UNSET,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )


def _context(span: Span | TraceParent) -> SpanContext:
    return SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=SAMPLED)


def build_endpoint(url: str) -> str:
    return url.rstrip("/") + SIGNAL_PATH if urlsplit(url).path in ("", "/") else url
