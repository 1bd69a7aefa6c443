"""Seats taken in shows of several pods, for the search index of the home database."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from holdfast.pods.router import PodRouter

A = TypeVar("A")


class Counts(Protocol):
    async def counts_many(self, show_ids: Iterable[int]) -> dict[int, dict[str, int]]: ...

    async def free_categories(self, show_id: int, taken: int) -> frozenset[str]: ...


class PodCounts(Generic[A]):
    """Asks the pod of each show; each pod once."""

    def __init__(self, router: PodRouter[A], counts_of: Callable[[A], Counts]) -> None:
        self._router = router
        self._counts_of = counts_of

    async def counts_many(self, show_ids: Iterable[int]) -> dict[int, dict[str, int]]:
        by_pod: defaultdict[str, list[int]] = defaultdict(list)
        for show_id in show_ids:
            by_pod[self._router.directory.pod_of(show_id)].append(show_id)
        found: dict[int, dict[str, int]] = {}
        for shows in by_pod.values():
            found |= await self._counts_of(self._router.for_show(shows[0])).counts_many(shows)
        return found

    async def free_categories(self, show_id: int, taken: int) -> frozenset[str]:
        return await self._counts_of(self._router.for_show(show_id)).free_categories(show_id, taken)
