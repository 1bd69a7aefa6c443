"""A mail server in a process of its own that behaves as scripted: fine, slow, refusing or dropping.

python -m tests.fakes.mail_server_process FOLDER

Its first line says its port. A line on its input is a mood, and it says that back when it is in it. Every
mail it has accepted is a line in FOLDER/taken: time, recipient, message.
"""

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any, TextIO

from aiosmtpd.smtp import SMTP

from tests.support.box_office import started, stopped

FINE, SLOW, REFUSING, DROPPING = "fine", "slow", "refusing", "dropping"
THINKS_S = 1.5  # before every answer, when slow
TAKEN = "taken"


class Moody:
    """The names are aiosmtpd's."""

    def __init__(self, taken: TextIO) -> None:
        self.mood = FINE
        self._taken = taken
        self._numbers = itertools.count()

    async def handle_MAIL(self, server: Any, _: Any, envelope: Any, address: str, options: Any) -> str:
        if (no := await self._before(server, "451 not now")) is not None:
            return no
        envelope.mail_from, envelope.mail_options = address, options
        return "250 OK"

    async def handle_RCPT(self, server: Any, _: Any, envelope: Any, address: str, _options: Any) -> str:
        if (no := await self._before(server, "450 not now")) is not None:
            return no
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, _: Any, envelope: Any) -> str:
        if (no := await self._before(server, "452 not now")) is not None:
            return no
        header = BytesHeaderParser().parsebytes(envelope.content)
        page = {"at": time.time(), "to": envelope.rcpt_tos[0], "id": header["Message-ID"]}
        self._taken.write(json.dumps(page) + "\n")
        self._taken.flush()
        return "250 taken"

    async def _before(self, server: SMTP, not_now: str) -> str | None:
        """The current fault, if any. Refusals and drops alternate over all steps."""
        if self.mood == SLOW:
            await asyncio.sleep(THINKS_S)
        is_its_turn = next(self._numbers) % 2 == 0
        if self.mood == REFUSING and is_its_turn:
            return not_now
        if self.mood == DROPPING and is_its_turn:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
            return "421 gone"
        return None


class Greeting(SMTP):
    """Dropping, it lets only every second caller in."""

    callers = itertools.count()

    def connection_made(self, transport: Any) -> None:
        if self.event_handler.mood == DROPPING and next(self.callers) % 2 == 0:
            transport.abort()
            return
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self.session is not None:
            super().connection_lost(error)


async def serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    with (folder / TAKEN).open("a") as taken:
        moody = Moody(taken)
        server = await loop.create_server(lambda: Greeting(moody, hostname="mail.test"), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                moody.mood = line.strip()
                print(moody.mood, flush=True)


@dataclass
class PostOffice:
    """As the test sees it."""

    process: asyncio.subprocess.Process
    port: int
    file: Path

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?starttls=0"

    async def is_now(self, mood: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{mood}\n".encode())
        assert (await self.process.stdout.readline()).decode().strip() == mood

    def taken(self) -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [json.loads(line) for line in lines]

    def twice(self) -> list[str]:
        """Mails that came more than once."""
        return [name for name, times in Counter(page["id"] for page in self.taken()).items() if times > 1]


@asynccontextmanager
async def post_office(folder: Path) -> AsyncIterator[PostOffice]:
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await started("-m", "tests.fakes.mail_server_process", str(folder), **pipes)
    try:
        assert process.stdout is not None
        yield PostOffice(process, int(await process.stdout.readline()), folder / TAKEN)
    finally:
        await stopped(process)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
