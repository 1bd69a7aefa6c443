"""Traces: which steps a request took, in which process, and how long each of them lasted.

    request ─┬─ batch ─┬─ script, SQL           a batch is a child of one sampled request and linked to all
             │         └─ fact ─ consumer ─ mail, webhook              the outbox carries the trace onwards
             └─ call of the gateway

Off unless HOLDFAST_TRACES_URL is set: no span exists then, OpenTelemetry is not imported, and a request pays
for one comparison. When on, some requests are sampled, and only they have spans. A span is a small object of
our own; send_traces.py sends them, and otlp.py makes OpenTelemetry's of them.

Spans have no personal data: `KEYS` lists everything they may say. Errors are named by their class alone,
because a message may quote what a person typed.
"""

import random
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, ContextVar, Token
from types import TracebackType
from typing import Any, Literal, NamedTuple

from holdfast.errors import Refusal

SPANS_MAX = 8192  # that wait to be sent: those of a second, if every request is sampled. The oldest go first
# Requests of one such moment are sampled together or not at all. They share batches: with one in a hundred
# chosen each for itself, every third batch would have spans, and traces cost several hundredths of all time.
MOMENT_S = 0.02
LINKS_MAX = 128  # of a span: a batch has as many callers
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)
SAMPLED = 1  # bit of the last field

# Everything that a span may say. A test compares it with what is sent, and looks for personal data there.
KEYS = frozenset(
    {
        "db.operation.batch.size",
        "db.query.summary",  # the name of the query, never its text or its values
        "db.system.name",
        "error.type",
        "http.request.method",
        "http.response.status_code",
        "http.route",  # the pattern, never the path: links to tickets are secrets
        "holdfast.answer",  # of the gateway
        "holdfast.batch.sampled",
        "holdfast.batch.size",
        "holdfast.booking_id",
        "holdfast.channel",
        "holdfast.fact_id",
        "holdfast.facts",
        "holdfast.gateway",
        "holdfast.group",
        "holdfast.kind",
        "holdfast.pool_wait_ms",
        "holdfast.request_id",
        "holdfast.show_id",
    }
)

Kind = Literal["internal", "server", "client", "consumer"]
Value = str | int | float | bool
NOTHING: AbstractContextManager[None] = nullcontext()


class TraceParent(NamedTuple):
    """A span, perhaps of another process."""

    trace_id: int
    span_id: int


class Span:
    __slots__ = (
        *("attributes", "end_ns", "is_failed", "kind", "links", "name"),
        *("parent_id", "span_id", "start_ns", "trace_id"),
    )

    def __init__(
        self, name: str, kind: Kind = "internal", parent: "TraceParent | Span | None" = None
    ) -> None:
        self.name = name
        self.kind: Kind = kind
        self.trace_id: int = random.getrandbits(128) if parent is None else parent.trace_id
        self.parent_id: int = 0 if parent is None else parent.span_id
        self.span_id: int = random.getrandbits(64)
        self.start_ns, self.end_ns = time.time_ns(), 0
        self.attributes: dict[str, Value] = {}
        self.links: list[TraceParent] = []
        self.is_failed = False

    def fail(self, error: BaseException) -> None:
        self.attributes["error.type"] = type(error).__name__
        self.is_failed = not isinstance(error, Refusal)  # an expected "no" is not a failure

    def link(self, other: "TraceParent | Span") -> None:
        if len(self.links) < LINKS_MAX:
            self.links.append(TraceParent(other.trace_id, other.span_id))

    def to_traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


CURRENT_SPAN: ContextVar[Span | None] = ContextVar("current_span", default=None)


