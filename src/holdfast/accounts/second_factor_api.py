"""Two-step sign-in: codes of authenticator apps and recovery codes."""

from datetime import datetime

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts.account import OldPassword
from holdfast.accounts.api import NO_STORE, SignedInPage, address, device, signed_in_page
from holdfast.accounts.errors import (
    NoSecondFactor,
    NoSuchAccount,
    SecondFactorExists,
    SignInExpired,
    WrongCode,
    WrongPassword,
)
from holdfast.accounts.second_factor import SecondCode, StepToken
from holdfast.accounts.second_factors import SecondFactors
from holdfast.errors import TooManyRequests
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

ME = "/me/second-factor"
routes = RouteTable(tag="accounts")


class SecondStepBody(Struct, forbid_unknown_fields=True):
    token: StepToken  # of `second_factor_required`
    code: SecondCode  # of the authenticator app, or a recovery code


class ProofBody(Struct, forbid_unknown_fields=True):
    """Who it is, again: the password, or a code. An account with neither sends none."""

    current_password: OldPassword = ""
    code: SecondCode | None = None


class CodeBody(Struct, forbid_unknown_fields=True):
    code: SecondCode


class PasskeyPage(Struct):
    passkey_id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


class SecondFactorPage(Struct):
    totp_since: datetime | None  # null: no authenticator app
    passkeys: list[PasskeyPage]
    recovery_codes_left: int


class EnrolmentPage(Struct):
    secret: str  # to type into the app
    uri: str  # for a QR code


class RecoveryCodesPage(Struct):
    recovery_codes: list[str]  # shown once; empty where the account had some before


PROOF_REFUSALS = (WrongPassword, WrongCode, TooManyRequests)


@routes.post(
    "/auth/second-factor",
    body=SecondStepBody,
    answers={200: SignedInPage},
    refusals=(WrongCode, SignInExpired, TooManyRequests),
)
async def complete_sign_in(request: Request) -> Response:
    """Complete a sign-in that was refused with `second_factor_required`."""
    body, app = read(SecondStepBody, await request.body()), get_app(request)
    account, how = await app.second_factors.complete_sign_in(body.token, body.code, address(request))
    signed_in = await app.accounts.sign_in(account, device(request), how)
    return answer(200, signed_in_page(request, signed_in), NO_STORE)


@routes.get(ME, answers={200: SecondFactorPage}, role=Role.FAN)
async def get_second_factor(request: Request) -> Response:
    """The second factors of my account."""
    status = await _factors(request).status(get_caller(request).account_id)
    passkeys = [PasskeyPage(p.passkey_id, p.name, p.created_at, p.last_used_at) for p in status.passkeys]
    page = SecondFactorPage(status.totp_since, passkeys, status.recovery_codes_left)
    return answer(200, page, NO_STORE)


@routes.post(
    ME + "/totp",
    body=ProofBody,
    answers={200: EnrolmentPage},
    refusals=(SecondFactorExists, *PROOF_REFUSALS),
    role=Role.FAN,
)
async def begin_totp(request: Request) -> Response:
    """Set up an authenticator app. It is in use once its first code was sent to `…/totp/confirm`."""
    account_id = await prove_again(request)
    secret, uri = await _factors(request).begin_totp(account_id)
    return answer(200, EnrolmentPage(secret, uri), NO_STORE)


@routes.post(
    ME + "/totp/confirm",
    body=CodeBody,
    answers={200: RecoveryCodesPage},
    refusals=(WrongCode, NoSecondFactor, TooManyRequests),
    role=Role.FAN,
)
async def confirm_totp(request: Request) -> Response:
    """Confirm the app with its first code. The account's other sessions end."""
    body, caller = read(CodeBody, await request.body()), get_caller(request)
    codes = await _factors(request).confirm_totp(
        caller.account_id, body.code, address(request), caller.session_id
    )
    return answer(200, RecoveryCodesPage(codes), NO_STORE)


@routes.post(
    ME + "/totp/remove",
    body=ProofBody,
    answers={204: None},
    refusals=(NoSecondFactor, *PROOF_REFUSALS),
    role=Role.FAN,
)
async def remove_totp(request: Request) -> Response:
    """Remove the authenticator app."""
    await _factors(request).remove_totp(await prove_again(request))
    return answer(204)


@routes.post(
    ME + "/recovery-codes",
    body=ProofBody,
    answers={200: RecoveryCodesPage},
    refusals=(NoSecondFactor, *PROOF_REFUSALS),
    role=Role.FAN,
)
async def renew_recovery_codes(request: Request) -> Response:
    """Ten new recovery codes. The old ones end."""
    codes = await _factors(request).renew_codes(await prove_again(request))
    return answer(200, RecoveryCodesPage(codes), NO_STORE)


@routes.delete(
    "/admin/accounts/{account:int}/second-factor",
    answers={204: None},
    refusals=(NoSuchAccount, NoSecondFactor),
    role=Role.ADMIN,
    tag="admin",
)
async def remove_second_factor(request: Request) -> Response:
    """Remove the second factors of a person who has lost them. Every session of the account ends."""
    account_id = int(request.path_params["account"])
    await get_app(request).account_admin.find(account_id)
    await _factors(request).remove_all(account_id)
    return answer(204)


async def prove_again(request: Request) -> int:
    body, caller = read(ProofBody, await request.body()), get_caller(request)
    await _factors(request).prove_again(
        caller.account_id, password=body.current_password, code=body.code or "", address=address(request)
    )
    return caller.account_id


def _factors(request: Request) -> SecondFactors:
    return get_app(request).second_factors


ROUTES = routes.all
