"""Ten faults of a box office, how each is planted and removed, and who must name it.

`Scene` has everything that a fault needs; game_day_scenes.py makes one in this process, and one of processes.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tests.support.certificates import give_certificate
from tests.support.mail_servers import MailServer
from tests.support.postgres_server import Server as Ledger
from tests.support.redis_servers import Server as Valkey
from tests.support.slow_link import SlowLink

NAMED_WITHIN_S = 60.0
LONG_DAYS, SHORT_DAYS = 90, 2
SLOW_S = 2.5
CLOCK_OFF_S = 5
KEYS, KEY_BYTES = 60, 100_000  # 6 MB, more than Valkey gets

FindingPage = Mapping[str, str]


@dataclass(frozen=True)
class PublicAddress:
    """A TLS server for the public address, whose certificate can be replaced."""

    port: int
    context: ssl.SSLContext
    folder: Path

    def renew(self, days: float) -> None:
        give_certificate(self.context, self.folder, days)


@dataclass(frozen=True)
class Surroundings:
    """What a box office depends on."""

    primary: Ledger
    standby: Ledger
    valkey: Valkey
    valkey_clock: Path  # libfaketime reads it
    gateway: SlowLink
    public: PublicAddress
    mail: MailServer


class Scene(Protocol):
    around: Surroundings

    async def doctor(self) -> Sequence[FindingPage]: ...
    async def evaluate(self, expression: str) -> Sequence[Any]:
        """The series for which it is true, on metrics as they are now."""
        ...

    async def fill_disk(self) -> None: ...
    async def clear_disk(self) -> None: ...
    async def lose_mail(self) -> None:
        """A mail is given up."""
        ...

    async def find_mail(self) -> None: ...
    async def stop_worker(self) -> None: ...
    async def start_worker(self) -> None: ...


@dataclass(frozen=True)
class Fault:
    name: str
    line: str  # of the doctor
    next_step: str  # words of it
    alert: str
    plant: Callable[[Scene], Awaitable[None]]
    mend: Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True)
class Outcome:
    fault: Fault
    named_after_s: float
    true_after_s: float
    content_after_s: float
    next_step: str


async def stop_standby(scene: Scene) -> None:
    await scene.around.standby.stop()


async def start_standby(scene: Scene) -> None:
    await scene.around.standby.start()
    await scene.around.primary.wait_for_standby()


async def pause_replay(scene: Scene) -> None:
    await scene.around.standby.sql("SELECT pg_wal_replay_pause()")
    await scene.around.primary.sql("SELECT pg_logical_emit_message(true, 'game day', 'a change')")


async def resume_replay(scene: Scene) -> None:
    await scene.around.standby.sql("SELECT pg_wal_replay_resume()")


async def set_clock(scene: Scene, ahead_s: int) -> None:
    scene.around.valkey_clock.write_text(f"+{ahead_s}s\n")


async def set_certificate(scene: Scene, days: float) -> None:
    scene.around.public.renew(days)


async def slow_down(scene: Scene, delay_s: float) -> None:
    scene.around.gateway.delay_s = delay_s


async def evict(scene: Scene) -> None:
    valkey = scene.around.valkey
    used = int((await valkey.fields("INFO", "memory"))["used_memory"])
    await valkey.call("CONFIG", "SET", "maxmemory", used + KEYS * KEY_BYTES // 2)
    await valkey.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    for number in range(KEYS):
        await valkey.call("SET", f"filler:{number}", "x" * KEY_BYTES)
    assert int((await valkey.fields("INFO", "stats"))["evicted_keys"]) > 0


async def stop_evicting(scene: Scene) -> None:
    valkey = scene.around.valkey
    await valkey.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    await valkey.call("CONFIG", "SET", "maxmemory", 0)
    for number in range(KEYS):
        await valkey.call("DEL", f"filler:{number}")


async def age_backup(scene: Scene, hours: int) -> None:
    age = f"interval '{hours} hours'"
    await scene.around.primary.sql(f"UPDATE backup_made SET made_at = made_at - {age}")  # noqa: S608


FAULTS = (
    Fault(
        "replication lag",
        *("standbys", "pg_wal_replay_resume()", "HoldfastStandbyLate"),
        *(pause_replay, resume_replay),
    ),
    Fault(
        "disk nearly full",
        *("disk", "delete old logs and backups", "HoldfastDiskNearlyFull"),
        *(lambda scene: scene.fill_disk(), lambda scene: scene.clear_disk()),
    ),
    Fault(
        "clock off by 5 s",
        *("clocks of the engines", "let one time server", "HoldfastClockOff"),
        *(partial(set_clock, ahead_s=CLOCK_OFF_S), partial(set_clock, ahead_s=0)),
    ),
    Fault(
        "certificate about to end",
        *("certificate of the public address", "renew it", "HoldfastCertificateUrgent"),
        *(partial(set_certificate, days=SHORT_DAYS), partial(set_certificate, days=LONG_DAYS)),
    ),
    Fault(
        "dead letters",
        *("dead letters", "holdfast notices replay --all-dead", "HoldfastNoticesDead"),
        *(lambda scene: scene.lose_mail(), lambda scene: scene.find_mail()),
    ),
    Fault(
        "gateway slow",
        *("answer of the gateway", "look at its status page", "HoldfastGatewayLate"),
        *(partial(slow_down, delay_s=SLOW_S), partial(slow_down, delay_s=0.0)),
    ),
    Fault(
        "Valkey evicting",
        *("holds", "set it to noeviction", "HoldfastRedisEvicts"),
        *(evict, stop_evicting),
    ),
    Fault(
        "worker gone",
        *("workers", "start `holdfast work`", "HoldfastNoWorker"),
        *(lambda scene: scene.stop_worker(), lambda scene: scene.start_worker()),
    ),
    Fault(
        "backup older than a day",
        *("backup", "run `holdfast backup create`", "HoldfastBackupOld"),
        *(partial(age_backup, hours=30), partial(age_backup, hours=-30)),
    ),
    Fault(
        "standby down",
        *("standbys", "start them, and look at their logs", "HoldfastStandbyMissing"),
        *(stop_standby, start_standby),
    ),
)


async def play(scene: Scene, fault: Fault, expression: str, accepted: set[str]) -> Outcome:
    """Plants it, waits until the doctor and the alert see it, removes it, waits until both are content."""
    began = time.monotonic()
    await fault.plant(scene)
    (found, named_at), (_, true_at) = await asyncio.gather(
        _named(scene, fault),
        _until(lambda: scene.evaluate(expression), lambda series: bool(series), fault.alert),
    )
    await fault.mend(scene)
    mended = time.monotonic()
    await asyncio.gather(
        _until(scene.doctor, lambda pages: faulty(pages) <= accepted, f"content after {fault.name}"),
        _until(lambda: scene.evaluate(expression), lambda series: not series, f"end of {fault.alert}"),
    )
    return Outcome(fault, named_at - began, true_at - began, time.monotonic() - mended, found["fix"])


def faulty(pages: Sequence[FindingPage]) -> set[str]:
    """Lines that are not ok."""
    return {page["what"] for page in pages if page["health"] != "ok"}


async def _named(scene: Scene, fault: Fault) -> tuple[FindingPage, float]:
    """The doctor's line, and when it was there."""

    def is_named(pages: Sequence[FindingPage]) -> list[FindingPage]:
        return [page for page in pages if page["what"] == fault.line and page["health"] != "ok"]

    what = f"the doctor names {fault.name}"
    pages, at = await _until(scene.doctor, lambda pages: bool(is_named(pages)), what)
    (found,) = is_named(pages)
    assert fault.next_step in found["fix"], found
    return found, at


async def _until(
    look: Callable[[], Awaitable[Any]], is_so: Callable[[Any], bool], what: str
) -> tuple[Any, float]:
    """What was seen when it was so, and when; the last thing seen is in the failure."""
    give_up_at = time.monotonic() + NAMED_WITHIN_S
    while not is_so(seen := await look()):
        assert time.monotonic() < give_up_at, f"not within {NAMED_WITHIN_S:.0f} s: {what}; seen: {seen}"
        await asyncio.sleep(0.2)
    return seen, time.monotonic()