class Tracer:
    """The traces of this process: `tracer` below."""

    def __init__(self) -> None:
        self.is_on = False
        self.dropped = 0  # spans that were not taken in time
        self._ratio = 0.0
        self._is_sampling, self._decided_until = False, 0.0
        self._ended: deque[Span] = deque()

    def begin_request(self, name: str, given: str | None = None) -> Span | None:
        """The span of a request, if it is sampled, as the current one.

        `given`: a traceparent that is believed. It decides; without one, the ratio does.
        """
        parent, is_sampled = (None, False) if given is None else parse_traceparent(given)
        if parent is None:
            is_sampled = self._samples_now()
        span = Span(name, "server", parent) if is_sampled else None
        CURRENT_SPAN.set(span)  # also None: a connection's next request may run in the same context
        return span

    def _samples_now(self) -> bool:
        """By the ratio: each request with the same probability."""
        if (now := time.monotonic()) >= self._decided_until:
            self._is_sampling, self._decided_until = random.random() < self._ratio, now + MOMENT_S
        return self._is_sampling

    def skip_request(self) -> None:
        """A request without a span, whatever the ratio is."""
        CURRENT_SPAN.set(None)

    def begin_batch(self, name: str, batch: Sequence[tuple[Any, Any, Context]]) -> Span | None:
        """The span of a batch, if one of its callers is sampled, as the current one.

        It is a child of the first of them: with few sampled requests, each then has its batches in its own
        trace. The others have a link to it.
        """
        found = (context.get(CURRENT_SPAN) for _, _, context in batch)
        callers = list(dict.fromkeys(span for span in found if span is not None))
        if not callers:
            CURRENT_SPAN.set(None)
            return None
        span = Span(f"batch {name}", "internal", callers[0])
        span.attributes = {"holdfast.batch.size": len(batch), "holdfast.batch.sampled": len(callers)}
        for caller in callers:
            span.link(caller)
        for caller in callers[1:]:
            caller.link(span)
        CURRENT_SPAN.set(span)
        return span

    def end(self, span: Span, error: BaseException | None = None) -> None:
        if error is not None:
            span.fail(error)
        span.end_ns = time.time_ns()
        if len(self._ended) >= SPANS_MAX:
            self._ended.popleft()
            self.dropped += 1
        self._ended.append(span)

    def take_ended(self, spans_max: int) -> list[Span]:
        """The oldest spans that have ended, to be sent."""
        return [self._ended.popleft() for _ in range(min(len(self._ended), spans_max))]

    def switch_on(self, ratio: float) -> None:
        self._ratio, self.is_on, self._decided_until = ratio, True, 0.0

    def switch_off(self) -> None:
        self.is_on = False


tracer = Tracer()


class ChildSpan:
    """`with child(…)` in a sampled request: the span is the current one until the block ends."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._token: Token[Span | None] | None = None

    def __enter__(self) -> Span:
        self._token = CURRENT_SPAN.set(self._span)
        return self._span

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _where: TracebackType | None
    ) -> None:
        assert self._token is not None
        CURRENT_SPAN.reset(self._token)
        tracer.end(self._span, error)


def child(
    what: str, name: str, kind: Kind = "internal", attributes: Mapping[str, Value] | None = None
) -> AbstractContextManager[Span | None]:
    """A step of the current span; nothing if there is none."""
    parent = CURRENT_SPAN.get()
    if parent is None:
        return NOTHING
    span = Span(f"{what} {name}", kind, parent)
    if attributes:
        span.attributes.update(attributes)
    return ChildSpan(span)


def resume(
    what: str, name: str, traces: Sequence[str], attributes: Mapping[str, Value]
) -> AbstractContextManager[Span | None]:
    """A step that continues traces of other processes: the first as its child, the others by links."""
    if not tracer.is_on:
        return NOTHING
    parents = [parent for trace in traces if (parent := parse_traceparent(trace)[0]) is not None]
    if not parents:
        return NOTHING
    span = Span(f"{what} {name}", "consumer", parents[0])
    span.attributes.update(attributes)
    for parent in parents[1:]:
        span.link(parent)
    return ChildSpan(span)


def note(key: str, value: Value) -> None:
    """An attribute of the current span, if there is one."""
    if (span := CURRENT_SPAN.get()) is not None:
        span.attributes[key] = value


def parse_traceparent(text: str) -> tuple[TraceParent | None, bool]:
    """The header of W3C Trace Context, and whether it asks for sampling; None: it is not one."""
    if (found := TRACEPARENT.fullmatch(text)) is None:
        return None, False
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    return (TraceParent(trace_id, span_id), bool(flags & SAMPLED)) if trace_id and span_id else (None, False)


def find_trace_id() -> str | None:
    """Of the current span, as logs and exemplars write it."""
    span = CURRENT_SPAN.get()
    return None if span is None else f"{span.trace_id:032x}"


def current_traceparent() -> str:
    """For the transaction that writes facts: they carry it to their consumers. Empty: not sampled."""
    span = CURRENT_SPAN.get()
    return "" if span is None else span.to_traceparent()
