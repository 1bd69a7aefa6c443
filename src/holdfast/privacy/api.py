"""Download my data, delete my account; the same for administrators."""

from msgspec import Raw, Struct
from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import NoSuchAccount, OldPassword, StaffAccount, WrongPassword
from holdfast.errors import TooManyRequests
from holdfast.organisations import LastOwner
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

FILE = {
    "Cache-Control": "no-store",
    "Content-Disposition": 'attachment; filename="my-data.json"',
    "X-Content-Type-Options": "nosniff",
}
routes = RouteTable(tag="accounts")


class ErasureBody(Struct, forbid_unknown_fields=True):
    current_password: OldPassword = ""  # of an account that has none: leave it out


@routes.get("/me/data", answers={200: dict}, role=Role.FAN)
async def get_my_data(request: Request) -> Response:
    """Everything that is stored about me, as a file."""
    data = await get_app(request).personal_data.load(get_caller(request).account_id)
    return answer(200, Raw(encode(data)), FILE)


@routes.post(
    "/me/erasure",
    body=ErasureBody,
    answers={204: None},
    refusals=(WrongPassword, StaffAccount, LastOwner, TooManyRequests),
    role=Role.FAN,
)
async def erase_my_account(request: Request) -> Response:
    """Delete my account: name, addresses, password and messages.

    Bookings stay in the books without a name. Codes of tickets that were saved stay valid at the door;
    nothing can be opened, transferred or refunded any more. Accounts with a role other than fan are refused.
    Memberships end; the only owner of an organisation makes another member the owner first.
    """
    body, app = read(ErasureBody, await request.body()), get_app(request)
    account_id = get_caller(request).account_id
    client = request.client.host if request.client is not None else ""
    await app.accounts.check_password(account_id, body.current_password, client)
    await app.erasure.erase(account_id)
    return answer(204)


@routes.get(
    "/admin/accounts/{account:int}/export",
    answers={200: dict},
    refusals=(NoSuchAccount,),
    role=Role.ADMIN,
)
async def export_account(request: Request) -> Response:
    """Everything that is stored about the owner of an account, as a file."""
    data = await get_app(request).personal_data.load(int(request.path_params["account"]))
    return answer(200, Raw(encode(data)), FILE)


@routes.post(
    "/admin/accounts/{account:int}/erase",
    answers={204: None},
    refusals=(NoSuchAccount, StaffAccount, LastOwner),
    role=Role.ADMIN,
)
async def erase_account(request: Request) -> Response:
    """Delete the name, addresses, password and messages of an account's owner. The books stay."""
    await get_app(request).erasure.erase(int(request.path_params["account"]))
    return answer(204)


ROUTES = routes.all
