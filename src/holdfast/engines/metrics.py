"""Counters and timings: cheap to add to, summed over all processes of the machine when read.

On the hot path a number is added to a plain dict. A process with a folder (`Meter.share`) writes its sums
there once per second; /metrics adds up what every process wrote. A dead process' last sums stay, so that a
counter never goes back while the service runs. With traces on, the buckets of a time have an exemplar: the
last sampled request in it, by the id of its trace.

Over several machines: counters, timings and gauges of processes (`set`) are added up; of what is the same for
the whole house (`measure`) the greatest counts. A measure ends a few minutes after its last look, because its
job may run on another machine by then; at once if its process knows that (engines/turns.py). In a house with
pods, measures have the label `pod`: see `POD`.
"""

import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEASURED_S = 300.0  # longer than the pauses of all jobs that measure
# In a house with pods: the one whose engines a job looks at, "home" for the home database.
POD: ContextVar[str] = ContextVar("pod", default="")
BUCKETS_SIZE = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)

# What each name means, for readers of the graphs.
HELP = {
    "holds_total": "holds requested from Redis, by outcome",
    "openings_total": "holds made durable in the ledger, or not, by outcome",
    "ledger_retries_total": "transactions of the ledger repeated because another one was in their way",
    "bookings_total": "moves of bookings, by move",
    "hold_batch_size": "callers that travelled together to Redis",
    "hold_batch_seconds": "time of a batch of holds in Redis",
    "open_batch_size": "callers that travelled together to the ledger",
    "open_batch_seconds": "time of a batch of bookings in the ledger",
    "postgres_wait_seconds": "time that a caller waited for a connection to the ledger",
    "postgres_use_seconds": "time that a caller had a connection to the ledger",
    "gateway_calls": "calls of the payment gateway under way",
    "gateway_seconds": "time of a call of the payment gateway, by step",
    "gateway_probe_seconds": "time of the last question to the gateway; its time-out if there was no answer",
    "gateway_answers_total": "answers of the gateway, by step and answer",
    "process_cpu_seconds_total": "processor time of our processes, by kind: web or work",
    "http_seconds": "time from request to answer, by route",
    "connections_refused_total": "connections refused before a request was read, by status",
    "http_answers_total": "answers, by route and status",
    "rate_limited_total": "requests refused by a limit, by policy",
    "puzzles_total": "puzzles set for strangers at a hot show, and what became of them, by outcome",
    "map_corrections_total": "differences between map and ledger that were settled, by kind",
    "map_updates_missed_total": "updates that Redis did not get; their shows were marked for a rebuild",
    "locked_shows_total": "times a show was locked, so that its buyers had to wait apart from the others",
    "map_rebuilds_total": "maps rebuilt from the ledger, by reason",
    "rebuilds_put_off_total": "maps that could not be rebuilt at once and were left to the background job",
    "availability_unknown_total": "lists shown without seats left, because Redis could not be reached",
    "viewers": "live maps open now",
    "viewers_cut_total": "live maps ended because their viewer did not take the changes",
    "changes_sent_total": "map changes sent, once per viewer",
    "ledger_only_total": "holds decided by the ledger alone, because Redis could not be reached",
    "facts_relayed_total": "facts relayed to the bus",
    "facts_processed_total": "facts that a group is done with, by group",
    "facts_died_total": "facts that a group gave up after many tries, by group",
    "facts_lag_seconds": "age of the oldest fact that a group has not processed, by group",
    "facts_behind": "facts that a group has not processed, by group; counted up to 100 000",
    "facts_parked": "facts that will be tried again, by group",
    "facts_dead": "facts that a person must look at, by group",
    "bus_away_total": "times the bus could not be reached",
    "bus_forgot_total": "times the bus had lost facts, which were sent again",
    "webhooks_total": "webhooks of the gateway, by outcome; copy: it had come before",
    "webhooks_refused_total": "webhooks rejected as forged or unrelated, by reason",
    "webhooks_died_total": "webhooks given up after many tries",
    "webhook_batch_size": "webhooks that travelled together to the ledger",
    "pay_batch_size": "payments started together in the ledger",
    "confirm_batch_size": "captured payments confirmed together in the ledger",
    "webhooks_due": "webhooks that need attention",
    "webhooks_dead": "webhooks that a person must look at",
    "payments_under_way": "payments that have not come to an end",
    "payments_total": "steps that payments came to, by step",
    "late_payments_total": "payments captured after the buyer had lost the seats, by how they ended",
    "payments_over_card_limit_total": "payments called off because the card had reached its limit",
    "payment_mismatches_total": "answers of the gateway with another amount or currency than ours",
    "payment_looks_refused_total": "looks at payments left out, to stay within the limits of the gateway",
    "chargebacks_total": "chargebacks, by state",
    "payments_watched": "payments whose seats are gone and whose gateway is silent",
    "payments_reconciled_total": "payments settled by reconciliation with the gateway",
    "payment_differences": "differences between the gateway's books and ours that people must settle",
    "payment_differences_found_total": "the same, each time they were found, by kind",
    "refunds_decided_total": "refund requests, by decision",
    "refunds_total": "refunds requested from the gateway, by resulting state",
    "refunds_by_hand": "refunds that a person must pay, because the gateway would not; should be 0",
    "refunds_waiting": "refunds that are owed and that the gateway has not answered yet",
    "refunds_failed_later_total": "refunds that the gateway reported as failed after it had accepted them",
    "check_ins_total": "scans at the door, by verdict",
    "door_conflicts_total": "visitors wrongly admitted by offline gates, by reason",
    "notices_total": "notices that came to an end or were put off, by kind and state",
    "notices_queued": "notices to be sent",
    "notices_dead": "notices that a person must look at",
    "deliveries_total": "webhooks sent to organisers' systems, by resulting state",
    "erasures_due": "people whose erasure was requested and is not done yet",
    "price_steps_total": "prices changed by demand or by date",
    "blocks_released_total": "seats of organisers' blocks returned to the sale on time",
    "queue_called_total": "people of waiting rooms whose turn came",
    "admissions_checked_total": "holds in shows with a waiting room, by outcome; none: without admission",
    "waitlist_total": "offers of waitlists and what became of them, by outcome",
    "waitlist_passed_over_total": "parties of waitlists that an offer could not be made to",
    "ledger_went_back": "1: PostgreSQL was put back to an earlier instant; run `holdfast after-restore`",
    "ledger_standbys": "synchronous standbys that have every commit before it is acknowledged",
    "ledger_standbys_missing": "synchronous standbys that are expected and not connected; should be 0",
    "ledger_standby_lag_seconds": "how far the standby that is furthest behind is behind the ledger",
    "ledger_bytes": "size of the ledger's database",
    "clock_ahead_seconds": "how far the clock of an engine is ahead of this machine's, by engine",
    "disk_free_bytes": "free room: data, the data folder; ledger, PostgreSQL's if it is on this machine",
    "disk_missing_bytes": "what lacks of HOLDFAST_DISK_FREE_MIN_MB there; should be 0",
    "backup_age_seconds": "time since the last backup, or since the ledger was made if there is none",
    "backup_age_max_seconds": "HOLDFAST_BACKUP_AGE_MAX_H in seconds",
    "certificate_days_left": "days until a certificate ends: public, ledger, replica, holds, limits, bus",
    "redis_evicts": "servers for holds whose policy lets them throw keys away; should be 0",
    "redis_evicted_keys": "keys that servers for holds have thrown away since their start",
    "redis_memory_share": "part of its memory that the fullest server for holds uses",
    "worker_missing": "1: no `holdfast work` runs",
    "pod_cut_off": "1: a pod receives no changes of the home database, by pod",
    "pod_behind_bytes": "what a pod has not received of the home database's log, by pod",
    "pod_log_retained_bytes": "what the home database keeps of its log for a pod, by pod",
    "fenced_shows": "shows that an interrupted move has left closed, by pod; should be 0",
    "replica_used": "web processes that read lists, searches and reports from the replica",
    "retention_deleted_total": "old rows deleted or made anonymous, by rule",
    "retention_gave_way_total": "batches of old rows put off because the sale had a lock",
    "spans_sent_total": "spans of traces that the collector accepted",
    "spans_dropped_total": "spans that were lost, by reason: too_many at once, or not_received",
    "oversold_seats": "seats with two live owners; anything but 0 is a broken ledger",
}

