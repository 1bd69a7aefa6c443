"""Compares two layouts of a show, seat by seat (R33). No I/O.

Bookings identify seats by number, so a new layout for a show on sale must preserve every number. At the same
number the label (renamed) or category (recategorised) may change; new seats get new numbers at the end. Seats
that are no longer sold are withdrawn: they keep their number and are blocked permanently.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from holdfast.layouts.layout import Layout

LISTED_MAX = 1000  # seats listed in one response; counts are complete


class UnsafeReason(StrEnum):
    """Why a show on sale cannot switch to a layout."""

    SEATS_GONE = "seats_gone"  # not in the new layout: leave them in and withdraw them
    RENUMBERED = "renumbered"  # the same label at another number: upload the layout with `grows_from`
    CATEGORIES_MOVED = "categories_moved"  # existing categories come first, in their order; append new ones
    SEATS_IN_USE = "seats_in_use"  # a seat that would change is held, booked or blocked


class Renamed(Struct, frozen=True):
    was: str
    label: str


class Recategorised(Struct, frozen=True):
    label: str
    was: str
    category: str


class LayoutDiff(Struct, frozen=True, kw_only=True):
    """Differences by seat number."""

    added: list[int]
    gone: list[int]  # numbers of the old layout
    renumbered: list[int]  # the same
    renamed: list[int]
    recategorised: list[int]
    withdrawn: list[int]
    redrawn: int  # seats drawn elsewhere; their number, label and category may be the same
    new_categories: list[str]
    categories_moved: bool

    @property
    def is_empty(self) -> bool:
        return not (self.touched or self.added or self.redrawn or self.new_categories)

    @property
    def touched(self) -> frozenset[int]:
        """Seats that would differ from what a buyer has bought."""
        return frozenset((*self.gone, *self.renumbered, *self.renamed, *self.recategorised, *self.withdrawn))

    def unsafe_reasons(self, taken: Iterable[int]) -> list[UnsafeReason]:
        reasons = [
            (self.gone, UnsafeReason.SEATS_GONE),
            (self.renumbered, UnsafeReason.RENUMBERED),
            (self.categories_moved, UnsafeReason.CATEGORIES_MOVED),
            (self.touched & set(taken), UnsafeReason.SEATS_IN_USE),
        ]
        return [reason for is_so, reason in reasons if is_so]


def compare_layouts(old: Layout, new: Layout, withdrawn: Iterable[int] = ()) -> LayoutDiff:
    was, now = old.labels, new.labels
    gone, renumbered, renamed = [], [], []
    for seat, label in enumerate(was):
        if seat < len(now) and now[seat] == label:
            continue
        if label in new.index_of:
            renumbered.append(seat)
        elif seat < len(now) and now[seat] not in old.index_of:
            renamed.append(seat)
        else:
            gone.append(seat)
    names = [category.name for category in old.categories]
    new_names = [category.name for category in new.categories]
    both = range(min(len(was), len(now)))
    return LayoutDiff(
        added=[seat for seat in range(len(was), len(now)) if now[seat] not in old.index_of],
        gone=gone,
        renumbered=renumbered,
        renamed=renamed,
        recategorised=[
            seat for seat in both if names[old.category_of[seat]] != new_names[new.category_of[seat]]
        ],
        withdrawn=sorted(set(withdrawn)),
        redrawn=sum(1 for seat in both if (old.x[seat], old.y[seat]) != (new.x[seat], new.y[seat])),
        new_categories=[name for name in new_names if name not in names],
        categories_moved=new_names[: len(names)] != names,
    )


def list_labels(layout: Layout, seats: Iterable[int]) -> list[str]:
    return [layout.labels[seat] for seat in sorted(seats)[:LISTED_MAX]]


def list_renamed(old: Layout, new: Layout, seats: Sequence[int]) -> list[Renamed]:
    return [Renamed(old.labels[seat], new.labels[seat]) for seat in seats[:LISTED_MAX]]


def list_recategorised(old: Layout, new: Layout, seats: Sequence[int]) -> list[Recategorised]:
    return [
        Recategorised(
            old.labels[seat],
            old.categories[old.category_of[seat]].name,
            new.categories[new.category_of[seat]].name,
        )
        for seat in seats[:LISTED_MAX]
    ]
