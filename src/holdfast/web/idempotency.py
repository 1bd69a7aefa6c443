"""Idempotency-Key: a retried request has one effect and gets the same answer.

    first  ──► start ──► the call ──► keep the answer ──► answer
    second ──► start? no ──► look, wait, look … ──► the stored response
                   ├─ other body ──► KeyReused
                   ├─ nothing after WAIT_S ──► StillProcessing
                   └─ the first died (DEAD_AFTER_S) ──► one of those who wait takes over

A response that means "try again" (5xx, 429, anything with Retry-After) is not stored: a retry runs again.
So a call whose outcome is unknown may be made twice. What must never happen twice (a hold, money) keeps its
own guarantee in the ledger, in the transaction of its effect; here is the same courtesy for everything else.
"""

import asyncio
import hashlib
import hmac
import os
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import structlog
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from starlette.responses import Response

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries
from holdfast.errors import BadKey, KeyReused, StillProcessing

Q = Queries("holdfast.web")
log = structlog.get_logger(__name__)

KEY = re.compile(rb"[\x21-\x7e]{1,255}")
WAIT_S = 5.0
PAUSE_S, PAUSE_MAX_S = 0.02, 0.2
DEAD_AFTER_S = 30.0  # three times the longest a request may take: who is slower than this is dead
PURGE_MAX = 1_000
SALT_BYTES = 12

REPLAYED = {"Idempotency-Replayed": "true"}  # a header: this is the response of the first request

Call = Callable[[], Awaitable[Response]]


class StoredResponse(msgspec.Struct):
    """An answer as it is stored, sealed."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(frozen=True, slots=True)
class KeyUse:
    """One use of a key: whose, for what, and fingerprints of the key and of all that was sent with it.

    The key itself is not stored. It salts the fingerprint of the body and seals the answer, so that a stolen
    table reveals neither passwords that were sent nor tokens that were issued.
    """

    caller: str
    route: str
    key_hash: bytes
    body_hash: bytes
    seal: AESGCM

    @classmethod
    def of(cls, key: bytes, *, caller: str, route: str, sent: bytes) -> "KeyUse":
        checked_key(key)
        key_hash, body_hash = hashlib.sha256(key).digest(), hmac.digest(key, b"sent" + sent, "sha256")
        return cls(caller, route, key_hash, body_hash, AESGCM(hmac.digest(key, b"answer", "sha256")))

    @property
    def place(self) -> tuple[str, str, bytes]:
        return self.caller, self.route, self.key_hash

    def sealed(self, response: Response) -> bytes:
        plain = StoredResponse(response.status_code, response.raw_headers, bytes(response.body))
        salt = os.urandom(SALT_BYTES)
        return salt + self.seal.encrypt(salt, msgspec.msgpack.encode(plain), None)

    def opened(self, answer: bytes) -> Response:
        plain = self.seal.decrypt(answer[:SALT_BYTES], answer[SALT_BYTES:], None)
        stored = msgspec.msgpack.decode(plain, type=StoredResponse)
        response = Response(stored.body, stored.status)
        response.raw_headers = [*stored.headers, (b"idempotency-replayed", b"true")]
        return response


class IdempotencyKeys:
    def __init__(self, postgres: Postgres, *, wait_s: float = WAIT_S) -> None:
        self._postgres = postgres
        self._wait_s = wait_s

    async def once(self, use: KeyUse, call: Call) -> Response:
        """The answer to this use of the key: from `call` if it is the first, else the stored one."""
        give_up_at = time.monotonic() + self._wait_s
        pause_s = PAUSE_S
        attempt = await self._start(use)
        while attempt is None:
            row = await self._postgres.fetchrow(Q.look_at_key, *use.place, DEAD_AFTER_S)
            if row is None:  # the first attempt gave a response that is not stored
                attempt = await self._start(use)
                continue
            if row["body_hash"] != use.body_hash:
                raise KeyReused
            if row["answer"] is not None:
                return use.opened(row["answer"])
            if row["is_dead"]:
                attempt = await self._postgres.fetchval(Q.take_over_key, *use.place, row["attempt"])
                continue
            if time.monotonic() >= give_up_at:
                raise StillProcessing(retry_after_s=1)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, PAUSE_MAX_S)
        return await self._attempt(use, attempt, call)

    async def _start(self, use: KeyUse) -> int | None:
        attempt: int | None = await self._postgres.fetchval(Q.start_key, *use.place, use.body_hash)
        return attempt

    async def _attempt(self, use: KeyUse, attempt: int, call: Call) -> Response:
        try:
            response = await call()
        except BaseException:  # an engine down, a bug, the time limit: a retry starts over
            await self._settle(Q.forget_key, use, attempt)
            raise
        if is_storable(response):
            await self._settle(Q.keep_answer, use, attempt, use.sealed(response))
        else:
            await self._settle(Q.forget_key, use, attempt)
        return response

    async def _settle(self, sql: str, use: KeyUse, attempt: int, *answer: bytes) -> None:
        """The outcome is known; a ledger that is down now must not lose it for the caller."""
        try:
            await self._postgres.execute(sql, *use.place, attempt, *answer)
        except EngineDown as down:
            log.warning("an idempotency key was left unsettled", route=use.route, reason=str(down))


def is_storable(response: Response) -> bool:
    says_again = any(name == b"retry-after" for name, _ in response.raw_headers)
    return response.status_code < 500 and response.status_code != 429 and not says_again


async def purge_keys(postgres: Postgres, keep_h: float) -> int:
    """A job: delete old answers. Returns how many; 0 hours: none."""
    if keep_h == 0:
        return 0
    done = await postgres.execute(Q.purge_keys, keep_h * 3600, PURGE_MAX)
    return int(done.rsplit(" ", 1)[-1])


def checked_key(key: bytes) -> str:
    """The Idempotency-Key as text: 1 to 255 visible ASCII characters."""
    if KEY.fullmatch(key) is None:
        raise BadKey
    return key.decode("ascii")
