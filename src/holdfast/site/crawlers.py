"""What search engines, messengers and phones read: robots.txt, sitemap.xml, the web manifest, JSON-LD."""

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import EventPage, EventsQuery, Kind, SaleState, ShowCard, cached_event_ids
from holdfast.money import to_major
from holdfast.site.pages import SECURITY_HEADERS, get_localiser, house_name
from holdfast.site.templates_env import assets_version
from holdfast.web.routing import RouteTable, get_app

SHOWS_LINKED_MAX = 20
TYPE_OF = {Kind.FILM: "ScreeningEvent", Kind.CONCERT: "MusicEvent", Kind.MATCH: "SportsEvent"}
AVAILABLE = {
    SaleState.UPCOMING: "PreOrder",
    SaleState.ON_SALE: "InStock",
    SaleState.SOLD_OUT: "SoldOut",
    SaleState.CANCELLED: "Discontinued",
    SaleState.PAST: "Discontinued",
}


def build_json_ld(event: EventPage, shows: Sequence[ShowCard], home: str) -> dict[str, Any]:
    """`home` is where people reach us, without a slash at its end."""
    return {
        "@context": "https://schema.org",
        "@graph": [_show_json_ld(event, show, home) for show in shows[:SHOWS_LINKED_MAX]],
    }


def _show_json_ld(event: EventPage, show: ShowCard, home: str) -> dict[str, Any]:
    is_off = show.sale_state is SaleState.CANCELLED
    price = None if show.from_price_minor is None else str(to_major(show.from_price_minor, show.currency))
    document: dict[str, Any] = {
        "@type": TYPE_OF[event.kind],
        "name": event.title,
        "description": event.description,
        "image": [f"{home}{event.poster}"],
        "url": f"{home}/shows/{show.show_id}",
        "startDate": show.starts_at.isoformat(),
        "endDate": show.ends_at.isoformat(),
        "eventStatus": f"https://schema.org/{'EventCancelled' if is_off else 'EventScheduled'}",
        "eventAttendanceMode": "https://schema.org/OfflineEventAttendanceMode",
        "location": {"@type": "Place", "name": show.venue, "url": f"{home}/venues/{show.venue_id}"},
        "offers": {
            "@type": "Offer",
            "url": f"{home}/shows/{show.show_id}",
            **({} if price is None else {"price": price, "priceCurrency": show.currency}),
            "availability": f"https://schema.org/{AVAILABLE[show.sale_state]}",
            "validFrom": show.opens_at.isoformat(),
        },
    }
    if event.kind is Kind.FILM:
        document["workPresented"] = {"@type": "Movie", "name": event.title}
    if event.people:
        document["performer"] = [{"@type": "Person", "name": name} for name in event.people]
    return document


HOUR = {"Cache-Control": "public, max-age=3600"}
ADDRESSES_MAX = 50_000  # of one sitemap, says its standard
PRIVATE = (
    "/my",
    "/bookings/",
    "/sign-in",
    "/sign-up",
    "/account",
    "/link/",
    "/desk",
    "/begin",
    "/demo/",
    "/api/",
)
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
    name = house_name(request, l10n)
    files = f"/static/{assets_version()}"
    document: dict[str, Any] = {
        "id": "/",
        "name": name,
        "short_name": name,
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
    headers = {**HOUR, "Vary": SECURITY_HEADERS["Vary"]}
    return Response(msgspec.json.encode(document), headers=headers, media_type="application/manifest+json")


ROUTES = routes.all
