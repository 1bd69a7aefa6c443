"""The paths that the site serves, those among them that are not pages, and some that lead away."""

from holdfast.routes import ROUTES

EVIL = "https://evil.example"
AWAY = (  # what must not be followed as a path to return to
    EVIL,
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\r\nLocation: //evil.example",
    "javascript:alert(1)",
    " //evil.example",
    "http:evil.example",
)

# A gateway sends its payers back by a form of its own: nothing in it is read, and it leads to the page.
GATEWAY_RETURN_PATH = "/bookings/{booking}/return"
# To a sign-in service and back: they lead to pages, and are none.
PROVIDER_PATHS = {"/sign-in/with/{provider}", "/sign-in/with/{provider}/callback"}
NON_PAGE_PATHS = {  # files and pictures, and what only scripts and machines read
    "/static/{edition}/{part}",
    "/static/{edition}/{part}/{file}",
    "/static/{edition}/{part}/{file}/{inner}",
    "/robots.txt",
    "/sitemap.xml",
    "/holdfast.webmanifest",
    "/my-tickets-worker.js",
    "/shows/{show:int}/mine",
    "/bookings/{booking}/tickets.pdf",
    "/bookings/{booking}/calendar.ics",
    "/bookings/{booking}/invoice.pdf",
    "/account/data.json",
}


def served_paths(method: str, tag: str = "site") -> set[str]:
    return {route.full_path for route in ROUTES if route.tag == tag and route.method == method}
