"""/desk/{organisation}/shows/{show}/cancel, /publish: cancelling a show, and its progress; publishing.

The page of a cancelled show follows its refunds until none is under way: by a script, or by loading again.
"""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk
from holdfast.desk.show_page import load_show, load_timezone
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.organisers import ManagedShow, ShowChange
from holdfast.site.pages import read_form, redirect
from holdfast.web.routing import get_app, get_scope

REFRESH_S = 2
PATH = "/shows/{show:int}/cancel"
desk = DeskTable()


class PublishForm(Struct):
    published: bool


class CancelShowForm(Struct):
    title: str = ""  # typed by hand: no one cancels a show by a slip


@desk.get(PATH, like=("update_show", "get_show_cancellation"))
async def get_cancel_page(request: Request) -> Response:
    """What cancelling would do; for a cancelled show, how far its refunds are."""
    return await _render_cancel(request, await load_show(request))


@desk.post(PATH, like=("update_show", "get_show_cancellation"))
async def post_cancel(request: Request) -> Response:
    """Cancels the show for good. The workers refund every buyer."""
    data, show = await read_form(request, CancelShowForm), await load_show(request)
    if data.title.strip().casefold() != show.title.strip().casefold():
        return await _render_cancel(request, show, is_wrong=True)
    if not show.cancelled:
        await _change(request, show.id, ShowChange(cancelled=True))
    return redirect(f"{get_desk(request).path}/shows/{show.id}/cancel")


@desk.post("/shows/{show:int}/publish", like="update_show")
async def post_publish(request: Request) -> Response:
    """Publishes a draft; or hides a show and closes its sale."""
    data, show = await read_form(request, PublishForm), await load_show(request)
    await _change(request, show.id, ShowChange(published=data.published))
    return redirect(f"{get_desk(request).path}/shows/{show.id}?notice=saved")


async def _change(request: Request, show_id: int, change: ShowChange) -> None:
    await get_app(request).show_editor(get_scope(request)).change_show(show_id, change)
    try:
        await get_app(request).seatmap.rebuild(show_id, "changed")
    except EngineDown:  # committed; the map is rebuilt when Redis is back, before it sells again
        metrics.add("rebuilds_put_off_total")


async def _render_cancel(request: Request, show: ManagedShow, *, is_wrong: bool = False) -> Response:
    app = get_app(request)
    progress = await app.refund_store.cancellation(show.id)
    return render_desk(
        request,
        "cancel_show.html",
        "shows",
        status=422 if is_wrong else 200,
        show=show,
        timezone=await load_timezone(request),
        progress=progress,
        is_wrong=is_wrong,
        refresh_s=REFRESH_S if show.cancelled and not progress.is_over else 0,
    )
