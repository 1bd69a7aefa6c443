"""The signed access token, and what a process remembers about the ones it has seen. No I/O.

    authorization ──► remembered? ── yes ─────────────────────────────────────► Caller
                          └── no ──► header ─► signature ─► claims ─► times ─► revoked? ─┘

A token is a JWT of type `at+jwt` (RFC 9068), signed with Ed25519. It is read by RFC 8725:
- exactly one algorithm, by the name RFC 9864 gives it; `EdDSA`, `none`, `HS256` are all strangers;
- the header has three fields, alg, typ and kid, and nothing else: no jwk, jku, x5u, crit or b64, so no
  key, address or rule of reading ever comes from the token itself; kid is looked up in our own dict;
- a type of its own keeps tokens for other purposes out; a refresh token is random text and no JWT at all.

A signature check costs more than a hold, so a verified token is remembered for REMEMBERED_S. A revocation
drops it at once; between processes that takes as long as reading the list of revocations (People.catch_up).
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from holdfast.errors import NotSignedIn, TokenExpired, TokenInvalid
from holdfast.web.caller import Caller, Role

ALGORITHM = "Ed25519"
LEEWAY_S = 30  # how far the clocks of two machines may be apart
REMEMBERED_S = 600  # as long as a token lives, by default: a client that goes on pays for one check
# `nbf` in tokens of accounts whose address is not proved: their holds count for their address range. The
# release before this one refuses claims that it does not know; it knows this one, and the time has passed.
UNVERIFIED = 1
TOKEN_CHARACTERS_MAX = 1024  # ours have about 450


@dataclass(frozen=True, slots=True)
class SigningKey:
    kid: str
    private: OKPKey
    signs_from: float  # epoch seconds; younger than the key, so that every process knows it before it is used

    @classmethod
    def from_json(cls, jwk: str, signs_from: float) -> "SigningKey":
        key = OKPKey.import_key(msgspec.json.decode(jwk))
        return cls(key.thumbprint(), key, signs_from)

    @staticmethod
    def new_json() -> str:
        """A fresh private key as a JWK."""
        return msgspec.json.encode(OKPKey.generate_key("Ed25519").as_dict(private=True)).decode()


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: Literal["Ed25519"]
    typ: Literal["at+jwt"]
    kid: Annotated[str, msgspec.Meta(max_length=64)]


class TokenClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    iss: Literal["holdfast"]
    aud: Literal["holdfast-api"]
    sub: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,19}$(?!\n)")]  # account id
    sid: int  # session id
    role: Role
    ver: int  # version of the account
    iat: int
    exp: int
    nbf: int = 0  # or UNVERIFIED


_header = msgspec.json.Decoder(Header)
_claims = msgspec.json.Decoder(TokenClaims)


def claims_for(caller: Caller, *, version: int, now: float, ttl_s: int) -> TokenClaims:
    return TokenClaims(
        iss="holdfast",
        aud="holdfast-api",
        sub=str(caller.account_id),
        sid=caller.session_id,
        role=caller.role,
        ver=version,
        iat=int(now),
        exp=int(now) + ttl_s,
        nbf=0 if caller.is_verified else UNVERIFIED,
    )


def sign(key: SigningKey, claims: TokenClaims) -> str:
    header = {"alg": ALGORITHM, "typ": "at+jwt", "kid": key.kid}
    return jws.serialize_compact(header, msgspec.json.encode(claims), key.private, algorithms=[ALGORITHM])


def signing_key(keys: Iterable[SigningKey], now: float) -> SigningKey:
    """The youngest key whose time has come; the oldest when our clock is behind all of them."""
    by_age = sorted(keys, key=lambda key: key.signs_from)
    return next((key for key in reversed(by_age) if key.signs_from <= now), by_age[0])


class Tokens:
    """Verifies access tokens. `now` is a monotonic clock in seconds, `wall` the time since the epoch."""

    def __init__(self, *, life_max_s: int, remembered_max: int) -> None:
        self._life_max_s = life_max_s
        self._remembered_max = remembered_max
        self._remembered: dict[str, tuple[float, Caller]] = {}  # header → until when, who; oldest first
        self._of_session: dict[int, set[str]] = {}  # session → its entries in _remembered
        self._keys: dict[str, SigningKey] = {}
        self._ended: dict[int, float] = {}  # session → when its last token has expired
        self._versions: dict[int, tuple[int, float]] = {}  # account → oldest good version, and the same

    @property
    def keys(self) -> Iterable[SigningKey]:
        return self._keys.values()

    def trust(self, keys: Iterable[SigningKey]) -> None:
        """Only these keys from now on."""
        fresh = {key.kid: key for key in keys}
        if self._keys.keys() - fresh.keys():  # one was withdrawn, and with it all it has signed
            self._remembered.clear()
            self._of_session.clear()
        self._keys = fresh

    def verify(self, authorization: str | None, *, now: float, wall: float) -> Caller:
        """Who sent this Authorization header. NotSignedIn, TokenExpired or TokenInvalid otherwise."""
        remembered = self._remembered.get(authorization or "")
        if remembered is not None and now < remembered[0]:
            return remembered[1]
        claims = self.read(authorization, wall)
        caller = Caller(int(claims.sub), claims.role, claims.sid, is_verified=claims.nbf != UNVERIFIED)
        if self._is_revoked(caller, claims.ver):
            raise TokenInvalid
        good_for_s = min(REMEMBERED_S, claims.exp + LEEWAY_S - wall)
        self._remember(authorization or "", caller, now=now, until=now + good_for_s)
        return caller

    def read(self, authorization: str | None, wall: float) -> TokenClaims:
        """The claims of a token that we signed and whose time is now; revocation is checked elsewhere."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            raise NotSignedIn
        claims = self._signed_claims(token.strip())
        # A token that outlives the list of revocations cannot be one that we signed.
        if claims.exp - claims.iat > self._life_max_s or max(claims.iat, claims.nbf) > wall + LEEWAY_S:
            raise TokenInvalid
        if claims.exp + LEEWAY_S <= wall:
            raise TokenExpired
        return claims

    def _signed_claims(self, token: str) -> TokenClaims:
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise TokenInvalid
        try:
            # Our own strict reading of the header comes first: joserfc would accept fields that we do not.
            header = _header.decode(_unwrapped(token.partition(".")[0]))
            key = self._keys[header.kid]
            signed = jws.deserialize_compact(token, key.private, algorithms=[ALGORITHM])
            return _claims.decode(signed.payload or b"")
        except (JoseError, KeyError, ValueError, msgspec.MsgspecError):
            raise TokenInvalid from None

    def end_session(self, session_id: int, *, until: float) -> None:
        """Refuse the tokens of this session; by `until` the last of them has expired by itself."""
        self._ended[session_id] = until
        for authorization in self._of_session.pop(session_id, ()):
            self._remembered.pop(authorization, None)

    def raise_version(self, account_id: int, version: int, *, until: float) -> None:
        """Refuse tokens of this account that are older than `version`."""
        if self._versions.get(account_id, (0, 0.0))[0] < version:
            for authorization, (_, caller) in list(self._remembered.items()):
                if caller.account_id == account_id:
                    self._forget(authorization, caller)
        self._versions[account_id] = (version, until)

    def drop_lapsed(self, now: float) -> None:
        """Revocations that no living token can need any more."""
        self._ended = {session: until for session, until in self._ended.items() if now < until}
        self._versions = {account: entry for account, entry in self._versions.items() if now < entry[1]}

    def _is_revoked(self, caller: Caller, version: int) -> bool:
        return (
            caller.session_id in self._ended or version < self._versions.get(caller.account_id, (0, 0.0))[0]
        )

    def _remember(self, authorization: str, caller: Caller, *, now: float, until: float) -> None:
        self._forget(authorization, caller)  # so that it is the youngest again
        while self._remembered:
            oldest, (ends, whose) = next(iter(self._remembered.items()))
            if now < ends and len(self._remembered) < self._remembered_max:
                break
            self._forget(oldest, whose)
        self._remembered[authorization] = (until, caller)
        self._of_session.setdefault(caller.session_id, set()).add(authorization)

    def _forget(self, authorization: str, caller: Caller) -> None:
        if self._remembered.pop(authorization, None) is None:
            return
        entries = self._of_session[caller.session_id]
        entries.discard(authorization)
        if not entries:
            del self._of_session[caller.session_id]


def _unwrapped(segment: str) -> bytes:
    return urlsafe_b64decode(segment.encode("ascii") + b"=" * (-len(segment) % 4))
