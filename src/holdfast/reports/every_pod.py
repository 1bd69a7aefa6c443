"""Figures of shows that are in several databases: each pod sums its own shows, home adds them up.

home: the shows of an event or organiser ──► by pod ──► sums of each ──► one answer
                                                    └─► away: pods that cannot be reached
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from holdfast.reports.figures import EventFigures, SeatSum, ShowLine, ShowSum, add_figures
from holdfast.reports.store import SHEET_COLUMNS
from holdfast.web.csv_export import to_csv
from holdfast.web.every_pod import ask_every_pod, require_every_pod

if TYPE_CHECKING:
    from holdfast.app import App

S = TypeVar("S", ShowSum, ShowLine)
SUMMED = ("seats_sold", "seats_returned", "amount_minor")


async def load_event_figures(app: "App", event_id: int, organiser_id: int | None) -> EventFigures:
    event = await app.reports.of_event(event_id, organiser_id)
    if not app.router.has_pods:
        return event
    shows = _by_pod(app, (show.show_id for show in event.shows))
    figures = await ask_every_pod(app, lambda each: each.reports.sums(shows[id(each)]))
    sums = await ask_every_pod(app, lambda each: each.reports.seat_sums(shows[id(each)]))
    away = sorted({*figures.away, *sums.away})
    return replace(
        event,
        figures=add_figures(figures.values),
        shows=_with_sums(event.shows, sums.values),
        complete=not away,
        missing_pods=away,
    )


async def load_show_lines(
    app: "App", organiser_id: int, *, is_past: bool, limit: int, start: int = 0
) -> tuple[list[ShowLine], list[str]]:
    """The shows of an organiser with what was sold of them; and the pods that cannot be reached."""
    lines = await app.reports.shows_of_organiser(organiser_id, is_past=is_past, limit=limit, start=start)
    if not app.router.has_pods:
        return lines, []
    shows = _by_pod(app, (line.show_id for line in lines))
    sums = await ask_every_pod(app, lambda each: each.reports.seat_sums(shows[id(each)]))
    return _with_sums(lines, sums.values), sums.away


async def event_sheet(app: "App", show_ids: Sequence[int]) -> AsyncIterator[bytes]:
    """A sheet has everything: it is refused while a pod cannot be reached."""
    await require_every_pod(app)

    async def write() -> AsyncIterator[bytes]:
        yield to_csv([SHEET_COLUMNS])
        for pod, some in groupby(sorted(show_ids), key=app.router.for_show):
            async for page in pod.reports.sheet_rows(list(some)):
                yield page

    return write()


def _by_pod(app: "App", show_ids: Iterable[int]) -> Mapping[int, list[int]]:
    """By the identity of the application. A show that moves now has rows in two: its owner's count."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for show_id in show_ids:
        found[id(app.router.for_show(show_id))].append(show_id)
    return found


def _with_sums(lines: Sequence[S], sums: Iterable[Sequence[SeatSum]]) -> list[S]:
    by_show = {one.show_id: one for some in sums for one in some}
    return [
        replace(line, **{name: getattr(by_show[line.show_id], name) for name in SUMMED})
        if line.show_id in by_show
        else line
        for line in lines
    ]
