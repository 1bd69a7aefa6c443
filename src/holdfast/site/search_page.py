"""/find: what a search finds, with links that ask a little differently. It works without a script (R2)."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import City, NoSuchCity
from holdfast.errors import Invalid
from holdfast.search import (
    EventSearchQuery,
    NoSuchPostalCode,
    PageTooDeep,
    SearchPage,
    load_search_page,
    parse_search,
)
from holdfast.site.cookies import get_city
from holdfast.site.pages import get_localiser, render_public_page
from holdfast.site.search_form import PAGES_MAX, SIZE, SearchForm
from holdfast.site.template_context import build_template_context
from holdfast.web.responses import invalid
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App


FIELDS_MAX = 100
routes = RouteTable(tag="site", bare=True)


def read_search_form(request: Request) -> SearchForm:
    raw = request.scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise Invalid(field="", detail="The address cannot be read.") from None
    return SearchForm(dict(pairs), get_city(request))


def set_mistakes_aside(form: SearchForm) -> SearchForm:
    """The form without the fields that cannot be searched with; the page explains them."""
    while True:
        try:
            parse_search(build_query(form))
        except (Invalid, PageTooDeep) as refusal:
            field = str(refusal.details["field"])
            if field not in form.given:
                raise
            form = form.without(field)
        else:
            return form


def build_query(form: SearchForm) -> EventSearchQuery:
    try:
        return msgspec.convert(form.fields, EventSearchQuery, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error) from None


@routes.get("/find")
async def get_find(request: Request) -> Response:
    app, l10n = get_app(request), get_localiser(request)
    form = set_mistakes_aside(read_search_form(request))

    async def make() -> dict[str, Any]:
        cities: list[City] = await app.catalogue.cities()
        names = {city.slug: city.name for city in cities}
        found, page = await _load_what_exists(app, form)
        wider = found.elsewhere() if not page.events and found.given.get("city") else None
        elsewhere = await _load_results(app, wider) if wider else None
        shown = elsewhere if elsewhere and elsewhere.events else page
        number = page.page or 1
        return build_template_context(l10n, datetime.now(UTC)) | {
            "search": found,
            "page": page,
            "shown": shown,
            "is_elsewhere": shown is not page,
            "elsewhere": wider,
            "names": names,
            "zone": next((each.timezone for each in cities if each.slug == found.given.get("city")), "UTC"),
            "chips": found.chips(names, l10n),
            "facets": (wider if wider and shown is not page else found).facets(shown, l10n),
            "days": found.days(page),
            "sorts": found.sorts(page.sort, l10n),
            "number": number,
            "last": min(PAGES_MAX, -(-page.total // SIZE)) if page.total else number,
            "has_more": page.next_cursor is not None and number < PAGES_MAX,
        }

    return await render_public_page(request, "browse/find.html", form.key, make)


async def _load_what_exists(app: "App", form: SearchForm) -> tuple[SearchForm, SearchPage]:
    """The results, without a city, a postal code or a page number that does not exist."""
    while True:
        try:
            page = await _load_results(app, form)
        except (NoSuchCity, NoSuchPostalCode) as refusal:
            # A city from a cookie in which we no longer sell is not the reader's mistake.
            is_ours = isinstance(refusal, NoSuchCity) and form.is_city_from_before
            form = form.elsewhere() if is_ours else form.without(str(refusal.details["field"]))
        else:
            if page.events or page.page in (None, 1):
                return form, page
            form = form.without("page")


async def _load_results(app: "App", form: SearchForm) -> SearchPage:
    search = parse_search(build_query(form))
    return await load_search_page(app, search, search.offset // SIZE + 1)


ROUTES = routes.all
