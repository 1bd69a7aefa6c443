"""/admin/shows/{show}/price-rules: try rules out, set them, see what they did (R33)."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import NoSuchShow
from holdfast.errors import Busy
from holdfast.organisers.errors import ShowCancelled
from holdfast.organisers.price_rules_forms import PricePlan
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.organisers.scope import Scope
from holdfast.pricing import BadPriceRules, FeeTooHigh, PriceRules, RulesPreview, UnknownCategory
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable

PATH = "/admin/shows/{show:int}/price-rules"
BAD = (BadPriceRules, UnknownCategory, FeeTooHigh)
routes = RouteTable(tag="admin", role=Role.ORGANISER)


@routes.get(PATH, answers={200: PricePlan}, refusals=(NoSuchShow, Busy))
async def get_price_rules(request: Request) -> Response:
    """The price rules of a show of yours, its prices of now, and the newest changes of them."""
    return answer(200, await _desk(request).plan(request.path_params["show"]))


@routes.post(
    PATH + "/preview", body=PriceRules, answers={200: RulesPreview}, refusals=(NoSuchShow, Busy, *BAD)
)
async def preview_price_rules(request: Request) -> Response:
    """What rules would do, before they do it.

    For each category: the price that fans would see at once, and a table over time and share sold. Nothing is
    kept.
    """
    rules = read(PriceRules, await request.body())
    return answer(200, await _desk(request).preview(request.path_params["show"], rules))


@routes.put(PATH, body=PriceRules, answers={200: PricePlan}, refusals=(NoSuchShow, ShowCancelled, Busy, *BAD))
async def set_price_rules(request: Request) -> Response:
    """Let the prices of a show follow these rules, from now on.

    They replace the rules there were. Seats that somebody holds or has booked keep their price. A category
    that had a rule and has none any more costs its base again.
    """
    rules = read(PriceRules, await request.body())
    return answer(200, await _desk(request).put(request.path_params["show"], rules))


@routes.delete(PATH, answers={200: PricePlan}, refusals=(NoSuchShow, Busy))
async def delete_price_rules(request: Request) -> Response:
    """No more rules: every category costs its base again."""
    return answer(200, await _desk(request).remove(request.path_params["show"]))


def _desk(request: Request) -> PriceRulesStore:
    return get_app(request).price_rules(Scope.of(get_caller(request)))


ROUTES = routes.all
