"""Passkeys: add, rename, remove, and sign in with one."""

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts.api import NO_STORE, SignedInPage, address, device, signed_in_page
from holdfast.accounts.errors import BadPasskey, NoSuchPasskey, PasskeysMax, SignInExpired
from holdfast.accounts.passkeys import Passkeys, RelyingParty
from holdfast.accounts.second_factor import Passkey, PasskeyName, StepToken
from holdfast.accounts.second_factor_api import PROOF_REFUSALS, PasskeyPage, ProofBody, prove_again
from holdfast.errors import TooManyRequests
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

ONE = "/me/passkeys/{passkey:int}"
routes = RouteTable(tag="accounts")


class PasskeyOptionsBody(Struct, forbid_unknown_fields=True):
    token: StepToken | None = None  # of `second_factor_required`; without it, the passkey names the account


class OptionsPage(Struct):
    public_key: dict[str, Any]  # for navigator.credentials, in the JSON form of WebAuthn Level 3


class CredentialBody(Struct, forbid_unknown_fields=True):
    credential: dict[str, Any]  # of navigator.credentials, in its JSON form


class NewPasskeyBody(Struct, forbid_unknown_fields=True):
    name: PasskeyName
    credential: dict[str, Any]


class PasskeyNameBody(Struct, forbid_unknown_fields=True):
    name: PasskeyName


class NewPasskeyPage(Struct):
    passkey: PasskeyPage
    recovery_codes: list[str]  # shown once; empty where the account had some before


@routes.post(
    "/auth/passkey/options",
    body=PasskeyOptionsBody,
    answers={200: OptionsPage},
    refusals=(SignInExpired, TooManyRequests),
)
async def begin_passkey_sign_in(request: Request) -> Response:
    """A challenge for a passkey, to sign in without an address, or as the second step."""
    body = read(PasskeyOptionsBody, await request.body())
    options = await _passkeys(request).begin_sign_in(_party(request), body.token, address(request))
    return answer(200, OptionsPage(options), NO_STORE)


@routes.post(
    "/auth/passkey",
    body=CredentialBody,
    answers={200: SignedInPage},
    refusals=(BadPasskey, SignInExpired),
)
async def sign_in_with_passkey(request: Request) -> Response:
    """Sign in with a passkey that has signed a challenge. A challenge works once, for five minutes."""
    body, app = read(CredentialBody, await request.body()), get_app(request)
    account, how = await app.passkeys.sign_in(_party(request), body.credential)
    signed_in = await app.accounts.sign_in(account, device(request), how)
    return answer(200, signed_in_page(request, signed_in), NO_STORE)


@routes.post(
    "/me/passkeys/options",
    body=ProofBody,
    answers={200: OptionsPage},
    refusals=(PasskeysMax, *PROOF_REFUSALS),
    role=Role.FAN,
)
async def begin_passkey(request: Request) -> Response:
    """A challenge to add a passkey."""
    account_id = await prove_again(request)
    options = await _passkeys(request).begin_adding(_party(request), account_id)
    return answer(200, OptionsPage(options), NO_STORE)


@routes.post(
    "/me/passkeys",
    body=NewPasskeyBody,
    answers={201: NewPasskeyPage},
    refusals=(BadPasskey, SignInExpired),
    role=Role.FAN,
)
async def add_passkey(request: Request) -> Response:
    """Add a passkey. With the first one, the account's other sessions end."""
    body, caller = read(NewPasskeyBody, await request.body()), get_caller(request)
    passkey, codes = await _passkeys(request).add(
        _party(request), caller.account_id, caller.session_id, name=body.name, credential=body.credential
    )
    return answer(201, NewPasskeyPage(_page(passkey), codes), NO_STORE)


@routes.patch(ONE, body=PasskeyNameBody, answers={200: PasskeyPage}, refusals=(NoSuchPasskey,), role=Role.FAN)
async def rename_passkey(request: Request) -> Response:
    """Rename a passkey."""
    body = read(PasskeyNameBody, await request.body())
    args = (get_caller(request).account_id, int(request.path_params["passkey"]), body.name)
    return answer(200, _page(await _passkeys(request).rename(*args)), NO_STORE)


@routes.post(
    ONE + "/remove",
    body=ProofBody,
    answers={204: None},
    refusals=(NoSuchPasskey, *PROOF_REFUSALS),
    role=Role.FAN,
)
async def remove_passkey(request: Request) -> Response:
    """Remove a passkey. It no longer signs in."""
    account_id = await prove_again(request)
    await _passkeys(request).remove(account_id, int(request.path_params["passkey"]))
    return answer(204)


def _passkeys(request: Request) -> Passkeys:
    return get_app(request).passkeys


def _party(request: Request) -> RelyingParty:
    return _passkeys(request).party(str(request.base_url))


def _page(one: Passkey) -> PasskeyPage:
    return PasskeyPage(one.passkey_id, one.name, one.created_at, one.last_used_at)


ROUTES = routes.all
