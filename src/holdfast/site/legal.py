"""/legal/{text}: terms, privacy policy, imprint and refund policy, and their earlier versions."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NotAMember
from holdfast.legal import HOUSE, choose_text, parse_blocks, parse_kind
from holdfast.site.cookies import get_session
from holdfast.site.pages import get_localiser, render_page
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

OF_ORGANISATION = "/organisations/{organisation:int}/legal/{text}"
routes = RouteTable(tag="site", bare=True)


@routes.get("/legal/{text}")
@routes.get("/legal/{text}/{version:int}")
@routes.get(OF_ORGANISATION)
@routes.get(OF_ORGANISATION + "/{version:int}")
async def get_legal_page(request: Request) -> Response:
    """The newest version, or the one in the path."""
    app, l10n, params = get_app(request), get_localiser(request), request.path_params
    kind = parse_kind(params["text"])
    organisation_id = int(params.get("organisation", HOUSE))
    found = await app.legal.find(organisation_id, kind, int(params.get("version", 0)))
    language, text = choose_text(found.texts, l10n.language)
    return render_page(
        request,
        "browse/legal.html",
        found=found,
        language=language,
        blocks=parse_blocks(text),
        organisation=await _name(app, organisation_id) if organisation_id else "",
        own_path=f"/organisations/{organisation_id}/legal/{kind}" if organisation_id else f"/legal/{kind}",
        session=await get_session(request),
    )


async def _name(app: "App", organisation_id: int) -> str:
    try:
        return (await app.organisations.organisation(organisation_id)).name
    except NotAMember:  # it does not exist any more; what it published does
        return ""


ROUTES = routes.all
