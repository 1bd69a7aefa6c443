"""Renders a page of the desk inside its navigation."""

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import Desk, get_desk
from holdfast.errors import Invalid, Refusal
from holdfast.site.pages import get_localiser, render_page
from holdfast.web.problems import get_problem_page
from holdfast.web.responses import query
from holdfast.web.routing import get_app

# Name of the text, path, and the route of the API whose right it needs.
ORGANISATION_PLACES = (
    ("shows", "", "list_managed_shows"),
    ("bookings", "/bookings", "find_bookings"),
    ("refunds", "/refunds", "list_refunds"),
    ("door", "/door", "list_gate_passes"),
    ("team", "/team", "list_members"),
    ("webhooks", "/webhooks", "list_webhook_endpoints"),
    ("keys", "/keys", "list_api_keys"),
    ("log", "/audit-log", "list_audit_entries"),
    ("legal", "/legal", "publish_organisation_text"),
    ("settings", "/settings", "update_organisation"),
)
HOUSE_PLACES = (
    ("state", "", "list_accounts"),
    ("accounts", "/accounts", "list_accounts"),
    ("organisations", "/organisations", "list_organisations"),
    ("refunds", "/refunds", "list_accounts"),
    ("log", "/audit-log", "list_accounts"),
    ("legal", "/legal", "publish_legal_text"),
    ("settings", "/settings", "set_house_second_factor"),
)


class DeskNoticeQuery(Struct):
    notice: str = ""


def list_places(desk: Desk, here: str) -> list[tuple[str, str, bool]]:
    """Text, path and whether it is this one, for each place that this person may go to."""
    places = ORGANISATION_PLACES if desk.organisation else HOUSE_PLACES
    return [(name, desk.path + path, name == here) for name, path, like in places if desk.may(like)]


def render_desk(
    request: Request,
    template: str,
    here: str,
    *,
    status: int = 200,
    **context: Any,
) -> Response:
    desk = get_desk(request)
    return render_page(
        request,
        f"desk/{template}",
        status=status,
        desk=desk,
        session=desk.session,
        places=list_places(desk, here),
        notice=read_notice(request, context.pop("notices", ())),
        zone=get_app(request).house.page.timezone or "UTC",
        **context,
    )


def read_notice(request: Request, known: Any) -> str:
    """What was done before this page, if it is one of `known`."""
    try:
        name = query(DeskNoticeQuery, request).notice
    except Invalid:
        return ""
    return name if name in known else ""


def say_refusal(request: Request, refusal: Refusal) -> str:
    """The sentence about a refusal, beside the form that got it."""
    l10n, key = get_localiser(request), f"problems.{refusal.code}"
    if l10n.has(key):
        return l10n.t(key)
    return str(refusal.details.get("detail") or get_problem_page(type(refusal)).happened)
