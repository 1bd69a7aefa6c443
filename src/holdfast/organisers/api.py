"""/admin: organisers create and change their own venues, halls, layouts and events; admins change all."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import City, Hall, NoSuchCity, NoSuchEvent, NoSuchHall, NoSuchVenue
from holdfast.errors import Busy, WrongMediaType
from holdfast.layouts import (
    BadLayout,
    Layout,
    LayoutBody,
    LayoutProblem,
    NoSuchLayout,
    parse_layout_file,
    refuse_unclear_seats,
)
from holdfast.organisers.errors import NameTaken, NotForOrganisers, SomethingSold, StillInUse
from holdfast.organisers.forms import (
    CityChange,
    CityList,
    EventChange,
    EventList,
    HallChange,
    HallList,
    HallsQuery,
    LayoutList,
    ManagedEvent,
    ManagedVenue,
    NewCity,
    NewEvent,
    NewHall,
    NewLayoutQuery,
    NewVenue,
    Paging,
    StoredLayout,
    VenueChange,
    VenueList,
)
from holdfast.organisers.posters_api import ROUTES as POSTER_ROUTES
from holdfast.organisers.removal import CatalogueRemover
from holdfast.organisers.shows_api import ROUTES as SHOW_ROUTES
from holdfast.organisers.store import CatalogueEditor
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read, read_off_loop
from holdfast.web.routing import RouteTable, get_app, get_scope

IMPORT_MEDIA_TYPES = ("text/csv", "application/json")
LAYOUT_BYTES_MAX = 2 * 1024 * 1024  # a stadium in our format is about 100 kB
IMPORT_BYTES_MAX = 16 * 1024 * 1024  # the same stadium in pretix's, one line per seat
ORGANISER = Role.ORGANISER

cities = RouteTable(tag="admin", prefix="/admin/cities", role=Role.ADMIN)
venues = RouteTable(
    tag="admin",
    prefix="/admin/venues",
    role=ORGANISER,
    right=Right.CATALOGUE,
    refusals=(NoSuchCity, NoSuchVenue, NotForOrganisers),
)
halls = RouteTable(
    tag="admin",
    prefix="/admin/halls",
    role=ORGANISER,
    right=Right.CATALOGUE,
    refusals=(NoSuchVenue, NoSuchHall, NoSuchLayout, NameTaken, NotForOrganisers),
)
events = RouteTable(
    tag="admin",
    prefix="/admin/events",
    role=ORGANISER,
    right=Right.CATALOGUE,
    refusals=(NoSuchEvent, NotForOrganisers),
)
layouts = RouteTable(
    tag="admin",
    prefix="/admin/layouts",
    role=ORGANISER,
    right=Right.CATALOGUE,
    refusals=(NoSuchLayout, BadLayout),
)


@cities.post(body=NewCity, answers={201: City}, refusals=(NoSuchCity, NameTaken))
async def create_city(request: Request) -> Response:
    """Add a city. Dates of its shows are in its time zone."""
    city = await _editor(request).add_city(read(NewCity, await request.body()))
    return _respond(request, city)


@cities.patch("/{city:int}", body=CityChange, answers={200: City}, refusals=(NoSuchCity, NameTaken))
async def update_city(request: Request) -> Response:
    """Change a city."""
    change = read(CityChange, await request.body())
    return _respond(request, await _editor(request).change_city(request.path_params["city"], change), 200)


@cities.get(query=Paging, answers={200: CityList}, role=ORGANISER, right=Right.MEMBER)
async def list_all_cities(request: Request) -> Response:
    """All cities."""
    total, cities = await _editor(request).cities(query(Paging, request))
    return answer(200, CityList(total=total, cities=cities))


@venues.post(body=NewVenue, answers={201: ManagedVenue})
async def create_venue(request: Request) -> Response:
    """Add a venue. An organiser's venue is private; an admin's is shared by all organisers."""
    return _respond(request, await _editor(request).add_venue(read(NewVenue, await request.body())))


@venues.patch("/{venue:int}", body=VenueChange, answers={200: ManagedVenue})
async def update_venue(request: Request) -> Response:
    """Change a venue. Only admins may change shared venues."""
    change = read(VenueChange, await request.body())
    editor = _editor(request)
    venue = await editor.change_venue(request.path_params["venue"], change)
    _forget_shows(request, editor)
    return _respond(request, venue, 200)


@venues.delete("/{venue:int}", answers={204: None}, refusals=(StillInUse,))
async def delete_venue(request: Request) -> Response:
    """Delete a venue with its halls, while no show takes place there."""
    await _remover(request).delete_venue(request.path_params["venue"])
    return answer(204)


@venues.get(query=Paging, answers={200: VenueList}, right=Right.MEMBER)
async def list_venues(request: Request) -> Response:
    """Your venues and the shared ones."""
    total, venues = await _editor(request).venues(query(Paging, request))
    return answer(200, VenueList(total=total, venues=venues))


@halls.post(body=NewHall, answers={201: Hall})
async def create_hall(request: Request) -> Response:
    """Add a hall to a venue, with a layout that has been uploaded before."""
    return _respond(request, await _editor(request).add_hall(read(NewHall, await request.body())))


@halls.patch("/{hall:int}", body=HallChange, answers={200: Hall})
async def update_hall(request: Request) -> Response:
    """Change a hall. A new layout applies to new shows; existing shows keep theirs."""
    change = read(HallChange, await request.body())
    return _respond(request, await _editor(request).change_hall(request.path_params["hall"], change), 200)


@halls.delete("/{hall:int}", answers={204: None}, refusals=(StillInUse,))
async def delete_hall(request: Request) -> Response:
    """Delete a hall, while no show takes place there."""
    await _remover(request).delete_hall(request.path_params["hall"])
    return answer(204)


@halls.get(query=HallsQuery, answers={200: HallList}, right=Right.MEMBER)
async def list_halls(request: Request) -> Response:
    """The halls of your venues and of the shared ones, or of one venue."""
    paging = query(HallsQuery, request)
    total, halls = await _editor(request).halls(paging, paging.venue)
    return answer(200, HallList(total=total, halls=halls))


@events.post(body=NewEvent, answers={201: ManagedEvent})
async def create_event(request: Request) -> Response:
    """Add an event: a film, a concert or a match. You own it. Without a poster it gets a generated one."""
    return _respond(request, await _editor(request).add_event(read(NewEvent, await request.body())))


@events.patch("/{event:int}", body=EventChange, answers={200: ManagedEvent})
async def update_event(request: Request) -> Response:
    """Change an event. Only admins may set `featured`.

    With `published: false` it is hidden with its shows, and nothing is sold; tickets stay valid.
    """
    change = read(EventChange, await request.body())
    editor = _editor(request)
    event = await editor.change_event(request.path_params["event"], change)
    _forget_shows(request, editor)
    return _respond(request, event, 200)


@events.delete("/{event:int}", answers={204: None}, refusals=(SomethingSold, Busy))
async def delete_event(request: Request) -> Response:
    """Delete an event with its shows, while nothing is sold. An event that has sold can be unpublished."""
    await _remover(request).delete_event(request.path_params["event"])
    return answer(204)


@events.get("/{event:int}", answers={200: ManagedEvent}, right=Right.MEMBER)
async def get_managed_event(request: Request) -> Response:
    """One of your events."""
    return answer(200, await _editor(request).event(request.path_params["event"]))


@events.get(query=Paging, answers={200: EventList}, right=Right.MEMBER)
async def list_managed_events(request: Request) -> Response:
    """Your events."""
    total, events = await _editor(request).events(query(Paging, request))
    return answer(200, EventList(total=total, events=events))


@layouts.post(
    body=LayoutBody,
    query=NewLayoutQuery,
    answers={201: StoredLayout},
    body_bytes_max=LAYOUT_BYTES_MAX,
    long_numbers=True,
)
async def create_layout(request: Request) -> Response:
    """Upload a layout in our JSON format; the response contains its hash.

    With `grows_from`, seats of that layout keep their numbers, so its shows can switch to the new one.
    """
    body = await read_off_loop(LayoutBody, await request.body())
    try:
        refuse_unclear_seats(body)
    except LayoutProblem as problem:
        raise BadLayout(detail=str(problem)) from None
    return await _store_layout(request, body)


@layouts.post(
    "/import",
    query=NewLayoutQuery,
    answers={201: StoredLayout},
    body_bytes_max=IMPORT_BYTES_MAX,
    long_numbers=True,
)
async def import_layout(request: Request) -> Response:
    """Import a layout from another program: a CSV table, or a pretix seating plan.

    Send the file unchanged, with `Content-Type: text/csv` or `application/json`. `name` names the layout.
    """
    sent_as = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if sent_as not in IMPORT_MEDIA_TYPES:
        raise WrongMediaType(detail=f"Expected one of {', '.join(IMPORT_MEDIA_TYPES)}.")
    try:
        name, data = query(NewLayoutQuery, request).name, await request.body()
        body = await asyncio.to_thread(parse_layout_file, name, data)
    except LayoutProblem as problem:
        raise BadLayout(detail=str(problem)) from None
    return await _store_layout(request, body)


@layouts.get("/{layout}", answers={200: LayoutBody}, right=Right.MEMBER)
async def get_layout(request: Request) -> Response:
    """One layout in our JSON format, to edit and upload again."""
    return answer(200, await _editor(request).layout_body(request.path_params["layout"]))


@layouts.get(query=Paging, answers={200: LayoutList}, right=Right.MEMBER)
async def list_layouts(request: Request) -> Response:
    """The layouts you have uploaded, and those of the halls you may use."""
    total, layouts = await _editor(request).layouts(query(Paging, request))
    return answer(200, LayoutList(total=total, layouts=layouts))


async def _store_layout(request: Request, body: LayoutBody) -> Response:
    options, editor = query(NewLayoutQuery, request), _editor(request)
    try:
        old = None
        if options.grows_from is not None:
            old_body = read(LayoutBody, await editor.layout_body(options.grows_from))
            old = await asyncio.to_thread(Layout.build, old_body)
        # In a thread: a stadium takes a good part of a second and would block all other requests.
        layout = await asyncio.to_thread(Layout.build, body, old)
    except LayoutProblem as problem:
        raise BadLayout(detail=str(problem)) from None
    return _respond(request, await editor.add_layout(layout))


def _remover(request: Request) -> CatalogueRemover:
    return get_app(request).catalogue_remover(get_scope(request))


def _editor(request: Request) -> CatalogueEditor:
    return get_app(request).catalogue_editor(get_scope(request))


def _forget_shows(request: Request, editor: CatalogueEditor) -> None:
    for show_id in editor.changed_shows:
        get_app(request).catalogue.forget(show_id)


def _respond(request: Request, content: object, status: int = 201) -> Response:
    get_app(request).catalogue.clear_cached_responses()
    return answer(status, content)


ROUTES = (
    *cities.all,
    *venues.all,
    *halls.all,
    *events.all,
    *layouts.all,
    *POSTER_ROUTES,
    *SHOW_ROUTES,
)
