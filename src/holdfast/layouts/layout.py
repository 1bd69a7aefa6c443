"""The seats of a hall as numbered places, built once per content hash and shared by all its shows. No I/O.

    LayoutBody ──build()──► Layout ──page()──► JSON for the browser
      as written              as sold

A seat is an index. Adjacent seats without an aisle between them form a run and have consecutive indexes, so
finding seats together is finding a substring. Standing places have consecutive indexes within their area and
do not belong to a run.

Invariants
- The same body always gives the same layout and the same hash.
- Every seat has one unique label.
- A layout only grows: built `after` another, it preserves the indexes of that one and appends new seats.
  The body records the added labels (`added`), so the order survives a round trip.
"""

import hashlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from holdfast.layouts.body import SEATS_MAX, LayoutBody, LayoutProblem, Point, decode_body, encode_canonical
from holdfast.layouts.page import render_page
from holdfast.layouts.seating import Area, Category, NumberedSeats, Run, Stretch, label_prefix

__all__ = ["SEATS_MAX", "Area", "Category", "Layout", "LayoutBody", "LayoutProblem", "Run", "Seat"]


BYTES_PER_SEAT, BYTES_EACH = 300, 20_000  # 50 000 seats: 11 MB, and the body (tracemalloc)


class Seat(NamedTuple):
    """Description of one seat. For a standing place the section is its area, and the row is empty."""

    label: str
    section: str
    row: str
    number: str
    category: int
    trait: str


@dataclass(frozen=True, eq=False)
class Layout:
    hash: str
    name: str
    labels: tuple[str, ...]
    index_of: dict[str, int] = field(repr=False)
    category_of: bytes = field(repr=False)
    traits: bytes = field(repr=False)  # n plain, w wheelchair space, c companion, r restricted view
    runs: tuple[Run, ...] = field(repr=False)
    stretches: tuple[Stretch, ...] = field(repr=False)
    areas: tuple[Area, ...]
    categories: tuple[Category, ...]
    x: "array[float]" = field(repr=False)
    y: "array[float]" = field(repr=False)
    focal: Point
    body: LayoutBody = field(repr=False)
    drawn: bytes = field(repr=False)

    @classmethod
    def build(cls, body: LayoutBody, after: "Layout | None" = None) -> "Layout":
        """Raises LayoutProblem if the body is invalid."""
        body = decode_body(encode_canonical(body))
        if after is not None:
            body = _record_growth(body, after)
        draft = NumberedSeats(body)
        if after is not None and tuple(draft.labels[: after.seat_count]) != after.labels:
            raise LayoutProblem("old seats come in another order; keep sections and rows in their order")
        content_hash = hashlib.blake2b(encode_canonical(body), digest_size=16).hexdigest()
        return cls(
            hash=content_hash,
            name=body.name,
            labels=tuple(draft.labels),
            index_of=draft.index_of,
            category_of=bytes(draft.category_of),
            traits=bytes(draft.traits),
            runs=tuple(draft.runs),
            stretches=tuple(draft.stretches),
            areas=tuple(draft.areas),
            categories=tuple(Category(category.name, category.colour) for category in body.categories),
            x=draft.x,
            y=draft.y,
            focal=body.focal,
            body=body,
            drawn=render_page(content_hash, body, draft),
        )

    @property
    def seat_count(self) -> int:
        return len(self.labels)

    @cached_property
    def category_sizes(self) -> dict[str, int]:
        """Seats by name of their category."""
        return {each.name: self.category_of.count(index) for index, each in enumerate(self.categories)}

    @property
    def weight(self) -> int:
        """About how many bytes of memory it takes, with everything that is derived from it."""
        return BYTES_PER_SEAT * self.seat_count + 2 * len(self.drawn) + BYTES_EACH

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What others have computed from it. Stored here, so that it goes when the layout goes."""
        return {}

    @cached_property
    def category_masks(self) -> tuple[int, ...]:
        """Per category a number with a byte per seat, the first lowest: 255 where the seat belongs to it."""
        return tuple(
            int.from_bytes(
                self.category_of.translate(bytes(255 * (value == index) for value in range(256))), "little"
            )
            for index in range(len(self.categories))
        )

    @property
    def focal_name(self) -> str:
        return self.body.focal_name

    @property
    def front(self) -> Point:
        return self.body.front or self.focal

    def source(self) -> LayoutBody:
        return self.body

    def page(self) -> bytes:
        return self.drawn

    def run_at(self, seat: int) -> Run | None:
        """The run that contains a seat; None for a standing place."""
        if not self.runs:
            return None
        found = self.runs[bisect_right(self._run_starts, seat) - 1]  # the last one, if it is before the first
        return found if found.start <= seat < found.start + found.length else None

    def area_at(self, seat: int) -> Area | None:
        return next((area for area in self.areas if area.start <= seat < area.start + area.capacity), None)

    def seat(self, index: int) -> Seat:
        """Description of a seat for its buyer."""
        category, trait = self.category_of[index], chr(self.traits[index])
        if (area := self.area_at(index)) is not None:
            return Seat(self.labels[index], area.name, "", str(index - area.start + 1), category, trait)
        which = bisect_right(self._run_starts, index) - 1
        stretch, start = self.stretches[which], self.runs[which].start
        section = self.body.sections[stretch.section].name
        return Seat(self.labels[index], section, stretch.row, stretch.numbers[index - start], category, trait)

    def grows_from(self, old: "Layout") -> bool:
        """Whether every seat of `old` has the same index, label and category here."""
        count = old.seat_count
        return (
            self.labels[:count] == old.labels
            and self.category_of[:count] == old.category_of
            and self.categories[: len(old.categories)] == old.categories
        )

    @cached_property
    def _run_starts(self) -> list[int]:
        return [run.start for run in self.runs]


def _record_growth(body: LayoutBody, old: Layout) -> LayoutBody:
    """The body with the labels that it adds to `old`, so that these seats get the last indexes."""
    prefix_of = {was.name: label_prefix(was, old.body).removesuffix("-") for was in old.body.sections}
    sections = [
        msgspec.structs.replace(section, prefix=prefix_of.get(section.name, section.prefix))
        for section in body.sections
    ]
    capacity_of = {area.name: area.capacity for area in body.areas}
    for area in old.areas:
        if capacity_of.get(area.name) != area.capacity:
            raise LayoutProblem(f"area {area.name} has to keep its {area.capacity} places; add a second area")
    body = msgspec.structs.replace(body, sections=sections, added=[])
    labels = NumberedSeats(body).index_of
    if lost := [label for label in old.labels if label not in labels]:
        raise LayoutProblem(f"seat {lost[0]} is gone; a layout only grows, so put it back")
    added = [label for label in labels if label not in old.index_of]
    return msgspec.structs.replace(body, added=[*old.body.added, added] if added else old.body.added)
