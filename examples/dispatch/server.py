"""The live map over HTTP: one page, the city's hexagons, a stream of frames, and two kinds of buttons."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from examples.dispatch.simulation import SPEEDS, Simulation, to_units

STATIC = Path(__file__).parent / "static"
# Only scripts of this page can send it: a form or a link of another site cannot.
BUTTON_HEADER = "x-dispatch-button"

Fault = Literal["worker", "valkey", "flush"]
Faults = Mapping[Fault, Callable[[], Awaitable[None]]]


class Pace(msgspec.Struct, frozen=True):
    """What a button changes; the other one stays as it is."""

    speed: float | None = None
    paused: bool | None = None


def build_application(simulation: Simulation, faults: Faults) -> Starlette:
    async def page(_: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    async def city(_: Request) -> Response:
        return JSONResponse(describe_city(simulation))

    async def live(_: Request) -> Response:
        headers = {"cache-control": "no-store"}
        return StreamingResponse(stream(simulation), media_type="text/event-stream", headers=headers)

    async def pace(request: Request) -> Response:
        if BUTTON_HEADER not in request.headers:
            return Response(status_code=403)
        try:
            wanted = msgspec.json.decode(await request.body(), type=Pace)
        except msgspec.ValidationError as error:
            return JSONResponse({"detail": str(error)}, 422)
        if wanted.speed is not None and wanted.speed not in SPEEDS:
            return JSONResponse({"detail": f"speed is one of {SPEEDS}"}, 422)
        await simulation.set_pace(wanted.speed, is_paused=wanted.paused)
        return Response(status_code=204)

    async def fault(request: Request) -> Response:
        if BUTTON_HEADER not in request.headers:
            return Response(status_code=403)
        cause = faults.get(request.path_params["name"])
        if cause is None:
            return Response(status_code=404)
        await cause()
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/city", city),
            Route("/live", live),
            Route("/pace", pace, methods=["POST"]),
            Route("/faults/{name}", fault, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
    )


def describe_city(simulation: Simulation) -> dict[str, object]:
    """What does not change: the centre and the outline of every cell, in the units of the frames."""
    city = simulation.fleet.city
    outlines = [[part for point in city.outline(cell) for part in to_units(point)] for cell in city.cells]
    centres = [to_units(city.point(cell)) for cell in city.cells]
    return {"cells": outlines, "centres": centres, "speeds": SPEEDS}


async def stream(simulation: Simulation) -> AsyncIterator[bytes]:
    async for frame in simulation.frames():
        yield b"data: " + frame + b"\n\n"