Labels = tuple[tuple[str, str], ...]
MetricKey = tuple[str, Labels]
Measured = set[MetricKey]
# What the current job measures, if it wants to know that.
MEASURED: ContextVar[Measured | None] = ContextVar("measured", default=None)


class SeenExemplar(msgspec.Struct, array_like=True, frozen=True, order=True):
    at_s: float  # first: the newest of several processes is the greatest
    value: float
    trace_id: str


class Sums(msgspec.Struct):
    """One process' numbers, as written to the shared folder."""

    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    histograms: dict[str, list[float]] = {}  # one slot a bucket, one beyond the last, then the sum
    measures: dict[str, tuple[float, float]] = {}  # when, and what it was then
    exemplars: dict[str, dict[int, SeenExemplar]] = {}  # by bucket


class Meter:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counters: dict[tuple[str, Labels], float] = defaultdict(float)
        self._gauges: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], list[float]] = {}
        self._measures: dict[tuple[str, Labels], tuple[float, float]] = {}
        self._exemplars: dict[tuple[str, Labels], dict[int, SeenExemplar]] = {}
        self.find_trace_id: Callable[[], str | None] | None = None  # with traces on: of the current request
        self._folder: Path | None = None
        self._process = ""

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        self._counters[name, tuple(labels.items())] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        self._gauges[name, tuple(labels.items())] = value

    def measure(self, name: str, value: float, **labels: str) -> None:
        """Something that all processes see the same of: the newest look counts, not the sum of them."""
        if (pod := POD.get()) and "pod" not in labels:
            labels["pod"] = pod
        self._measures[key := (name, tuple(labels.items()))] = (self._clock(), value)
        if (seen := MEASURED.get()) is not None:
            seen.add(key)

    @contextmanager
    def noting(self, seen: Measured) -> Iterator[None]:
        """What the block measures is added to `seen`."""
        token = MEASURED.set(seen)
        try:
            yield
        finally:
            MEASURED.reset(token)

    def withdraw(self, seen: Measured) -> None:
        """These measures are another process' now: ours would be an old one beside it."""
        for key in seen:
            self._measures.pop(key, None)
        seen.clear()

    def observe(self, name: str, value: float, **labels: str) -> None:
        slots = self._histograms.get(key := (name, tuple(labels.items())))
        buckets = buckets_of(name)
        if slots is None:
            slots = self._histograms[key] = [0.0] * (len(buckets) + 2)
        slots[bucket := bisect_left(buckets, value)] += 1
        slots[-1] += value
        if self.find_trace_id is not None and (trace_id := self.find_trace_id()) is not None:
            self._exemplars.setdefault(key, {})[bucket] = SeenExemplar(time.time(), value, trace_id)

    def count(self, name: str, **labels: str) -> float:
        """Of this process, since it began."""
        return self._counters.get((name, tuple(labels.items())), 0.0)

    def gauge(self, name: str, **labels: str) -> float:
        """Of this process, now."""
        return self._gauges.get((name, tuple(labels.items())), 0.0)

    def slots(self, name: str, **labels: str) -> list[float]:
        """What this process has observed, by bucket; the last is beyond all of them."""
        return self._histograms.get((name, tuple(labels.items())), [0.0])[:-1]

    def share(self, folder: Path, process: str) -> None:
        """From now on `flush` writes this process' sums where the others can read them."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._process = folder, process

    async def flush(self) -> int:
        """A job: write our sums to the shared folder."""
        if self._folder is not None:
            target = self._folder / f"{os.getpid()}.json"
            draft = target.with_suffix(".draft")
            draft.write_bytes(msgspec.json.encode(self._sums()))
            draft.rename(target)
        return 0

    def text(self) -> bytes:
        """All processes' numbers in the text format of Prometheus."""
        return self.render("")[0]

    def render(self, accept: str) -> tuple[bytes, str]:
        """All processes' numbers, and their format: OpenMetrics if the scraper accepts it, else plain text.

        Exemplars are in OpenMetrics only: the older format has no place for them.
        """
        encode, content_type = choose_encoder(accept)
        registry = CollectorRegistry()
        registry.register(_Families(self._everybody(), self._clock() - MEASURED_S))
        return encode(registry), content_type

    def _everybody(self) -> list[Sums]:
        own = self._sums()
        if self._folder is None:
            return [own]
        others = [p for p in self._folder.glob("*.json") if p.stem != str(os.getpid())]
        return [own, *(_sums_in(p) for p in others)]

    def _sums(self) -> Sums:
        if self._process:
            self._counters["process_cpu_seconds_total", (("process", self._process),)] = time.process_time()
        return Sums(
            counters={_flat(key): value for key, value in self._counters.items()},
            gauges={_flat(key): value for key, value in self._gauges.items()},
            histograms={_flat(key): list(value) for key, value in self._histograms.items()},
            measures={_flat(key): value for key, value in self._measures.items()},
            exemplars={_flat(key): dict(value) for key, value in self._exemplars.items()},
        )


