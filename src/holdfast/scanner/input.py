"""Reads lines from a scanner that types like a keyboard: from a terminal, a pipe or a file."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from string import whitespace
from threading import Thread

READ_BYTES = 65_536


async def typed(descriptor: int) -> AsyncIterator[str]:
    """Yields lines until the input ends.

    Read in a daemon thread: Ctrl-C ends us, not the next line. Not by the loop: it cannot wait
    for files.
    """
    loop = asyncio.get_running_loop()
    read: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)

    def listen() -> None:
        raw = b"\n"
        while raw:
            try:
                raw = os.read(descriptor, READ_BYTES)
            except OSError:  # the terminal is gone
                raw = b""
            try:
                asyncio.run_coroutine_threadsafe(read.put(raw), loop).result()
            except RuntimeError:  # the loop is closed
                return

    Thread(target=listen, daemon=True).start()
    lines = Lines()
    while raw := await read.get():
        for line in lines.add(raw):
            yield line
    if line := lines.rest():
        yield line


LINE_BYTES_MAX = 500  # the longest code has 168 letters: what is longer is none, and is cut
ENDS = re.compile(rb"[\r\n]")
# Scanners put STX, ETX and the like around what they read; no code begins or ends with one.
EDGES = whitespace + "".join(map(chr, (*range(32), 127)))


class Lines:
    """Bytes in, lines out. Of a line that is too long the beginning stays: memory is bounded."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def add(self, raw: bytes) -> list[str]:
        """The lines that ended in these bytes."""
        *ended, rest = ENDS.split(raw)
        lines = []
        for part in ended:
            self._grow(part)
            lines.append(self.rest())
        self._grow(rest)
        return lines

    def rest(self) -> str:
        """Returns the text after the last line end, and clears it."""
        line = _readable(bytes(self._begun))
        self._begun.clear()
        return line

    def _grow(self, part: bytes) -> None:
        self._begun += part[: LINE_BYTES_MAX - len(self._begun)]


def normalise_code(line: str) -> str:
    """A code has capitals alone: with Caps Lock on, a scanner types the others."""
    return line.upper() if line.isascii() else line


def _readable(raw: bytes) -> str:
    """Text that can be sent and stored, whatever the input."""
    text = raw.decode("utf-8", "replace").strip(EDGES)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
