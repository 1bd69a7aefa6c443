"""/desk/house: the state of the whole house, each part with what to do next, for admins."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.audit import AuditedDatabase, HouseReport, audit_house
from holdfast.desk.access import OF_HOUSE, DeskTable
from holdfast.desk.frame import render_desk
from holdfast.outbox import load_dead_facts, load_groups, retry_dead_facts
from holdfast.payments import WebhookQuery, load_comparison, load_webhooks
from holdfast.refunds import count_waiting
from holdfast.site.pages import EmptyForm, read_form, redirect
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.pod_pages import format_key
from holdfast.web.routing import get_app

LETTERS_SHOWN = 50
LAG_LONG_S = 30  # a worker reads facts several times per second
house = DeskTable(OF_HOUSE)


class RetryForm(Struct):
    group: Annotated[str, Meta(max_length=100)] = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    fact: str  # its number, after the name of its pod
    group: str
    kind: str
    reason: str


@house.get("", like="list_accounts")
async def get_house(request: Request) -> Response:
    """Engines, lag, dead letters, refunds by hand, differences with the gateway."""
    return await _render(request)


@house.post("/dead-letters", like="list_accounts")
async def post_retry_letters(request: Request) -> Response:
    """Lets a consumer try its dead letters again, in every database that can be reached."""
    data = await read_form(request, RetryForm)
    app = get_app(request)
    count, _ = await retry_dead_facts(app, data.group)
    subject = ("consumer_group", data.group)
    entry = AuditEntry(action="dead_letters.retried", subject=subject, after={"count": count})
    await record(app.postgres, entry)
    return redirect(f"{OF_HOUSE}?notice=retried")


@house.post("/audit", like="list_accounts")
async def post_audit(request: Request) -> Response:
    """Counts violations now, in every database and between them."""
    await read_form(request, EmptyForm)
    databases = {
        name: AuditedDatabase(each.postgres, each.bookings)
        for name, each in get_app(request).router.by_name.items()
    }
    return await _render(request, await audit_house(databases))


async def _render(request: Request, report: HouseReport | None = None) -> Response:
    app, application = get_app(request), request.state.application
    (migrations, pong), (groups, away), (dead, _), waiting, differences, webhooks = await asyncio.gather(
        application.readiness.check(app.postgres, app.redis),
        load_groups(app),
        load_dead_facts(app, limit=LETTERS_SHOWN),
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
        missing_pods=sorted({*away, *(report.unseen if report is not None else ())}),
        is_begun=await app.house.is_begun(),
        notices=("retried",),
    )


def _letter(row: dict[str, Any]) -> DeadLetter:
    fact = json.loads(row["fact"])
    key = format_key(row["pod"], row["fact_id"])
    return DeadLetter(key, row["group_name"], fact["kind"], row["reason"])
