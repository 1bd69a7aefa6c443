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
from holdfast.web.responses import invalid, query
from holdfast.web.routing import get_app, get_scope
from holdfast.webhooks_out import DeliveriesQuery, EndpointChange, NewEndpoint

ONE = "/webhooks/{endpoint:int}"
BEFORE_MAX = 2**63 - 1
SHOWN = 50
desk = DeskTable()


class DeliveryPageQuery(Struct):
    before: Annotated[int, Meta(ge=1, le=BEFORE_MAX)] = BEFORE_MAX
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
    """Switches an endpoint on or off."""
    await read_form(request, EmptyForm)
    webhooks, which = get_app(request).webhooks_out, _which(request)
    endpoint = await webhooks.endpoint(*which)
    await webhooks.change(*which, EndpointChange(active=not endpoint.active))
    return redirect(f"{get_desk(request).path}/webhooks/{which[0]}?notice=saved")


@desk.post(ONE + "/delete", like="delete_webhook_endpoint")
async def post_delete_endpoint(request: Request) -> Response:
    """Deletes an endpoint and its deliveries."""
    await read_form(request, EmptyForm)
    await get_app(request).webhooks_out.remove(*_which(request))
    return redirect(f"{get_desk(request).path}/webhooks?notice=removed")


@desk.post(ONE + "/deliveries/{fact:int}/resend", like="replay_webhook_delivery")
async def post_resend(request: Request) -> Response:
    """Sends one fact again."""
    await read_form(request, EmptyForm)
    which = _which(request)
    try:
        await get_app(request).webhooks_out.replay(*which, request.path_params["fact"])
    except Refusal as refusal:
        return await _render_endpoint(request, refusal)
    return redirect(f"{get_desk(request).path}/webhooks/{which[0]}?notice=resent")


async def _render(
    request: Request, data: EndpointForm | None = None, refusal: Refusal | None = None
) -> Response:
    return render_desk(
        request,
        "webhooks.html",
        "webhooks",
        status=refusal.status if refusal else 200,
        endpoints=(await get_app(request).webhooks_out.endpoints(get_scope(request).organiser_id)).endpoints,
        typed=data or EndpointForm(),
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("removed",),
    )


async def _render_endpoint(request: Request, refusal: Refusal | None = None) -> Response:
    try:
        before = query(DeliveryPageQuery, request).before
    except Invalid:
        before = BEFORE_MAX
    webhooks, which = get_app(request).webhooks_out, _which(request)
    return render_desk(
        request,
        "endpoint.html",
        "webhooks",
        status=refusal.status if refusal else 200,
        endpoint=await webhooks.endpoint(*which),
        log=await webhooks.deliveries(*which, DeliveriesQuery(before=before, size=SHOWN)),
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("saved", "resent"),
    )


def _which(request: Request) -> tuple[int, int | None]:
    return request.path_params["endpoint"], get_scope(request).organiser_id
