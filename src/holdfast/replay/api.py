"""/admin/shows/{show}/replay.html: how my sale went, to watch."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import locale_for
from holdfast.catalogue import NoSuchShow
from holdfast.engines.aside import run_aside
from holdfast.replay.page import file_headers, render_file
from holdfast.site.templates_env import localiser_for
from holdfast.web.caller import Right, Role
from holdfast.web.routing import RouteTable, get_app, get_scope

HTML = "text/html"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.MONEY)


@routes.get(
    "/admin/shows/{show:int}/replay.html",
    answers={200: bytes},
    refusals=(NoSuchShow,),
    media_types=(HTML,),
)
async def get_show_replay(request: Request) -> Response:
    """The sale of a show as an animation of its seat map: one HTML file that works without a network.

    It has no personal data: seats and times only. In the language of `Accept-Language`.
    """
    app, show_id = get_app(request), request.path_params["show"]
    await app.catalogue.organiser_show(show_id, get_scope(request).organiser_id)
    replay = await app.replays.load(show_id)
    l10n = localiser_for(locale_for(request.scope["state"]["headers"]))
    body = await run_aside(render_file, replay, l10n)
    return Response(body, 200, file_headers(show_id), HTML)


ROUTES = routes.all
