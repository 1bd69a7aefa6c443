"""A Valkey (or Redis) of our own, reached by a socket. It keeps nothing on disk."""

import asyncio
import signal

from holdfast.engines.embedded.binaries import find_valkey
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.supervise import Recipe

PING = b"PING\r\n"
PONG = b"+PONG\r\n"
ANSWER_WITHIN_S = 1.0

SETTINGS = {
    "port": "0",  # no TCP: the socket's folder says who may come in
    "unixsocketperm": "700",
    # Nothing is written to disk: data restored after a restart would belong to another run id, and seat maps
    # are rebuilt from PostgreSQL before they are sold from.
    # See docs/decisions/0011-embedded-valkey-does-not-persist.md.
    "appendonly": "no",
    "save": "",
    # A full Valkey refuses new holds. It must never throw away old ones.
    "maxmemory-policy": "noeviction",
    # Longer hashes get a hash table. A list, Valkey's own choice up to 512 fields, is searched from its start
    # for each counter of a hold. It is the name that servers before Redis 7 know, too.
    "hash-max-ziplist-entries": "64",
    "daemonize": "no",
    "loglevel": "warning",
}


class EmbeddedValkey:
    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._program = find_valkey()
        self._socket = folder.sockets() / "valkey.sock"
        self.version = self._program.version
        self.url = f"unix://{self._socket}"

    def recipe(self) -> Recipe:
        self._folder.valkey.mkdir(mode=0o700, exist_ok=True)
        settings = {**SETTINGS, "unixsocket": str(self._socket), "dir": str(self._folder.valkey)}
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return Recipe(
            name="valkey",
            command=(str(self._program.path), *options),
            ready=self._is_ready,
            stop_signal=signal.SIGTERM,
            death_signal=signal.SIGTERM,
        )

    async def _is_ready(self, _process_id: int) -> bool:
        """It answers, and has nothing left to load: until then it says LOADING."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                reader, writer = await asyncio.open_unix_connection(str(self._socket))
                try:
                    writer.write(PING)
                    return await reader.readline() == PONG
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
