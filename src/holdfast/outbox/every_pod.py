"""Consumer groups and dead facts of a house with pods: every database counts its own facts and has its own.

A row says in `pod` whose it is; empty: the home database's.
"""

from typing import TYPE_CHECKING, Any

from holdfast.engines.errors import OperatorError
from holdfast.web.every_pod import HOME_NAME, PodAnswers, ask_pods, find_owners

if TYPE_CHECKING:
    from holdfast.app import App

PodRows = tuple[list[dict[str, Any]], list[str]]  # and the pods that cannot be reached


async def load_groups(app: "App", pod: str = "") -> PodRows:
    """With the name of a pod, of that one alone; so do the others here. Raises LookupError: there is none."""
    return _rows(await ask_pods(app, pod, lambda each: each.outbox.groups()))


async def load_dead_facts(app: "App", group: str = "", pod: str = "", limit: int = 1000) -> PodRows:
    """At most `limit` of each database."""
    return _rows(await ask_pods(app, pod, lambda each: each.outbox.dead(group, limit)))


async def retry_dead_facts(app: "App", group: str, pod: str = "") -> tuple[int, list[str]]:
    """How many will be tried again, and the pods that cannot be reached."""
    answers = await ask_pods(app, pod, lambda each: each.outbox.retry_dead(group))
    return sum(answers.values), answers.away


async def retry_dead_fact(app: "App", group: str, fact_id: int, pod: str = "") -> int:
    """In the database that has it. Raises OperatorError if several have a dead fact of this number."""
    if not pod:
        owners = await find_owners(app, lambda each: each.outbox.is_dead(group, fact_id))
        if len(owners) > 1:
            names = " and ".join(each.pod or HOME_NAME for each in owners)
            raise OperatorError(f"fact {fact_id} is dead in {names}: name one of them with --pod")
        return await owners[0].outbox.retry_dead(group, fact_id) if owners else 0
    return sum((await ask_pods(app, pod, lambda each: each.outbox.retry_dead(group, fact_id))).values)


async def forget_group(app: "App", group: str, pod: str = "") -> tuple[bool, list[str]]:
    """Whether there was one, and the pods that cannot be reached."""
    answers = await ask_pods(app, pod, lambda each: each.outbox.forget_group(group))
    return any(answers.values), answers.away


def _rows(answers: PodAnswers[list[dict[str, Any]]]) -> PodRows:
    return [{"pod": each.pod, **row} for each, rows in answers.found for row in rows], answers.away
