"""One question to every pod: lists over shows that are in several databases.

    ask ──► home, east, west at once ──► answers, each with the application of its pod
                                     └─► away: the pods that cannot be reached

Without pods it is the plain call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.engines.errors import EngineDown

if TYPE_CHECKING:
    from holdfast.app import App

T = TypeVar("T")
HOME_NAME = "home"


@dataclass(frozen=True, slots=True)
class PodAnswers(Generic[T]):
    found: Sequence[tuple["App", T]]
    away: list[str]  # names of pods

    @property
    def is_complete(self) -> bool:
        return not self.away

    @property
    def values(self) -> list[T]:
        return [value for _, value in self.found]


async def ask_every_pod(app: "App", ask: Callable[["App"], Awaitable[T]]) -> PodAnswers[T]:
    """Raises EngineDown if no pod answers, and whatever else one of them raises."""
    pods = app.router.by_name
    if len(pods) == 1:
        return PodAnswers([(app, await ask(app))], [])
    outcomes = await asyncio.gather(*(_ask(each, ask) for each in pods.values()))
    found = [
        (each, outcome[0])
        for each, outcome in zip(pods.values(), outcomes, strict=True)
        if not isinstance(outcome, EngineDown)
    ]
    down = [outcome for outcome in outcomes if isinstance(outcome, EngineDown)]
    if not found:
        raise down[0]
    names = zip(pods, outcomes, strict=True)
    return PodAnswers(found, [name or HOME_NAME for name, one in names if isinstance(one, EngineDown)])


async def _ask(app: "App", ask: Callable[["App"], Awaitable[T]]) -> tuple[T] | EngineDown:
    try:
        return (await ask(app),)
    except EngineDown as down:
        return down


async def require_every_pod(app: "App") -> None:
    """For a file that must not have gaps. Raises EngineDown if a pod cannot be reached."""
    if not app.router.has_pods:
        return
    answers = await ask_every_pod(app, lambda each: each.refund_store.ledger_now())
    if answers.away:
        raise EngineDown("ledger")


async def find_in_pods(app: "App", find: Callable[["App"], Awaitable[T | None]]) -> T | None:
    """What one of them has. Raises EngineDown if a pod that cannot be reached may have it."""
    answers = await ask_every_pod(app, find)
    for value in answers.values:
        if value is not None:
            return value
    if answers.away:
        raise EngineDown("ledger")
    return None


def drop_copies(found: Iterable[T], key_of: Callable[[T], Hashable]) -> list[T]:
    """Each once: while a show moves, and after a mover that died, two databases have its rows."""
    return list({key_of(one): one for one in found}.values())


def cut_page(found: Sequence[T], size: int, number_of: Callable[[T], int]) -> list[T]:
    """The first `size` of a merged list, whose next page begins before the last number of this one.

    Numbers of different pods may be equal (bookings/functions.sql): a page does not end between them, or the
    next one would begin behind the others. It is shorter then; longer if all of it has one number.
    """
    page = list(found[:size])
    if len(found) <= size or number_of(found[size]) != number_of(page[-1]):
        return page
    last = number_of(page[-1])
    shorter = [one for one in page if number_of(one) != last]
    return shorter or [one for one in found if number_of(one) == last]
