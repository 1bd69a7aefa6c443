"""/admin: organisers make and change what is theirs, admins everything (R33)."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import City, Hall
from holdfast.errors import (
    BadLayout,
    NameTaken,
    NoSuchCity,
    NoSuchEvent,
    NoSuchHall,
    NoSuchLayout,
    NoSuchVenue,
    NotForOrganisers,
    WrongMediaType,
)
from holdfast.layouts import Layout, LayoutBody, LayoutProblem, read_bytes
from holdfast.organisers.forms import (
    CityChange,
    CityList,
    EventChange,
    EventList,
    HallChange,
    HallList,
    HallsAsked,
    KeptEvent,
    KeptLayout,
    KeptVenue,
    LayoutAsked,
    LayoutList,
    NewCity,
    NewEvent,
    NewHall,
    NewVenue,
    Paging,
    VenueChange,
    VenueList,
)
from holdfast.organisers.layout_change_api import ROUTES as RELAYOUT_ROUTES
from holdfast.organisers.price_rules_api import ROUTES as PRICE_ROUTES
from holdfast.organisers.scope import Scope
from holdfast.organisers.shows_api import ROUTES as SHOW_ROUTES
from holdfast.organisers.shows_api import Desk
from holdfast.organisers.store import CatalogueEditor
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import Route

IMPORTED_AS = ("text/csv", "application/json")
LAYOUT_BYTES_MAX = 2 * 1024 * 1024  # a stadium in our format is about 100 kB
IMPORT_BYTES_MAX = 16 * 1024 * 1024  # the same stadium in pretix's, a line a seat


async def post_city(request: Request) -> Response:
    """Add a city. Its time zone decides what its dates are."""
    city = await _office(request).add_city(read(NewCity, await request.body()))
    return _made(request, city)


async def patch_city(request: Request) -> Response:
    """Change a city."""
    change = read(CityChange, await request.body())
    return _made(request, await _office(request).change_city(request.path_params["city"], change), 200)


async def list_cities(request: Request) -> Response:
    """All cities."""
    total, cities = await _office(request).cities(query(Paging, request))
    return answer(200, CityList(total=total, cities=cities))


async def post_venue(request: Request) -> Response:
    """Add a venue. An organiser's is theirs alone; an admin's is the house's, for every organiser to use."""
    return _made(request, await _office(request).add_venue(read(NewVenue, await request.body())))


async def patch_venue(request: Request) -> Response:
    """Change a venue. The house's venues are changed by admins."""
    change = read(VenueChange, await request.body())
    return _made(request, await _office(request).change_venue(request.path_params["venue"], change), 200)


async def list_venues(request: Request) -> Response:
    """Your venues, and the house's."""
    total, venues = await _office(request).venues(query(Paging, request))
    return answer(200, VenueList(total=total, venues=venues))


async def post_hall(request: Request) -> Response:
    """Add a hall to a venue, with a layout that has been brought in before."""
    return _made(request, await _office(request).add_hall(read(NewHall, await request.body())))


async def patch_hall(request: Request) -> Response:
    """Change a hall. Another layout is for shows made from now on; those that exist keep theirs."""
    change = read(HallChange, await request.body())
    return _made(request, await _office(request).change_hall(request.path_params["hall"], change), 200)


async def list_halls(request: Request) -> Response:
    """The halls of your venues and of the house's, or of one venue."""
    asked = query(HallsAsked, request)
    total, halls = await _office(request).halls(asked, asked.venue)
    return answer(200, HallList(total=total, halls=halls))


async def post_event(request: Request) -> Response:
    """Add an event: a film, a concert or a match. It is yours. Without a poster it gets one drawn."""
    return _made(request, await _office(request).add_event(read(NewEvent, await request.body())))


async def patch_event(request: Request) -> Response:
    """Change an event. Whether it is featured is for admins to say."""
    change = read(EventChange, await request.body())
    return _made(request, await _office(request).change_event(request.path_params["event"], change), 200)


async def get_kept_event(request: Request) -> Response:
    """One event of yours."""
    return answer(200, await _office(request).event(request.path_params["event"]))


async def list_events(request: Request) -> Response:
    """Your events."""
    total, events = await _office(request).events(query(Paging, request))
    return answer(200, EventList(total=total, events=events))


