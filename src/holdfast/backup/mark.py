"""Notices that the ledger went back in time: recovery, a snapshot, pg_restore, a standby that lagged.

    ledger_mark.beat ──► Valkey, key ledger-mark:{id}      every process raises the beat and stores it outside
          ▲       └────► DATA/ledger-mark.<id>             of the ledger; a restore takes back only the first
          └── smaller than one of them: the ledger went back

Stored beats are read before the ledger's: a beat is stored after its commit, so that the ledger's is never
smaller by a race alone.

Valkey also says whose maps it has (OWNER_KEY): the first ledger that starts with an empty database of Valkey
owns it. Shows of another ledger have the same numbers, and both would sell from one map.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
from redis.exceptions import RedisError

from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.metrics import metrics
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.engines.redis import Redis

Q = Queries("holdfast.backup")
BEAT_PAUSE_S = 10.0
ANSWER_WITHIN_S = 5.0
WHAT_TO_DO = "run `holdfast after-restore`, then start again"
OWNER_KEY = "ledger-of-maps"
OWN_DATABASE = (
    "give each ledger a database of its own, such as /1 at the end of HOLDFAST_REDIS_URL; if this ledger "
    "replaces the other one, run `holdfast after-restore`"
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WentBack:
    """The ledger is as of `to`, and was seen as of `seen`."""

    to: datetime
    seen: datetime

    def __str__(self) -> str:
        to, seen = (at.isoformat(" ", "seconds") for at in (self.to, self.seen))
        return f"the ledger went back in time: it was seen at {seen} and is now as of {to}"


class LedgerMark:
    """The job that raises the beat. `folder` is the data folder; nothing is stored there if it is missing."""

    def __init__(self, postgres: Postgres, redis: Redis, folder: Path) -> None:
        self._postgres = postgres
        self._redis = redis
        self._folder = folder
        self._highest = 0  # beat that this process has stored
        self._ledger_id = ""

    async def beat(self) -> int:
        """Raise the beat, unless the ledger went back: then it stays as it is until `after-restore`."""
        if not self._ledger_id:
            self._ledger_id = str(await self._postgres.fetchval(Q.ledger_id))
        stored = max(self._highest, read_file(self._folder, self._ledger_id), await self._read_redis())
        found = await compare(self._postgres, stored)
        metrics.measure("ledger_went_back", 1 if found else 0)
        if found:
            log.error("ledger went back in time", to=str(found.to), seen=str(found.seen), fix=WHAT_TO_DO)
            return 0
        self._highest = await self._postgres.fetchval(Q.raise_beat)
        write_file(self._folder, self._ledger_id, self._highest)
        try:
            await self._redis.call("SET", redis_key(self._ledger_id), self._highest)
            await self._redis.call("SET", OWNER_KEY, self._ledger_id, "NX")  # it may have lost its data
            owner = (await self._redis.call("GET", OWNER_KEY) or b"").decode()
        except EngineDown:
            log.info("ledger mark not stored", engine="holds")
            return 0
        if owner not in ("", self._ledger_id):
            log.error("another ledger uses this database of Redis", ledger=owner, fix=OWN_DATABASE)
        return 0

    async def _read_redis(self) -> int:
        try:
            return int(await self._redis.call("GET", redis_key(self._ledger_id)) or 0)
        except EngineDown:
            return 0


async def find_restore(connection: Queryable, redis_url: str, folder: Path) -> WentBack | None:
    """Whether the ledger is older than Valkey or the data folder has seen it. None also before step 0014."""
    if not await connection.fetchval(Q.mark_exists):
        return None
    ledger_id = str(await connection.fetchval(Q.ledger_id))
    stored = max(read_file(folder, ledger_id), await _read_server(redis_url, ledger_id))
    return await compare(connection, stored)


async def refuse_older_ledger(connection: Queryable, redis_url: str, folder: Path) -> None:
    if found := await find_restore(connection, redis_url, folder):
        raise OperatorError(f"{found}; {WHAT_TO_DO}")


async def find_other_ledger(connection: Queryable, redis_url: str) -> str | None:
    """The id of another ledger whose maps are in this database of Redis; changes nothing."""
    if not redis_url or not await connection.fetchval(Q.mark_exists):
        return None
    ledger_id = str(await connection.fetchval(Q.ledger_id))
    owner = (await _ask_server(redis_url, ("GET", OWNER_KEY)) or b"").decode()
    return owner if owner not in ("", ledger_id) else None


async def refuse_other_ledger(connection: Queryable, redis_url: str) -> None:
    """Own this database of Redis; or OperatorError if another ledger does."""
    ledger_id = str(await connection.fetchval(Q.ledger_id))
    await _ask_server(redis_url, ("SET", OWNER_KEY, ledger_id, "NX"))
    if other := await find_other_ledger(connection, redis_url):
        raise OperatorError(f"this database of Redis has the seat maps of ledger {other}: {OWN_DATABASE}")


async def take_redis_over(connection: Queryable, redis_url: str) -> None:
    """This ledger replaces the one whose maps are there; its own are rebuilt."""
    ledger_id = str(await connection.fetchval(Q.ledger_id))
    if redis_url:
        await _ask_server(redis_url, ("SET", OWNER_KEY, ledger_id))


async def compare(connection: Queryable, stored: int) -> WentBack | None:
    beat: int = await connection.fetchval(Q.beat)
    if beat >= stored:
        return None
    return WentBack(*(datetime.fromtimestamp(at / 1000, UTC) for at in (beat, stored)))


def redis_key(ledger_id: str) -> str:
    return f"ledger-mark:{{{ledger_id}}}"


def read_file(folder: Path, ledger_id: str) -> int:
    try:
        return int(_file(folder, ledger_id).read_text() or 0)
    except (OSError, ValueError):
        return 0


def write_file(folder: Path, ledger_id: str, beat: int) -> None:
    if folder.is_dir():
        draft = _file(folder, f"{ledger_id}.{os.getpid()}.draft")  # its own: processes share the folder
        draft.write_text(str(beat))
        draft.rename(_file(folder, ledger_id))


def _file(folder: Path, ledger_id: str) -> Path:
    return folder / f"ledger-mark.{ledger_id}"


async def _read_server(redis_url: str, ledger_id: str) -> int:
    return int(await _ask_server(redis_url, ("GET", redis_key(ledger_id))) or 0) if redis_url else 0


async def _ask_server(redis_url: str, command: tuple[str, ...]) -> bytes | None:
    """None: no answer, or none to this."""
    redis = open_redis(redis_url, links_max=1, timeout_s=ANSWER_WITHIN_S)
    try:
        found = await redis.call(*command)
    except (EngineDown, RedisError):
        return None
    finally:
        await redis.close()
    return found if isinstance(found, bytes) else None
