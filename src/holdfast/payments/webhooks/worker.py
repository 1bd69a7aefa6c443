"""The duties of webhooks: look into what is due, forget what is long done."""

import asyncio

from holdfast.payments.webhooks.store import Webhooks

SETTLED_AT_ONCE_MAX = 1000
LOOKS_AT_ONCE_MAX = 32
FORGOTTEN_AT_ONCE_MAX = 1000


class WebhookDuties:
    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    async def look(self) -> int:
        """Those that waited for their payment in one statement, the others one by one, at the gateway."""
        settled = await self._webhooks.settle_due(SETTLED_AT_ONCE_MAX)
        due = await self._webhooks.take_due(LOOKS_AT_ONCE_MAX)
        await asyncio.gather(*map(self._webhooks.look, due))
        return settled + len(due)

    async def forget(self) -> int:
        return await self._webhooks.forget(FORGOTTEN_AT_ONCE_MAX)
