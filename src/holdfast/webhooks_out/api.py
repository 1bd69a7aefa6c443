"""/admin/webhook-endpoints: organisers register endpoints and see what was delivered to them."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_scope
from holdfast.webhooks_out.delivery import (
    DeliveriesQuery,
    DeliveryList,
    DeliveryPage,
    PodQuery,
    Replayed,
    ReplaySince,
)
from holdfast.webhooks_out.endpoint import (
    CreatedEndpoint,
    EndpointChange,
    EndpointList,
    EndpointPage,
    EndpointsQuery,
    ListedEndpoint,
    NewEndpoint,
)
from holdfast.webhooks_out.errors import (
    BadEndpointUrl,
    EndpointOff,
    EndpointsMax,
    NoSuchDelivery,
    NoSuchEndpoint,
)
from holdfast.webhooks_out.every_pod import (
    load_deliveries,
    load_endpoint,
    load_endpoints,
    replay_deliveries,
    replay_delivery,
)
from holdfast.webhooks_out.store import OutgoingWebhooks

NO_STORE = {"Cache-Control": "no-store"}
ALL = "/admin/webhook-endpoints"
ONE = ALL + "/{endpoint:int}"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.SETTINGS)


@routes.post(ALL, body=NewEndpoint, answers={201: CreatedEndpoint}, refusals=(BadEndpointUrl, EndpointsMax))
async def create_webhook_endpoint(request: Request) -> Response:
    """Register an endpoint for facts of your events.

    Each is POSTed as JSON, signed after standardwebhooks.com with `secret`, which is shown only now. The
    `webhook-id` is the fact's id, the same for all tries. Answer 2xx, or it is sent again.
    """
    new = read(NewEndpoint, await request.body())
    page, secret = await _webhooks(request).add(get_scope(request).owner_id, new)
    return answer(201, CreatedEndpoint(page, secret), NO_STORE)


@routes.get(ALL, query=EndpointsQuery, answers={200: EndpointList})
async def list_webhook_endpoints(request: Request) -> Response:
    """My webhook endpoints, newest first."""
    wanted = query(EndpointsQuery, request)
    return answer(200, await load_endpoints(get_app(request), _organiser_id(request), wanted), NO_STORE)


@routes.get(ONE, answers={200: ListedEndpoint}, refusals=(NoSuchEndpoint,))
async def get_webhook_endpoint(request: Request) -> Response:
    """One of my endpoints."""
    return answer(200, await load_endpoint(get_app(request), _which(request)), NO_STORE)


@routes.patch(
    ONE, body=EndpointChange, answers={200: EndpointPage}, refusals=(NoSuchEndpoint, BadEndpointUrl)
)
async def update_webhook_endpoint(request: Request) -> Response:
    """Change the URL or the kinds, or switch it on or off. Facts missed while it is off can be replayed."""
    change = read(EndpointChange, await request.body())
    return answer(200, await _webhooks(request).change(*_which(request), change), NO_STORE)


@routes.delete(ONE, answers={204: None}, refusals=(NoSuchEndpoint,))
async def delete_webhook_endpoint(request: Request) -> Response:
    """Delete an endpoint and its deliveries."""
    await _webhooks(request).remove(*_which(request))
    return answer(204)


@routes.post(ONE + "/secret", answers={201: CreatedEndpoint}, refusals=(NoSuchEndpoint,))
async def rotate_webhook_secret(request: Request) -> Response:
    """Create a new secret, shown only now. For a day every delivery is signed with both secrets."""
    page, secret = await _webhooks(request).change_secret(*_which(request))
    return answer(201, CreatedEndpoint(page, secret), NO_STORE)


@routes.get(
    ONE + "/deliveries",
    query=DeliveriesQuery,
    answers={200: DeliveryList},
    refusals=(NoSuchEndpoint, NoSuchDelivery),
)
async def list_webhook_deliveries(request: Request) -> Response:
    """Deliveries to an endpoint with every try, newest fact first."""
    wanted = query(DeliveriesQuery, request)
    return answer(200, await load_deliveries(get_app(request), _which(request), wanted), NO_STORE)


@routes.post(
    ONE + "/deliveries/{fact}/replay",
    query=PodQuery,
    answers={200: DeliveryPage},
    refusals=(NoSuchEndpoint, NoSuchDelivery, EndpointOff),
)
async def replay_webhook_delivery(request: Request) -> Response:
    """Send one fact again, whatever its state. `fact`: the `webhook_id` of its delivery."""
    pod, webhook_id = query(PodQuery, request).pod, request.path_params["fact"]
    return answer(200, await replay_delivery(get_app(request), _which(request), webhook_id, pod), NO_STORE)


@routes.post(
    ONE + "/replay", body=ReplaySince, answers={200: Replayed}, refusals=(NoSuchEndpoint, EndpointOff)
)
async def replay_webhook_deliveries(request: Request) -> Response:
    """Send facts since a time again: those that were missed or refused, or all."""
    body = read(ReplaySince, await request.body())
    return answer(200, await replay_deliveries(get_app(request), _which(request), body), NO_STORE)


def _webhooks(request: Request) -> OutgoingWebhooks:
    webhooks: OutgoingWebhooks = get_app(request).webhooks_out
    return webhooks


def _organiser_id(request: Request) -> int | None:
    return get_scope(request).organiser_id


def _which(request: Request) -> tuple[int, int | None]:
    return request.path_params["endpoint"], _organiser_id(request)


ROUTES = routes.all
