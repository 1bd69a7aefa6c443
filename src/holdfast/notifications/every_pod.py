"""Messages in a house with pods: a notice stays where it was written, and its show may have moved since.

    notice in east ──► show now in west ──► composed from west's bookings and tickets, sent by east's worker

Composed from east, whose rows are gone, the mail with the tickets would look like one that no longer applies.
"""

from collections.abc import Awaitable, Callable

from holdfast.engines.postgres import Postgres
from holdfast.notifications.message_data import Composer
from holdfast.notifications.notice import DueNotice
from holdfast.notifications.render import ComposedMessage
from holdfast.notifications.senders import OutgoingMessage
from holdfast.pods import read_where_sold


class PodComposer:
    """As Composer. Raises Busy while the show moves: the notice is tried again."""

    def __init__(
        self,
        own: Composer,
        composer_for: Callable[[int], Composer],
        database_for: Callable[[int], Postgres],
        follow: Callable[[], Awaitable[object]],
    ) -> None:
        """`own`: of the database that has the notices; the other functions find the pod of a show."""
        self._own = own
        self._composer_for = composer_for
        self._database_for = database_for
        self._follow = follow

    async def warm_up(self) -> None:
        await self._own.warm_up()

    async def compose(self, due: DueNotice) -> ComposedMessage | None:
        if not due.show_id:
            return await self._own.compose(due)

        async def compose(_database: Postgres) -> ComposedMessage | None:
            return await self._composer_for(due.show_id).compose(due)

        return await read_where_sold(self._database_for, self._follow, due.show_id, compose)

    async def build_outgoing(self, due: DueNotice, message: ComposedMessage) -> OutgoingMessage:
        return await self._own.build_outgoing(due, message)
