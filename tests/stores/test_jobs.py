"""Jobs of a quiet house come to rest: each says that it has nothing to do, and waits."""

import pytest

from holdfast.app import App
from holdfast.background import jobs_by_subject, worker_jobs
from holdfast.engines.loop import Job
from holdfast.runtime.subjects import WORKED

CALLS_MAX = 200  # what other tests have left undone is less than that


@pytest.mark.parametrize("subject", WORKED)
async def test_a_job_without_work_returns_so(app: App, subject: str) -> None:
    """A job that always reports work is run again at once, and would occupy a core."""
    restless = [job.__qualname__ for _, job in worker_jobs(app, {subject}) if not await comes_to_rest(job)]

    assert restless == []


def test_every_subject_with_jobs_is_covered(app: App) -> None:
    assert set(jobs_by_subject(app)) == set(WORKED)


async def comes_to_rest(job: Job) -> bool:
    for _ in range(CALLS_MAX):
        if not await job():
            return True
    return False
