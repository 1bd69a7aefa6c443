"""/admin/webhook-endpoints: organisers say where they want to be told, and see what was."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable
from holdfast.webhooks_out.delivery import DeliveriesQuery, DeliveryList, DeliveryPage, Replayed, ReplaySince
from holdfast.webhooks_out.endpoint import (
    CreatedEndpoint,
    EndpointChange,
    EndpointList,
    EndpointPage,
    NewEndpoint,
)
from holdfast.webhooks_out.errors import (
    BadEndpointUrl,
    EndpointOff,
    EndpointsMax,
    NoSuchDelivery,
    NoSuchEndpoint,
)
from holdfast.webhooks_out.store import OutgoingWebhooks

NOT_KEPT = {"Cache-Control": "no-store"}
ALL = "/admin/webhook-endpoints"
ONE = ALL + "/{endpoint:int}"
routes = RouteTable(tag="admin", role=Role.ORGANISER)


@routes.post(ALL, body=NewEndpoint, answers={201: CreatedEndpoint}, refusals=(BadEndpointUrl, EndpointsMax))
async def create_webhook_endpoint(request: Request) -> Response:
    """Be told facts of your events.

    Each is POSTed as JSON, signed after standardwebhooks.com with `secret`, which is told this once. The
    `webhook-id` is the fact's: the same however often it comes. Answer 2xx, or it comes again.
    """
    new = read(NewEndpoint, await request.body())
    page, secret = await _hooks(request).add(get_caller(request).account_id, new)
    return answer(201, CreatedEndpoint(page, secret), NOT_KEPT)


@routes.get(ALL, answers={200: EndpointList})
async def list_webhook_endpoints(request: Request) -> Response:
    """Where I am told; the newest first."""
    return answer(200, EndpointList(await _hooks(request).endpoints(_organiser_id(request))), NOT_KEPT)


@routes.get(ONE, answers={200: EndpointPage}, refusals=(NoSuchEndpoint,))
async def get_webhook_endpoint(request: Request) -> Response:
    """One of my endpoints."""
    return answer(200, await _hooks(request).endpoint(*_which(request)), NOT_KEPT)


@routes.patch(
    ONE, body=EndpointChange, answers={200: EndpointPage}, refusals=(NoSuchEndpoint, BadEndpointUrl)
)
async def update_webhook_endpoint(request: Request) -> Response:
    """Change where, what, or whether. Switched off, it misses facts; a replay brings them later."""
    change = read(EndpointChange, await request.body())
    return answer(200, await _hooks(request).change(*_which(request), change), NOT_KEPT)


@routes.delete(ONE, answers={204: None}, refusals=(NoSuchEndpoint,))
async def delete_webhook_endpoint(request: Request) -> Response:
    """Be told no more, and forget what was."""
    await _hooks(request).remove(*_which(request))
    return answer(204)


@routes.post(ONE + "/secret", answers={201: CreatedEndpoint}, refusals=(NoSuchEndpoint,))
async def rotate_webhook_secret(request: Request) -> Response:
    """Have a new secret, told this once. For a day the old one signs too: every delivery has both."""
    page, secret = await _hooks(request).change_secret(*_which(request))
    return answer(201, CreatedEndpoint(page, secret), NOT_KEPT)


@routes.get(
    ONE + "/deliveries", query=DeliveriesQuery, answers={200: DeliveryList}, refusals=(NoSuchEndpoint,)
)
async def list_webhook_deliveries(request: Request) -> Response:
    """What was sent to an endpoint, every try of it, and what is still to be; the newest fact first."""
    asked = query(DeliveriesQuery, request)
    return answer(200, await _hooks(request).deliveries(*_which(request), asked), NOT_KEPT)


@routes.post(
    ONE + "/deliveries/{fact:int}/replay",
    answers={200: DeliveryPage},
    refusals=(NoSuchEndpoint, NoSuchDelivery, EndpointOff),
)
async def replay_webhook_delivery(request: Request) -> Response:
    """Send one fact again, whatever became of it."""
    fact_id = request.path_params["fact"]
    return answer(200, await _hooks(request).replay(*_which(request), fact_id), NOT_KEPT)


@routes.post(
    ONE + "/replay", body=ReplaySince, answers={200: Replayed}, refusals=(NoSuchEndpoint, EndpointOff)
)
async def replay_webhook_deliveries(request: Request) -> Response:
    """Send again whatever happened since a moment: what was missed or refused, or all of it."""
    body = read(ReplaySince, await request.body())
    count = await _hooks(request).replay_since(*_which(request), body.since, failed_only=body.failed_only)
    return answer(200, Replayed(count), NOT_KEPT)


def _hooks(request: Request) -> OutgoingWebhooks:
    hooks: OutgoingWebhooks = get_app(request).webhooks_out
    return hooks


def _organiser_id(request: Request) -> int | None:
    caller = get_caller(request)
    return None if caller.role is Role.ADMIN else caller.account_id


def _which(request: Request) -> tuple[int, int | None]:
    return request.path_params["endpoint"], _organiser_id(request)


ROUTES = routes.all
