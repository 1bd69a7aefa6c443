"""/desk/…/refunds/proposals: a second person approves or rejects a large refund; and how large that is."""

import re
from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import OF_HOUSE, DeskTable, get_desk
from holdfast.desk.refunds import render_refunds
from holdfast.errors import Invalid, Refusal
from holdfast.money import exponent
from holdfast.refunds import RefundLimit, RefundProposal, find_proposal
from holdfast.site.pages import EmptyForm, read_form, redirect
from holdfast.web.audit_log import find_origin
from holdfast.web.responses import invalid
from holdfast.web.routing import follow_show, get_app, get_caller, get_scope

ONE = "/refunds/proposals/{proposal:int}"
LIMITS_MAX = 20
AMOUNT = re.compile(r"[0-9]{1,12}(?:[.,][0-9]{1,4})?")
desk = DeskTable()
house = DeskTable(OF_HOUSE)


class LimitsForm(Struct):
    """Two columns of the same length."""

    currency: Annotated[list[Annotated[str, Meta(max_length=3)]], Meta(max_length=LIMITS_MAX)] = (
        msgspec.field(default_factory=list)
    )
    amount: Annotated[list[Annotated[str, Meta(max_length=20)]], Meta(max_length=LIMITS_MAX)] = msgspec.field(
        default_factory=list
    )


@desk.post(ONE + "/approve", like="approve_refund")
@house.post(ONE + "/approve", like="list_accounts")
async def post_approve(request: Request) -> Response:
    """Gives the refund that another person proposed."""
    await read_form(request, EmptyForm)
    proposal = await _load(request)
    try:
        await get_app(request).refunds.approve(proposal, get_caller(request).account_id, find_origin())
    except Refusal as refusal:
        return await render_refunds(request, refusal)
    return redirect(f"{get_desk(request).path}/refunds?notice=approved")


@desk.post(ONE + "/reject", like="reject_refund")
@house.post(ONE + "/reject", like="list_accounts")
async def post_reject(request: Request) -> Response:
    """Rejects it, or withdraws one's own."""
    await read_form(request, EmptyForm)
    proposal, app = await _load(request), get_app(request)
    try:
        await app.refund_store.approvals.end(proposal, get_caller(request).account_id, "")
    except Refusal as refusal:
        return await render_refunds(request, refusal)
    return redirect(f"{get_desk(request).path}/refunds?notice=rejected")


@desk.post("/settings/refund-limits", like="set_refund_limits")
async def post_refund_limits(request: Request) -> Response:
    """Sets above which amounts a refund needs a second person."""
    data, here = await read_form(request, LimitsForm), get_desk(request)
    try:
        limits = parse_limits(data)
    except Invalid:
        return redirect(f"{here.path}/settings?notice=limit_wrong")
    await get_app(request).refund_store.approvals.set_limits(here.organisation_id, limits)
    return redirect(f"{here.path}/settings?notice=saved")


def parse_limits(data: LimitsForm) -> list[RefundLimit]:
    """Rows without an amount have no limit."""
    limits: dict[str, RefundLimit] = {}
    for currency, amount in zip(data.currency, data.amount, strict=False):
        if amount.strip():
            code = currency.strip().upper()
            try:
                given = {"currency": code, "amount": _to_minor(amount.strip(), code)}
                limits[code] = msgspec.convert(given, RefundLimit)
            except msgspec.ValidationError as error:
                raise invalid(error) from None
    return list(limits.values())


def _to_minor(text: str, currency: str) -> int:
    """Short digits alone: a number such as 1e999 would take minutes to write out."""
    if not AMOUNT.fullmatch(text):
        raise Invalid(field="amount", detail="Expected an amount such as 500 or 99.50.")
    minor = Decimal(text.replace(",", ".")).scaleb(exponent(currency))
    if minor != int(minor):
        raise Invalid(field="amount", detail="Expected an amount that the currency has.")
    return int(minor)


async def _load(request: Request) -> RefundProposal:
    """The pod that has it answers the rest of the request."""
    number, organiser_id = request.path_params["proposal"], get_scope(request).organiser_id
    proposal = await find_proposal(get_app(request), number, organiser_id)
    follow_show(request, proposal.show_id)
    return proposal
