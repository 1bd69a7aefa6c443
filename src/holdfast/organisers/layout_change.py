"""The layout of a show on sale is changed here: compared, then taken over in one transaction.

    show (locked) ─► sale (locked against holds being opened) ─► who has which seat ─► safe? ─► written
                                                                                       └─ no ─► refused

A hold that was composed on the layout of before is refused by its revision and composed again. The map is
written anew with another epoch, so that viewers take a snapshot.
"""

import asyncio
from collections.abc import Mapping

import msgspec

from holdfast.bookings import block_in, lock_sale, taken_seats
from holdfast.catalogue import Catalogue
from holdfast.engines.postgres import Postgres, Transaction
from holdfast.engines.sql import Queries
from holdfast.errors import Busy, Invalid
from holdfast.layouts import (
    LISTED_MAX,
    Layout,
    LayoutDiff,
    UnknownSeat,
    compare_layouts,
    list_labels,
    list_recategorised,
    list_renamed,
)
from holdfast.organisers.errors import LayoutUnsafe, ShowCancelled
from holdfast.organisers.layout_change_forms import LayoutChange, LayoutDiffPage, SeatInUse
from holdfast.organisers.show_forms import ShowChange, ShowRow
from holdfast.organisers.shows_store import ShowEditor

Q = Queries("holdfast.organisers", "layout_change")
WITHDRAWN = "withdrawn"  # the name of such a block


class LayoutChanger:
    """Layouts of the shows of one keeper, whose desk `schedule` is."""

    def __init__(self, postgres: Postgres, catalogue: Catalogue, schedule: ShowEditor) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._schedule = schedule

    async def compare(self, show_id: int, change: LayoutChange) -> LayoutDiffPage:
        """What the change would do. Nothing is changed."""
        old, new = await self._layouts(show_id, change)
        found = await _diff(old, new, change)
        async with self._postgres.transaction() as tx:
            show = await self._locked(tx, show_id, old)
            taken = await taken_seats(tx, show_id)
        return _page(show, (old, new), found, taken)

    async def take_over(self, show_id: int, change: LayoutChange) -> LayoutDiffPage:
        """All of the change, or a refusal that says which seats are in the way."""
        old, new = await self._layouts(show_id, change)
        found = await _diff(old, new, change)
        async with self._postgres.transaction() as tx:
            show = await self._locked(tx, show_id, old)
            if show.cancelled:
                raise ShowCancelled(show_id=show_id)
            await lock_sale(tx, show_id)
            taken = await taken_seats(tx, show_id)
            page = _page(show, (old, new), found, taken)
            if not page.is_safe:
                raise LayoutUnsafe(why_not=page.why_not, in_use=[seat.label for seat in page.in_use])
            if found.withdrawn:
                number = await block_in(tx, show_id, found.withdrawn, WITHDRAWN, self._schedule.actor_id)
                await tx.execute(Q.add_withdrawn, show_id, number)
            asked = ShowChange(layout_hash=new.hash, prices=change.prices)
            revision = await self._schedule.apply(tx, show, asked, new, always=True)
        self._catalogue.forget(show_id)
        self._catalogue.forget_pages()
        return msgspec.structs.replace(page, revision=revision)

    async def _layouts(self, show_id: int, change: LayoutChange) -> tuple[Layout, Layout]:
        """Before the transaction: laying out may take a connection of its own."""
        if change.layout_hash is msgspec.UNSET and not change.withdraw:
            raise Invalid(field="", detail="Expected a layout_hash, seats to withdraw, or both.")
        before = (await self._schedule.show(show_id)).layout_hash
        old = await self._catalogue.layout(before)
        if change.layout_hash is msgspec.UNSET:
            return old, old
        return old, await self._schedule.open_layout(change.layout_hash)

    async def _locked(self, tx: Transaction, show_id: int, old: Layout) -> ShowRow:
        show = await self._schedule.row(tx, show_id)
        if show.layout_hash != old.hash:
            raise Busy(retry_after_s=1)  # somebody has changed it since we looked
        return show


async def _diff(old: Layout, new: Layout, change: LayoutChange) -> LayoutDiff:
    if unknown := [label for label in change.withdraw if label not in old.index_of]:
        raise UnknownSeat(seats=unknown)
    withdrawn = [old.index_of[label] for label in change.withdraw]
    # A stadium takes a while to compare; other requests of the process go on meanwhile.
    return await asyncio.to_thread(compare_layouts, old, new, withdrawn)


def _page(
    show: ShowRow, both: tuple[Layout, Layout], found: LayoutDiff, taken: Mapping[int, str]
) -> LayoutDiffPage:
    old, new = both
    in_use = sorted(found.touched & taken.keys())
    removed = sorted({*found.gone, *found.withdrawn})
    why_not = found.why_not(taken)
    return LayoutDiffPage(
        show_id=show.id,
        revision=show.revision,
        layout_hash=new.hash,
        seats=new.seat_count,
        added_total=len(found.added),
        added=list_labels(new, found.added),
        removed_total=len(removed),
        removed=list_labels(old, removed),
        renamed_total=len(found.renamed),
        renamed=list_renamed(old, new, found.renamed),
        recategorised_total=len(found.recategorised),
        recategorised=list_recategorised(old, new, found.recategorised),
        renumbered_total=len(found.renumbered),
        renumbered=list_labels(old, found.renumbered),
        redrawn_total=found.redrawn,
        new_categories=found.new_categories,
        in_use_total=len(in_use),
        in_use=[SeatInUse(old.labels[seat], taken[seat]) for seat in in_use[:LISTED_MAX]],
        is_safe=not why_not,
        why_not=why_not,
    )
