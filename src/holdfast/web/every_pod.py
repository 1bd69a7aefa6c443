"""One question to every pod: lists over shows that are in several databases.

    ask ──► home, east, west at once ──► answers, each with the application of its pod
                                     └─► away: the pods that cannot be reached

Without pods it is the plain call.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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


def find_pod(app: "App", name: str) -> "App | None":
    """`home` and the empty name: the home database. None: there is no such pod."""
    return app.router.by_name.get("" if name == HOME_NAME else name)


async def ask_pods(app: "App", name: str, ask: Callable[["App"], Awaitable[T]]) -> PodAnswers[T]:
    """Of the database with this name; of all of them, if it is empty. Raises LookupError: there is none."""
    if not name:
        return await ask_every_pod(app, ask)
    pod = find_pod(app, name)
    if pod is None:
        raise LookupError(name)
    return PodAnswers([(pod, await ask(pod))], [])


async def find_owners(app: "App", has: Callable[["App"], Awaitable[bool]]) -> "list[App]":
    """Every database that has an entry of some number: each counts its own.

    Raises EngineDown if one of them cannot be reached: it may have an entry of the same number.
    """
    if not app.router.has_pods:
        return [app]
    answers = await ask_every_pod(app, has)
    if answers.away:
        raise EngineDown("ledger")
    return [each for each, is_there in answers.found if is_there]


async def merge_streams(
    streams: Mapping[str, AsyncIterator[T]], key: Callable[[T], Any], *, reverse: bool = False
) -> AsyncIterator[tuple[str, T]]:
    """What several databases have, in the order of `key`, with the name of each one's database."""
    heads: dict[str, T] = {}
    for name, stream in streams.items():
        async for head in stream:
            heads[name] = head
            break
    choose = max if reverse else min
    while heads:
        name = choose(heads, key=lambda one: key(heads[one]))
        yield name, heads.pop(name)
        async for following in streams[name]:
            heads[name] = following
            break


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
