"""The databases of a run with `--pods`: home and its pods, new for each file of tests.

    pristine_home, pristine_east, … ──copied for each file──► holdfast, east, …     one server
                                                └── subscriptions, which a copy does not have

A template has been a pod once (`holdfast pod add`): guards, numbers and the first copy of everything are in
it, so that a file of tests waits for none of this.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import asyncpg

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Queries
from holdfast.engines.startup_checks import connect
from holdfast.pods import REPLICATED, SALE, Directory, PodPlace
from holdfast.pods.setup import HOME_NUMBER, SHARES, NewPod, add_pod
from holdfast.pods.tables import NUMBERED
from tests.support.second_ledger import PRISTINE, address_of, administration, empty_valkey
from tests.support.wait import until

Q = Queries("holdfast.pods")
BACKUP = Queries("holdfast.backup")
HOME_DATABASE = "holdfast"
NAMES = ("east", "west", "north", "south")
FIRST_REDIS = 1  # database of Valkey of the first pod; tests with databases of their own use 7 and above
# More than the embedded PostgreSQL of an installation has, which feeds no one.
SERVER = {
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "max_logical_replication_workers": "12",
    "max_worker_processes": "24",
    "wal_retrieve_retry_interval": "100ms",
}
CONNECTIONS_MAX = 500
# Numbers of shows are never those of accounts or amounts: a call that has one is about this show.
SHOWS_FROM = 50_000
ARRIVES_WITHIN_S = 5.0
# Grows with every statement at home that pods receive: who has seen it need not wait for them.
CHANGES = """
CREATE SCHEMA tests;
CREATE SEQUENCE tests.changes;
SELECT nextval('tests.changes');
CREATE FUNCTION tests.note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('tests.changes');
    RETURN NULL;
