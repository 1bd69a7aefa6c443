"""Endpoints and deliveries in the ledger. The only file here that writes them."""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from holdfast.catalogue import Catalogue, NoSuchShow
from holdfast.config import Config
from holdfast.engines.leases import LeaseQueue, LeaseTable
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.engines.row_lease import pause_after
from holdfast.outbox import EndpointSwitchedOff, EventChanged, Fact, add_fact, consume_many
from holdfast.web.audit_log import AuditEntry, record, record_change, record_new
from holdfast.webhooks_out.delivery import (
    GONE,
    LEASE_S,
    PAUSES_S,
    REASON_MAX,
    SECRET_BYTES,
    DeliveryPage,
    DeliveryResult,
    DeliveryState,
    DueDelivery,
    build_payload,
    delivery_page,
    format_secret,
    has_seats,
)
from holdfast.webhooks_out.endpoint import (
    ENDPOINTS_MAX,
    EndpointChange,
    EndpointPage,
    NewEndpoint,
    check_url,
    endpoint_page,
    validate_kinds,
)
from holdfast.webhooks_out.errors import EndpointOff, EndpointsMax, NoSuchDelivery, NoSuchEndpoint

Q = Queries("holdfast.webhooks_out")

DELIVERIES = LeaseTable(
    name="webhook_delivery",
    key={"endpoint_id": "bigint", "fact_id": "bigint"},
    queries=Q,
    shown="leased.fact_id",
)
GROUP = "webhooks"

FactSubject = tuple[
    str, int, int | None, int | None
]  # kind, and by what its organiser is found: show, event, account


