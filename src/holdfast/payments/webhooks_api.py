"""Gateways tell us what happened; operators look at what we made of it."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.engines.metrics import metrics
from holdfast.errors import NoSuchRoute
from holdfast.payments.errors import BadGatewayNotice, NoSuchWebhook
from holdfast.payments.gateway import BadNotice
from holdfast.payments.webhook import Heard, WebhookList, WebhookPage, WebhooksAsked
from holdfast.payments.webhooks import IncomingWebhooks
from holdfast.web.caller import Role
from holdfast.web.context import get_app
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable

NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="payments")


@routes.post(
    "/webhooks/{gateway}",
    answers={200: Heard},
    refusals=(BadGatewayNotice, NoSuchRoute),
    bare=True,
    body_limit="webhook_bytes_max",
)
async def post_webhook(request: Request) -> Response:
    """A gateway's webhook. 2xx: it is stored, and need not come again."""
    webhooks: IncomingWebhooks = get_app(request).webhooks_in
    if request.path_params["gateway"] != webhooks.gateway.name:
        raise NoSuchRoute
    try:
        await webhooks.take_in(await request.body(), request.state.headers)
    except BadNotice as bad:
        metrics.add("webhooks_refused_total", why=bad.why)
        raise BadGatewayNotice(why=bad.why) from None
    return answer(200, Heard(stored=True), NO_STORE)


@routes.get("/admin/webhooks", query=WebhooksAsked, answers={200: WebhookList}, role=Role.ADMIN)
async def list_webhooks(request: Request) -> Response:
    """What gateways told us, newest first: the dead, the due, or all."""
    webhooks: IncomingWebhooks = get_app(request).webhooks_in
    return answer(200, await webhooks.newest(query(WebhooksAsked, request)), NO_STORE)


@routes.post(
    "/admin/webhooks/{gateway}/{event}/replay",
    answers={200: WebhookPage},
    refusals=(NoSuchWebhook,),
    role=Role.ADMIN,
)
async def replay_webhook(request: Request) -> Response:
    """Look into a webhook again, now.

    The answer says how it stands afterwards. What it is about is looked up at the gateway, so that a replay
    changes nothing that is settled already.
    """
    webhooks: IncomingWebhooks = get_app(request).webhooks_in
    gateway, event_id = request.path_params["gateway"], request.path_params["event"]
    return answer(200, await webhooks.replay(gateway, event_id), NO_STORE)


ROUTES = routes.all