class _Families(Collector):
    """Sums of many processes as prometheus-client wants them."""

    def __init__(self, everybody: list[Sums], measured_after: float) -> None:
        self._everybody = everybody
        self._measured_after = measured_after

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        for name, rows in _added_up(s.counters for s in self._everybody).items():
            counter = CounterMetricFamily(f"holdfast_{name}", HELP.get(name, name), labels=_names(rows))
            for labels, value in rows.items():
                counter.add_metric([text for _, text in labels], value)
            yield counter
        newest = _newest((s.measures for s in self._everybody), self._measured_after)
        for name, rows in _added_up([*(s.gauges for s in self._everybody), newest]).items():
            gauge = GaugeMetricFamily(f"holdfast_{name}", HELP.get(name, name))
            for labels, value in rows.items():  # one process may have more labels than another: POD
                gauge.add_sample(f"holdfast_{name}", dict(labels), value)
            yield gauge
        yield from self._timings()

    def _timings(self) -> Iterator[HistogramMetricFamily]:
        slots: dict[str, dict[Labels, list[float]]] = defaultdict(dict)
        for sums in self._everybody:
            for flat, values in sums.histograms.items():
                name, labels = _unflat(flat)
                before = slots[name].get(labels, [0.0] * len(values))
                slots[name][labels] = [a + b for a, b in zip(before, values, strict=True)]
        exemplars = _newest_exemplars(s.exemplars for s in self._everybody)
        for name, rows in slots.items():
            family = HistogramMetricFamily(f"holdfast_{name}", HELP.get(name, name), labels=_names(rows))
            for labels, values in rows.items():
                bounds = [str(bound) for bound in buckets_of(name)] + ["+Inf"]
                running = [sum(values[: i + 1]) for i in range(len(bounds))]
                seen = exemplars.get((name, labels), {})
                buckets = [
                    (bound, count, _exemplar(seen[i])) if i in seen else (bound, count)
                    for i, (bound, count) in enumerate(zip(bounds, running, strict=True))
                ]
                family.add_metric([text for _, text in labels], buckets, values[-1])
            yield family


