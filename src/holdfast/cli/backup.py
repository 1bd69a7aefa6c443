"""holdfast backup create | verify | restore | record | moment, holdfast after-restore"""

import asyncio
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.runtime.secret_files import load_config

if TYPE_CHECKING:
    import asyncpg

    from holdfast.backup import BackupContents, ExtraFile, HouseUrls
    from holdfast.pods import PodPlace

# Where the engines are is another matter on the machine a backup is restored on.
OF_THIS_MACHINE = {"HOLDFAST_DATABASE_URL", "HOLDFAST_REDIS_URL", "HOLDFAST_PODS", "HOLDFAST_DATA_DIR"}
RESTORED_SETTINGS = "settings.restored.env"
BOOKS, SECRET = "sandbox/sandbox.db", "sandbox/secret"

backup = typer.Typer(help="A box office in one file, and back.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The backup.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
HomeUrl = Annotated[str, typer.Option(help="Where the pods' servers reach the home database.")]


@backup.command()
def create(file: File, data: Data = None, as_json: AsJson = False) -> None:
    """Write everything into one file, as of one instant, while people go on buying. It has secrets in it.

    With HOLDFAST_PODS, home and every pod at one moment.
    """
    _tell("wrote", file, asyncio.run(_create(_config(data), file)), as_json)


@backup.command()
def verify(file: File, as_json: AsJson = False) -> None:
    """Read all of a backup and compare its sums. Nothing is changed."""
    from holdfast.backup import verify as read
    from holdfast.cli import output as terminal

    with terminal.progress() as progress:
        contents = read(file, progress)
    _tell("is whole:", file, contents, as_json)


@backup.command()
def restore(file: File, home_url: HomeUrl = "", data: Data = None, as_json: AsJson = False) -> None:
    """Bring a backup back, into an empty folder or database only, and up to this program's schema.

    A backup with pods needs an empty database for each of them in HOLDFAST_PODS.
    """
    _tell("restored", file, asyncio.run(_restore(_config(data), file, home_url)), as_json)


@backup.command()
def record(
    by: Annotated[str, typer.Option(help="Name of the tool.")] = "another tool", data: Data = None
) -> None:
    """Record that another tool has made a backup now, so that the doctor and the alerts know its age.

    With HOLDFAST_PODS, of home and every pod.
    """
    if not asyncio.run(_record(_config(data), by)):
        raise OperatorError("this PostgreSQL is a standby: run the command with the URL of the primary")
    print("recorded")


@backup.command()
def moment(
    name: Annotated[str, typer.Argument(help="Of your choice, such as 2026-11-18-evening.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Name one moment in the logs of home and every pod: a recovery_target_name for all of them.

    Sales wait for milliseconds meanwhile. Needs the right to pg_create_restore_point.
    """
    positions = asyncio.run(_name_moment(_config(data), name))
    if as_json:
        print_json({"name": name, "positions": {pod or "home": at for pod, at in positions.items()}})
    else:
        for pod, at in positions.items():
            print(f"{pod or 'home'}: {name} is at {at}")


def after_restore(
    pod: Annotated[str, typer.Option(help="Only this pod was restored. [default: home and all pods]")] = "",
    home_url: HomeUrl = "",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Complete a restore that PostgreSQL made by its own means: recovery, snapshot, pg_restore, fail-over.

    Stop the box office first. Moves sequences on, so that no number is issued twice; marks every seat map for
    a rebuild; renames the log of facts; revokes access tokens (clients refresh theirs); takes over a database
    of Redis that had the maps of another ledger. Pods receive people and catalogue from home again. Safe to
    repeat.
    """
    asyncio.run(_after_restore(_config(data), pod, home_url))
    if as_json:
        print_json({"completed": True})
    else:
        print(
            "The restore is complete. `holdfast reconcile` lists payments of lost bookings, `holdfast audit` "
            "counts what does not fit together."
        )


async def _after_restore(config: Config, only: str, home_url: str) -> None:
    from holdfast import backup
    from holdfast.runtime.launch import engines_of

    async with engines_of(config, must_exist=True) as config:
        places = [place for place in _places(config) if only in ("", place.name)]
        if only and not places:
            raise OperatorError(f"HOLDFAST_PODS has no pod {only!r}")
        urls = backup.HouseUrls(config.session_url, {place.name: place.database_url for place in places})
        async with urls.connected() as databases:
            home = databases[""]
            if not only:
                await backup.finish_restore(home)
                await backup.take_redis_over(home, config.redis_url)
            for place in places:
                await backup.finish_restore(databases[place.name])
                await backup.take_redis_over(databases[place.name], place.redis_url)
            await _resync(databases, places, home_url or config.session_url)


async def _resync(
    databases: "dict[str, asyncpg.Connection]", places: "Iterable[PodPlace]", home_url: str
) -> None:
    """Pods receive from home again, which may be another server or an earlier one."""
    from holdfast.pods.resync import resync_pod
    from holdfast.pods.setup import NewPod

    for place in places:
        await resync_pod(databases[""], databases[place.name], NewPod(place, home_url))


async def _record(config: Config, by: str) -> bool:
    from holdfast import backup
    from holdfast.runtime.launch import engines_of

    async with engines_of(config, must_exist=True) as config, _urls(config).connected() as databases:
        return all([await backup.record_backup(each, by) for each in databases.values()])


async def _name_moment(config: Config, name: str) -> dict[str, str]:
    from holdfast import backup
    from holdfast.runtime.launch import engines_of

    async with engines_of(config, must_exist=True) as config:
        return await backup.name_moment(_urls(config), name)


async def _create(config: Config, file: Path) -> "BackupContents":
    from holdfast import backup
    from holdfast.cli import output as terminal
    from holdfast.runtime.launch import engines_of

    extras, program = partial(_extras, Path(config.data_dir)), version("holdfast")
    async with engines_of(config, must_exist=True) as config:
        urls = _urls(config)
        with terminal.progress() as progress:
            if urls.pods:
                made = await backup.create_house(urls, file, program, extras, progress)
        async with urls.connected() as databases:
            if not urls.pods:
                with terminal.progress() as progress:
                    made = await backup.create(databases[""], file, program, extras, progress)
            for each in databases.values():
                await backup.record_backup(each)
    return made


def _places(config: Config) -> "tuple[PodPlace, ...]":
    from holdfast.pods import parse_pods

    return parse_pods(config.pods)


def _urls(config: Config) -> "HouseUrls":
    from holdfast.backup import HouseUrls

    return HouseUrls(config.session_url, {place.name: place.database_url for place in _places(config)})


async def _restore(config: Config, file: Path, home_url: str) -> "BackupContents":
    from holdfast import backup
    from holdfast.cli import output as terminal
    from holdfast.engines.embedded.folder import DataFolder
    from holdfast.runtime.launch import engines_of

    folder = DataFolder(config.data_dir)
    with terminal.progress() as progress:
        backup.verify(file, progress)
    if not config.database_url and (folder.postgres.exists() or (folder.path / "sandbox").exists()):
        raise OperatorError(
            f"{folder.path} is not empty: choose another folder with --data, or none that is used"
        )
    is_half = False
    try:
        async with engines_of(config, may_join=False) as found:
            is_half = not config.database_url
            urls = _urls(found)
            with terminal.progress() as progress:
                contents = await backup.restore_house(urls, file, progress)
            async with urls.connected() as databases:
                places = [place for place in _places(found) if place.name in contents.pods]
                await _resync(databases, places, home_url or found.session_url)
            _put_files_back(folder.path, file)
            is_half = False
    finally:
        if is_half:  # the engine that we made has stopped by now; half of a box office is never taken for one
            shutil.rmtree(folder.postgres, ignore_errors=True)
    return contents


def _extras(folder: Path, instant: datetime) -> Iterator["ExtraFile"]:
    """The sandbox's database as of this instant, its secret, and the current settings."""
    from holdfast.backup import ExtraFile
    from holdfast.backup.store import FOLDER, SETTINGS
    from holdfast.sandbox.database import copy_as_of

    if (folder / SECRET).exists():
        yield ExtraFile(FOLDER + SECRET, (folder / SECRET).read_bytes())
    if (folder / BOOKS).exists():
        yield ExtraFile(FOLDER + BOOKS, copy_as_of(folder / BOOKS, instant.timestamp()))
    given = {n: v for n, v in os.environ.items() if n.startswith("HOLDFAST_") and not _is_of_this_machine(n)}
    lines = "".join(f"{name}={value}\n" for name, value in sorted(given.items()))
    yield ExtraFile(SETTINGS, lines.encode())


def _is_of_this_machine(name: str) -> bool:
    return name.removesuffix("_FILE") in OF_THIS_MACHINE


def _put_files_back(folder: Path, file: Path) -> None:
    from holdfast.backup import extra_parts
    from holdfast.backup.store import FOLDER, SETTINGS

    known = {FOLDER + SECRET: SECRET, FOLDER + BOOKS: BOOKS, SETTINGS: RESTORED_SETTINGS}
    for extra in extra_parts(file, ""):
        if extra.name not in known:
            raise OperatorError(f"{file} has a part that we do not know: {extra.name}")
        path = folder / known[extra.name]
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(made, "wb") as opened:
            opened.write(extra.data)


def _config(data: Path | None) -> Config:
    config = load_config(os.environ)
    return replace(config, data_dir=str(data)) if data else config


def _tell(done: str, file: Path, contents: "BackupContents", as_json: bool) -> None:
    page = {
        "file": str(file),
        "made_at": contents.made_at,
        "program": contents.program,
        "schema": contents.steps[-1].name,
        "tables": len(contents.tables),
        "rows": contents.rows,
    }
    if as_json:
        print_json(page)
    else:
        what = f"{page['rows']} rows of {page['tables']} tables, schema {page['schema']}"
        print(f"{done} {file}: {what}, {contents.made_at}")
