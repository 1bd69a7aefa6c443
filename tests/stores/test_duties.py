"""Duties of a quiet house come to rest: each says that it has nothing to do, and waits."""

import pytest

from holdfast.app import App, duties, duties_by_subject
from holdfast.engines.loop import Job
from holdfast.runtime.roles import WORKED

CALLS_MAX = 200  # what other tests have left undone is less than that


@pytest.mark.parametrize("subject", WORKED)
async def test_a_duty_with_nothing_to_do_says_so(app: App, subject: str) -> None:
    """One that always says it did something is called again at once, for ever: a processor for nothing."""
    restless = [duty.__qualname__ for _, duty in duties(app, {subject}) if not await comes_to_rest(duty)]

    assert restless == []


def test_every_subject_that_has_duties_is_asked(app: App) -> None:
    assert set(duties_by_subject(app)) == set(WORKED)


async def comes_to_rest(duty: Job) -> bool:
    for _ in range(CALLS_MAX):
        if not await duty():
            return True
    return False
