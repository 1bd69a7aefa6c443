"""Changes the layout of a show on sale: compares both layouts, then applies the change in one transaction.

    lock show ─► lock sale (no hold can be opened) ─► read taken seats ─► safe? ─► write
                                                                          └─ no ─► refuse

A hold that was priced from the previous layout is rejected because of its revision and retried. The seat map
is rebuilt under a new epoch, so that viewers load a new snapshot.

A show in a pod is closed there in place of the lock (pods/close.py), and opened when the change has arrived.
Withdrawn seats are blocked before the change is committed: a process that dies leaves too many seats blocked,
never one on sale that the hall does not have.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from holdfast.bookings import block_in, lock_sale, taken_seats
from holdfast.catalogue import Catalogue
from holdfast.engines.postgres import Postgres, Queries, Transaction
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
from holdfast.organisers.show_forms import LayoutChange, LayoutDiffPage, SeatInUse, ShowChange, ShowRow
from holdfast.organisers.shows_store import ShowEditor
from holdfast.pods import (
    ClosedShow,
    DatabaseFor,
    ShowCloser,
    ShowElsewhere,
    closing_shows,
    load_owner,
    require_caught_up,
    require_show_here,
)
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.organisers", "layout_change")
WITHDRAWN = "withdrawn"  # name of the block that holds withdrawn seats


class LayoutChanger:
    """Changes layouts of the shows that `editor` may edit."""

    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        editor: ShowEditor,
        database_for: DatabaseFor | None = None,
    ) -> None:
        """`database_for`: the databases of pods; None: there are none."""
        self._postgres = postgres
        self._catalogue = catalogue
        self._editor = editor
        self._database_for = database_for

    async def compare(self, show_id: int, change: LayoutChange) -> LayoutDiffPage:
        """Describe what the change would do, without doing it."""
        old, new = await self._load_layouts(show_id, change)
        found = await _diff(old, new, change)
        there = await self._find_pod(show_id)
        async with self._postgres.transaction() as tx:
            show = await self._lock_show(tx, show_id, old)
            if there is None:
                taken = await _read_taken(tx, show_id)
        if there is not None:
            async with there.transaction() as in_pod:
                try:
                    taken = await _read_taken(in_pod, show_id)
                except ShowElsewhere:  # it moves, or is closed for a moment
                    raise Busy(retry_after_s=1) from None
        return _page(show, (old, new), found, taken)

    async def apply(self, show_id: int, change: LayoutChange) -> LayoutDiffPage:
        """Apply the whole change, or refuse it and list the seats that prevent it."""
        old, new = await self._load_layouts(show_id, change)
        found = await _diff(old, new, change)
        if self._database_for is not None:
            await require_caught_up(self._postgres, self._database_for, show_id)
        async with self._postgres.transaction() as tx, self._closing(tx) as closer:
            show = await self._lock_show(tx, show_id, old)
            if show.cancelled:
                raise ShowCancelled(show_id=show_id)
            await lock_sale(tx, show_id)
            closed = await closer.close(show_id) if closer is not None else None
            page = _page(show, (old, new), found, await _read_closed(closed, tx, show_id))
            if not page.is_safe:
                raise LayoutUnsafe(
                    unsafe_reasons=page.unsafe_reasons, in_use=[seat.label for seat in page.in_use]
                )
            if found.withdrawn and closed is None:
                await tx.execute(Q.add_withdrawn, show_id, await self._block(tx, show_id, found))
            show_change = ShowChange(layout_hash=new.hash, prices=change.prices)
            revision = await self._editor.apply(tx, show, show_change, new, always=True)
            if found.withdrawn:
                await record(tx, _withdrawal(show_id, change.withdraw))
            blocked = 0
            if found.withdrawn and closed is not None:
                async with closed.writing() as there:
                    blocked = await self._block(there, show_id, found)
        if closed is not None:
            await self._open(closed, blocked)
        self._catalogue.forget(show_id)
        self._catalogue.clear_cached_responses()
        return msgspec.structs.replace(page, revision=revision)

    def _closing(self, tx: Transaction) -> AbstractAsyncContextManager[ShowCloser | None]:
        return closing_shows(tx, self._database_for) if self._database_for is not None else nullcontext()

    async def _find_pod(self, show_id: int) -> Postgres | None:
        """The database of the pod that sells the show; None: home does, or a pod that this machine lacks."""
        if self._database_for is None:
            return None
        return self._database_for((await load_owner(self._postgres, show_id)).pod)

    async def _block(self, tx: Transaction, show_id: int, found: LayoutDiff) -> int:
        await lock_sale(tx, show_id)
        return await block_in(tx, show_id, found.withdrawn, WITHDRAWN, self._editor.actor_id)

    async def _open(self, closed: ClosedShow, blocked: int) -> None:
        """`blocked`: the block of the withdrawn seats, which no one can release from now on."""

        async def act(tx: Transaction) -> None:
            if blocked:
                await tx.execute(Q.add_withdrawn, closed.show_id, blocked)

        await closed.open_changed(self._postgres, act)

    async def _load_layouts(self, show_id: int, change: LayoutChange) -> tuple[Layout, Layout]:
        """Called before the transaction: loading a layout may need a second connection."""
        if change.layout_hash is msgspec.UNSET and not change.withdraw:
            raise Invalid(field="", detail="Expected a layout_hash, seats to withdraw, or both.")
        before = (await self._editor.show(show_id)).layout_hash
        old = await self._catalogue.layout(before)
        if change.layout_hash is msgspec.UNSET:
            return old, old
        return old, await self._editor.open_layout(change.layout_hash)

    async def _lock_show(self, tx: Transaction, show_id: int, old: Layout) -> ShowRow:
        show = await self._editor.row(tx, show_id)
        if show.layout_hash != old.hash:
            raise Busy(retry_after_s=1)  # changed by another request since it was read
        return show


async def _read_taken(tx: Transaction, show_id: int) -> Mapping[int, str]:
    """Where the show is sold. Raises ShowElsewhere."""
    await require_show_here(tx, show_id)
    return await taken_seats(tx, show_id)


async def _read_closed(closed: ClosedShow | None, tx: Transaction, show_id: int) -> Mapping[int, str]:
    if closed is None:
        return await _read_taken(tx, show_id)
    async with closed.database.transaction() as there:
        return await taken_seats(there, show_id)


def _withdrawal(show_id: int, seats: Sequence[str]) -> AuditEntry:
    subject = ("show", show_id)
    return AuditEntry(action="seats.withdrawn", subject=subject, show_id=show_id, after={"seats": seats})


async def _diff(old: Layout, new: Layout, change: LayoutChange) -> LayoutDiff:
    if unknown := [label for label in change.withdraw if label not in old.index_of]:
        raise UnknownSeat(seats=unknown)
    withdrawn = [old.index_of[label] for label in change.withdraw]
    # In a thread: comparing two stadiums would block all other requests of the process.
    return await asyncio.to_thread(compare_layouts, old, new, withdrawn)


def _page(
    show: ShowRow, both: tuple[Layout, Layout], found: LayoutDiff, taken: Mapping[int, str]
) -> LayoutDiffPage:
    old, new = both
    in_use = sorted(found.touched & taken.keys())
    removed = sorted({*found.gone, *found.withdrawn})
    unsafe_reasons = found.unsafe_reasons(taken)
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
        is_safe=not unsafe_reasons,
        unsafe_reasons=unsafe_reasons,
    )
