"""When backups were made. The row is in the ledger: workers and the doctor on every machine see it."""

from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable

Q = Queries("holdfast.backup")
PAUSE_S = 10.0
RECORDS_KEEP_D = 90


async def record_backup(connection: Queryable, made_by: str = "holdfast") -> bool:
    """False: this is a standby, which cannot be written; record it at the primary."""
    if await connection.fetchval(Q.is_read_only):
        return False
    await connection.execute(Q.forget_backups, RECORDS_KEEP_D)
    await connection.execute(Q.record_backup, made_by)
    return True


async def load_backup_age(connection: Queryable) -> float | None:
    """Seconds since the newest backup; None: there is none."""
    age_s: float | None = await connection.fetchval(Q.backup_age)
    return age_s


class BackupGauge:
    """`age_max_h` 0: backups are not watched, and nothing is measured."""

    def __init__(self, postgres: Postgres, age_max_h: int) -> None:
        self._postgres = postgres
        self._age_max_s = age_max_h * 3600

    async def look(self) -> int:
        """A job; always returns 0: there is no backlog."""
        if self._age_max_s:
            metrics.measure("backup_age_seconds", await self._postgres.fetchval(Q.unprotected_for))
            metrics.measure("backup_age_max_seconds", self._age_max_s)
        return 0
