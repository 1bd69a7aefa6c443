"""A row is added while the show is on sale, and a web worker has not loaded it yet (R5)."""

import httpx2
from msgspec.structs import replace

from holdfast.app import App
from holdfast.catalogue.store import store_layout
from holdfast.layouts import Layout
from holdfast.layouts.body import RowBody
from holdfast.organisers.show_forms import ShowChange
from holdfast.web.caller import Scope
from tests.support.shows import Fan, a_layout, a_show

FRONT = RowBody(label="Z", seats="1-4", at=(0.0, 0.5), align="centre", category="Standard")


async def test_the_new_seats_are_sold_by_a_worker_that_knows_the_old_hall(
    app: App, api: httpx2.AsyncClient, alice: Fan
) -> None:
    """`api` has a catalogue of its own, as every worker has; `box` is where the change is made."""
    hall = a_layout(20)
    show = await a_show(app, layout=hall)
    await alice.holds(show, "A-1")
    await grow(app, show, hall)
    await app.seatmap.rebuild(show, "test")

    answer = await alice.holds(show, best={"count": 2}, key="front-row")
    again = await alice.holds(show, best={"count": 2}, key="front-row")

    assert answer.status_code == 201, answer.text
    assert [seat["label"] for seat in answer.json()["seats"]] == ["Z-1", "Z-2"]
    assert again.content == answer.content


async def grow(app: App, show_id: int, hall: Layout) -> None:
    """A new front row: the best seats there are, and the last in the order of the numbers."""
    (section,) = hall.body.sections
    body = replace(hall.body, sections=[replace(section, rows=[FRONT, *section.rows])])
    grown = Layout.build(body, after=hall)
    await store_layout(app.postgres, grown)
    await app.show_editor(Scope(1, True)).change_show(show_id, ShowChange(layout_hash=grown.hash))
