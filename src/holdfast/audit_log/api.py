"""/admin/audit-log: who changed what, when, from where."""

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.audit_log.entry import AuditFilter, AuditPage, AuditQuery
from holdfast.audit_log.every_pod import export_audit_log, load_audit_page
from holdfast.errors import NotAllowed
from holdfast.web.audit_log import HOUSE
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app, get_scope

NO_STORE = {"Cache-Control": "no-store"}
CSV = "text/csv"
routes = RouteTable(
    tag="admin",
    prefix="/admin/audit-log",
    role=Role.ORGANISER,
    right=Right.SETTINGS,
    refusals=(NotAllowed,),
)


@routes.get(query=AuditQuery, answers={200: AuditPage})
async def list_audit_entries(request: Request) -> Response:
    """Who changed what, when and from where, newest first.

    Members read the log of their organisation; admins that of the house, or with `organisation` any other.
    Each entry has a hash over itself and the entry before it, so that a changed or missing entry is noticed.
    """
    wanted = query(AuditQuery, request)
    page = await load_audit_page(get_app(request), _chain(request, wanted), wanted)
    return answer(200, page, NO_STORE)


@routes.get(".csv", query=AuditFilter, answers={200: bytes}, media_types=(CSV,))
async def export_audit_entries(request: Request) -> Response:
    """The same for a spreadsheet, all of it. The export is an entry of the log itself."""
    wanted = query(AuditFilter, request)
    sheet = await export_audit_log(get_app(request), _chain(request, wanted), wanted)
    headers = NO_STORE | {
        "Content-Disposition": 'attachment; filename="audit-log.csv"',
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(sheet, headers=headers, media_type=CSV)


def _chain(request: Request, wanted: AuditFilter) -> int:
    organisation_id = get_scope(request).organisation_id
    if organisation_id is None:
        return wanted.organisation or HOUSE
    if wanted.organisation not in (None, organisation_id):
        raise NotAllowed(needed=Role.ADMIN)
    return organisation_id


ROUTES = routes.all
