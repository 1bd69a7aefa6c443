"""The paths that the site serves, and those among them that are not pages."""

from holdfast.app import ROUTES

# A gateway sends its payers back by a form of its own: nothing in it is read, and it leads to the page.
GATEWAY_RETURN_PATH = "/bookings/{booking}/return"
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
}


def served_paths(method: str, tag: str = "site") -> set[str]:
    return {route.full_path for route in ROUTES if route.tag == tag and route.method == method}
