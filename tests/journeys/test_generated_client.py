"""A client generated from the OpenAPI document buys a ticket from a running box office.

If the document describes what no generator understands, or what the server does not do, this fails.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from holdfast.app import ROUTES
from holdfast.web.asgi import Application
from holdfast.web.openapi import document
from tests.conftest import served

JOURNEY = Path(__file__).parents[1] / "support" / "generated_client_journey.py"
WITHIN_S = 30


@pytest.fixture
async def address(site: Application) -> AsyncIterator[str]:
    async with served(site) as url:
        yield f"{url}/api/v1"


@pytest.fixture(scope="module")
def client_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package holdfast_client, generated without formatting and without a network."""
    folder = tmp_path_factory.mktemp("client")
    source = folder / "openapi.json"
    source.write_bytes(msgspec.json.encode(document(ROUTES)))
    config = Config.from_sources(
        ConfigFile(post_hooks=[], content_type_overrides={"application/pdf": "application/octet-stream"}),
        MetaType.NONE,
        document_source=source,
        file_encoding="utf-8",
        overwrite=False,
        output_path=folder / "holdfast_client",
    )
    assert list(generate(config=config)) == []  # neither an error nor a warning
    return folder


async def test_a_generated_client_buys_a_ticket(
    address: str, client_folder: Path, a_show: Callable[..., Awaitable[int]]
) -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, str(JOURNEY), address, str(await a_show(20)), "A-4", "A-5"),
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(client_folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(WITHIN_S):
        output, _ = await program.communicate()

    assert program.returncode == 0, output.decode()
    assert msgspec.json.decode(output) == {
        "held": ["A-4", "A-5"],
        "same_hold": True,
        "second_hold": [409, "seats_taken"],
        "paid": "confirmed",
        "tickets": 2,
        "ticket": {"seat": "A-4", "standing": "good", "has_code": True},
    }
