"""One web worker with two more endpoints, as references: what the same server can do at best.

POST /api/v1/bare       authenticates, parses the body of a hold, responds like a hold, does nothing else
GET  /api/v1/bare/{n}   responds with n bytes from memory
"""

import os
import socket
import sys
from datetime import UTC, datetime

import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from holdfast.app import asgi_app
from holdfast.bookings import BookingState
from holdfast.bookings.view import BookingPage, SeatPage
from holdfast.config import Config
from holdfast.engines.aside import favour_loop
from holdfast.holds import HoldBody
from holdfast.lean_import import freeze_imports
from holdfast.site.templates_env import warm_up
from holdfast.web import log
from holdfast.web.caller import Role
from holdfast.web.connections import limited_http
from holdfast.web.responses import answer, read
from holdfast.web.routing import Route

PAGES: dict[int, bytes] = {}


async def post_bare(request: Request) -> Response:
    """Parse and respond as a hold would."""
    body = read(HoldBody, await request.body())
    page = BookingPage(
        booking_id="abcdefghij0123456789",
        reference="ABCDEFGH",
        show_id=1,
        state=BookingState.HELD,
        seats=[SeatPage(label, "Standard", 1500, 1262, 140, 98) for label in body.seats or ()],
        amount=3000,
        base_minor=2524,
        fee_minor=280,
        tax_minor=196,
        currency="EUR",
        together=True,
        opened_at=datetime.now(UTC),
        expires_at=datetime.now(UTC),
    )
    return answer(201, page)


async def get_bare(request: Request) -> Response:
    """Respond with bytes from memory."""
    size = request.path_params["size"]
    page = PAGES.setdefault(size, b'"' + b"A" * (size - 2) + b'"')
    return answer(200, page, {"ETag": '"1"', "Cache-Control": "public, max-age=1", "Vary": "Accept"})


BARE = (
    Route(
        method="POST", path="/bare", call=post_bare, tag="bare", body=HoldBody, role=Role.FAN, takes_key=True
    ),
    Route(method="GET", path="/bare/{size:int}", call=get_bare, tag="bare"),
)


def main() -> None:
    port, config = int(sys.argv[1]), Config.from_env(os.environ)
    log.set_up(level="WARNING")  # a bench prints figures: slow requests are in them
    warm_up()
    freeze_imports()
    favour_loop()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    settings = uvicorn.Config(
        asgi_app(config, BARE),
        loop="uvloop",
        http=limited_http(config),
        access_log=False,
        log_level="warning",
        backlog=4096,
    )
    uvicorn.Server(settings).run(sockets=[listener])


if __name__ == "__main__":
    main()
