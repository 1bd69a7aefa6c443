"""A hall's map written straight into Valkey, in any state, and hold requests to it."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from holdfast.bookings import HoldLimits
from holdfast.catalogue import OrphanRule, ShowOnSale
from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.redis import Redis
from holdfast.holds import (
    BestAvailable,
    HoldOutcome,
    HoldRequest,
    HoldScripts,
    NamedSeats,
    Selection,
    StandingPlaces,
    find_runs,
)
from holdfast.layouts import Layout, LayoutBody, Prefer
from holdfast.layouts.body import AreaBody, CategoryBody, RowBody, SectionBody
from holdfast.pricing import Terms
from holdfast.seatmap.snapshot import packed_plan
from tests.support.claim_pool import Pool, a_pool

_claim_ids = count(1)
GRACE_MS = 300
PREFERENCES = (Prefer.BEST, Prefer.FRONT, Prefer.CENTRE)  # by the aisle: the order of best

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Hall:
    layout: Layout
    pool: Pool
    hold: Batcher[
        HoldRequest, HoldOutcome
    ]  # as the hold path does: requests that wait together travel together

    async def ask(
        self, selection: Selection, *, owner_id: int = 1, claim_id: str = "", limit: int = 10, ttl_s: int = 60
    ) -> HoldOutcome:
        show = replace(A_SHOW, show_id=self.pool.pool_id, layout=self.layout, owner_seats_max=limit)
        show = replace(show, hold_ttl_s=ttl_s)
        claim = claim_id or f"h{next(_claim_ids)}"
        return await self.hold(HoldRequest(show, owner_id, claim, claim, 1, selection))

    async def seats(self, *labels: str, rule: OrphanRule = OrphanRule.OFF, **terms: Any) -> HoldOutcome:
        return await self.ask(named(self.layout, *labels, rule=rule), **terms)

    async def best(self, seats: int, **wish: Any) -> HoldOutcome:
        return await self.ask(best_of(seats, **wish))

    async def places(self, places: int, **terms: Any) -> HoldOutcome:
        (area,) = self.layout.areas
        return await self.ask(StandingPlaces(area.start, area.start + area.capacity, places), **terms)

    async def states(self) -> str:
        return await self.pool.states()

    def labels(self, seats: tuple[int, ...]) -> list[str]:
        return [self.layout.labels[seat] for seat in seats]


async def a_hall(
    redis: Redis,
    layout: Layout,
    states: str = "",
    window_ms: tuple[int, int] = (-1000, 3_600_000),
    *,
    batch_max: int = 128,
) -> Hall:
    scripts = HoldScripts(redis, HoldLimits.from_config(Config()), claim_grace_ms=GRACE_MS)
    hall = Hall(layout, a_pool(redis), Batcher(scripts.hold_many, batch_max=batch_max, waiting_max=1000))
    fields = plan_fields(layout)
    assert await hall.pool.build(states or "A" * layout.seat_count, window_ms=window_ms, fields=fields)
    return hall


def plan_fields(layout: Layout) -> dict[str, bytes]:
    fields = {"categories": layout.category_of, "traits": layout.traits}
    for prefer in PREFERENCES:
        fields[f"runs:{prefer}"], fields[f"costs:{prefer}"] = packed_plan(layout, prefer)
    return fields


def named(layout: Layout, *labels: str, rule: OrphanRule = OrphanRule.OFF) -> NamedSeats:
    seats = tuple(sorted(layout.index_of[label] for label in labels))
    return NamedSeats(seats, rule, find_runs(layout, seats))


def best_of(
    seats: int,
    *,
    category: int | None = None,
    prefer: Prefer = Prefer.BEST,
    accessible: bool = False,
    together: bool = True,
) -> BestAvailable:
    return BestAvailable(seats, category, prefer, accessible, together)


def rows(*sizes: int, standing: int = 0) -> Layout:
    """Rows A, B, … of these sizes, one behind the other; with `standing`, a floor."""
    floor = AreaBody(
        name="Floor", capacity=standing or 1, outline=[(0, 9), (5, 9), (5, 12)], category="Standard"
    )
    drawn = [
        RowBody(label=chr(65 + i), seats=f"1-{size}", at=(0.0, 2.0 + i), align="centre", category="Standard")
        for i, size in enumerate(sizes)
    ]
    return Layout.build(
        LayoutBody(
            name="Rows",
            focal=(0.0, 0.0),
            categories=[CategoryBody(name="Standard", colour="#0072B2")],
            sections=[SectionBody(name="Stalls", rows=drawn)] if drawn else [],
            areas=[floor] if standing else [],
        )
    )


A_SHOW = ShowOnSale(
    show_id=0,
    revision=1,
    layout=rows(1),
    currency="EUR",
    prices=(),
    lines=(),
    terms=Terms(),
    hold_ttl_s=60,
    owner_seats_max=10,
    order_seats_max=10,
    orphan_rule=OrphanRule.OFF,
    opens_at=NOW,
    closes_at=NOW,
    starts_at=NOW,
    cancelled=False,
    title="",
)
