"""What one purchase, page or person costs: the figures that `holdfast capacity` computes with. No I/O.

Measured figures come from `make bench` on two cores of an AMD EPYC, with engines, web workers and load
generator on the same cores, so a core of your own does more. A test compares them with bench/results.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Coefficient:
    value: float
    unit: str
    source: str  # empty: assumed, and to be replaced by your own figure


def measured(value: float, unit: str, source: str) -> Coefficient:
    return Coefficient(value, unit, source)


def assumed(value: float, unit: str) -> Coefficient:
    return Coefficient(value, unit, "")


COEFFICIENTS = {
    "cached answers per core": measured(
        44_600, "per second", "figures.json: a show through nginx, over 2 cores"
    ),
    "refusals per core": measured(14_100, "per second", "figures.json: refusals, over 2 cores"),
    "purchases per core": measured(636, "per second", "facts.json: purchases_s, over 2 cores"),
    "claims of Valkey": measured(64_700, "per second", "figures.json: claims in batches, its one thread"),
    "transactions per purchase": measured(4.72, "", "statements.json: ledger, without shared batches"),
    "scripts per purchase": measured(3.0, "", "statements.json: redis, without shared batches"),
    "disk per purchase": measured(3_806, "bytes", "footprint.json: bytes_per_purchase, two seats"),
    "passing disk per purchase": measured(2_138, "bytes", "footprint.json: passing_bytes_per_purchase"),
    "log per purchase": measured(10_216, "bytes", "footprint.json: log_bytes_per_purchase"),
    "map per seat": measured(13.4, "bytes", "footprint.json: map_bytes_per_seat, in Valkey"),
    "web worker": measured(90.9, "MB", "footprint.json: web_worker_mb"),
    "background worker": measured(72.1, "MB", "footprint.json: work_mb"),
    "page": measured(32_900, "bytes", "pages.md: mean weight of a first visit, gzipped"),
    "layout per seat": measured(
        320, "bytes", "docs/operating/settings.md: HOLDFAST_LAYOUT_CACHE_MB, per process"
    ),
    "connections per process": measured(
        8, "", "docs/operating/settings.md: POSTGRES_POOL_MAX + SEARCH_POOL_MAX"
    ),
    "status of the queue": assumed(600, "bytes with headers"),
    "person in the queue": assumed(300, "bytes in PostgreSQL"),
    "cache of PostgreSQL": assumed(1_000, "MB"),
    "facts and mails stay": assumed(90, "days"),
}


def value_of(name: str) -> float:
    return COEFFICIENTS[name].value