class OutgoingWebhooks:
    def __init__(self, postgres: Postgres, catalogue: Catalogue, config: Config, pod: str = "") -> None:
        """`pod`: the name of this database among several."""
        self._pod = pod
        self._postgres = postgres
        self._catalogue = catalogue
        self._config = config
        self._leases = LeaseQueue(postgres, DELIVERIES)
        self._lenient = bool(config.hook_lenient)

    # ── endpoints ─────────────────────────────────────────────────────────────────────

    async def add(self, organiser_id: int, new: NewEndpoint) -> tuple[EndpointPage, str]:
        """Returns the endpoint and its secret, which is never returned again."""
        check_url(new.url, lenient=self._lenient)
        kinds, secret = validate_kinds(new.kinds), secrets.token_bytes(SECRET_BYTES)
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.lock_organiser, organiser_id)
            row = await tx.fetchrow(
                Q.add_endpoint, organiser_id, new.url, kinds, new.active, secret, ENDPOINTS_MAX
            )
            if row is None:
                raise EndpointsMax(endpoints_max=ENDPOINTS_MAX)
            page = endpoint_page(row)
            await record_new(tx, _entry("webhook_endpoint.created", page), page)
        return page, format_secret(secret)

    async def endpoints(self, organiser_id: int | None, before: int, limit: int) -> list[EndpointPage]:
        """Newest first."""
        rows = await self._postgres.fetch(Q.endpoints, organiser_id, before, limit)
        return [endpoint_page(row) for row in rows]

    async def switched_off(self, endpoint_ids: Sequence[int]) -> dict[int, str]:
        """Why, by endpoint: those that are off in this database."""
        rows = await self._postgres.fetch(Q.switched_off, endpoint_ids)
        return {row["id"]: row["off_reason"] or "" for row in rows}

    async def endpoint(self, endpoint_id: int, organiser_id: int | None) -> EndpointPage:
        return _found(await self._postgres.fetchrow(Q.endpoint, endpoint_id, organiser_id))

    async def change(
        self, endpoint_id: int, organiser_id: int | None, change: EndpointChange
    ) -> EndpointPage:
        url = None if change.url is UNSET else change.url
        if url is not None:
            check_url(url, lenient=self._lenient)
        kinds = None if change.kinds is UNSET else validate_kinds(change.kinds)
        active = None if change.active is UNSET else change.active
        async with self._postgres.transaction() as tx:
            before = _found(await tx.fetchrow(Q.lock_endpoint, endpoint_id, organiser_id))
            row = await tx.fetchrow(Q.change_endpoint, endpoint_id, organiser_id, url, kinds, active)
            page = _found(row)
            if not page.active:
                await tx.execute(Q.miss_queued, endpoint_id)
            await record_change(tx, _entry("webhook_endpoint.changed", page), before, page)
        return page

    async def change_secret(self, endpoint_id: int, organiser_id: int | None) -> tuple[EndpointPage, str]:
        secret = secrets.token_bytes(SECRET_BYTES)
        overlap_h = float(self._config.hook_overlap_h)
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.change_secret, endpoint_id, organiser_id, secret, overlap_h)
            page = _found(row)
            await record(tx, _entry("webhook_endpoint.secret_changed", page))
        return page, format_secret(secret)

    async def remove(self, endpoint_id: int, organiser_id: int | None) -> None:
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.remove_endpoint, endpoint_id, organiser_id)
            if row is None:
                raise NoSuchEndpoint
            page = endpoint_page(row)
            await record(tx, replace(_entry("webhook_endpoint.deleted", page), before=asdict(page)))

    # ── deliveries ────────────────────────────────────────────────────────────────────

    async def consume_facts(self, facts: Sequence[Fact]) -> None:
        """Inserts one delivery per fact and subscribed endpoint. One query finds out that most have none."""
        subjects = list(dict.fromkeys(_about(fact) for fact in facts))
        found: dict[FactSubject, list[int]] = defaultdict(list)
        for row in await self._postgres.fetch(Q.wanted_by, *map(list, zip(*subjects, strict=True))):
            found[subjects[row["place"] - 1]].append(row["id"])
        wanted = [(id, fact) for fact in facts for id in found.get(_about(fact), ())]
        if not wanted:
            return
        payloads = {fact.id: build_payload(fact, await self._labels(fact), self._pod) for _, fact in wanted}
        async with self._postgres.transaction() as tx:
            new = await consume_many(tx, GROUP, sorted(payloads))
            rows = [
                (id, fact.id, fact.kind, fact.at, payloads[fact.id]) for id, fact in wanted if fact.id in new
            ]
            if rows:
                await tx.execute(Q.add_deliveries, *map(list, zip(*rows, strict=True)))

    async def _labels(self, fact: Fact) -> Sequence[str]:
        """Of the seats of the fact's show; none if the fact has no seats."""
        if not has_seats(fact):
            return ()
        try:
            return (await self._catalogue.show_on_sale(fact.show_id)).layout.labels
        except NoSuchShow:  # deleted since
            return ()

    async def take_due(self, limit: int, each_max: int, *, is_failing: bool) -> list[DueDelivery]:
        """Leased for LEASE_S. Failing endpoints are taken separately, so that they never delay the others."""
        rows = await self._leases.take(limit, LEASE_S, each_max, is_failing)
        names = [name for name in DueDelivery.__struct_fields__ if name != "pod"]
        return [DueDelivery(pod=self._pod, **{name: row[name] for name in names}) for row in rows]

    async def load_trace(self, fact_id: int) -> str | None:
        """Of the request that wrote the fact."""
        trace: str | None = await self._postgres.fetchval(Q.trace, fact_id)
        return trace

    async def end(self, due: DueDelivery, reply: DeliveryResult) -> DeliveryState | None:
        """Records the result of a try. None: the lease was lost to another worker."""
        pause_s = None if reply.is_yes else pause_after(due.tries, PAUSES_S)
        state = DeliveryState.DONE if reply.is_yes else DeliveryState.QUEUED
        if not reply.is_yes and pause_s is None:
            state = DeliveryState.DEAD
        reason = reply.reason[:REASON_MAX] if reply.reason else None
        key = due.endpoint_id, due.fact_id, due.turn
        async with self._postgres.transaction() as tx:
            # Lock the endpoint before its deliveries, in the order of a switch-off: otherwise both could
            # wait for each other.
            await tx.execute(Q.note_yes if reply.is_yes else Q.note_no, due.endpoint_id)
            is_ours = await self._leases.finish(due.lease, pause_s, state, tx=tx)
            await tx.execute(Q.add_try, *key, reply.status, reply.took_ms, reason, reply.response)
            if not reply.is_yes:
                await self._switch_off(tx, due.endpoint_id, reply)
        return state if is_ours else None

    async def _switch_off(self, tx: Transaction, endpoint_id: int, reply: DeliveryResult) -> None:
        """If the endpoint has failed for long or returned 410; a fact notifies its organiser."""
        is_gone, hours = reply.status == GONE, float(self._config.hook_off_after_h)
        why = f"gone: {reply.reason}" if is_gone else f"failing for too long: {reply.reason}"[:REASON_MAX]
        row = await tx.fetchrow(Q.switch_off, endpoint_id, why, is_gone, hours)
        if row is None:
            return
        await tx.execute(Q.miss_queued, endpoint_id)
        off = EndpointSwitchedOff(
            endpoint_id=endpoint_id,
            organiser_id=row["organiser_id"],
            url=row["url"],
            reason=why,
            failing_since=row["failing_since"],
        )
        await add_fact(tx, 0, off)

    async def deliveries(
        self, endpoint_id: int, state: DeliveryState | None, before: int, limit: int
    ) -> list[DeliveryPage]:
        """Newest fact first. The caller has checked whose endpoint it is."""
        rows = await self._postgres.fetch(Q.deliveries, endpoint_id, before, state, None, limit)
        return [delivery_page(row, self._pod) for row in rows]

    async def replay(self, endpoint_id: int, organiser_id: int | None, fact_id: int) -> DeliveryPage:
        page = await self._refuse_off(endpoint_id, organiser_id)
        async with self._postgres.transaction() as tx:
            if not await self._leases.replay(Q.replay_one, endpoint_id, fact_id, tx=tx):
                raise NoSuchDelivery
            entry = _entry("webhook_endpoint.replayed", page)
            await record(tx, replace(entry, after={"fact": fact_id}))
        rows = await self._postgres.fetch(Q.deliveries, endpoint_id, fact_id + 1, None, fact_id, 1)
        if not rows:
            raise NoSuchDelivery
        return delivery_page(rows[0], self._pod)

    async def replay_since(
        self, endpoint_id: int, organiser_id: int | None, since: datetime, *, failed_only: bool
    ) -> int:
        page = await self._refuse_off(endpoint_id, organiser_id)
        async with self._postgres.transaction() as tx:
            count = len(await self._leases.replay(Q.replay_since, endpoint_id, since, failed_only, tx=tx))
            after = {"since": since, "failed_only": failed_only, "deliveries": count}
            await record(tx, replace(_entry("webhook_endpoint.replayed", page), after=after))
        return count

    async def counts(self) -> dict[str, int]:
        return await self._leases.count()

    async def forget(self, limit: int) -> int:
        count = _count(await self._postgres.execute(Q.forget, float(self._config.hook_keep_d), limit))
        if self._pod:
            count += _count(await self._postgres.execute(Q.forget_orphans, limit))
        return count

    async def _refuse_off(self, endpoint_id: int, organiser_id: int | None) -> EndpointPage:
        page = await self.endpoint(endpoint_id, organiser_id)
        if not page.active:
            raise EndpointOff
        return page


def _entry(action: str, page: EndpointPage) -> AuditEntry:
    subject = ("webhook_endpoint", page.endpoint_id)
    return AuditEntry(action=action, subject=subject, name=page.url, organiser_id=page.organiser_id)


def _found(row: Any) -> EndpointPage:
    if row is None:
        raise NoSuchEndpoint
    return endpoint_page(row)


def _count(status: str) -> int:
    """The row count at the end of a command status such as "UPDATE 3"."""
    return int(status.rsplit(" ", 1)[-1])


def _about(fact: Fact) -> FactSubject:
    event_id = fact.body.event_id if isinstance(fact.body, EventChanged) else None
    account_id = fact.body.organiser_id if isinstance(fact.body, EndpointSwitchedOff) else None
    return fact.kind, fact.show_id, event_id, account_id
