"""A uvicorn server inside the test process."""

from collections.abc import Generator
from contextlib import contextmanager

import uvicorn


class EmbeddedServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The signals of this process belong to pytest."""
        yield
