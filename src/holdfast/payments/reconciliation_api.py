"""What the gateway's books and ours do not agree on."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.payments.differences import Comparison
from holdfast.payments.reconciliation import Reconciliation
from holdfast.web.caller import Role
from holdfast.web.context import get_app
from holdfast.web.responses import answer
from holdfast.web.routing import RouteTable

routes = RouteTable(tag="payments")


@routes.get("/admin/payments/differences", answers={200: Comparison}, role=Role.ADMIN)
async def list_payment_differences(request: Request) -> Response:
    """What the latest comparison with the gateway's books could not settle.

    Differences that settle themselves are not here: `settled` counts them.
    """
    books: Reconciliation = get_app(request).reconciliation
    return answer(200, await books.latest(), {"Cache-Control": "no-store"})


ROUTES = routes.all
