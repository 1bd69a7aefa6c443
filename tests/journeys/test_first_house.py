"""docs/first_house.md: from the wheel on an empty machine to a ticket that was bought and scanned (R31)."""

import asyncio
import json
import os
import re
import secrets
import sys
import sysconfig
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.browser_session import ANN, LIKE_A_BROWSER, Visitor
from tests.support.pasted_commands import pasted, path_with_own_curl
from tests.support.pdf import codes_on

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first_house.md"
HOUSE = "http://127.0.0.1:8000"
PASSWORD = f"a long password {secrets.token_hex(4)}"
FORM = {
    "name": "The Mill",
    "organisation": "Mill Concerts",
    "currency": "EUR",
    "timezone": "Europe/Berlin",
    "gateway": "sandbox",
}


# The environment without what would change which program runs, or how.
OURS = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTHON"))}


async def run(*words: str | Path, cwd: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, words), cwd=cwd, env=OURS, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, output.decode()
    return output.decode()


def one_in(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


async def install(folder: Path) -> None:
    """The wheel into an environment of its own, at `.venv`; what it depends on comes from ours."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    await run(
        *(*pip, "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation"),
        *("-w", folder, ROOT),
        cwd=folder,
    )
    wheel = one_in(folder, "holdfast-*.whl")
    assert f"pip install {wheel.name}" in PAGE.read_text()
    await asyncio.to_thread(venv.create, folder / ".venv")
    python = folder / ".venv" / "bin" / "python"
    await run(*pip, "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    packages = one_in(folder, ".venv/lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = await run(python, "-c", "import holdfast; print(holdfast.__file__)", cwd=folder)
    assert where.startswith(str(packages)), where


@asynccontextmanager
async def running(folder: Path, *words: str) -> AsyncIterator[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        *(str(folder / ".venv" / "bin" / "holdfast"), *words, "--json"),
        cwd=folder,
        env=OURS,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield json.loads(await asyncio.wait_for(process.stdout.readline(), 120))
    finally:
        process.terminate()
        await process.wait()
    assert process.returncode == 0


def blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)


def alone(lines: str) -> str:
    return f"unset PYTHONPATH\n{lines}"


async def sets_up_the_house(visitor: Visitor, link: str) -> None:
    await visitor.goes("/")
    assert visitor.says("Not open yet")
    path = link.strip().partition(HOUSE)[2]
    await visitor.goes(path)
    await visitor.sends(path, password=PASSWORD)
    assert visitor.at == "/begin"
    await visitor.sends("/begin", **FORM)
    assert (visitor.at.startswith("/desk"), visitor.status) == (True, 200)


async def buys(visitor: Visitor, show: int, folder: Path) -> str:
    """On pages, as a guest; the code on the ticket."""
    path = await visitor.holds(show, "A-1")
    await visitor.pays(**ANN)
    paper = await visitor.client.get(f"{path}/tickets.pdf")
    (code,), _ = await codes_on(paper.content, folder)
    return code


async def test_from_the_wheel_to_a_scanned_ticket(tmp_path: Path) -> None:
    install_lines, serve, work, add, sign_in, announce, scan = blocks()
    assert (serve, work) == (".venv/bin/holdfast serve\n", ".venv/bin/holdfast work\n")
    assert install_lines.startswith("python3 -m venv .venv\n")
    await install(tmp_path)
    path = path_with_own_curl(tmp_path)

    async with running(tmp_path, "serve", "--port", "0", "--workers", "1") as facts:
        async with running(tmp_path, "work"):
            async with (
                httpx2.AsyncClient(base_url=facts["url"], headers=LIKE_A_BROWSER) as ada,
                httpx2.AsyncClient(base_url=facts["url"], headers=LIKE_A_BROWSER) as ann,
            ):
                await sets_up_the_house(Visitor(ada), await pasted(alone(add), path, tmp_path))
                begin = f"{sign_in}{announce}".replace(HOUSE, facts["url"])
                begin = begin.replace("read -rs password", f"password='{PASSWORD}'")
                announced = await pasted(alone(begin), path, tmp_path)
                show = int(announced.strip().rpartition("/")[2])
                code = await buys(Visitor(ann), show, tmp_path)
                codes = f"printf '%s\\n' '{code}' '{code}' | .venv/bin/holdfast"
                door = scan.replace(HOUSE, facts["url"]).replace(".venv/bin/holdfast", codes)
                login = begin.partition("city=$(")[0]
                scanned = await pasted(alone(f"{login}show={show}\n{door}"), path, tmp_path)

    assert re.findall(r'"verdict": "(\w+)"', scanned) == ["admitted", "used"], scanned
