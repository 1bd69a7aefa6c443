"""Grafana dashboards in deploy/grafana, one JSON file each: `make docs` writes them, a tidy test compares.

A panel is a title, a unit and queries with their legends; everything else is the same for all of them.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana"
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 12, 8


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str  # of Grafana: reqps, s, short, percentunit
    queries: dict[str, str]  # legend → PromQL
    about: str = ""


def rate(metric: str, by: str, legend: str = "") -> dict[str, str]:
    """Per second, one line for each value of a label."""
    return {legend or f"{{{{{by}}}}}": f"sum by ({by}) (rate(holdfast_{metric}[$__rate_interval]))"}


def total(**metrics: str) -> dict[str, str]:
    """Per second, one line for each metric."""
    return {
        legend.replace("_", " "): f"sum(rate(holdfast_{metric}[$__rate_interval]))"
        for legend, metric in metrics.items()
    }


def quantiles(metric: str, labels: str = "", by: str = "") -> dict[str, str]:
    """The middle and the slowest of a hundred."""
    group = f"le, {by}" if by else "le"
    legend = f" {{{{{by}}}}}" if by else ""
    buckets = f"sum by ({group}) (rate(holdfast_{metric}_bucket{labels}[$__rate_interval]))"
    return {f"p{part}{legend}": f"histogram_quantile(0.{part}, {buckets})" for part in ("50", "99")}


def gauge(by: str = "", **metrics: str) -> dict[str, str]:
    """The newest value of what all processes see the same of."""
    over, legend = (f" by ({by})", f" {{{{{by}}}}}") if by else ("", "")
    return {
        f"{name.replace('_', ' ')}{legend}": f"max{over} (holdfast_{metric})"
        for name, metric in metrics.items()
    }


ON_SALE = (
    Panel("Holds by outcome", "reqps", rate("holds_total", "outcome"), "Answers of Redis: held, taken, …"),
    Panel(
        "Bookings by outcome",
        "reqps",
        rate("openings_total", "outcome"),
        "Made durable in PostgreSQL, or not.",
    ),
    Panel("Time of a hold", "s", quantiles("http_seconds", '{route="hold_seats"}')),
    Panel("Time of all requests", "s", quantiles("http_seconds")),
    Panel("Answers by status", "reqps", rate("http_answers_total", "status")),
    Panel("Moves of bookings", "reqps", rate("bookings_total", "move")),
    Panel("Live maps", "short", {"open": "sum(holdfast_viewers)"}),
    Panel(
        "Changes sent to live maps", "reqps", total(sent="changes_sent_total", cut_off="viewers_cut_total")
    ),
    Panel("Holds without Redis", "reqps", rate("ledger_only_total", "outcome"), "Should be empty."),
    Panel("Locked shows", "reqps", total(locked="locked_shows_total", retried="ledger_retries_total")),
)
MONEY = (
    Panel("Payments by step", "reqps", rate("payments_total", "step")),
    Panel("Answers of the gateway", "reqps", rate("gateway_answers_total", "answer")),
    Panel("Time of a call of the gateway", "s", quantiles("gateway_seconds", by="step")),
    Panel("Calls of the gateway under way", "short", {"calls": "sum(holdfast_gateway_calls)"}),
    Panel(
        "Answer of the gateway to a question",
        "s",
        gauge(answer="gateway_probe_seconds"),
        "Every half minute, also without payments.",
    ),
    Panel("Payments open", "short", gauge(under_way="payments_under_way", watched="payments_watched")),
    Panel(
        "For a person",
        "short",
        gauge(differences="payment_differences", refunds="refunds_by_hand"),
        "Should be 0.",
    ),
    Panel("Refunds by state", "reqps", rate("refunds_total", "state")),
    Panel("Refunds waiting", "short", gauge(waiting="refunds_waiting")),
    Panel("Webhooks by outcome", "reqps", rate("webhooks_total", "outcome")),
    Panel("Webhooks open", "short", gauge(due="webhooks_due", dead="webhooks_dead")),
    Panel("Money after the deadline", "reqps", rate("late_payments_total", "end")),
    Panel("Chargebacks by state", "reqps", rate("chargebacks_total", "state")),
)
QUEUE = (
    Panel("People called", "reqps", total(called="queue_called_total"), "From waiting rooms of all shows."),
    Panel("Passes checked", "reqps", rate("admissions_checked_total", "outcome"), "Before every hold."),
    Panel(
        "Holds that were made",
        "reqps",
        {"held": 'sum(rate(holdfast_holds_total{outcome="held"}[$__rate_interval]))'},
    ),
    Panel(
        "Time of a hold",
        "s",
        quantiles("http_seconds", '{route="hold_seats"}'),
        "Slow holds hold admission back.",
    ),
    Panel("Calls of the gateway under way", "short", {"calls": "sum(holdfast_gateway_calls)"}),
    Panel("Waitlist", "reqps", rate("waitlist_total", "outcome")),
    Panel("Requests over a limit", "reqps", rate("rate_limited_total", "policy")),
    Panel("Puzzles", "reqps", rate("puzzles_total", "outcome")),
    Panel("Connections refused", "reqps", rate("connections_refused_total", "status")),
    Panel("Live maps", "short", {"open": "sum(holdfast_viewers)"}),
)
ENGINES = (
    Panel("Wait for a connection to PostgreSQL", "s", quantiles("postgres_wait_seconds")),
    Panel("Use of a connection to PostgreSQL", "s", quantiles("postgres_use_seconds")),
    Panel("Batch of holds in Redis", "s", quantiles("hold_batch_seconds")),
    Panel("Batch of bookings in PostgreSQL", "s", quantiles("open_batch_seconds")),
    Panel(
        "Callers per batch",
        "short",
        quantiles("hold_batch_size")
        | {f"bookings {legend}": query for legend, query in quantiles("open_batch_size").items()},
    ),
    Panel("Processors in use", "short", rate("process_cpu_seconds_total", "process")),
    Panel("Seat maps rebuilt", "reqps", rate("map_rebuilds_total", "reason")),
    Panel(
        "Seat maps corrected",
        "reqps",
        rate("map_corrections_total", "kind") | total(missed="map_updates_missed_total"),
    ),
    Panel(
        "Facts not processed",
        "short",
        gauge("group", behind="facts_behind", parked="facts_parked", dead="facts_dead"),
    ),
    Panel("Lag of facts", "s", gauge("group", lag="facts_lag_seconds")),
    Panel(
        "Bus", "reqps", total(relayed="facts_relayed_total", away="bus_away_total", forgot="bus_forgot_total")
    ),
    Panel("Mail and messages", "short", gauge(queued="notices_queued", dead="notices_dead")),
    Panel("Old rows deleted", "reqps", rate("retention_deleted_total", "rule")),
    Panel("Must be 0", "short", gauge(oversold="oversold_seats", went_back="ledger_went_back")),
    Panel(
        "Standbys of PostgreSQL",
        "short",
        gauge(synchronous="ledger_standbys", missing="ledger_standbys_missing"),
    ),
    Panel("Lag of standbys", "s", gauge(lag="ledger_standby_lag_seconds")),
    Panel(
        "Age of the newest backup",
        "s",
        gauge(age="backup_age_seconds", reported_above="backup_age_max_seconds"),
    ),
    Panel(
        "Clocks of engines",
        "s",
        {"{{engine}}": "max by (engine) (abs(holdfast_clock_ahead_seconds))"},
        "Difference from the clocks of our machines.",
    ),
    Panel(
        "Free room on disks",
        "bytes",
        {
            "free {{instance}} {{place}}": "min by (instance, place) (holdfast_disk_free_bytes)",
            "missing {{instance}} {{place}}": "max by (instance, place) (holdfast_disk_missing_bytes)",
        },
    ),
    Panel("Size of the ledger", "bytes", gauge(size="ledger_bytes")),
    Panel(
        "Days left of certificates",
        "d",
        {"{{place}}": "min by (place) (holdfast_certificate_days_left)"},
    ),
    Panel("Memory of Redis in use", "percentunit", gauge(used="redis_memory_share")),
    Panel(
        "Evictions of Redis",
        "short",
        gauge(servers_that_evict="redis_evicts", keys_evicted="redis_evicted_keys"),
        "Should be 0.",
    ),
    Panel("Workers missing", "short", gauge(missing="worker_missing"), "Should be 0."),
    Panel(
        "Pods behind home",
        "bytes",
        {
            "{{pod}}": "max by (pod) (holdfast_pod_behind_bytes)",
            "{{pod}}: log retained": "max by (pod) (holdfast_pod_log_retained_bytes)",
        },
    ),
    Panel(
        "Pods cut off, shows fenced",
        "short",
        {
            "{{pod}}: cut off": "max by (pod) (holdfast_pod_cut_off)",
            "{{pod}}: fenced": "max by (pod) (holdfast_fenced_shows)",
        },
        "Should be 0.",
    ),
)
DASHBOARDS = {"on-sale": ON_SALE, "money": MONEY, "queue": QUEUE, "engines": ENGINES}


def pages() -> dict[Path, str]:
    """The path and text of every dashboard."""
    return {
        FOLDER / f"{name}.json": json.dumps(render(name, panels), indent=1, ensure_ascii=False) + "\n"
        for name, panels in DASHBOARDS.items()
    }


def render(name: str, panels: tuple[Panel, ...]) -> dict[str, Any]:
    return {
        "uid": f"holdfast-{name}",
        "title": f"Holdfast: {name}",
        "tags": ["holdfast"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [render_panel(number, panel) for number, panel in enumerate(panels)],
    }


def render_panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, 2)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }
