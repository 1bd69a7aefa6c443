"""/desk/{organisation}/shows/{show}/replay: the sale of a show, to watch and to save."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable
from holdfast.desk.frame import render_desk
from holdfast.desk.show_page import SHOW, load_show
from holdfast.engines.aside import run_aside
from holdfast.replay import build_rows, file_headers, render_file, say_period
from holdfast.site.pages import PRIVATE_HEADERS, get_localiser
from holdfast.site.templates_env import gzip_quickly
from holdfast.web.responses import takes_packed
from holdfast.web.routing import get_app

LIKE = "get_show_replay"
desk = DeskTable()


@desk.get(SHOW + "/replay", like=LIKE)
async def get_desk_replay(request: Request) -> Response:
    """The sale of a show as an animation of its seat map, with its figures."""
    show, l10n = await load_show(request), get_localiser(request)
    replay = await get_app(request).replays.load(show.id)
    return render_desk(
        request,
        "replay.html",
        "shows",
        show_id=show.id,
        replay=replay,
        period=say_period(replay, l10n),
        rows=build_rows(replay, l10n),
        texts=l10n.texts_for_scripts("replay.say_"),
    )


@desk.get(SHOW + "/replay.json", like=LIKE)
async def get_replay_document(request: Request) -> Response:
    """What the player on that page plays."""
    show = await load_show(request)
    body = (await get_app(request).replays.load(show.id)).document
    headers = dict(PRIVATE_HEADERS)
    if takes_packed(request.scope):
        body, headers["Content-Encoding"] = await run_aside(gzip_quickly, body), "gzip"
    return Response(body, 200, headers, "application/json")


@desk.get(SHOW + "/replay.html", like=LIKE)
async def get_replay_file(request: Request) -> Response:
    """The replay as one file that works without a network."""
    show = await load_show(request)
    replay = await get_app(request).replays.load(show.id)
    body = await run_aside(render_file, replay, get_localiser(request))
    return Response(body, 200, {**PRIVATE_HEADERS, **file_headers(show.id)}, "text/html")
