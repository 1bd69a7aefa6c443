"""A job that one process of all runs: what it measures is reported by the process that has the turn."""

from holdfast.app import App
from holdfast.engines.metrics import metrics
from holdfast.engines.turns import LEASE_S_MIN, Turns

JOB = "measured by one"


class Worker:
    """With the same job as the others. Its label tells whose measure it is: all are in one process here."""

    def __init__(self, app: App, name: str) -> None:
        self.now_s = 0.0

        async def look() -> int:
            metrics.measure("facts_dead", 1, group=name)
            return 0

        look.__qualname__ = JOB
        _, self.job = Turns(app.postgres, lambda: self.now_s).alone(1.0, look)


def reporting() -> set[str]:
    lines = metrics.text().decode().splitlines()
    return {name for name in ("first", "second") if f'holdfast_facts_dead{{group="{name}"}} 1.0' in lines}


async def test_a_worker_that_has_lost_its_turn_reports_nothing(app: App) -> None:
    """Its last measure would be added to that of the worker which has the turn, or be the greater one."""
    first, second = Worker(app, "first"), Worker(app, "second")
    await first.job()
    await second.job()
    assert reporting() == {"first"}

    await app.postgres.execute("UPDATE job_turn SET due_at = now() WHERE name = $1", JOB)
    await second.job()
    first.now_s += LEASE_S_MIN
    await first.job()
    assert reporting() == {"second"}

    second.now_s += LEASE_S_MIN
    await second.job()
    assert reporting() == {"second"}, "a lease that was renewed"
