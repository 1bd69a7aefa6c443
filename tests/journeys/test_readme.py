"""The commands in README.md and in the tutorial work when pasted into a shell (R9, R16, R30, R33)."""

import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cli_process import Demo, start_demo, stop_demo
from tests.support.empty_ledger import fill_with_ledger
from tests.support.engine_folder import engine_folder
from tests.support.pasted_commands import pasted, path_with_own_curl

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
DEMO = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
async def demo() -> AsyncIterator[Demo]:
    """Its first start is a test of test_cli.py."""
    with engine_folder() as folder:
        await fill_with_ledger(folder)
        started = await start_demo(folder)
        yield started
        await stop_demo(started)


async def test_the_booking_by_curl_works_when_pasted(demo: Demo, tmp_path: Path) -> None:
    section = README.read_text().split("## Book by curl")[1].split("\n## ")[0]
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))
    assert DEMO in lines
    paths = [path_with_own_curl(tmp_path), *([os.environ["PATH"]] if shutil.which("curl") else [])]

    outputs = [await pasted(lines.replace(DEMO, demo.url), path, tmp_path) for path in paths]

    for output in outputs:
        booked, held, *_, paid, _ = re.findall(r'"state": "(\w+)"', output)
        assert (booked, held, paid) == ("confirmed", "held", "confirmed"), output
        assert '"code": "declined"' in output


async def test_the_tutorial_sells_a_show_and_checks_a_ticket_in(demo: Demo, tmp_path: Path) -> None:
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", TUTORIAL.read_text(), re.DOTALL))
    assert lines.startswith("make demo\n")
    lines = lines.removeprefix("make demo\n").replace(DEMO, demo.url)
    lines = lines.replace(".venv/bin/holdfast", f"{sys.executable} -m holdfast")

    output = await pasted(lines, path_with_own_curl(tmp_path), tmp_path)

    assert "confirmed" in output
    assert re.findall(r'"verdict": "(\w+)"', output) == ["admitted", "used"], output
    assert '"seats_sold": 2' in output
