"""A client generated from the OpenAPI document for fans buys a ticket from a running box office.

If a document describes what no generator understands, or what the server does not do, this fails.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from holdfast.routes import ROUTES
from holdfast.web.asgi import Application
from holdfast.web.audiences import Audience
from holdfast.web.openapi import documents
from tests.conftest import served

JOURNEY = Path(__file__).parents[1] / "support" / "generated_client_journey.py"
WITHIN_S = 30


@pytest.fixture
async def address(site: Application) -> AsyncIterator[str]:
    async with served(site) as url:
        yield f"{url}/api/v1"


def generate_client(folder: Path, audience: Audience) -> None:
    """The package holdfast_client, generated without formatting and without a network."""
    # Here: every process of a parallel run imports this file, and one runs its test.
    from openapi_python_client import generate
    from openapi_python_client.config import Config, ConfigFile, MetaType

    source = folder / "openapi.json"
    source.write_bytes(msgspec.json.encode(documents(ROUTES)[audience]))
    config = Config.from_sources(
        ConfigFile(post_hooks=[], content_type_overrides={"application/pdf": "application/octet-stream"}),
        MetaType.NONE,
        document_source=source,
        file_encoding="utf-8",
        overwrite=False,
        output_path=folder / "holdfast_client",
    )
    assert list(generate(config=config)) == []  # neither an error nor a warning


async def test_a_generated_client_buys_a_ticket(
    address: str, tmp_path: Path, a_show: Callable[..., Awaitable[int]]
) -> None:
    generate_client(tmp_path, Audience.FANS)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, str(JOURNEY), address, str(await a_show(20)), "A-4", "A-5"),
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(tmp_path)},
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


@pytest.mark.parametrize(
    ("audience", "operation"),
    [(Audience.ORGANISERS, "admin/create_event.py"), (Audience.HOUSE, "admin/create_organisation.py")],
)
def test_generators_understand_the_other_documents(
    tmp_path: Path, audience: Audience, operation: str
) -> None:
    generate_client(tmp_path, audience)

    assert (tmp_path / "holdfast_client" / "api" / operation).exists()
