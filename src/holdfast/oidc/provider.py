"""Providers as configured, one attempt to sign in, and what an ID token must say. No I/O.

    cookie of the browser ── HMAC ──► state    compared when the browser comes back
    (random, ten minutes)        ├──► nonce    compared with the ID token
                                 └──► verifier of PKCE; the provider gets its hash first, then the verifier

Nothing is stored for an attempt: who has the cookie has begun it. The cookie also says where to go then and,
when a service is to be connected, to which account; state covers that, too.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Meta, Struct

from holdfast.accounts import Email, Name, normal_email

LEEWAY_S = 60  # how far the provider's clock may be from ours
NAME_LENGTH_MAX = 120
PROVIDERS_MAX = 10
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
CONTROLS = re.compile(r"[\u0000-\u001f\u007f]+")
# Asymmetric ones only: a key that signs is never in our hands.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)


class Provider(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,29}$(?!\n)")]  # part of its callback address
    name: Annotated[str, Meta(min_length=1, max_length=60)]  # on the button
    issuer: Annotated[str, Meta(min_length=8, max_length=500)]
    client_id: Annotated[str, Meta(min_length=1, max_length=500)]
    client_secret: str = ""  # empty: a public client
    scope: str = "openid email profile"

    def __repr__(self) -> str:
        return f"Provider({self.id!r}, {self.issuer!r})"


def parse_providers(text: str) -> dict[str, Provider]:
    """Of the setting oidc_providers; ValueError says what is wrong with it."""
    if not text.strip():
        return {}
    where = "HOLDFAST_OIDC_PROVIDERS"
    try:
        listed = msgspec.json.decode(text, type=list[Provider])
    except msgspec.MsgspecError as problem:
        raise ValueError(f"{where} is not a list of providers: {problem}") from None
    found = {one.id: one for one in listed}
    if len(found) != len(listed) or len(listed) > PROVIDERS_MAX:
        raise ValueError(f"{where}: at most {PROVIDERS_MAX} providers, each with an id of its own")
    for one in listed:
        if not is_safe_url(one.issuer):
            raise ValueError(f"{where}: the issuer of {one.id} must be an https address")
        if "openid" not in one.scope.split():
            raise ValueError(f"{where}: the scope of {one.id} must contain openid")
    return found


def is_safe_url(url: str) -> bool:
    """https; http only to this machine, for trials."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS)
    )


class Discovered(Struct, frozen=True):
    """What we use of a provider's configuration document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Goal(Struct, frozen=True):
    provider: str
    back: str
    account_id: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    secret: str
    provider: str
    back: str
    account_id: int = 0  # the service is to be connected to this account; 0: sign in

    @property
    def cookie(self) -> str:
        return f"{self.secret}.{self._goal()}"

    @classmethod
    def from_cookie(cls, cookie: str) -> "Attempt | None":
        secret, _, goal = cookie.partition(".")
        try:
            found = msgspec.json.decode(urlsafe_b64decode(goal + "=" * (-len(goal) % 4)), type=_Goal)
        except (ValueError, msgspec.MsgspecError):
            return None
        return cls(secret, found.provider, found.back, found.account_id) if len(secret) >= 40 else None

    @property
    def state(self) -> str:
        return self._derive(f"state {self._goal()}")

    @property
    def nonce(self) -> str:
        return self._derive("nonce")

    @property
    def verifier(self) -> str:
        return self._derive("verifier")

    def authorization_url(self, provider: Provider, endpoint: str, callback: str, locale: str) -> str:
        challenge = _text(hashlib.sha256(self.verifier.encode()).digest())
        sent = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": callback,
            "scope": provider.scope,
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "ui_locales": locale,
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(sent)}"

    def _goal(self) -> str:
        return _text(msgspec.json.encode(_Goal(self.provider, self.back, self.account_id)))

    def _derive(self, purpose: str) -> str:
        return _text(hmac.digest(self.secret.encode(), purpose.encode(), "sha256"))


class ProviderClaims(Struct, frozen=True, kw_only=True):
    """Of an ID token, completed from the userinfo endpoint."""

    iss: str
    sub: Annotated[str, Meta(min_length=1, max_length=255)]
    aud: str | list[str]
    exp: float
    iat: float
    nonce: str
    azp: str = ""
    email: str = ""
    email_verified: bool | str = False  # some providers send "true"
    name: str = ""

    @property
    def proved_email(self) -> str | None:
        """In our spelling; None where the provider does not vouch for it."""
        if self.email_verified not in (True, "true"):
            return None
        try:
            return normal_email(msgspec.convert(self.email, Email))
        except msgspec.ValidationError:
            return None

    @property
    def display_name(self) -> str:
        name = CONTROLS.sub(" ", self.name).strip()[:NAME_LENGTH_MAX].strip()
        try:
            return msgspec.convert(name, Name)
        except msgspec.ValidationError:
            return self.email.partition("@")[0][:NAME_LENGTH_MAX]


def check_claims(claims: dict[str, Any], provider: Provider, attempt: Attempt, now: float) -> ProviderClaims:
    """The claims of an ID token with a good signature; ValueError where they are not for this attempt."""
    found = msgspec.convert(claims, ProviderClaims)
    audience = [found.aud] if isinstance(found.aud, str) else found.aud
    if found.iss != provider.issuer:
        raise ValueError("another issuer")
    if provider.client_id not in audience or (found.azp and found.azp != provider.client_id):
        raise ValueError("for another client")
    if len(audience) > 1 and not found.azp:
        raise ValueError("for several clients")
    if found.exp + LEEWAY_S <= now or found.iat - LEEWAY_S > now:
        raise ValueError("not of this time")
    if not hmac.compare_digest(found.nonce.encode(), attempt.nonce.encode()):
        raise ValueError("of another attempt")
    return found


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
