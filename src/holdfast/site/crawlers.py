"""robots.txt, sitemap.xml, the web manifest: small, kept for a while by whoever asks."""

from typing import Any
from xml.sax.saxutils import escape

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import EventsQuery, cached_event_ids
from holdfast.site.pages import SAFE, get_localiser
from holdfast.site.templates_env import edition
from holdfast.web.context import get_app
from holdfast.web.routing import RouteTable

HOUR = {"Cache-Control": "public, max-age=3600"}
ADDRESSES_MAX = 50_000  # of one sitemap, says its standard
PRIVATE = ("/my", "/bookings/", "/sign-in", "/sign-up", "/demo/", "/api/")
routes = RouteTable(tag="site", bare=True)


def home_url(request: Request) -> str:
    """Where people reach us, without a slash at its end; a page that tells it has it in its key."""
    url: str = get_app(request).config.public_url or str(request.base_url)
    return url.rstrip("/")


@routes.get("/robots.txt")
async def get_robots(request: Request) -> Response:
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in PRIVATE), "Allow: /", ""]
    text = "\n".join([*lines, f"Sitemap: {home_url(request)}/sitemap.xml", ""])
    return Response(text, headers=HOUR, media_type="text/plain")


@routes.get("/sitemap.xml")
async def get_sitemap(request: Request) -> Response:
    """Every event that can still be seen."""
    app = get_app(request)

    async def choose() -> list[int]:
        event_ids: list[int] = await app.catalogue.events_playing(EventsQuery())
        return event_ids[: ADDRESSES_MAX - 2]

    event_ids = await cached_event_ids(app, ("sitemap",), choose)
    home = escape(home_url(request))
    paths = ["/", "/find", *(f"/events/{each}" for each in event_ids)]
    listed = "".join(f"<url><loc>{home}{path}</loc></url>" for path in paths)
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</urlset>'
    )
    return Response(text, headers=HOUR, media_type="application/xml")


@routes.get("/holdfast.webmanifest")
async def get_web_app(request: Request) -> Response:
    """What a phone needs to keep us among its apps."""
    l10n = get_localiser(request)
    files = f"/static/{edition()}"
    told: dict[str, Any] = {
        "id": "/",
        "name": l10n.t("shell.name"),
        "short_name": l10n.t("shell.name"),
        "description": l10n.t("browse.about"),
        "lang": l10n.language,
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#fbf7ef",
        "theme_color": "#fbf7ef",
        "icons": [
            {"src": f"{files}/icon.svg", "sizes": "any", "type": "image/svg+xml"},
            {"src": f"{files}/icon-192.png", "sizes": "192x192", "type": "image/png"},
            {"src": f"{files}/icon-512.png", "sizes": "512x512", "type": "image/png", "purpose": "maskable"},
        ],
        "shortcuts": [{"name": l10n.t("shell.my_tickets"), "url": "/my"}],
    }
    headers = {**HOUR, "Vary": SAFE["Vary"]}
    return Response(msgspec.json.encode(told), headers=headers, media_type="application/manifest+json")


ROUTES = routes.all
