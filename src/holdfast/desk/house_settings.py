"""/desk/house/settings: who needs a second factor to work here."""

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import OF_HOUSE, DeskTable, get_desk
from holdfast.desk.frame import render_desk
from holdfast.errors import SecondFactorNeeded
from holdfast.site.pages import read_form, redirect
from holdfast.web.routing import get_app

house = DeskTable(OF_HOUSE)


class HouseFactorForm(Struct):
    required_of: Literal["none", "admins", "staff"]


@house.get("/settings", like="set_house_second_factor")
async def get_house_settings(request: Request) -> Response:
    """The settings that administrators make on a page."""
    return await _render(request)


@house.post("/settings/second-factor", like="set_house_second_factor")
async def post_house_second_factor(request: Request) -> Response:
    """Decides who needs a second factor."""
    data, here = await read_form(request, HouseFactorForm), get_desk(request)
    try:
        await get_app(request).house.require_second_factor(here.session.account_id, data.required_of)
    except SecondFactorNeeded as refusal:
        return await _render(request, status=refusal.status)
    return redirect(f"{here.path}/settings?notice=saved")


async def _render(request: Request, status: int = 200) -> Response:
    app = get_app(request)
    return render_desk(
        request,
        "house_settings.html",
        "settings",
        status=status,
        rule=await app.house.second_factor(),
        by_environment=app.config.second_factor_for,
        needs_own=status != 200,
        notices=("saved",),
    )
