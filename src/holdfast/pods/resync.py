"""Lets a pod receive people and catalogue again, from the beginning: after a restore, or after home has
removed log that the pod had not received.

    set aside ─► drop subscription and slot ─► slot, subscription, first copy ─► put back
      └ what a pod decides about a sale, and rows that refer to copies: TRUNCATE would remove them

Every step can be repeated: rows that were set aside stay so until they are back. The pod must not sell
meanwhile: its copies are empty for as long as the first copy takes.
"""

import asyncpg

from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries
from holdfast.pods.setup import NewPod, connect_pod
from holdfast.pods.tables import SALE, SALE_COLUMNS
from holdfast.pods.waiting import wait_until

Q = Queries("holdfast.pods")
# Rows of a pod's own that refer to a copy, by the column with the key of that copy.
REFERRING = {
    "webhook_delivery": ("webhook_endpoint", "endpoint_id"),
    "webhook_try": ("webhook_endpoint", "endpoint_id"),
}
SLOT_FREE_WITHIN_S = 30.0


async def resync_pod(home: asyncpg.Connection, pod: asyncpg.Connection, new: NewPod) -> None:
    name = new.place.name
    number = await home.fetchval(Q.pod_number, name)
    if number is None:
        raise OperatorError(f"home does not know the pod {name}: `holdfast pod add {name}` makes one")
    identity = await pod.fetchval(Q.identity)
    if identity != name:
        raise OperatorError(f"this database is {identity or 'a home database'}, not the pod {name}")
    async with pod.transaction():
        await pod.execute(Q.set_aside, [SALE, *REFERRING])
    if await pod.fetchval(Q.subscription_exists, "holdfast_home"):
        await pod.execute(Q.disable_subscription)
        await pod.execute(Q.leave_slot)
        await pod.execute(Q.drop_subscription)
    await _drop_slot(home, f"holdfast_pod_{name}")
    await connect_pod(home, pod, new, number)
    async with pod.transaction():
        await pod.execute(Q.put_sale_back, list(SALE_COLUMNS))
        for table, (copy, column) in REFERRING.items():
            await pod.execute(Q.put_rows_back, table, copy, column)
        await pod.execute(Q.forget_aside, [SALE, *REFERRING])


async def _drop_slot(home: asyncpg.Connection, slot: str) -> None:
    async def is_free() -> bool:
        return not await home.fetchval(Q.slot_is_active, slot)

    try:
        await wait_until(is_free, SLOT_FREE_WITHIN_S)
    except TimeoutError:
        raise OperatorError(
            f"another database still receives through the slot {slot}: stop the pod's old PostgreSQL first"
        ) from None
    if await home.fetchval(Q.slot_exists, slot):
        await home.execute(Q.drop_slot, slot)
