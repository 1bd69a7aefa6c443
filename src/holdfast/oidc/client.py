"""Speaks with providers: discovery, keys, code for tokens, userinfo. One time limit for all calls of a step.

Configuration and keys are cached for an hour; while a provider is down, what is cached is used for a day. A
token that is signed with an unknown key reads the keys again, once: providers rotate them.
"""

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
import structlog

from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.errors import OperatorError
from holdfast.oidc.errors import NoSuchProvider, ProviderDown, SignInNotFinished
from holdfast.oidc.provider import (
    ALGORITHMS,
    Attempt,
    Discovered,
    Provider,
    ProviderClaims,
    check_claims,
    is_safe_url,
    parse_providers,
)

if TYPE_CHECKING:  # imported where they are used: most processes never speak with a provider
    from aiohttp import ClientSession
    from joserfc.jwk import KeySet

DOCUMENT = "/.well-known/openid-configuration"
FRESH_S, STALE_MAX_S = 3600.0, 86_400.0
BYTES_MAX = 262_144
T = TypeVar("T")
log = structlog.get_logger(__name__)


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _UserInfo(msgspec.Struct, frozen=True):
    sub: str
    email: str = ""
    email_verified: bool | str = False
    name: str = ""


def read_providers(config: Config) -> dict[str, Provider]:
    try:
        return parse_providers(config.oidc_providers)
    except ValueError as problem:
        raise OperatorError(str(problem)) from None


class Unreadable(Exception):
    """A response that is not what the protocol says."""


class ProviderClient:
    def __init__(self, config: Config) -> None:
        self.providers = read_providers(config)
        self._timeout_s = config.oidc_timeout_s
        self._session: ClientSession | None = None
        self._found: Cache[str, Discovered] = Cache(
            self._load_document, fresh_s=FRESH_S, stale_max_s=STALE_MAX_S
        )
        self._keys: Cache[str, KeySet] = Cache(self._load_keys, fresh_s=FRESH_S, stale_max_s=STALE_MAX_S)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def provider(self, id: str) -> Provider:
        if (found := self.providers.get(id)) is None:
            raise NoSuchProvider
        return found

    async def discover(self, id: str) -> Discovered:
        return await self._answered(self.provider(id), self._found.get(id))

    async def authorization_url(self, attempt: Attempt, callback: str, locale: str) -> str:
        found = await self.discover(attempt.provider)
        provider = self.provider(attempt.provider)
        return attempt.authorization_url(provider, found.authorization_endpoint, callback, locale)

    async def finish(self, attempt: Attempt, code: str, callback: str) -> ProviderClaims:
        """What the provider says about the person, for the code that it gave the browser."""
        provider = self.provider(attempt.provider)
        return await self._answered(provider, self._finish(provider, attempt, code, callback))

    async def _answered(self, provider: Provider, work: Awaitable[T]) -> T:
        import aiohttp

        try:
            async with asyncio.timeout(self._timeout_s):
                return await work
        except (aiohttp.ClientError, TimeoutError, OSError, Unreadable, msgspec.MsgspecError) as error:
            log.warning("a sign-in service failed", provider=provider.id, error=repr(error))
            raise ProviderDown(provider=provider.id, retry_after_s=30) from error

    async def _finish(self, provider: Provider, attempt: Attempt, code: str, callback: str) -> ProviderClaims:
        found = await self._found.get(provider.id)
        tokens = await self._exchange(provider, found, attempt, code, callback)
        try:
            claims = check_claims(
                await self._verified(provider.id, tokens.id_token), provider, attempt, time.time()
            )
        except ValueError as error:
            log.warning("a sign-in service sent a wrong token", provider=provider.id, error=repr(error))
            raise SignInNotFinished from None
        if claims.email or not found.userinfo_endpoint or not tokens.access_token:
            return claims
        headers = {"Authorization": f"Bearer {tokens.access_token}"}
        more = await self._read("GET", found.userinfo_endpoint, _UserInfo, headers=headers)
        if more.sub != claims.sub:
            raise SignInNotFinished
        return msgspec.structs.replace(
            claims, email=more.email, email_verified=more.email_verified, name=claims.name or more.name
        )

    async def _exchange(
        self, provider: Provider, found: Discovered, attempt: Attempt, code: str, callback: str
    ) -> _Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": attempt.verifier,
        }
        headers = {}
        if provider.client_secret and "client_secret_basic" in found.token_endpoint_auth_methods_supported:
            names = f"{quote(provider.client_id, safe='')}:{quote(provider.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(names.encode()).decode()}"
        else:
            form["client_id"] = provider.client_id
            if provider.client_secret:
                form["client_secret"] = provider.client_secret
        return await self._read("POST", found.token_endpoint, _Tokens, data=form, headers=headers)

    async def _verified(self, id: str, token: str) -> dict[str, Any]:
        keys = await self._keys.get(id)
        try:
            return _verify(token, keys)
        except ValueError:
            keys = await self._keys.renew(id)
        return _verify(token, keys)

    async def _load_document(self, id: str) -> Discovered:
        provider = self.provider(id)
        found = await self._read("GET", provider.issuer.rstrip("/") + DOCUMENT, Discovered)
        if found.issuer != provider.issuer:
            raise Unreadable(f"its document is of {found.issuer!r}")
        for url in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
            if not is_safe_url(url):
                raise Unreadable(f"{url!r} is not an https address")
        return found

    async def _load_keys(self, id: str) -> "KeySet":
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        found = await self._found.get(id)
        document = await self._read("GET", found.jwks_uri, dict[str, Any])
        try:
            signing = [key for key in document["keys"] if key.get("use", "sig") == "sig"]
            return KeySet.import_key_set({"keys": signing})
        except (JoseError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unreadable(f"its keys cannot be read: {error}") from None

    async def _read(self, method: str, url: str, kind: type[T], **more: Any) -> T:
        async with self._open().request(method, url, allow_redirects=False, **more) as response:
            if method == "POST" and response.status in (400, 401):
                log.warning("a sign-in service refused a code", url=url, status=response.status)
                raise SignInNotFinished
            if response.status != 200:
                raise Unreadable(f"{url} answered {response.status}")
            body = b""
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > BYTES_MAX:
                    raise Unreadable(f"{url} sent more than {BYTES_MAX} bytes")
        return msgspec.json.decode(body, type=kind)

    def _open(self) -> "ClientSession":
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                headers={"User-Agent": "holdfast", "Accept": "application/json"},
            )
        return self._session


def _verify(token: str, keys: "KeySet") -> dict[str, Any]:
    """Its claims. ValueError for a token that none of these keys has signed."""
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        return jwt.decode(token, keys, algorithms=ALGORITHMS).claims
    except JoseError as error:
        raise ValueError(repr(error)) from None
