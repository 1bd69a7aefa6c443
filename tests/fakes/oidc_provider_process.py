"""An OpenID Connect provider in a process of its own: oidc-provider-mock, which here also insists on PKCE.

python -m tests.fakes.oidc_provider_process PORT

Its first line says its port. Every start has a new key to sign with.
"""

import asyncio
import hashlib
import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp

from tests.support.box_office import started, stopped

TOKEN, AUTHORIZE = "/oauth2/token", "/oauth2/authorize"


def serve(port: int) -> None:
    import flask
    import oidc_provider_mock
    from werkzeug.serving import make_server

    application: flask.Flask = oidc_provider_mock.app(require_nonce=True)
    challenges: dict[str, str] = {}  # by code

    @application.after_request
    def note_challenge(response: flask.Response) -> flask.Response:
        codes = parse_qs(urlsplit(response.headers.get("Location", "")).query).get("code", [])
        if (
            flask.request.path == AUTHORIZE
            and codes
            and flask.request.args["code_challenge_method"] == "S256"
        ):
            challenges[codes[0]] = flask.request.args["code_challenge"]
        return response

    @application.before_request
    def check_verifier() -> Any:
        if flask.request.path != TOKEN:
            return None
        sent = flask.request.form
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        fits = challenges.pop(sent["code"], None) == urlsafe_b64encode(digest).decode().rstrip("=")
        return None if fits else ({"error": "invalid_grant"}, 400)

    server = make_server("127.0.0.1", port, application, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


@dataclass
class OidcProvider:
    """As the test sees it."""

    process: asyncio.subprocess.Process
    port: int

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def knows(self, sub: str, **claims: Any) -> None:
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{self.issuer}/users/{sub}", json=claims) as answer:
                assert answer.status == 204, await answer.text()

    async def signs_in(self, url: str, sub: str) -> str:
        """On its page at `url`; where it sends the browser back to."""
        async with aiohttp.ClientSession() as session:
            async with session.post(url, data={"sub": sub}, allow_redirects=False) as answer:
                assert answer.status == 302, await answer.text()
                return str(answer.headers["Location"])

    async def stop(self) -> None:
        await stopped(self.process)

    async def start(self) -> None:
        self.process, self.port = await _start(self.port)


async def _start(port: int) -> tuple[asyncio.subprocess.Process, int]:
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.DEVNULL}
    process = await started("-m", "tests.fakes.oidc_provider_process", str(port), **pipes)
    assert process.stdout is not None
    return process, int(await process.stdout.readline())


@asynccontextmanager
async def oidc_provider() -> AsyncIterator[OidcProvider]:
    provider = OidcProvider(*await _start(0))
    try:
        yield provider
    finally:
        await provider.stop()


def as_setting(*issuers: str) -> str:
    """HOLDFAST_OIDC_PROVIDERS: Acme, then Other."""
    names = ("acme", "other")
    listed = [
        {"id": id, "name": id.title(), "issuer": issuer, "client_id": "box", "client_secret": "s=cret &"}
        for id, issuer in zip(names, issuers, strict=False)
    ]
    return json.dumps(listed)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
