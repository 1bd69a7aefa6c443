"""Spans and request ids in batches, and what traces cost while they are off: nothing is even imported."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.errors import OperatorError
from holdfast.engines.request_context import CURRENT_SCOPE, find_request_ids
from holdfast.engines.send_traces import check_traces
from holdfast.engines.tracing import (
    MOMENT_S,
    SPANS_MAX,
    Span,
    Tracer,
    find_trace_id,
    parse_traceparent,
    tracer,
)

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
IMPORTS = """
import sys
from holdfast.lean_import import load_redis
load_redis()  # as run_child does
import holdfast.app, holdfast.background, holdfast.routes, holdfast.site.pages, holdfast.web.asgi
print(*[name for name in sys.modules if name.startswith("opentelemetry")])
"""


@pytest.fixture
def sampling() -> Iterator[None]:
    """Every request is sampled; no span is left for another test."""
    tracer.switch_on(1.0)
    yield
    tracer.switch_off()
    tracer.take_ended(SPANS_MAX)


class Recorder:
    """Sends batches, and records for whom each was."""

    def __init__(self) -> None:
        self.ids: list[list[str]] = []
        self.trace_ids: list[str | None] = []

    async def send_many(self, items: Sequence[int]) -> list[int]:
        self.ids.append(find_request_ids())
        self.trace_ids.append(find_trace_id())
        return list(items)


async def ask(batcher: Batcher[int, int], number: int, *, is_traced: bool = False) -> Span | None:
    """One request, in a task of its own."""

    async def request() -> Span | None:
        CURRENT_SCOPE.set({"state": {"request_id": f"r{number}"}})
        span = tracer.begin_request("GET /") if is_traced else None
        await batcher(number)
        return span

    return await asyncio.create_task(request())


async def test_a_batch_is_for_its_callers_and_not_for_the_one_that_began_it() -> None:
    recorder = Recorder()
    batcher: Batcher[int, int] = Batcher(recorder.send_many, batch_max=2, waiting_max=10)

    await asyncio.gather(*(ask(batcher, number) for number in (1, 2, 3)))

    assert recorder.ids == [["r1", "r2"], ["r3"]]


async def test_a_batch_has_links_to_the_sampled_requests_and_they_to_it(sampling: None) -> None:
    recorder = Recorder()
    batcher: Batcher[int, int] = Batcher(recorder.send_many, batch_max=4, waiting_max=10)

    first, second, unsampled, third = await asyncio.gather(
        *(ask(batcher, number, is_traced=number != 3) for number in (1, 2, 3, 4))
    )
    (batch,) = tracer.take_ended(SPANS_MAX)

    assert first is not None
    assert second is not None
    assert third is not None
    assert unsampled is None
    assert (batch.name, batch.parent_id, batch.trace_id) == ("batch send_many", first.span_id, first.trace_id)
    assert [link.span_id for link in batch.links] == [first.span_id, second.span_id, third.span_id]
    assert [link.span_id for span in (second, third) for link in span.links] == [batch.span_id] * 2
    assert batch.attributes == {"holdfast.batch.size": 4, "holdfast.batch.sampled": 3}
    assert recorder.trace_ids == [f"{first.trace_id:032x}"]


async def test_a_batch_without_a_sampled_request_has_no_span(sampling: None) -> None:
    recorder = Recorder()
    batcher: Batcher[int, int] = Batcher(recorder.send_many, batch_max=1, waiting_max=10)

    await asyncio.gather(ask(batcher, 1, is_traced=True), ask(batcher, 2))

    assert recorder.trace_ids[0] is not None
    assert recorder.trace_ids[1] is None
    assert len(tracer.take_ended(SPANS_MAX)) == 1


def test_the_parent_decides_and_without_one_the_ratio() -> None:
    never, always = Tracer(), Tracer()
    never.switch_on(0.0)
    always.switch_on(1.0)

    continued = never.begin_request("GET /", GOOD)

    assert continued is not None
    assert continued.trace_id == int("0af7651916cd43dd8448eb211c80319c", 16)
    assert continued.parent_id == int("b7ad6b7169203331", 16)
    assert always.begin_request("GET /", GOOD[:-1] + "0") is None
    assert always.begin_request("GET /", "rubbish") is not None
    assert never.begin_request("GET /") is None


def test_requests_of_one_moment_are_sampled_together() -> None:
    """They share batches, which then have spans once in a hundred times and not every third time."""
    half = Tracer()
    half.switch_on(0.5)
    moments = Counter[bool]()
    while len(moments) < 2:
        at_once = {half.begin_request("GET /") is not None for _ in range(10)}
        time.sleep(MOMENT_S)
        if len(at_once) == 1:  # else the moment ended in between
            moments.update(at_once)
    assert moments[True] >= 1
    assert moments[False] >= 1


@pytest.mark.parametrize(
    "text", ["", "01" + GOOD[2:], GOOD + "\n", GOOD.upper(), f"00-{'0' * 32}-{'0' * 16}-01", GOOD + "-00"]
)
def test_what_is_not_a_traceparent_is_ignored(text: str) -> None:
    assert parse_traceparent(text) == (None, False)


def test_spans_that_are_not_taken_are_dropped_oldest_first() -> None:
    full = Tracer()
    for number in range(SPANS_MAX + 2):
        full.end(Span(str(number)))

    assert full.dropped == 2
    assert [span.name for span in full.take_ended(1)] == ["2"]


def test_opentelemetry_is_not_imported_while_traces_are_off() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == ""


def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(OperatorError, match="HOLDFAST_TRACES_URL"):
        check_traces(Config(traces_url="collector:4318"))