async def post_layout(request: Request) -> Response:
    """Bring in a layout in our JSON format; the answer has its hash.

    With `grows_from` it is numbered as a growth of that layout, so that its shows can take it over.
    """
    body = read(LayoutBody, await request.body())
    return await _keep_layout(request, body)


async def post_layout_import(request: Request) -> Response:
    """Bring in a layout from a file of another program: a CSV table, or a pretix seating plan.

    Send it as it is, with `Content-Type: text/csv` or `application/json`; `name` becomes the layout's name.
    """
    sent_as = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if sent_as not in IMPORTED_AS:
        raise WrongMediaType
    try:
        name, data = query(LayoutAsked, request).name, await request.body()
        body = await asyncio.to_thread(read_bytes, name, data)
    except LayoutProblem as problem:
        raise BadLayout(detail=str(problem)) from None
    return await _keep_layout(request, body)


async def get_layout(request: Request) -> Response:
    """One layout in our JSON format, to be changed and brought in again."""
    return answer(200, await _office(request).layout_body(request.path_params["layout"]))


async def list_layouts(request: Request) -> Response:
    """The layouts you have brought in, and those of the halls open to you."""
    total, layouts = await _office(request).layouts(query(Paging, request))
    return answer(200, LayoutList(total=total, layouts=layouts))


async def _keep_layout(request: Request, body: LayoutBody) -> Response:
    asked, office = query(LayoutAsked, request), _office(request)
    try:
        old = None
        if asked.grows_from is not None:
            old_body = read(LayoutBody, await office.layout_body(asked.grows_from))
            old = await asyncio.to_thread(Layout.build, old_body)
        # A stadium takes a good part of a second to lay out; other requests of the process go on meanwhile.
        layout = await asyncio.to_thread(Layout.build, body, old)
    except LayoutProblem as problem:
        raise BadLayout(detail=str(problem)) from None
    return _made(request, await office.add_layout(layout))


def _office(request: Request) -> CatalogueEditor:
    return CatalogueEditor(get_app(request).postgres, Scope.of(get_caller(request)))


def _made(request: Request, content: object, status: int = 201) -> Response:
    get_app(request).catalogue.forget_pages()
    return answer(status, content)


# Organisers read the cities, admins make them.
CITIES_READ = Desk(path="cities")
CITIES = Desk(path="cities", role=Role.ADMIN, refusals=(NoSuchCity, NameTaken))
VENUES = Desk(path="venues", refusals=(NoSuchCity, NoSuchVenue, NotForOrganisers))
HALLS = Desk(path="halls", refusals=(NoSuchVenue, NoSuchHall, NoSuchLayout, NameTaken, NotForOrganisers))
EVENTS = Desk(path="events", refusals=(NoSuchEvent, NotForOrganisers))
LAYOUTS = Desk(path="layouts", refusals=(NoSuchLayout, BadLayout))

ROUTES: tuple[Route, ...] = (
    CITIES_READ.get(list_cities, CityList, query=Paging),
    CITIES.post(post_city, City, body=NewCity),
    CITIES.patch(patch_city, City, path="/{city:int}", body=CityChange),
    VENUES.get(list_venues, VenueList, query=Paging),
    VENUES.post(post_venue, KeptVenue, body=NewVenue),
    VENUES.patch(patch_venue, KeptVenue, path="/{venue:int}", body=VenueChange),
    HALLS.get(list_halls, HallList, query=HallsAsked),
    HALLS.post(post_hall, Hall, body=NewHall),
    HALLS.patch(patch_hall, Hall, path="/{hall:int}", body=HallChange),
    EVENTS.get(list_events, EventList, query=Paging),
    EVENTS.get(get_kept_event, KeptEvent, path="/{event:int}"),
    EVENTS.post(post_event, KeptEvent, body=NewEvent),
    EVENTS.patch(patch_event, KeptEvent, path="/{event:int}", body=EventChange),
    LAYOUTS.get(list_layouts, LayoutList, query=Paging),
    LAYOUTS.get(get_layout, LayoutBody, path="/{layout}"),
    LAYOUTS.post(post_layout, KeptLayout, body=LayoutBody, query=LayoutAsked, bytes_max=LAYOUT_BYTES_MAX),
    LAYOUTS.post(
        post_layout_import, KeptLayout, path="/import", query=LayoutAsked, bytes_max=IMPORT_BYTES_MAX
    ),
    *SHOW_ROUTES,
    *PRICE_ROUTES,
    *RELAYOUT_ROUTES,
)
