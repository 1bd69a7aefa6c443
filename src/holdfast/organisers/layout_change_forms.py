"""What an organiser sends to change the layout of a show on sale, and what they are told. No I/O."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.layouts import Recategorised, Renamed, UnsafeReason
from holdfast.organisers.forms import Form, LayoutHash
from holdfast.organisers.show_forms import Prices

WITHDRAWN_MAX = 1000  # seats withdrawn in one change

Label = Annotated[str, Meta(min_length=1, max_length=200)]


class LayoutChange(Form, frozen=True, kw_only=True):
    """Another layout, seats to withdraw, or both. `prices` are those of categories that are new."""

    layout_hash: LayoutHash | UnsetType = UNSET
    withdraw: Annotated[tuple[Label, ...], Meta(max_length=WITHDRAWN_MAX)] = ()
    prices: Prices | UnsetType = UNSET


class SeatInUse(Struct, frozen=True):
    """A seat that the change would touch, and whose it is: held, paying, confirmed or blocked."""

    label: str
    state: str


class LayoutDiffPage(Struct, frozen=True, kw_only=True):
    """Counts are whole; lists name the first thousand."""

    show_id: int
    revision: int
    layout_hash: str  # what it would be, or is now
    seats: int
    added_total: int
    added: list[str]
    removed_total: int
    removed: list[str]  # not in the new layout, or withdrawn
    renamed_total: int
    renamed: list[Renamed]
    recategorised_total: int
    recategorised: list[Recategorised]
    renumbered_total: int
    renumbered: list[str]  # the same label at another number
    redrawn_total: int  # drawn elsewhere
    new_categories: list[str]
    in_use_total: int
    in_use: list[SeatInUse]  # seats that it touches and that somebody has
    is_safe: bool
    why_not: list[UnsafeReason]
