"""uvicorn's server, without its ten wake-ups per second: it looks that often whether it shall stop."""

import asyncio
from types import FrameType

from uvicorn.server import Server

from holdfast.engines.loop import pause

TICK_S = 1.0  # the header `Date` has whole seconds


class QuietServer(Server):
    _loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # 0: renews the header
            await pause(TICK_S, self._stop)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
