"""What each machine measures for itself, in web processes and workers: its clock, its disks, and whether a
worker runs anywhere."""

from pathlib import Path

from holdfast.config import Config
from holdfast.engines.clocks import ClockGauge
from holdfast.engines.disk import DiskGauge
from holdfast.engines.loop import Job, Pause
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.engines.worker_beat import WorkerGauge

PAUSE_S = 10.0


def machine_jobs(postgres: Postgres, redis: Redis, config: Config) -> list[tuple[Pause, Job]]:
    disks = DiskGauge(postgres, Path(config.data_dir), config.disk_free_min_mb)
    looks = (ClockGauge(postgres, redis).look, disks.look, WorkerGauge(postgres).look)
    return [(PAUSE_S, look) for look in looks]