def _sums_in(file: Path) -> Sums:
    """Of another process. What a dead one has counted stays; what it had at the moment is gone with it."""
    sums = msgspec.json.decode(file.read_bytes(), type=Sums)
    try:
        os.kill(int(file.stem), 0)
    except ProcessLookupError:
        sums.gauges = {}
    except PermissionError:  # alive, and another user's
        return sums
    return sums


def buckets_of(name: str) -> tuple[float, ...]:
    return BUCKETS_SIZE if name.endswith("_size") else BUCKETS_S


def _added_up(parts: Iterable[dict[str, float]]) -> dict[str, dict[Labels, float]]:
    total: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
    for part in parts:
        for flat, value in part.items():
            name, labels = _unflat(flat)
            total[name][labels] += value
    return total


def _newest(parts: Iterable[dict[str, tuple[float, float]]], after: float) -> dict[str, float]:
    found: dict[str, tuple[float, float]] = {}
    for part in parts:
        for flat, measure in part.items():
            found[flat] = max(measure, found.get(flat, measure))
    return {flat: value for flat, (at, value) in found.items() if at > after}


def _newest_exemplars(
    parts: Iterable[dict[str, dict[int, SeenExemplar]]],
) -> dict[tuple[str, Labels], dict[int, SeenExemplar]]:
    found: dict[tuple[str, Labels], dict[int, SeenExemplar]] = defaultdict(dict)
    for part in parts:
        for flat, by_bucket in part.items():
            own = found[_unflat(flat)]
            for bucket, seen in by_bucket.items():
                own[bucket] = max(seen, own.get(bucket, seen))
    return found


def _exemplar(seen: SeenExemplar) -> Exemplar:
    return Exemplar({"trace_id": seen.trace_id}, seen.value, round(seen.at_s, 3))


def _names(rows: Iterable[Labels]) -> list[str]:
    return [name for name, _ in next(iter(rows))]


def _flat(key: tuple[str, Labels]) -> str:
    return msgspec.json.encode(key).decode()


def _unflat(flat: str) -> tuple[str, Labels]:
    return msgspec.json.decode(flat, type=tuple[str, Labels])


metrics = Meter()
