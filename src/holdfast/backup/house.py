"""A backup of home and all pods at one moment, in one file, and back.

Each database has a snapshot of its own; all are opened within one moment (pods/moment.py), the pods' first.
On the way back, pods receive people and catalogue from the restored home: their own copies in the file are a
few milliseconds older.
"""

import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import asyncpg
import msgspec

from holdfast.backup.store import (
    BackupContents,
    ExtraFile,
    Progress,
    build_contents,
    load_sequences,
    open_draft,
    refuse_used,
    restore_tables,
    verify,
    write_contents,
    write_extras,
    write_tables,
)
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import plan, steps
from holdfast.engines.postgres import Queries
from holdfast.engines.startup_checks import connect
from holdfast.pods import HOME, one_moment

Q = Queries("holdfast.backup")


@dataclass(frozen=True, slots=True)
class HouseUrls:
    home: str
    pods: Mapping[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[dict[str, asyncpg.Connection]]:
        """To every database; the home database has no name. OperatorError names the one that is away."""
        async with AsyncExitStack() as opened:
            found = {}
            for name, url in ((HOME, self.home), *self.pods.items()):
                try:
                    found[name] = await connect(url)
                except OperatorError as trouble:
                    raise OperatorError(f"{name or 'home'}: {trouble}") from None
                opened.push_async_callback(found[name].close)
            yield found


async def create_house(
    urls: HouseUrls,
    file: Path,
    program: str,
    extras: Callable[[datetime], Iterable[ExtraFile]],
    progress: Progress,
) -> BackupContents:
    """All databases as of one moment, while people go on buying. The file is there whole, or not at all."""
    async with urls.connected() as databases:
        for name, connection in databases.items():
            if pending := await plan(connection):
                raise OperatorError(
                    f"the schema of {name or 'home'} is not up to date ({pending[0].name}): run `holdfast "
                    "migrate` first"
                )
        with open_draft(file) as draft, zipfile.ZipFile(draft, "w", compresslevel=6) as archive:
            async with AsyncExitStack() as snapshots:
                instant = await _open_snapshots(urls, databases, snapshots)
                parts = [
                    part
                    for name, connection in databases.items()
                    for part in await write_tables(connection, archive, progress, name)
                ]
            parts += write_extras(archive, extras(instant))
            sequences = {name: await load_sequences(each) for name, each in databases.items()}
            contents = build_contents(program, parts, sequences.pop(HOME), steps())
            contents = msgspec.structs.replace(contents, pods=sequences)
            write_contents(archive, contents)
    return contents


async def _open_snapshots(
    urls: HouseUrls, databases: Mapping[str, asyncpg.Connection], snapshots: AsyncExitStack
) -> datetime:
    """The home database's last: it then has every account of the pods' bookings."""
    pods = [connection for name, connection in databases.items() if name != HOME]
    async with urls.connected() as holding:
        home = holding.pop(HOME)
        async with one_moment(home, list(holding.values())):
            for connection in (*pods, databases[HOME]):
                snapshot = connection.transaction(isolation="repeatable_read", readonly=True)
                await snapshots.enter_async_context(snapshot)
                instant: datetime = await connection.fetchval(Q.instant)
    return instant


async def name_moment(urls: HouseUrls, name: str) -> dict[str, str]:
    """Names one moment in the log of every database, as a target of recovery; its position in each log."""
    async with urls.connected() as databases, urls.connected() as holding:
        async with one_moment(holding.pop(HOME), list(holding.values())):
            pods = [each for each in databases if each != HOME]
            return {each: await databases[each].fetchval(Q.name_moment, name) for each in (*pods, HOME)}


async def restore_house(urls: HouseUrls, file: Path, progress: Progress) -> BackupContents:
    """Into empty databases, one per pod of the file. The caller lets pods receive from home again."""
    contents = verify(file, progress)
    if missing := contents.pods.keys() - urls.pods.keys():
        raise OperatorError(
            f"{file} has the pods {', '.join(sorted(missing))}: name an empty database for each in "
            "HOLDFAST_PODS"
        )
    wanted = HouseUrls(urls.home, {name: urls.pods[name] for name in contents.pods})
    async with wanted.connected() as databases:
        for connection in databases.values():
            await refuse_used(connection)
        for name, connection in databases.items():
            await restore_tables(connection, file, contents, progress, name)
    return contents
