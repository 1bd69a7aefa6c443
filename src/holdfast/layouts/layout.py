"""A hall's seats as numbered places: built once per content hash, shared by every show that has it.
No I/O.

    LayoutBody ──build()──► Layout ──page()──► what a browser draws
      as written              as sold

A seat is an index. Seats that are side by side, with no aisle between them, are a run, and a run's seats have
consecutive indexes: choosing seats together is finding a stretch of a string. Standing places have indexes
too, consecutive within their area, and belong to no run.

Invariants
- The same body gives the same layout and the same hash, wherever and however often it is built.
- Every seat has one label, and no two seats share one.
- A layout only grows: built `after` another, it keeps that one's indexes and numbers what is new behind them.
  The growth is written into the body (`added`), so it is still there when the body is read back.
"""

import hashlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import msgspec

from holdfast.layouts.body import SEATS_MAX, LayoutBody, LayoutProblem, Point, decode_body, encode_canonical
from holdfast.layouts.page import render_page
from holdfast.layouts.seating import Area, Category, NumberedSeats, Run, Stretch, label_prefix

__all__ = ["SEATS_MAX", "Area", "Category", "Layout", "LayoutBody", "LayoutProblem", "Run", "Seat"]


class Seat(NamedTuple):
    """One seat in words. A standing place has its area as its section, and no row."""

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
        """Raises LayoutProblem, with where it is and what to do."""
        body = decode_body(encode_canonical(body))
        if after is not None:
            body = _grown(body, after)
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
        """The run that a seat is in; None for a standing place."""
        found = self.runs[max(0, bisect_right(self._run_starts, seat) - 1)] if self.runs else Run(0, 0)
        return found if found.start <= seat < found.start + found.length else None

    def area_at(self, seat: int) -> Area | None:
        return next((area for area in self.areas if area.start <= seat < area.start + area.capacity), None)

    def seat(self, index: int) -> Seat:
        """A seat in words, for the people who buy it."""
        category, trait = self.category_of[index], chr(self.traits[index])
        if (area := self.area_at(index)) is not None:
            return Seat(self.labels[index], area.name, "", str(index - area.start + 1), category, trait)
        which = bisect_right(self._run_starts, index) - 1
        stretch, start = self.stretches[which], self.runs[which].start
        section = self.body.sections[stretch.section].name
        return Seat(self.labels[index], section, stretch.row, stretch.numbers[index - start], category, trait)

    def grows_from(self, old: "Layout") -> bool:
        """Whether every seat that `old` has is still the same seat here."""
        kept = old.seat_count
        return (
            self.labels[:kept] == old.labels
            and self.category_of[:kept] == old.category_of
            and self.categories[: len(old.categories)] == old.categories
        )

    @cached_property
    def _run_starts(self) -> list[int]:
        return [run.start for run in self.runs]


def _grown(body: LayoutBody, old: Layout) -> LayoutBody:
    """The body with what it adds to `old` written down, so that it is numbered behind."""
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
