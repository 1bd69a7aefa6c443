"""A hall's map written straight into Valkey, in any state, and holds asked of it."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from holdfast.catalogue import OrphanRule
from holdfast.engines.redis import Redis
from holdfast.holds import Ask, Best, HoldScripts, Outcome, Places, Seats, What, runs_of
from holdfast.layouts import Layout, LayoutBody, Prefer
from holdfast.layouts.body import AreaBody, CategoryBody, RowBody, SectionBody
from holdfast.seatmap.packing import packed_plan
from tests.support.claim_pool import Pool, a_pool

_claim_ids = count(1)
PREFERENCES = (Prefer.BEST, Prefer.FRONT, Prefer.CENTRE)  # by the aisle: the order of best


@dataclass(frozen=True, slots=True)
class Hall:
    holds: HoldScripts
    layout: Layout
    pool: Pool

    async def ask(self, what: What, **terms: Any) -> Outcome:
        asked: dict[str, Any] = {
            "owner_id": 1,
            "claim_id": f"h{next(_claim_ids)}",
            "life_ms": 60_000,
            "limit": 10,
        }
        return await self.holds.hold(Ask(show_id=self.pool.pool_id, what=what, **(asked | terms)))

    async def seats(self, *labels: str, rule: OrphanRule = OrphanRule.OFF, **terms: Any) -> Outcome:
        return await self.ask(named(self.layout, *labels, rule=rule), **terms)

    async def best(self, seats: int, **wish: Any) -> Outcome:
        return await self.ask(best_of(seats, **wish))

    async def places(self, places: int, **terms: Any) -> Outcome:
        (area,) = self.layout.areas
        return await self.ask(Places(area.start, area.start + area.capacity, places), **terms)

    async def letters(self) -> str:
        return await self.pool.letters()

    def labels(self, seats: tuple[int, ...]) -> list[str]:
        return [self.layout.labels[seat] for seat in seats]


async def a_hall(
    holds: HoldScripts,
    redis: Redis,
    layout: Layout,
    letters: str = "",
    window_ms: tuple[int, int] = (-1000, 3_600_000),
) -> Hall:
    hall = Hall(holds, layout, a_pool(redis))
    fields = plan_fields(layout)
    assert await hall.pool.build(letters or "A" * layout.seat_count, window_ms=window_ms, fields=fields)
    return hall


def plan_fields(layout: Layout) -> dict[str, bytes]:
    fields = {"categories": layout.category_of, "traits": layout.traits}
    for prefer in PREFERENCES:
        fields[f"runs:{prefer}"], fields[f"costs:{prefer}"] = packed_plan(layout, prefer)
    return fields


def named(layout: Layout, *labels: str, rule: OrphanRule = OrphanRule.OFF) -> Seats:
    seats = tuple(sorted(layout.index_of[label] for label in labels))
    return Seats(seats, rule, runs_of(layout, seats))


def best_of(
    seats: int,
    *,
    category: int | None = None,
    prefer: Prefer = Prefer.BEST,
    accessible: bool = False,
    together: bool = True,
) -> Best:
    return Best(seats, category, prefer, accessible, together)


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
