"""The running server conforms to its API documents for any request: no 5xx, no undocumented answer.

A stranger's program makes up the requests (schemathesis), from the documents that the server gives out.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import uvicorn

from holdfast.app import App
from holdfast.config import Config
from holdfast.web.audiences import DOCUMENTS, Audience
from holdfast.web.caller import Role
from tests.support.opened import asgi_app
from tests.support.shows import Fan, a_show, fans
from tests.support.uvicorn_server import EmbeddedServer

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
WITHIN_S = 600
# All operations get requests at random. The edges of every field, one by one, are a few thousand requests:
# those are for what fans use, where a 5xx would be in the middle of a sale.
RANDOM = ("--phases=examples,fuzzing", "--max-examples=6")
GLANCE = ("--phases=fuzzing", "--max-examples=2")
EDGES = ("--phases=coverage", "--include-tag=sale", "--include-tag=seat map")
# These end the session that the others need; the run without a token asks them too.
ENDS_THE_SESSION = ("log_out", "change_password")
NEVER_ENDS = "--exclude-operation-id=stream_seats"  # an answer to be read while it comes: test_live.py


async def conforms(server: str, folder: Path, audience: Audience, *options: str, token: str = "") -> None:
    """Run schemathesis on one document with these options, signed in or not; it must find nothing."""
    signed_in = [f"--header=Authorization: Bearer {token}"] if token else []
    program = Path(sys.executable).with_name("schemathesis")
    process = await asyncio.create_subprocess_exec(
        str(program),
        "run",
        f"{server}{DOCUMENTS[audience].path}",
        f"--url={server}/api/v1",
        f"--checks={CHECKS}",
        "--generation-deterministic",
        "--suppress-health-check=all",
        "--continue-on-failure",
        "--request-timeout=10",
        "--no-color",
        "--warnings=off",
        "--workers=1",
        *options,
        NEVER_ENDS,
        *signed_in,
        cwd=folder,
        env={
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[1] / "support"),
            "SCHEMATHESIS_HOOKS": "schemathesis_keys",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(WITHIN_S):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


@pytest.fixture(scope="module")
async def server(config: Config) -> AsyncIterator[str]:
    """The address of a server on a port of its own, as fans reach it."""
    port = socket.create_server(("127.0.0.1", 0))
    running = EmbeddedServer(uvicorn.Config(asgi_app(config), log_config=None, access_log=False, ws="none"))
    serving = asyncio.create_task(running.serve(sockets=[port]))
    async with httpx2.AsyncClient(timeout=10) as client:
        address = f"http://127.0.0.1:{port.getsockname()[1]}"
        assert (await client.get(f"{address}/readyz")).json()["status"] == "ready"
    yield address
    running.should_exit = True
    await serving


async def test_an_admin_meets_nothing_that_is_not_in_the_document(
    server: str, app: App, api: httpx2.AsyncClient, tmp_path: Path
) -> None:
    await a_show(app, seats=20)
    (admin,) = await fans(app, api, 1, Role.ADMIN)
    left_out = [f"--exclude-operation-id={name}" for name in ENDS_THE_SESSION]

    for audience in Audience:
        await conforms(server, tmp_path, audience, *RANDOM, *left_out, token=admin.token)


async def test_a_fan_at_the_edge_of_every_field_meets_nothing_else(
    server: str, alice: Fan, app: App, tmp_path: Path
) -> None:
    await a_show(app, seats=20)

    await conforms(server, tmp_path, Audience.FANS, *EDGES, token=alice.token)


async def test_a_stranger_meets_nothing_else_either(server: str, tmp_path: Path) -> None:
    for audience in Audience:
        await conforms(server, tmp_path, audience, *GLANCE)
