"""Is this machine fit: Python, programs of the engines, the data folder, its disk, open files."""

import os
import platform
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from holdfast.config import Config
from holdfast.engines.aside import run_aside
from holdfast.engines.disk import measure_room
from holdfast.engines.embedded.binaries import Program, find_postgres, find_valkey
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.errors import OperatorError
from holdfast.runtime.check_settings import Finding, Severity
from holdfast.runtime.children import read_number
from holdfast.runtime.ports import is_alive

# Below this PostgreSQL and logs stop within minutes of a sale, whatever HOLDFAST_DISK_FREE_MIN_MB says.
DISK_FREE_LEAST = 500_000_000
FILES_BESIDE_CONNECTIONS = 200  # of a web worker: engines, logs, modules


def check_programs(config: Config) -> Iterator[Finding]:
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Finding("python", Severity.OK, detail)
    yield _program("PostgreSQL program", find_postgres, is_needed=not config.database_url)
    yield _program("Valkey program", find_valkey, is_needed=not config.redis_url)


async def check_folder(config: Config, *, trial: bool) -> AsyncIterator[Finding]:
    """A network disk may hang: in a thread."""
    folder = DataFolder(config.data_dir).path
    yield await run_aside(_data_folder, folder)
    yield judge_room("disk", await run_aside(measure_room, folder), config.disk_free_min_mb)
    yield await run_aside(_open_files, config, trial=trial)


def judge_room(what: str, free: int, free_min_mb: int, about: str = "") -> Finding:
    detail = f"{free / 1e9:.1f} GB free{about}"
    fix = (
        "a full disk stops every sale: delete old logs and backups, or enlarge it; HOLDFAST_DISK_FREE_MIN_MB "
        f"({free_min_mb}) is what should be free"
    )
    if free >= free_min_mb * 1_000_000:
        return Finding(what, Severity.OK, detail)
    return Finding(what, Severity.FAIL if free < DISK_FREE_LEAST else Severity.WARN, detail, fix)


def count_processes(folder: DataFolder) -> int:
    """Web workers and workers that run in this data folder."""
    return len(list(_processes(folder)))


def _processes(folder: DataFolder, kinds: str = "web*,work*") -> Iterator[int]:
    for kind in kinds.split(","):
        for file in folder.run.glob(f"{kind}.pid"):
            if (process_id := read_number(file)) and is_alive(process_id):
                yield process_id


def _program(what: str, find: Callable[[], Program], *, is_needed: bool) -> Finding:
    try:
        program = find()
    except OperatorError as trouble:
        return Finding(what, Severity.FAIL if is_needed else Severity.OK, "none found", str(trouble))
    source = "from our wheel" if program.is_ours else f"found at {program.path}"
    return Finding(what, Severity.OK, f"{program.version}, {source}" + ("" if is_needed else "; not needed"))


def _data_folder(folder: Path) -> Finding:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            "data folder",
            Severity.FAIL,
            f"{existing} cannot be written",
            "choose another with HOLDFAST_DATA_DIR or --data, or give it to the account that runs this",
        )
    return Finding("data folder", Severity.OK, str(folder) + ("" if folder.exists() else " (will be made)"))


def _open_files(config: Config, *, trial: bool) -> Finding:
    """Of a web worker that runs here; else what this shell would give it."""
    most, whose = _files_max(DataFolder(config.data_dir))
    wanted = config.connections_max + FILES_BESIDE_CONNECTIONS
    detail = f"{whose} may open {most}"
    if most < wanted and not trial:
        fix = (
            f"HOLDFAST_CONNECTIONS_MAX is {config.connections_max}, and each connection is a file: raise the "
            "limit (LimitNOFILE=65536 in systemd, ulimits in Compose), or lower the setting"
        )
        return Finding("open files", Severity.WARN, detail, fix)
    return Finding("open files", Severity.OK, detail)


def _files_max(folder: DataFolder) -> tuple[int, str]:
    """The hard limit: a web worker raises its own soft limit as far as it may."""
    unlimited = 2**63 - 1
    for process_id in _processes(folder, "web*"):
        soft_and_hard = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
        return _number(soft_and_hard[1], unlimited), f"process {process_id}"
    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[1], unlimited), "a process started here"


def _number(limit: int, unlimited: int) -> int:
    return unlimited if limit == resource.RLIM_INFINITY else limit
