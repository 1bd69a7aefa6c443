"""The jobs of organisers' webhooks: consume facts, send due deliveries, delete old ones.

Endpoints that answer and endpoints that fail have separate jobs, so a server that does not answer does not
delay the others.
"""

import asyncio
from typing import TYPE_CHECKING

import structlog

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.loop import Job, Pause, WhenDue
from holdfast.engines.metrics import metrics
from holdfast.engines.tracing import resume, tracer
from holdfast.engines.turns import Turns
from holdfast.outbox import Consumer
from holdfast.webhooks_out.delivery import DeliveryState, DueDelivery
from holdfast.webhooks_out.endpoint import DELIVERED_KINDS
from holdfast.webhooks_out.store import GROUP, OutgoingWebhooks, Q

if TYPE_CHECKING:
    from holdfast.webhooks_out.client import WebhookClient

log = structlog.get_logger(__name__)

BATCH_MAX = 32
EACH_MAX = 8  # of one endpoint at a time
EACH_FAILING_MAX = 2
PURGE_MAX = 1000
SEND_PAUSE_S = 0.5
SEND_AGAIN_PAUSE_S = 2.0
COUNT_PAUSE_S = 10.0
FORGET_PAUSE_S = 600.0


def consumer(webhooks: OutgoingWebhooks) -> Consumer:
    # Not from the oldest: endpoints get only facts from after they were registered.
    return Consumer(group=GROUP, kinds=DELIVERED_KINDS, call_many=webhooks.consume_facts, from_oldest=False)


class DeliveryJobs:
    def __init__(self, webhooks: OutgoingWebhooks, config: Config) -> None:
        self._hooks = webhooks
        self._config = config

    def _client(self) -> "WebhookClient":
        from holdfast.webhooks_out.client import WebhookClient  # loads aiohttp: 6 MB

        config = self._config
        return WebhookClient(
            timeout_s=config.hook_timeout_s,
            links_max=config.hook_links_max,
            lenient=bool(config.hook_lenient),
        )

    async def send(self) -> int:
        return await self._send(await self._hooks.take_due(BATCH_MAX, EACH_MAX, is_failing=False))

    async def send_again(self) -> int:
        return await self._send(await self._hooks.take_due(BATCH_MAX, EACH_FAILING_MAX, is_failing=True))

    async def count(self) -> int:
        for state, number in (await self._hooks.counts()).items():
            metrics.measure(f"deliveries_{state}", number)
        return 0

    async def forget(self) -> int:
        return await self._hooks.forget(PURGE_MAX)

    async def _send(self, taken: list[DueDelivery]) -> int:
        if taken:
            async with self._client() as client, asyncio.TaskGroup() as group:
                for due in taken:
                    group.create_task(self._send_one(client, due))
        return len(taken)

    async def _send_one(self, client: "WebhookClient", due: DueDelivery) -> None:
        trace = await self._hooks.load_trace(due.fact_id) if tracer.is_on else None
        with resume("send", "webhook", [trace] if trace else [], {"holdfast.fact_id": due.fact_id}):
            reply = await client.send(due)
        try:
            state = await self._hooks.end(due, reply)
        except EngineDown as down:  # the lease ends, and the delivery is due again
            log.warning("delivery not recorded; it will be retried", fact_id=due.fact_id, engine=down.engine)
            return
        except Exception:  # the same; one that cannot be stored must not stop the others
            log.exception(
                "delivery result could not be stored", endpoint_id=due.endpoint_id, fact_id=due.fact_id
            )
            return
        metrics.add("deliveries_total", state=state or "lost")
        if state is DeliveryState.DEAD:
            log.warning("delivery dead-lettered", endpoint_id=due.endpoint_id, fact_id=due.fact_id)


def jobs(mine: DeliveryJobs, turns: Turns) -> list[tuple[Pause, Job]]:
    return [
        (WhenDue(Q.is_due, SEND_PAUSE_S), mine.send),
        (WhenDue(Q.is_due, SEND_AGAIN_PAUSE_S), mine.send_again),
        turns.alone(COUNT_PAUSE_S, mine.count),
        (FORGET_PAUSE_S, mine.forget),
    ]
