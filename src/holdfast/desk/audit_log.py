"""/desk/{organisation}/audit-log and /desk/house/audit-log: who changed what, with filters."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.audit_log import AuditFilter, AuditQuery, export_audit_log, load_audit_page
from holdfast.desk.access import OF_HOUSE, DeskTable
from holdfast.desk.frame import render_desk
from holdfast.desk.show_page import send_sheet
from holdfast.errors import Invalid
from holdfast.fields import ONE_LINE
from holdfast.web.audit_log import HOUSE
from holdfast.web.pod_pages import Positions
from holdfast.web.responses import query
from holdfast.web.routing import get_app, get_scope

desk = DeskTable()
house = DeskTable(OF_HOUSE)
Text = Annotated[str, Meta(max_length=80, pattern=ONE_LINE)]


class LogQuery(Struct):
    action: Text = ""
    subject: Text = ""
    id: Text = ""
    actor: Annotated[str, Meta(max_length=18)] = ""
    since: Annotated[str, Meta(max_length=10)] = ""
    until: Annotated[str, Meta(max_length=10)] = ""
    before: Positions = ""

    def filters(self) -> dict[str, object]:
        """Those of the API; what cannot be read is left out."""
        given = {
            "action": self.action.strip() or None,
            "subject": self.subject.strip() or None,
            "id": self.id.strip() or None,
            "actor": int(self.actor) if self.actor.isascii() and self.actor.isdigit() else None,
            "since": _midnight(self.since, 0),
            "until": _midnight(self.until, 1),
        }
        return {name: value for name, value in given.items() if value is not None}


@desk.get("/audit-log", like="list_audit_entries")
@house.get("/audit-log", like="list_accounts")
async def get_desk_log(request: Request) -> Response:
    """The entries, newest first."""
    wanted = _wanted(request)
    page = await load_audit_page(
        get_app(request),
        _chain(request),
        AuditQuery(**wanted.filters(), before=wanted.before),  # type: ignore[arg-type]
    )
    shown = {k: v for k, v in msgspec.structs.asdict(wanted).items() if v and k != "before"}
    return render_desk(
        request,
        "log.html",
        "log",
        page=page,
        wanted=wanted,
        filters=urlencode(shown),
        missing_pods=page.missing_pods,
        encode=lambda values: msgspec.json.format(msgspec.json.encode(values), indent=2).decode(),
    )


@desk.get("/audit-log.csv", like="export_audit_entries")
@house.get("/audit-log.csv", like="list_accounts")
async def get_desk_log_file(request: Request) -> Response:
    """The same for a spreadsheet. The export is an entry itself."""
    wanted = AuditFilter(**_wanted(request).filters())  # type: ignore[arg-type]
    sheet = await export_audit_log(get_app(request), _chain(request), wanted)
    return send_sheet(sheet, "audit-log.csv")


def _wanted(request: Request) -> LogQuery:
    try:
        return query(LogQuery, request)
    except Invalid:
        return LogQuery()


def _chain(request: Request) -> int:
    return get_scope(request).organisation_id or HOUSE


def _midnight(text: str, days: int) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None
