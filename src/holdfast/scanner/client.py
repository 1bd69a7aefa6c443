"""Authenticated requests to the box office over an unreliable network.

Anything but a valid server response counts as no response: a venue's Wi-Fi portal may answer instead.
"""

import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, TypeVar

import aiohttp
import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from holdfast.checkin import SignedInDevice
from holdfast.scanner.journal import ScannerDevice

API = "/api/v1"
ANSWER_WITHIN_S = 2.0  # people are waiting: after that the pack decides
SIGNED_IN_SPARE_S = 30
# The pass was revoked, is over, or is another device's.
FINAL_CODES = frozenset({"no_gate_pass", "bad_pass_code", "device_taken"})
TOKEN_CODES = frozenset({"not_signed_in", "token_expired", "token_invalid"})

Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """No answer, or none that helps: the network, a proxy, a server that restarts."""


class Denied(Exception):
    """The box office says no."""

    def __init__(self, title: str, code: str) -> None:
        super().__init__(title)
        self.title = title
        self.code = code

    @property
    def is_final(self) -> bool:
        """The pass is not valid at this door, so the device must not decide offline either."""
        return self.code in FINAL_CODES


class ServerProblem(Struct):
    title: str
    code: str


class BoxOfficeClient:
    def __init__(self, device: ScannerDevice, save: Callable[[ScannerDevice], None]) -> None:
        """`save` is called when the server has new keys. Needs a running loop."""
        self._device = device
        self._save = save
        self._http = aiohttp.ClientSession()
        self._token, self._token_until = "", 0.0
        self.is_up = True  # until a request fails

    async def close(self) -> None:
        await self._http.close()

    async def ask(
        self, kind: type[Answer], path: str, body: object = None, *, within_s: float = ANSWER_WITHIN_S
    ) -> Answer:
        """Signed in, and once more if the token has just gone."""
        if time.monotonic() >= self._token_until:
            await self._sign_in()
        try:
            return await self._send(kind, API + path, body, within_s)
        except Denied as denied:
            if denied.code not in TOKEN_CODES:
                raise
        await self._sign_in()
        return await self._send(kind, API + path, body, within_s)

    def forget(self) -> None:
        """Sign in again before the next request: the response has the server's current keys."""
        self._token_until = 0.0

    async def _sign_in(self) -> None:
        private = X25519PrivateKey.from_private_bytes(b64decode(self._device.private))
        public = b64encode(private.public_key().public_bytes_raw()).decode()
        self._token = ""
        body = {"code": self._device.code, "device_key": public}
        page = await self._send(SignedInDevice, f"{API}/gate/login", body, ANSWER_WITHIN_S)
        self._token = page.access_token
        self._token_until = time.monotonic() + page.expires_in - SIGNED_IN_SPARE_S
        if page.keys != self._device.keys:
            self._device.keys = page.keys
            self._save(self._device)

    async def _send(self, kind: type[Answer], path: str, body: object, within_s: float) -> Answer:
        try:
            status, raw = await self._exchange(path, body, within_s)
            answer: Answer | ServerProblem = _parse_response(kind, status, raw)
        except NoAnswer:
            self.is_up = False
            raise
        self.is_up = True
        if isinstance(answer, ServerProblem):
            raise Denied(answer.title, answer.code)
        return answer

    async def _exchange(self, path: str, body: object, within_s: float) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with self._http.request(
                "GET" if body is None else "POST",
                self._device.server + path,
                data=None if body is None else msgspec.json.encode(body),
                headers={"Content-Type": "application/json", **headers},
                timeout=aiohttp.ClientTimeout(total=within_s),
                allow_redirects=False,
            ) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise NoAnswer(str(error)) from None


def _parse_response(kind: type[Answer], status: int, raw: bytes) -> Any:
    """A response or refusal of the server. Errors of servers and proxies count as no response."""
    if status != 200 and (status == 429 or not 400 <= status < 500):
        raise NoAnswer(f"HTTP {status}")
    try:
        return msgspec.json.decode(raw, type=kind if status == 200 else ServerProblem)
    except ValueError:
        raise NoAnswer(f"HTTP {status}, and not from the box office") from None
