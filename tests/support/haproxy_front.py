"""HAProxy on deploy/haproxy.cfg in front of two machines, without root and TLS; with faster checks."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from tests.support.cli_process import free_port
from tests.support.wait import is_listening, until

CONF = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"
NAME = "tickets.example"
NEEDS_ROOT = re.compile(r"^ *(?:log|user|group|chroot|stats socket) [^\n]*\n", re.MULTILINE)


def rendered(port: int, machines: tuple[str, str]) -> str:
    """The file with other addresses. A line that should be replaced and is not there is an error."""
    text = NEEDS_ROOT.sub("", CONF.read_text())
    changes = {
        "    maxconn 40000\n": "    maxconn 1000\n",
        "    bind :80\n": f"    bind 127.0.0.1:{port}\n",
        "    bind :443 ssl crt /etc/haproxy/tickets.pem alpn h2,http/1.1\n": "",
        "    http-request redirect scheme https code 308 unless { ssl_fc }\n": "",
        "sc_http_req_rate(0) gt 1000 ": "sc_http_req_rate(0) gt 100000 ",  # all clients have one address here
        "inter 2s fall 2 rise 2 slowstart 10s": "inter 100ms fall 2 rise 1",
        "web1 10.0.0.11:8000": f"web1 {machines[0]}",
        "web2 10.0.0.12:8000": f"web2 {machines[1]}",
    }
    for before, after in changes.items():
        assert before in text, f"deploy/haproxy.cfg no longer has {before!r}"
        text = text.replace(before, after)
    return text


@asynccontextmanager
async def haproxy(folder: Path, machines: tuple[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    """A client behind HAProxy."""
    port, program = free_port(), shutil.which("haproxy")
    assert program
    (folder / "haproxy.cfg").write_text(rendered(port, machines))
    process = await asyncio.create_subprocess_exec(program, "-db", "-f", str(folder / "haproxy.cfg"))
    try:
        await until(lambda: is_listening(port))
        url = f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(base_url=url, headers={"Host": NAME}, timeout=20) as client:
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
