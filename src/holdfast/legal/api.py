"""/legal: terms, privacy policy, imprint and refund policy of the house and of organisations."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.legal.errors import NoSuchText
from holdfast.legal.text import (
    HOUSE,
    VERSION_BYTES_MAX,
    LegalBody,
    LegalKind,
    LegalPage,
    LegalQuery,
    parse_kind,
)
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app

NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="catalogue")
house = RouteTable(tag="admin", role=Role.ADMIN)
members = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.SETTINGS)


@routes.get("/legal/{text}", query=LegalQuery, answers={200: LegalPage}, refusals=(NoSuchText,))
async def get_legal_text(request: Request) -> Response:
    """A text of the house or of an organisation, in all its languages; every version stays readable.

    `text`: terms, privacy, imprint or refunds.
    """
    wanted = query(LegalQuery, request)
    found = await get_app(request).legal.find(wanted.organisation, _kind(request), wanted.version)
    return answer(200, found, NO_STORE)


@house.put(
    "/admin/legal/{text}",
    body=LegalBody,
    answers={200: LegalPage},
    refusals=(NoSuchText,),
    body_bytes_max=VERSION_BYTES_MAX,
)
async def publish_legal_text(request: Request) -> Response:
    """Publish a new version of a text of the house. Buyers agree to the newest terms from now on."""
    body = read(LegalBody, await request.body())
    return answer(200, await get_app(request).legal.publish(HOUSE, _kind(request), body), NO_STORE)


@members.put(
    "/organisations/{organisation:int}/legal/{text}",
    body=LegalBody,
    answers={200: LegalPage},
    refusals=(NoSuchText,),
    body_bytes_max=VERSION_BYTES_MAX,
)
async def publish_organisation_text(request: Request) -> Response:
    """Publish a new version of a text of an organisation. Its buyers agree to its terms, too."""
    body = read(LegalBody, await request.body())
    organisation_id: int = request.path_params["organisation"]
    published = await get_app(request).legal.publish(organisation_id, _kind(request), body)
    return answer(200, published, NO_STORE)


def _kind(request: Request) -> LegalKind:
    return parse_kind(request.path_params["text"])


ROUTES = (*routes.all, *house.all, *members.all)
