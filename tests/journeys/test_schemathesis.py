"""The running server keeps to its API document, whatever is sent: no 5xx, no answer that is not in it.

A stranger's program makes up the requests (schemathesis), from the document that the server itself gives out.
"""

import asyncio
import os
import secrets
import sys
from pathlib import Path

import httpx2 as httpx

from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.people import People, Role

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES_MAX = 8  # an operation; the coverage phase adds the edges of every field on top
WITHIN_S = 120
# These end the session that the others need; the run without a token asks them too.
ENDS_THE_SESSION = ("post_logout", "post_password")


async def schemathesis(server: str, folder: Path, *options: str) -> tuple[int, str]:
    program = Path(sys.executable).with_name("schemathesis")
    process = await asyncio.create_subprocess_exec(
        str(program),
        "run",
        f"{server}/api/v1/openapi.json",
        f"--url={server}/api/v1",
        f"--checks={CHECKS}",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={EXAMPLES_MAX}",
        "--generation-deterministic",
        "--suppress-health-check=all",
        "--continue-on-failure",
        "--request-timeout=10",
        "--no-color",
        "--warnings=off",
        "--workers=2",
        *options,
        cwd=folder,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(WITHIN_S):
        output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def an_admins_token(server: str, postgres: Postgres, redis: Redis) -> str:
    people = People(postgres, redis, Config())
    email, password = f"{secrets.token_hex(8)}@example.org", secrets.token_hex(16)
    await people.ensure_account(email=email, password=password, name="Ada", role=Role.ADMIN)
    await people.close()
    async with httpx.AsyncClient(base_url=server) as client:
        answer = await client.post("/api/v1/auth/login", json={"email": email, "password": password})
    return str(answer.json()["access_token"])


async def test_an_admin_meets_nothing_that_is_not_in_the_document(
    server: str, postgres: Postgres, redis: Redis, tmp_path: Path
) -> None:
    token = await an_admins_token(server, postgres, redis)
    left_out = [f"--exclude-operation-id={name}" for name in ENDS_THE_SESSION]

    status, output = await schemathesis(
        server, tmp_path, f"--header=Authorization: Bearer {token}", *left_out
    )

    assert status == 0, output


async def test_a_stranger_meets_nothing_that_is_not_in_the_document(server: str, tmp_path: Path) -> None:
    status, output = await schemathesis(server, tmp_path)

    assert status == 0, output
