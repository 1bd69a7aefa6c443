"""/house: what the house is called, and what it sells in."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import SecondFactorNeeded
from holdfast.house.errors import UnknownCurrency, UnknownTimezone
from holdfast.house.house import HouseBody, HousePage, HouseSecondFactor
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="catalogue")
house = RouteTable(tag="admin", role=Role.ADMIN)


@routes.get("/house", answers={200: HousePage})
async def get_house(request: Request) -> Response:
    """The name of the house, its currency and time zone; empty until it is set up."""
    return answer(200, get_app(request).house.page, NO_STORE)


@house.put(
    "/admin/house",
    body=HouseBody,
    answers={200: HousePage},
    refusals=(UnknownCurrency, UnknownTimezone),
)
async def set_house(request: Request) -> Response:
    """Change the name, currency and time zone of the house. Other processes follow within seconds."""
    body = read(HouseBody, await request.body())
    return answer(200, await get_app(request).house.change(body), NO_STORE)


@house.get("/admin/house/second-factor", answers={200: HouseSecondFactor})
async def get_house_second_factor(request: Request) -> Response:
    """Who needs a second factor to work here. The setting `HOLDFAST_SECOND_FACTOR_FOR` may require more."""
    return answer(200, await get_app(request).house.second_factor(), NO_STORE)


@house.put(
    "/admin/house/second-factor",
    body=HouseSecondFactor,
    answers={200: HouseSecondFactor},
    refusals=(SecondFactorNeeded,),
)
async def set_house_second_factor(request: Request) -> Response:
    """Decide who needs a second factor to work here. Without one: `second_factor_needed`."""
    body, caller = read(HouseSecondFactor, await request.body()), get_caller(request)
    decided = await get_app(request).house.require_second_factor(caller.account_id, body.required_of)
    return answer(200, decided, NO_STORE)


ROUTES = (*routes.all, *house.all)
