"""/desk/house: the state of the whole house, each part with what to do next, for admins."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.audit import audit
from holdfast.desk.access import OF_HOUSE, DeskTable
from holdfast.desk.frame import render_desk
from holdfast.payments import WebhookQuery, load_comparison, load_webhooks
from holdfast.refunds import count_waiting
from holdfast.site.pages import EmptyForm, read_form, redirect
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.routing import get_app

LETTERS_SHOWN = 50
LAG_LONG_S = 30  # a worker reads facts several times per second
house = DeskTable(OF_HOUSE)


class RetryForm(Struct):
    group: Annotated[str, Meta(max_length=100)] = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    fact_id: int
    group: str
    kind: str
    reason: str


@house.get("", like="list_accounts")
async def get_house(request: Request) -> Response:
    """Engines, lag, dead letters, refunds by hand, differences with the gateway."""
    return await _render(request)


@house.post("/dead-letters", like="list_accounts")
async def post_retry_letters(request: Request) -> Response:
    """Lets a consumer try its dead letters again."""
    data = await read_form(request, RetryForm)
    app = get_app(request)
    count = await app.outbox.retry_dead(data.group)
    subject = ("consumer_group", data.group)
    entry = AuditEntry(action="dead_letters.retried", subject=subject, after={"count": count})
    await record(app.postgres, entry)
    return redirect(f"{OF_HOUSE}?notice=retried")


@house.post("/audit", like="list_accounts")
async def post_audit(request: Request) -> Response:
    """Counts violations in the ledger now."""
    await read_form(request, EmptyForm)
    app = get_app(request)
    report = await audit(app.postgres, app.bookings)
    return await _render(request, report)


async def _render(request: Request, report: Any = None) -> Response:
    app, application = get_app(request), request.state.application
    (migrations, pong), groups, dead, waiting, differences, webhooks = await asyncio.gather(
        application.readiness.check(app.postgres, app.redis),
        app.outbox.groups(),
        app.outbox.dead(limit=LETTERS_SHOWN),
        count_waiting(app),
        load_comparison(app),
        load_webhooks(app, WebhookQuery(state="dead")),
    )
    return render_desk(
        request,
        "house.html",
        "state",
        migrations=migrations,
        has_redis=pong,
        groups=groups,
        is_lagging=any(row["lag_s"] > LAG_LONG_S for row in groups),
        letters=[_letter(row) for row in dead],
        by_hand=waiting,
        comparison=differences,
        webhooks=webhooks.webhooks,
        report=report,
        is_begun=await app.house.is_begun(),
        notices=("retried",),
    )


def _letter(row: dict[str, Any]) -> DeadLetter:
    fact = json.loads(row["fact"])
    return DeadLetter(row["fact_id"], row["group_name"], fact["kind"], row["reason"])
