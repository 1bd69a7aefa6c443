"""`holdfast serve` brings its own payment gateway, unless the operator has one (R20, R34)."""

import asyncio
import os
import stat
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.config import Config
from holdfast.payments.gateway import GatewayAnswer
from holdfast.payments.gateways.sandbox import SandboxGateway
from holdfast.sandbox import is_in_use
from holdfast.sandbox.webhook import api_key
from tests.support.cli_process import run_holdfast, serve_holdfast
from tests.support.opened import engines_of
from tests.support.sandbox_server import an_order


@pytest.fixture
def env(config: Config) -> dict[str, str]:
    engines = engines_of(config)
    return {**engines, "HOLDFAST_GATEWAY": "sandbox"}


async def charged(url: str, folder: Path) -> GatewayAnswer:
    """Connects as the web workers do, with the secret stored beside the sandbox."""
    secret = (folder / "sandbox" / "secret").read_text()
    gateway = SandboxGateway(Config(gateway_url=url, gateway_secret=secret))
    try:
        return (await gateway.charge(an_order())).answer
    finally:
        await gateway.close()


async def test_the_sandbox_starts_with_the_server_and_restarts_with_the_same_secret(
    tmp_path: Path, env: dict[str, str]
) -> None:
    words = ("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path))
    async with serve_holdfast(*words, **env) as facts:
        assert await charged(facts["sandbox"], tmp_path) is GatewayAnswer.YES
        secret = tmp_path / "sandbox" / "secret"
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        before = secret.read_text()

        os.kill(int((tmp_path / "run" / "sandbox.pid").read_text()), 9)
        deadline = time.monotonic() + 15
        while await charged(facts["sandbox"], tmp_path) is not GatewayAnswer.YES:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
    assert not is_in_use(tmp_path / "sandbox")
    assert not (tmp_path / "run" / "sandbox.url").exists()

    async with serve_holdfast(*words, **env) as facts:
        assert secret.read_text() == before
        assert await payments(facts["sandbox"], before) == 2


async def payments(url: str, secret: str) -> int:
    headers = {"Authorization": f"Bearer {api_key(secret)}"}
    async with httpx2.AsyncClient() as client:
        page: dict[str, Any] = (await client.get(f"{url}/v1/payments", headers=headers)).json()
    return len(page["payments"])


async def test_no_sandbox_starts_when_a_gateway_is_configured(tmp_path: Path, env: dict[str, str]) -> None:
    own = {"HOLDFAST_GATEWAY_URL": "http://127.0.0.1:9", "HOLDFAST_GATEWAY_SECRET": "whsec_own"}
    words = ("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path))

    async with serve_holdfast(*words, **env, **own) as facts:
        assert "sandbox" not in facts
        assert not (tmp_path / "sandbox").exists()


async def test_trouble_with_a_sandbox_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    nowhere = await run_holdfast("sandbox", "--port", "0", "--data", str(tmp_path / "file" / "x"))
    unclear = await run_holdfast(
        "sandbox", "--port", "0", "--data", str(tmp_path / "a"), "--notify", "ftp://x"
    )
    away = await run_holdfast("sandbox", "--host", "192.0.2.1", "--port", "0", "--data", str(tmp_path / "b"))

    for ended, word in ((nowhere, "cannot make"), (unclear, "must be an http"), (away, "cannot listen")):
        assert ended.code == 2, ended
        assert word in ended.words
        assert "Traceback" not in ended.words
        assert ended.output == ""
