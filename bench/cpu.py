"""CPU time from /proc: per operation and process group, and the share that other programs took.

Uses only the standard library, so that the file can be copied into an older tree to measure "before":

    groups = find_groups()                     {"web workers": [pids], …}
    before = read_cpu_us(groups)
    …                                          the measured run
    per_hold = cpu_us_per_operation(before, read_cpu_us(groups), holds)
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
PARENT, TIMES = (
    1,
    slice(11, 15),
)  # fields of /proc/PID/stat after the name: ppid; utime, stime, cutime, cstime
# The first word of a PostgreSQL process title that is not a client's backend.
POSTGRES_BACKGROUND = ("checkpointer", "background", "walwriter", "autovacuum", "logical", "archiver", "io")

WEB, BACKENDS, BACKGROUND = "web workers", "PostgreSQL backends", "PostgreSQL background"
VALKEY, LOAD = "Valkey", "load generator"
GROUPS = (WEB, BACKENDS, BACKGROUND, VALKEY, LOAD)


@dataclass(frozen=True)
class MachineTimes:
    """Ticks since the machine started."""

    total: int  # of all cores, idle time included
    busy: int  # used by any process, or taken by the hypervisor
    own: int  # used by this process and its descendants


def read_cpu_us(groups: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """CPU µs that each group used so far: user and system time, with that of children that ended."""
    return {name: TICK_US * sum(_ticks(_read_stat(pid)) for pid in pids) for name, pids in groups.items()}


def cpu_us_per_operation(
    before: Mapping[str, float], after: Mapping[str, float], operations: int
) -> dict[str, float]:
    return {name: (after[name] - before[name]) / max(operations, 1) for name in before}


def find_groups() -> dict[str, list[int]]:
    """The processes of a bench. A load generator is a child that ends, so this process counts its time."""
    groups: dict[str, list[int]] = {name: [] for name in GROUPS}
    groups[LOAD].append(os.getpid())
    for pid in find_descendants(os.getpid()):
        if (name := _group_of(_read_command(pid))) is not None:
            groups[name].append(pid)
    return groups


def _group_of(command: Sequence[str]) -> str | None:
    program = Path(command[0].split(" ")[0]).name if command else ""
    if "bench.server" in command:
        return WEB
    if program in ("valkey-server", "redis-server"):
        return VALKEY
    if program == "postgres:":  # a process title: "postgres: user database [local] idle"
        return BACKGROUND if command[0].split()[1] in POSTGRES_BACKGROUND else BACKENDS
    return BACKGROUND if program == "postgres" else None


def find_descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if stat := _read_stat(int(folder.name)):
            children.setdefault(int(stat[PARENT]), []).append(int(folder.name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def read_machine() -> MachineTimes:
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
    own = [os.getpid(), *find_descendants(os.getpid())]
    return MachineTimes(
        total=user + nice + system + idle + iowait + irq + softirq + steal,
        busy=user + nice + system + steal,  # interrupts are mostly our own network traffic
        own=sum(_ticks(_read_stat(pid)) for pid in own),
    )


def share_of_others(before: MachineTimes, after: MachineTimes) -> float:
    """Of the CPU time of all cores in between, the share that processes outside this bench used: 0 to 1."""
    total = after.total - before.total
    others = (after.busy - before.busy) - (after.own - before.own)
    return max(0.0, others / total) if total > 0 else 0.0


def _read_stat(pid: int) -> list[str]:
    """The fields after the program's name; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _read_command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def _ticks(stat: Iterable[str]) -> int:
    return sum(map(int, list(stat)[TIMES]))
