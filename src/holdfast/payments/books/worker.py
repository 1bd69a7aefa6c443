"""The duties of the books: compare them with the gateway's, count what waits."""

from datetime import timedelta

from holdfast.config import Config
from holdfast.payments.books.store import Books

BACK = timedelta(hours=1)  # before the latest comparison began: payments that were under way then
FIRST = timedelta(days=1)


class BookDuties:
    def __init__(self, books: Books, config: Config) -> None:
        self._books = books
        self._pause = timedelta(seconds=config.reconcile_pause_s * 0.75)

    async def compare(self) -> int:
        """One process at a time, whoever is first; the others have nothing to do."""
        async with self._books.alone() as is_ours:
            since = await self._books.since(BACK, FIRST, self._pause) if is_ours else None
            if since is not None:
                await self._books.compare(since)
        return 0

    async def count(self) -> int:
        await self._books.count()
        return 0
