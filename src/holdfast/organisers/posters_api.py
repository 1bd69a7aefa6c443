"""Uploading and removing the poster of an event."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import NoSuchEvent
from holdfast.errors import WrongMediaType
from holdfast.organisers.errors import BadPicture
from holdfast.organisers.forms import EventChange, ManagedEvent
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer
from holdfast.web.routing import RouteTable, get_app, get_scope

PICTURE_BYTES_MAX = 10 * 1024 * 1024
# Threads, because a large picture takes a second; few, because it takes 120 MB while it is decoded.
DECODERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="poster")

routes = RouteTable(
    tag="admin", prefix="/admin/events", role=Role.ORGANISER, right=Right.CATALOGUE, refusals=(NoSuchEvent,)
)


@routes.put(
    "/{event:int}/poster",
    answers={200: ManagedEvent},
    refusals=(BadPicture, WrongMediaType),
    body_bytes_max=PICTURE_BYTES_MAX,
    long_numbers=True,
)
async def upload_poster(request: Request) -> Response:
    """Upload the poster of an event; it replaces the one before.

    Send a JPEG, PNG or WebP file unchanged, with its `Content-Type`: at most 10 MB and 40 million pixels, at
    least 320 pixels on each side. It is encoded again in three widths, without metadata, and cut to two to
    three. `poster` of the event is the address of the largest. `poster_alt` (PATCH) describes it.
    """
    # Imported here: few processes ever get a picture, and Pillow takes megabytes.
    from holdfast.organisers.poster_images import FORMATS, build_poster_images

    app, event_id = get_app(request), request.path_params["event"]
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in FORMATS:
        raise WrongMediaType(detail=f"Expected one of {', '.join(FORMATS)}.")
    editor = app.catalogue_editor(get_scope(request))
    await editor.event(event_id)  # refused before a large picture is decoded
    loop = asyncio.get_running_loop()
    images = await loop.run_in_executor(DECODERS, build_poster_images, await request.body(), media_type)
    event = await editor.set_poster(event_id, images)
    app.catalogue.clear_cached_responses()
    return answer(200, event)


@routes.delete("/{event:int}/poster", answers={204: None})
async def remove_poster(request: Request) -> Response:
    """Remove the poster of an event: pages show the generated one again."""
    app = get_app(request)
    editor = app.catalogue_editor(get_scope(request))
    await editor.change_event(request.path_params["event"], EventChange(poster=""))
    app.catalogue.clear_cached_responses()
    return Response(status_code=204)


ROUTES = routes.all