END $$;
"""
NOTE_CHANGE = (
    "CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {}"
    " FOR EACH STATEMENT EXECUTE FUNCTION tests.note_change()"
)
NEW_SHOWS = (
    "SELECT s.id, coalesce(d.pod, '') AS pod FROM show AS s LEFT JOIN show_pod AS d ON d.show_id = s.id"
    " WHERE s.id > $1 ORDER BY s.id"
)


class SpreadLedgers:
    """`config`: of the home database of the file that is tested now."""

    def __init__(self, shared: Config, pods: int) -> None:
        assert 0 < pods <= len(NAMES), f"--pods: 1 to {len(NAMES)}"
        self._server = shared.database_url
        redis = [f"{shared.redis_url}?db={FIRST_REDIS + i}" for i in range(pods)]
        self.places = [
            PodPlace(name, self._url(name), url) for name, url in zip(NAMES[:pods], redis, strict=True)
        ]
        setting = " ".join(f"{one.name}={one.database_url},{one.redis_url}" for one in self.places)
        self.config = replace(shared, pods=setting)
        self.shows: dict[int, str] = {}  # the database of each, in the order of their numbers
        self.sells_at: str | None = None  # where all new shows go; None: by the house's own rule
        self.used: set[str] = set()  # whose shows the test that runs now has had to do with
        self._seen = -1
        self._counted = 0
        self._lock = asyncio.Lock()
        self._look: asyncio.Task[None] | None = None  # that has not begun
        self._following: dict[Directory, int] = {}
        self._home: asyncpg.Connection
        self._pods: dict[str, asyncpg.Connection] = {}

    def _url(self, name: str) -> str:
        return address_of(name, self._server)

    async def make_templates(self) -> None:
        async with administration(self._server) as owner:
            for name in ("home", *(place.name for place in self.places)):
                await owner.execute(f"CREATE DATABASE {_template(name)} TEMPLATE {PRISTINE}")
        async with AsyncExitStack() as stack:
            home = await _connected(stack, self._url(_template("home")))
            for place in self.places:
                template = self._url(_template(place.name))
                pod = await _connected(stack, template)
                own = replace(place, database_url=template)
                await add_pod(home, pod, NewPod(own, self._url(_template("home"))))
                await _unsubscribe(home, pod, place.name)
            await home.execute(CHANGES)
            for table in {*REPLICATED, SALE} - {"pod_mark"}:
                await home.execute(NOTE_CHANGE.format(table))

    async def renew(self, numbers_from: int, sells_at: str | None) -> None:
        """In place of the databases of the file before."""
        await self.close()
        self.sells_at = sells_at
        async with administration(self._server) as owner:
            await self._copy(owner, HOME_DATABASE, _template("home"))
            for place in self.places:
                await self._copy(owner, place.name, _template(place.name))
        self._home = await connect(self._url(HOME_DATABASE))
        await _begin(self._home, HOME_NUMBER, numbers_from)
        numbered = "SELECT setval(pg_get_serial_sequence('show', 'id'), $1)"
        await self._home.execute(numbered, numbers_from + SHOWS_FROM)
        for number, place in enumerate(self.places, 1):
            pod = self._pods[place.name] = await connect(place.database_url)
            await _begin(pod, number, numbers_from)
            await _subscribe(self._home, pod, place.name, self._url(HOME_DATABASE))
        for url in (self.config.redis_url, *(place.redis_url for place in self.places)):
            await empty_valkey(url)
        await self.take_new_shows()

    async def close(self) -> None:
        for name, pod in self._pods.items():
            await _unsubscribe(self._home, pod, name)
            await pod.close()
        if self._pods:
            await self._home.close()
        self._pods, self.shows, self._following = {}, {}, {}
        self._seen, self._counted = -1, 0

    async def _copy(self, owner: asyncpg.Connection, name: str, template: str) -> None:
        await owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

        async def is_copied() -> bool:
            # A worker of the server may look at the template at this moment.
            with suppress(asyncpg.ObjectInUseError):
                await owner.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
                return True
            return False

        await until(is_copied)

    @property
    def names(self) -> list[str]:
        """Of all databases; that of home is empty."""
        return ["", *(place.name for place in self.places)]

    @property
    def selling(self) -> str:
        """The database of all shows, or of the newest one."""
        if self.sells_at is not None:
            return self.sells_at
        return self.shows[next(reversed(self.shows))] if self.shows else ""

    def count_new_shows(self) -> Counter[str]:
        """By database: those that have been added since the last time."""
        new = list(self.shows.values())[self._counted :]
        self._counted = len(self.shows)
        return Counter(name or "home" for name in new)

    async def take_new_shows(self, is_turn_of_home: bool = False) -> None:
        """The pods that sell; none of them, and new shows stay at home."""
        pods = [] if is_turn_of_home else self.names[1:]
        if self.sells_at is not None:
            pods = [self.sells_at]
        async with self._lock:
            await self._home.execute("UPDATE pod SET takes_new_shows = name = ANY ($1)", pods)

    async def settle(self, *directories: Directory) -> None:
        """Until every pod has what home has committed, and these directories know where all shows are.

        In an installation it takes some milliseconds. A pod that does not come is not waited for: a test
        may have locked what would arrive there.
        """
        # Those who wait share the next look: requests that came together go on together.
        if self._look is None:
            self._look = asyncio.create_task(self._look_at_home())
        await asyncio.shield(self._look)
        for directory in directories:
            if self._following.get(directory) != len(self.shows):
                with suppress(EngineDown):  # this application has lost home
                    await directory.follow()
                    self._following[directory] = len(self.shows)

    async def _look_at_home(self) -> None:
        async with self._lock:
            self._look = None
            if (seen := await self._home.fetchval("SELECT last_value FROM tests.changes")) != self._seen:
                with suppress(TimeoutError):
                    await self._wait_for_pods()
                    self._seen = seen
                await self._learn_shows()

    async def _wait_for_pods(self) -> None:
        number = await self._home.fetchval(Q.raise_mark, "tests")
        async with asyncio.timeout(ARRIVES_WITHIN_S):
            for pod in self._pods.values():
                while (await pod.fetchval(Q.mark, "tests") or 0) < number:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)

    async def _learn_shows(self) -> None:
        last = next(reversed(self.shows), 0)
        self.shows |= {row["id"]: row["pod"] for row in await self._home.fetch(NEW_SHOWS, last)}


def _template(name: str) -> str:
    return f"{PRISTINE}_{name}"


async def _connected(stack: AsyncExitStack, url: str) -> asyncpg.Connection:
    connection = await connect(url)
    stack.push_async_callback(connection.close)
    return connection


async def _begin(database: asyncpg.Connection, number: int, numbers_from: int) -> None:
    await database.execute("UPDATE ledger_mark SET ledger_id = gen_random_uuid()")
    await database.fetch(BACKUP.skip_numbers, numbers_from)
    await database.execute(Q.share_numbers, list(NUMBERED), number, SHARES)


async def _subscribe(home: asyncpg.Connection, pod: asyncpg.Connection, name: str, home_url: str) -> None:
    """As `holdfast pod add`, without a first copy: both sides have it from their templates."""
    slot = f"holdfast_pod_{name}"
    await home.fetchval(Q.create_slot, slot)
    await pod.execute(
        f"CREATE SUBSCRIPTION holdfast_home CONNECTION '{home_url}' PUBLICATION holdfast_pods"
        f" WITH (create_slot = false, slot_name = '{slot}', copy_data = false)"
    )


async def _unsubscribe(home: asyncpg.Connection, pod: asyncpg.Connection, name: str) -> None:
    slot = f"holdfast_pod_{name}"
    await pod.execute(Q.disable_subscription)
    await pod.execute(Q.leave_slot)
    await pod.execute(Q.drop_subscription)

    async def is_free() -> bool:
        return not await home.fetchval(Q.slot_is_active, slot)

    await until(is_free)
    await home.execute(Q.drop_slot, slot)
