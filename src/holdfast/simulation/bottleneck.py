"""What limits an installation, from its metrics and what buyers measured; and whether it may open. No I/O.

A purchase spends its time in a few places. At the highest load that was tried, the place where it spends most
of it is the bottleneck: adding more of anything else would change nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
SAFE = 0.7  # of the highest rate: queues grow without end near the limit
SATURATED = 1.15  # twice the buyers, and less than this more purchases
GATEWAY_SHARE = 0.6  # of the time of a purchase
POOL_SHARE = 0.1  # of the time of a purchase; less is not worth a change
# Times the use of a connection. Callers of a busy worker come in bursts, and wait about as long as they use
# one. Where connections are too few, nearly all wait: at the highest load many times as long.
POOL_WAITS = 2.0
REDIS_SHARE = 0.5  # of the time of a hold
HOLD_P99_MAX_S = 2.0
PAY_P99_MAX_S = 25.0  # with the hold within the 30 s of R40
FAILED_MAX = 0.01  # of the purchases


@dataclass(frozen=True)
class Level:
    """So many buyers at once, each buying again and again."""

    at_once: int
    seconds: float
    purchases: int
    steps: Mapping[str, Sequence[float]]  # seconds of each: look, hold, pay, tickets
    failures: Mapping[str, int]
    used: Mapping[str, float]  # metrics of the installation: after, minus before

    @property
    def per_second(self) -> float:
        return self.purchases / self.seconds if self.seconds else 0.0

    @property
    def purchase_s(self) -> float:
        """Mean of a whole purchase."""
        return sum(mean(times) for times in self.steps.values())

    def each(self, metric: str) -> float:
        """Of a purchase."""
        return self.used.get(f"holdfast_{metric}", 0.0) / max(self.purchases, 1)

    def mean_of(self, histogram: str) -> float:
        count = self.used.get(f"holdfast_{histogram}_count", 0.0)
        return self.used[f"holdfast_{histogram}_sum"] / count if count else 0.0

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


@dataclass(frozen=True)
class Bottleneck:
    name: str  # gateway, database pool, Redis, web workers
    evidence: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    is_go: bool
    reasons: list[str]
    purchases_per_s: float  # the highest rate that was reached
    is_limit: bool  # False: it would have done more
    safe_admission_per_s: float
    bottleneck: Bottleneck
    levels: list[Level] = field(repr=False)


def parse_metrics(text: str) -> dict[str, float]:
    """Prometheus' text format: `name` → the sum over all labels; `name{process="web"}` apart, too."""
    found: dict[str, float] = {}
    for name, labels, value in SAMPLE.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
        if labels:
            key = f"{name}{{{labels}}}"
            found[key] = found.get(key, 0.0) + float(value)
    return found


def subtract(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def find_bottleneck(level: Level) -> Bottleneck:
    """From the highest load that was tried."""
    gateway_s, waited_s = level.each("gateway_seconds_sum"), level.each("postgres_wait_seconds_sum")
    worked_s = level.each("postgres_use_seconds_sum")
    redis_s = level.mean_of("hold_batch_seconds")
    hold_s = mean(level.steps.get("hold", ()))
    if gateway_s > GATEWAY_SHARE * level.purchase_s:
        return Bottleneck(
            "gateway",
            f"{gateway_s * 1000:,.0f} of {level.purchase_s * 1000:,.0f} ms of a purchase are spent there",
            "ask the provider for its limits; more concurrent calls: HOLDFAST_GATEWAY_LINKS_MAX",
        )
    if waited_s > max(POOL_WAITS * worked_s, POOL_SHARE * level.purchase_s):
        return Bottleneck(
            "database pool",
            f"a purchase waits {waited_s * 1000:,.0f} ms for connections, has them {worked_s * 1000:,.0f} ms",
            "raise HOLDFAST_POSTGRES_POOL_MAX; PostgreSQL must allow as many connections",
        )
    if hold_s and redis_s >= REDIS_SHARE * hold_s:
        return Bottleneck(
            "Redis",
            f"a batch takes {redis_s * 1000:,.0f} of the {hold_s * 1000:,.0f} ms of a hold",
            "a faster core for Redis, or fewer seats per show",
        )
    return _web_workers(level)


def _web_workers(level: Level) -> Bottleneck:
    """What is left: their own work, which includes rendering tickets, one at a time per worker."""
    used_s = level.used.get('holdfast_process_cpu_seconds_total{process="web"}', 0.0)
    slowest = max(level.steps, key=lambda name: mean(level.steps[name]), default="")
    times = f"{mean(level.steps.get(slowest, ())) * 1000:,.0f} of {level.purchase_s * 1000:,.0f} ms"
    cores = used_s / max(level.seconds, 0.001)
    return Bottleneck(
        "web workers",
        f"neither engines nor gateway explain it: {slowest!r} takes {times}, {cores:.1f} cores are in use",
        "start more (--workers), up to one per core; then add machines",
    )


def judge(levels: Sequence[Level], wanted_per_s: float, buying_share: float) -> Judgement:
    """`buying_share`: of the people who are admitted, how many get to a payment."""
    best = max(levels, key=lambda level: level.per_second)
    last = levels[-1]
    safe = best.per_second * SAFE / buying_share if buying_share else 0.0
    reasons = list(_find_reasons(levels, safe, wanted_per_s))
    return Judgement(
        is_go=not reasons,
        reasons=reasons or [f"{safe:,.1f} people per second are safe, {wanted_per_s:,.1f} are wanted"],
        purchases_per_s=best.per_second,
        is_limit=is_saturated(levels),
        safe_admission_per_s=safe,
        bottleneck=find_bottleneck(last),
        levels=list(levels),
    )


def _find_reasons(levels: Sequence[Level], safe: float, wanted_per_s: float) -> Iterator[str]:
    if safe < wanted_per_s:
        yield f"{safe:,.1f} people per second are safe, {wanted_per_s:,.1f} are wanted"
    failed, tried = sum(level.failed for level in levels), sum(level.purchases for level in levels)
    if failed > FAILED_MAX * max(tried + failed, 1):
        kinds = ", ".join(sorted({kind for level in levels for kind in level.failures}))
        yield f"{failed} of {tried + failed} purchases failed: {kinds}"
    holds = [value for level in levels for value in level.steps.get("hold", ())]
    if (slowest := centile(holds, 99)) > HOLD_P99_MAX_S:
        yield f"a hold takes {slowest:.1f} s at the 99th percentile, {HOLD_P99_MAX_S:g} s are allowed"
    payments = [value for level in levels for value in level.steps.get("pay", ())]
    if (slowest := centile(payments, 99)) > PAY_P99_MAX_S:
        yield f"a payment takes {slowest:.1f} s at the 99th percentile, {PAY_P99_MAX_S:g} s are allowed"


def is_saturated(levels: Sequence[Level]) -> bool:
    """More buyers at once no longer buy more."""
    return len(levels) > 1 and levels[-1].per_second < SATURATED * levels[-2].per_second


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def centile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] if values else 0.0
