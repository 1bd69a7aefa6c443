"""/desk/{organisation}/settings: its name, whether members need a second factor, refunds by two people."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk
from holdfast.errors import SecondFactorNeeded
from holdfast.money import to_major
from holdfast.organisations import NewOrganisation
from holdfast.site.pages import get_localiser, read_form, redirect
from holdfast.web.routing import get_app

desk = DeskTable()


class OrganisationForm(Struct):
    name: Annotated[str, Meta(max_length=300)] = ""


class SecondFactorForm(Struct):
    required: bool


@desk.get("/settings", like="update_organisation")
async def get_settings(request: Request) -> Response:
    """The organisation's settings."""
    return await _render(request)


@desk.post("/settings", like="update_organisation")
async def post_settings(request: Request) -> Response:
    """Renames the organisation."""
    data, here = await read_form(request, OrganisationForm), get_desk(request)
    try:
        new = msgspec.convert({"name": data.name}, NewOrganisation)
    except msgspec.ValidationError:
        return await _render(request, data.name, get_localiser(request).t("desk.wrong_name"))
    await get_app(request).organisations.rename(here.organisation_id, new.name)
    return redirect(f"{here.path}/settings?notice=saved")


@desk.post("/settings/second-factor", like="require_second_factor")
async def post_second_factor(request: Request) -> Response:
    """Decides whether members need a second factor."""
    data, here = await read_form(request, SecondFactorForm), get_desk(request)
    try:
        await get_app(request).organisations.require_second_factor(here.scope, required=data.required)
    except SecondFactorNeeded:
        return await _render(request, needs_own=True)
    return redirect(f"{here.path}/settings?notice=saved")


async def _render(request: Request, name: str = "", wrong: str = "", *, needs_own: bool = False) -> Response:
    limits = await get_app(request).refund_store.approvals.limits(get_desk(request).organisation_id)
    return render_desk(
        request,
        "settings.html",
        "settings",
        status=422 if wrong else 403 if needs_own else 200,
        name=name,
        wrong=wrong,
        needs_own=needs_own,
        limits=[(limit.currency, f"{to_major(limit.amount, limit.currency):f}") for limit in limits],
        notices=("saved", "limit_wrong"),
    )
