"""Access tokens: which are accepted, which are refused, and how long a result is cached (R31)."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey

from holdfast.accounts.token import (
    LEEWAY_S,
    REMEMBERED_S,
    SigningKey,
    TokenClaims,
    Tokens,
    claims_for,
    sign,
    signing_key,
)
from holdfast.errors import NotSignedIn, Refusal, TokenExpired, TokenInvalid
from holdfast.web.caller import Caller, Role, allows

NOW, WALL, TTL_S = 1_000.0, 1_800_000_000.0, 600
ANN = Caller(account_id=7, role=Role.FAN, session_id=70)
KEY = SigningKey.from_json(SigningKey.new_json(), WALL - 1)
OTHER_KEY = SigningKey.from_json(SigningKey.new_json(), WALL - 1)


def tokens(remembered_max: int = 100) -> Tokens:
    made = Tokens(life_max_s=TTL_S, remembered_max=remembered_max)
    made.trust([KEY])
    return made


def bearer(caller: Caller = ANN, *, key: SigningKey = KEY, now: float = WALL, version: int = 1) -> str:
    return "Bearer " + sign(key, claims_for(caller, version=version, now=now, ttl_s=TTL_S))


def b64(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def good_claims(**changes: Any) -> dict[str, Any]:
    claims = {"iss": "holdfast", "aud": "holdfast-api", "sub": "7", "sid": 70, "role": "fan", "ver": 1}
    claims |= {"iat": int(WALL), "exp": int(WALL) + TTL_S}
    return {name: value for name, value in (claims | changes).items() if value is not None}


def good_header(**changes: Any) -> dict[str, Any]:
    header = {"alg": "Ed25519", "typ": "at+jwt", "kid": KEY.kid} | changes
    return {name: value for name, value in header.items() if value is not None}


def signed(header: object, claims: object, key: SigningKey = KEY) -> str:
    """A token with a valid signature over any content."""
    text = f"{b64(header)}.{b64(claims)}"
    private = key.private.private_key
    assert isinstance(private, Ed25519PrivateKey)
    return f"{text}.{b64(private.sign(text.encode()))}"


def with_hmac(header: object, secret: bytes) -> str:
    text = f"{b64(header)}.{b64(good_claims())}"
    return f"{text}.{b64(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def unsigned(alg: str) -> str:
    return f"{b64(good_header(alg=alg))}.{b64(good_claims())}."


PEM = KEY.private.as_pem(private=False)
RAW_PUBLIC = base64.urlsafe_b64decode(str(KEY.private.as_dict(private=False)["x"]) + "=")
STRANGER = OTHER_KEY.private.as_dict(private=False)
GOOD = signed(good_header(), good_claims())
HEAD, BODY, SIGNATURE = GOOD.split(".")
NESTED = b'{"alg":' + b"[" * 350

BAD: dict[str, str] = {
    "empty": "",
    "one word": "token",
    "two parts": f"{HEAD}.{BODY}",
    "four parts": f"{GOOD}.{SIGNATURE}",
    "five parts, as if encrypted": f"{GOOD}.{BODY}.{BODY}",
    "truncated": GOOD[:-7],
    "one character longer": GOOD + "A",
    "padded": GOOD + "==",
    "no signature": f"{HEAD}.{BODY}.",
    "signature of zeros": f"{HEAD}.{BODY}.{b64(bytes(64))}",
    "signature of another token": f"{HEAD}.{b64(good_claims(sub='8'))}.{SIGNATURE}",
    "not base64": f"{HEAD}.{BODY}.***",
    "header not base64": f"ä{HEAD}.{BODY}.{SIGNATURE}",
    "header not JSON": f"{b64(b'alg')}.{BODY}.{SIGNATURE}",
    "header a list": signed(["Ed25519"], good_claims()),
    "header nested": f"{b64(NESTED)}.{BODY}.{SIGNATURE}",
    "not UTF-8": signed(b'{"alg":"Ed25519","typ":"at+jwt","kid":"\xff"}', good_claims()),
    "enormous": GOOD + "A" * 2_000,
    "alg none": unsigned("none"),
    "alg None": unsigned("None"),
    "alg NONE": unsigned("NONE"),
    "alg nOnE, signed all the same": signed(good_header(alg="nOnE"), good_claims()),
    "alg missing": signed(good_header(alg=None), good_claims()),
    "alg empty": signed(good_header(alg=""), good_claims()),
    "alg a list": signed(good_header(alg=["Ed25519", "none"]), good_claims()),
    "alg by its older name": signed(good_header(alg="EdDSA"), good_claims()),
    "alg of a bigger curve": signed(good_header(alg="Ed448"), good_claims()),
    "HS256 with the public key as PEM": with_hmac(good_header(alg="HS256"), PEM),
    "HS256 with the raw public key": with_hmac(good_header(alg="HS256"), RAW_PUBLIC),
    "HS256 with an empty secret": with_hmac(good_header(alg="HS256"), b""),
    "Ed25519 that is an HMAC": with_hmac(good_header(), RAW_PUBLIC),
    "ES256 with a key of its own": jws.serialize_compact(
        good_header(alg="ES256"), json.dumps(good_claims()), ECKey.generate_key("P-256"), algorithms=["ES256"]
    ),
    "another key under our kid": signed(good_header(), good_claims(), OTHER_KEY),
    "another key under its kid": signed(good_header(kid=OTHER_KEY.kid), good_claims(), OTHER_KEY),
    "kid missing": signed(good_header(kid=None), good_claims()),
    "kid empty": signed(good_header(kid=""), good_claims()),
    "kid a path": signed(good_header(kid="../../../../dev/null"), good_claims()),
    "kid SQL": signed(good_header(kid="' UNION SELECT jwk FROM signing_key --"), good_claims()),
    "kid a number": signed(good_header(kid=0), good_claims()),
    "kid null": signed(b'{"alg":"Ed25519","typ":"at+jwt","kid":null}', good_claims()),
    "kid very long": signed(good_header(kid="k" * 400), good_claims()),
    "key in the header": signed(good_header(jwk=STRANGER), good_claims(), OTHER_KEY),
    "our key in the header": signed(good_header(jwk=KEY.private.as_dict(private=False)), good_claims()),
    "address of a key": signed(good_header(jku="https://evil.example/keys"), good_claims()),
    "address of a certificate": signed(good_header(x5u="https://evil.example/cert"), good_claims()),
    "certificate": signed(good_header(x5c=["MIIB"]), good_claims()),
    "crit": signed(good_header(crit=["exp"], exp=1), good_claims()),
    "crit empty": signed(good_header(crit=[]), good_claims()),
    "payload not encoded": signed(good_header(b64=False, crit=["b64"]), good_claims()),
    "cty": signed(good_header(cty="JWT"), good_claims()),
    "typ missing": signed(good_header(typ=None), good_claims()),
    "typ JWT": signed(good_header(typ="JWT"), good_claims()),
    "typ of an admission": signed(good_header(typ="admission+jwt"), good_claims()),
    "typ of a ticket": signed(good_header(typ="ticket+jwt"), good_claims()),
    "iss wrong": signed(good_header(), good_claims(iss="holdfast.example")),
    "iss missing": signed(good_header(), good_claims(iss=None)),
    "aud wrong": signed(good_header(), good_claims(aud="another-audience")),
    "aud missing": signed(good_header(), good_claims(aud=None)),
    "aud a list": signed(good_header(), good_claims(aud=["holdfast-api", "x"])),
    "sub missing": signed(good_header(), good_claims(sub=None)),
    "sub a number": signed(good_header(), good_claims(sub=7)),
    "sub a word": signed(good_header(), good_claims(sub="ann")),
    "sub negative": signed(good_header(), good_claims(sub="-7")),
    "sid missing": signed(good_header(), good_claims(sid=None)),
    "role unknown": signed(good_header(), good_claims(role="root")),
    "role a list": signed(good_header(), good_claims(role=["admin"])),
    "unknown claim": signed(good_header(), good_claims(scope="all")),
    "exp missing": signed(good_header(), good_claims(exp=None)),
    "exp text": signed(good_header(), good_claims(exp="never")),
    "exp NaN": signed(good_header(), json.dumps(good_claims(exp=float("nan"))).encode()),
    "exp far away": signed(good_header(), good_claims(exp=int(WALL) + 10 * 365 * 86_400)),
    "iat missing": signed(good_header(), good_claims(iat=None)),
    "iat in the future": signed(good_header(), good_claims(iat=int(WALL) + 31, exp=int(WALL) + 600)),
    "nbf in the future": signed(good_header(), good_claims(nbf=int(WALL) + 31)),
    "claims a list": signed(good_header(), [good_claims()]),
    "claims not JSON": signed(good_header(), b"sub=7"),
    "claims empty": signed(good_header(), b""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_refused(name: str) -> None:
    with pytest.raises(TokenInvalid):
        tokens().verify(f"Bearer {BAD[name]}", now=NOW, wall=WALL)


def test_the_corpus_differs_from_a_good_token_in_one_thing_only() -> None:
    assert tokens().verify(f"Bearer {GOOD}", now=NOW, wall=WALL) == ANN


@pytest.mark.parametrize("header", [None, "", "Basic YTpi", "Digest x", "Token abc", GOOD, "Bearer" + GOOD])
def test_a_request_without_a_bearer_token_is_not_signed_in(header: str | None) -> None:
    with pytest.raises(NotSignedIn):
        tokens().verify(header, now=NOW, wall=WALL)


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "Bearer  "])
def test_the_scheme_is_read_as_the_standard_says(scheme: str) -> None:
    assert tokens().verify(scheme + GOOD, now=NOW, wall=WALL) == ANN


@given(st.text())
def test_any_text_is_refused_and_nothing_breaks(text: str) -> None:
    with pytest.raises(TokenInvalid):
        tokens().verify(f"Bearer {text}", now=NOW, wall=WALL)


@given(st.integers(0, len(GOOD) - 1), st.characters(codec="ascii"))
def test_no_character_can_be_changed(place: int, character: str) -> None:
    changed = GOOD[:place] + character + GOOD[place + 1 :]
    if changed != GOOD:
        with pytest.raises(TokenInvalid):
            tokens().verify(f"Bearer {changed}", now=NOW, wall=WALL)


def test_a_signed_token_names_account_and_role() -> None:
    gate = Caller(account_id=2**62, role=Role.GATE, session_id=2**61)

    assert tokens().verify(bearer(gate), now=NOW, wall=WALL) == gate


@pytest.mark.parametrize("late_s", [0, TTL_S - 1, TTL_S + LEEWAY_S - 1])
def test_a_token_is_good_until_its_end_and_a_little_longer(late_s: int) -> None:
    assert tokens().verify(bearer(), now=NOW, wall=WALL + late_s) == ANN


@pytest.mark.parametrize("late_s", [TTL_S + LEEWAY_S, 10 * TTL_S])
def test_an_expired_token_is_distinguished_from_a_bad_one(late_s: int) -> None:
    with pytest.raises(TokenExpired):
        tokens().verify(bearer(), now=NOW, wall=WALL + late_s)


def test_the_clocks_of_two_machines_may_differ_a_little() -> None:
    ahead = "Bearer " + signed(good_header(), good_claims(iat=int(WALL) + 29, nbf=int(WALL) + 29))

    assert tokens().verify(ahead, now=NOW, wall=WALL) == ANN


def test_a_remembered_token_is_not_read_again() -> None:
    seen = tokens()
    seen.verify(bearer(), now=NOW, wall=WALL)

    # Only memory can say yes here: by the wall clock it has expired long ago.
    assert seen.verify(bearer(), now=NOW + REMEMBERED_S - 1, wall=WALL + 9_999) == ANN
    with pytest.raises(TokenExpired):
        seen.verify(bearer(), now=NOW + REMEMBERED_S, wall=WALL + 9_999)


def test_a_token_is_never_remembered_beyond_its_end() -> None:
    seen = tokens()
    seen.verify(bearer(), now=NOW, wall=WALL + TTL_S)

    with pytest.raises(TokenExpired):
        seen.verify(bearer(), now=NOW + LEEWAY_S, wall=WALL + TTL_S + LEEWAY_S)


def revoked_by_session(seen: Tokens) -> None:
    seen.end_session(ANN.session_id, until=NOW + 1_000)


def revoked_by_version(seen: Tokens) -> None:
    seen.raise_version(ANN.account_id, 2, until=NOW + 1_000)


@pytest.mark.parametrize("revoke", [revoked_by_session, revoked_by_version])
def test_a_revocation_is_felt_at_once_by_remembered_and_by_new_tokens(
    revoke: Callable[[Tokens], None],
) -> None:
    seen = tokens()
    seen.verify(bearer(), now=NOW, wall=WALL)

    revoke(seen)

    for header in (bearer(), bearer(now=WALL + 5)):
        with pytest.raises(TokenInvalid):
            seen.verify(header, now=NOW, wall=WALL + 5)


def test_a_revocation_spares_other_sessions_and_newer_versions() -> None:
    seen = tokens()
    at_home = Caller(account_id=7, role=Role.FAN, session_id=71)
    for header in (bearer(), bearer(at_home)):
        seen.verify(header, now=NOW, wall=WALL)

    seen.end_session(ANN.session_id, until=NOW + 1_000)
    assert seen.verify(bearer(at_home), now=NOW, wall=WALL) == at_home

    seen.raise_version(7, 2, until=NOW + 1_000)
    assert seen.verify(bearer(at_home, version=2), now=NOW, wall=WALL) == at_home


def test_revocations_are_forgotten_when_no_token_can_need_them() -> None:
    seen = tokens()
    revoked_by_session(seen)
    revoked_by_version(seen)

    seen.drop_lapsed(NOW + 999)
    with pytest.raises(TokenInvalid):
        seen.verify(bearer(), now=NOW, wall=WALL)

    seen.drop_lapsed(NOW + 1_000)
    assert seen.verify(bearer(), now=NOW, wall=WALL) == ANN


def test_memory_has_a_limit_and_the_oldest_go_first() -> None:
    seen = tokens(remembered_max=3)
    callers = [Caller(n, Role.FAN, n) for n in range(1, 6)]
    for caller in callers:
        seen.verify(bearer(caller), now=NOW, wall=WALL)

    def is_remembered(caller: Caller) -> bool:
        try:
            return seen.verify(bearer(caller), now=NOW, wall=WALL + 9_999) == caller
        except Refusal:
            return False

    assert [is_remembered(caller) for caller in callers] == [False, False, True, True, True]


def test_a_withdrawn_key_takes_its_tokens_with_it() -> None:
    seen = tokens()
    seen.verify(bearer(), now=NOW, wall=WALL)

    seen.trust([OTHER_KEY])

    with pytest.raises(TokenInvalid):
        seen.verify(bearer(), now=NOW, wall=WALL)
    assert seen.verify(bearer(key=OTHER_KEY), now=NOW, wall=WALL) == ANN


def test_both_keys_are_good_while_one_follows_the_other() -> None:
    seen = tokens()
    seen.trust([KEY, OTHER_KEY])

    assert seen.verify(bearer(key=KEY), now=NOW, wall=WALL) == ANN
    assert seen.verify(bearer(key=OTHER_KEY), now=NOW, wall=WALL) == ANN


def test_the_youngest_key_signs_once_its_time_has_come() -> None:
    old, young = (SigningKey("k", OKPKey.generate_key("Ed25519"), start) for start in (100.0, 200.0))

    assert signing_key([young, old], 199.0) is old
    assert signing_key([young, old], 200.0) is young
    assert signing_key([young, old], 50.0) is old  # our clock is behind; some key must sign


def test_the_previous_release_accepts_the_token_of_an_unverified_account() -> None:
    """It refuses claims that it does not know, and both releases run during an upgrade."""
    known = {"iss", "aud", "sub", "sid", "role", "ver", "iat", "exp", "nbf"}
    unverified = Caller(account_id=8, role=Role.FAN, session_id=80, is_verified=False)

    token = bearer(unverified)
    payload = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))

    assert set(payload) <= known
    assert max(payload["iat"], payload["nbf"]) <= WALL
    assert tokens().verify(token, now=NOW, wall=WALL) == unverified
    assert tokens().verify(bearer(), now=NOW, wall=WALL).is_verified


def test_a_token_contains_the_documented_claims_only() -> None:
    claims = claims_for(ANN, version=3, now=WALL, ttl_s=TTL_S)

    assert claims == TokenClaims(
        "holdfast", "holdfast-api", "7", 70, Role.FAN, 3, int(WALL), int(WALL) + TTL_S
    )
    assert json.loads(base64.urlsafe_b64decode(BODY + "==")) == good_claims()


@pytest.mark.parametrize("role", Role)
def test_each_role_has_its_permissions(role: Role) -> None:
    assert allows(role, Role.FAN)
    assert allows(Role.ADMIN, role)
    assert allows(role, Role.ADMIN) == (role is Role.ADMIN)
    assert allows(role, Role.GATE) == (role in (Role.GATE, Role.ADMIN))
