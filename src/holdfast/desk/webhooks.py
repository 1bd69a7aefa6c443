"""/desk/{organisation}/webhooks: endpoints, what was delivered to them, and sending it again."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Invalid, Refusal
from holdfast.site.pages import EmptyForm, read_form, redirect
from holdfast.web.pod_pages import Positions
from holdfast.web.responses import invalid, query
from holdfast.web.routing import get_app, get_scope
from holdfast.webhooks_out import (
    DeliveriesQuery,
    EndpointChange,
    EndpointsQuery,
    NewEndpoint,
    load_deliveries,
    load_endpoint,
    load_endpoints,
    replay_delivery,
)

ONE = "/webhooks/{endpoint:int}"
SHOWN = 50
desk = DeskTable()


class DeliveryPageQuery(Struct):
    before: Positions = ""
    notice: str = ""


class EndpointForm(Struct):
    url: Annotated[str, Meta(max_length=2000)] = ""


@desk.get("/webhooks", like="list_webhook_endpoints")
async def get_desk_webhooks(request: Request) -> Response:
    """The endpoints."""
    return await _render(request)


@desk.post("/webhooks", like="create_webhook_endpoint")
async def post_endpoint(request: Request) -> Response:
    """Adds an endpoint. Its secret is on this page alone."""
    data = await read_form(request, EndpointForm)
    try:
        new = msgspec.convert({"url": data.url}, NewEndpoint)
        page, secret = await get_app(request).webhooks_out.add(get_scope(request).owner_id, new)
    except msgspec.ValidationError as error:
        return await _render(request, data, invalid(error))
    except Refusal as refusal:
        return await _render(request, data, refusal)
    return render_desk(request, "secret.html", "webhooks", endpoint=page, secret=secret)


@desk.get(ONE, like="list_webhook_deliveries")
async def get_desk_endpoint(request: Request) -> Response:
    """What was delivered to an endpoint."""
    return await _render_endpoint(request)


@desk.post(ONE + "/switch", like="update_webhook_endpoint")
async def post_switch(request: Request) -> Response:
    """Switches an endpoint on or off; on if a pod has switched it off."""
    await read_form(request, EmptyForm)
    app, which = get_app(request), _which(request)
    endpoint = await load_endpoint(app, which)
    is_on = endpoint.active and not endpoint.off_in
    await app.webhooks_out.change(*which, EndpointChange(active=not is_on))
    return redirect(f"{get_desk(request).path}/webhooks/{which[0]}?notice=saved")


@desk.post(ONE + "/delete", like="delete_webhook_endpoint")
async def post_delete_endpoint(request: Request) -> Response:
    """Deletes an endpoint and its deliveries."""
    await read_form(request, EmptyForm)
    await get_app(request).webhooks_out.remove(*_which(request))
    return redirect(f"{get_desk(request).path}/webhooks?notice=removed")


@desk.post(ONE + "/deliveries/{fact}/resend", like="replay_webhook_delivery")
async def post_resend(request: Request) -> Response:
    """Sends one fact again."""
    await read_form(request, EmptyForm)
    which = _which(request)
    try:
        await replay_delivery(get_app(request), which, request.path_params["fact"])
    except Refusal as refusal:
        return await _render_endpoint(request, refusal)
    return redirect(f"{get_desk(request).path}/webhooks/{which[0]}?notice=resent")


async def _render(
    request: Request, data: EndpointForm | None = None, refusal: Refusal | None = None
) -> Response:
    listed = await load_endpoints(get_app(request), get_scope(request).organiser_id, EndpointsQuery())
    return render_desk(
        request,
        "webhooks.html",
        "webhooks",
        status=refusal.status if refusal else 200,
        endpoints=listed.endpoints,
        missing_pods=listed.missing_pods,
        typed=data or EndpointForm(),
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("removed",),
    )


async def _render_endpoint(request: Request, refusal: Refusal | None = None) -> Response:
    try:
        before = query(DeliveryPageQuery, request).before
    except Invalid:
        before = ""
    app, which = get_app(request), _which(request)
    log = await load_deliveries(app, which, DeliveriesQuery(before=before, size=SHOWN))
    return render_desk(
        request,
        "endpoint.html",
        "webhooks",
        status=refusal.status if refusal else 200,
        endpoint=await load_endpoint(app, which),
        log=log,
        missing_pods=log.missing_pods,
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("saved", "resent"),
    )


def _which(request: Request) -> tuple[int, int | None]:
    return request.path_params["endpoint"], get_scope(request).organiser_id
