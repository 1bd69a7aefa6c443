"""Percentiles and shares of a simulated sale."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from holdfast.simulation.record import Record

CENTILES = (50, 90, 99)
NEARLY = 0.99


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Times in seconds since the opening; waits from the arrival, or from the opening if that was later."""

    sold_out_s: float | None  # None: seats were left
    nearly_sold_out_s: float | None  # 99 % of the seats are sold
    all_taken_s: float | None  # the first moment without a free seat
    seats_sold: int
    seats_unsold: int
    seats_to_bots: int
    seats_to_bots_share: float
    orders: int
    people_with_tickets: int
    people_without_tickets: int
    people_admitted: int
    wait_to_admission_s: dict[str, float]
    wait_to_ticket_s: dict[str, float]
    wait_without_ticket_s: dict[str, float]  # until the sale was over
    holds: int
    holds_refused: int
    holds_lapsed: int
    payments_declined: int
    people_inside_most: int
    payments_at_once_most: int

    def page(self) -> dict[str, Any]:
        return asdict(self)


def summarize(record: "Record") -> Outcome:
    people, scenario = record.people, record.scenario
    buyers = np.array(record.sold_to, dtype=np.int64)
    sizes = people.size[buyers].astype(np.int64)
    to_bots = int(sizes[people.is_bot[buyers]].sum())
    is_admitted = ~np.isnan(record.admitted_at)
    has_ticket = np.zeros(len(people), dtype=np.bool_)
    has_ticket[buyers] = True
    losers_s = np.maximum(0.0, record.ended_s - people.arrive_s[~has_ticket & ~people.is_bot])
    fans = ~people.is_bot[buyers]
    tickets_s = (np.array(record.sold_at) - people.arrive_s[buyers])[fans]
    admissions_s = (record.admitted_at - people.arrive_s)[is_admitted & ~people.is_bot]
    return Outcome(
        sold_out_s=_round(record.ended_s) if record.seats_sold == scenario.seats else None,
        nearly_sold_out_s=_nearly_sold_out_s(record),
        all_taken_s=next((_round(at_s) for at_s, free in record.free_at if not free), None),
        seats_sold=record.seats_sold,
        seats_unsold=scenario.seats - record.seats_sold,
        seats_to_bots=to_bots,
        seats_to_bots_share=_round(to_bots / record.seats_sold if record.seats_sold else 0.0),
        orders=len(buyers),
        people_with_tickets=int(fans.sum()),
        people_without_tickets=len(losers_s),
        people_admitted=int(is_admitted.sum()) if scenario.waiting_room else len(people),
        wait_to_admission_s=_centiles(admissions_s),
        wait_to_ticket_s=_centiles(tickets_s),
        wait_without_ticket_s=_centiles(losers_s),
        holds=record.holds,
        holds_refused=record.refused,
        holds_lapsed=record.lapsed,
        payments_declined=record.declined,
        people_inside_most=record.inside_most,
        payments_at_once_most=record.paying_most,
    )


def _nearly_sold_out_s(record: "Record") -> float | None:
    """The last seats wait for the last lapse, so sold out says little about most buyers."""
    buyers = np.array(record.sold_to, dtype=np.int64)
    sold = np.cumsum(record.people.size[buyers].astype(np.int64))
    place = int(np.searchsorted(sold, NEARLY * record.scenario.seats))
    return _round(record.sold_at[place]) if place < len(sold) else None


def _centiles(values: "NDArray[np.float64]") -> dict[str, float]:
    """Empty if there are no values."""
    if not len(values):
        return {}
    found = np.percentile(values, CENTILES)
    return {f"p{centile}": _round(value) for centile, value in zip(CENTILES, found.tolist(), strict=True)}


def _round(value: float) -> float:
    """Milliseconds, and shares in tenths of a percent: more digits would claim more than a model knows."""
    return round(float(value), 3)


def rows(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """As a table for people."""
    sold_out = outcome.sold_out_s
    yield "sold out after", clock(sold_out) if sold_out is not None else "not sold out"
    if outcome.nearly_sold_out_s is not None:
        yield "99 % of the seats sold after", clock(outcome.nearly_sold_out_s)
    if outcome.all_taken_s is not None:
        yield "first moment without a free seat", clock(outcome.all_taken_s)
    yield "seats sold", f"{outcome.seats_sold:,}"
    yield "seats unsold", f"{outcome.seats_unsold:,}"
    yield "seats to bots", f"{outcome.seats_to_bots:,} ({outcome.seats_to_bots_share:.1%})"
    yield "people with tickets", f"{outcome.people_with_tickets:,}"
    yield "people left without", f"{outcome.people_without_tickets:,}"
    if outcome.wait_to_admission_s:
        yield "people admitted", f"{outcome.people_admitted:,}"
    waits = {
        "wait until admitted": outcome.wait_to_admission_s,
        "wait until the ticket": outcome.wait_to_ticket_s,
        "wait of those left without": outcome.wait_without_ticket_s,
    }
    for name, centiles in waits.items():
        if centiles:
            yield name, ", ".join(f"{key} {clock(value)}" for key, value in centiles.items())
    yield "holds", f"{outcome.holds:,}, {outcome.holds_lapsed:,} of them lapsed"
    yield "requests that found no seats", f"{outcome.holds_refused:,}"
    yield "payments declined", f"{outcome.payments_declined:,}"
    if outcome.people_inside_most:
        yield "people inside at once, at most", f"{outcome.people_inside_most:,}"
    yield "payments at once, at most", f"{outcome.payments_at_once_most:,}"


def clock(seconds: float) -> str:
    """3725 → 1:02:05; 42.5 → 42.5 s"""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"
