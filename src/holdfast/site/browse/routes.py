"""What is on: home, search, events, venues. The same for everybody, and no lock path is asked."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from holdfast.site.routes import city_of, public
from holdfast.web.routing import Route


async def get_home(request: Request) -> Response:
    box, city = request.state.box, city_of(request)

    async def make() -> dict[str, Any]:
        return {"cities": await box.catalogue.cities(), "city": city}

    return await public(request, "browse/home.html", (city,), make)


ROUTES = (Route(method="GET", path="/", call=get_home, tag="site", bare=True),)
