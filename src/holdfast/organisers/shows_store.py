"""Writes shows and their prices.

A show's row and its `sale` row in the ledger change in one transaction, so that a sale never uses prices or a
window that the catalogue does not show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.bookings import move_releases, set_sale
from holdfast.catalogue import (
    Catalogue,
    NoSuchEvent,
    NoSuchHall,
    NoSuchShow,
    OrphanRule,
    Times,
    parse_refund_policy,
    prices_by_category,
    sale_state,
)
from holdfast.config import Config
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.errors import Busy
from holdfast.layouts import Layout, LayoutInUse, NoSuchLayout
from holdfast.organisers.errors import HallBusy, ShowCancelled
from holdfast.organisers.price_rules_store import load_price_rules, mark_prices_due, record_price_changes
from holdfast.organisers.show_forms import ManagedShow, NewShow, ShowChange, ShowRow, ShowsQuery
from holdfast.organisers.store import build_from_row, fetch_page, name_change
from holdfast.payments import refuse_prices_without_gateway
from holdfast.pricing import DEFAULT_TERMS, PricedByRules, PriceRules, Terms, list_floors
from holdfast.web.audit_log import AuditEntry, differing, record
from holdfast.web.caller import Scope

CATALOGUE_EDITS = Queries("holdfast.organisers")
Q = Queries("holdfast.organisers", "shows")
NEW = 0  # id of a show that is not stored yet
FIRST = 1  # revision


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedShow:
    """A show to insert, with all values resolved."""

    event_id: int
    hall_id: int
    layout_hash: str
    times: Times
    currency: str
    prices: Mapping[str, int]
    terms: Terms = DEFAULT_TERMS
    hold_ttl_s: int = 600
    owner_seats_max: int = 10
    order_seats_max: int = 10
    orphan_rule: OrphanRule = OrphanRule.WARN
    published: bool = True


async def add_shows(tx: Transaction, shows: Sequence[PlannedShow]) -> list[int]:
    """Insert shows and return their ids in order: one for the API, hundreds for the demo. Checks nothing."""
    columns = [
        (
            show.event_id,
            show.hall_id,
            show.layout_hash,
            show.times.starts_at,
            show.times.ends_at,
            show.times.opens_at,
            show.times.closes_at,
            show.currency,
            show.hold_ttl_s,
            show.owner_seats_max,
            show.order_seats_max,
            show.orphan_rule,
            show.published,
        )
        for show in shows
    ]
    rows = await tx.fetch(Q.add_shows, *(list(column) for column in zip(*columns, strict=True)))
    show_ids = sorted(row["id"] for row in rows)
    prices = [(i, *price) for i, show in zip(show_ids, shows, strict=True) for price in show.prices.items()]
    await tx.execute(Q.put_prices, *(list(column) for column in zip(*prices, strict=True)))
    await put_terms(tx, [(i, FIRST, show.terms) for i, show in zip(show_ids, shows, strict=True)])
    for show_id, show in zip(show_ids, shows, strict=True):
        await set_sale(
            tx,
            show_id=show_id,
            opens_at=show.times.opens_at,
            closes_at=show.times.closes_at,
            cancelled=False,
            owner_seats_max=show.owner_seats_max,
            revision=FIRST,
        )
    return show_ids


async def put_terms(tx: Transaction, terms: Sequence[tuple[int, int, Terms]]) -> None:
    """Insert (show id, revision, terms) rows in one statement."""
    rows = [
        (
            show_id,
            revision,
            each.fee_minor,
            each.fee_bp,
            each.tax_bp,
            msgspec.json.encode(each.refund_policy).decode(),
            each.card_seats_max,
        )
        for show_id, revision, each in terms
    ]
    await tx.execute(Q.put_terms, *(list(column) for column in zip(*rows, strict=True)))


class ShowEditor:
    """Edits shows: an organiser's own, or all shows for an admin."""

    def __init__(self, postgres: Postgres, catalogue: Catalogue, config: Config, scope: Scope) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._config = config
        self._organiser_id = scope.organiser_id
        self.actor_id = scope.account_id

    async def add_show(self, new: NewShow) -> ManagedShow:
        async with self._postgres.transaction() as tx:
            event = await tx.fetchrow(CATALOGUE_EDITS.event, new.event_id, self._organiser_id)
            if event is None:
                raise NoSuchEvent(event_id=new.event_id)
            hall = await self._hall(tx, new.hall_id)
        times = new.times(event["duration_min"], datetime.now(UTC))
        times.check()
        terms = new.terms(parse_refund_policy(event))
        terms.check(new.prices.values())
        refuse_prices_without_gateway(self._config.gateway, new.prices.values())
        # Between the transactions: loading a layout may need a second connection.
        prices_by_category(await self._catalogue.layout(hall["layout_hash"]), new.prices)
        async with self._postgres.transaction() as tx:
            if await tx.fetchrow(CATALOGUE_EDITS.event, new.event_id, self._organiser_id) is None:
                raise NoSuchEvent(event_id=new.event_id)  # deleted meanwhile
            await self._hall(tx, new.hall_id)
            await _refuse_busy_hall(tx, new.hall_id, times, NEW)
            planned = self._planned(new, times, terms, hall["layout_hash"])
            [show_id] = await add_shows(tx, [planned])
            await tx.fetch(CATALOGUE_EDITS.refresh_visibility, None, None, show_id)
            entry = _entry("show.created", show_id, event["title"])
            await record(tx, replace(entry, after=asdict(planned)))
        return await self.show(show_id)

    async def change_show(self, show_id: int, change: ShowChange) -> ManagedShow:
        """Apply the whole change or nothing; the sale row changes in the same transaction."""
        before = await self.row(self._postgres, show_id)
        new_hash = before.layout_hash if change.layout_hash is msgspec.UNSET else change.layout_hash
        layout = await self._grown(before.layout_hash, new_hash)
        async with self._postgres.transaction() as tx:
            show = await self.row(tx, show_id)
            if show.cancelled and change.cancelled is not True:
                raise ShowCancelled(show_id=show_id)
            if show.layout_hash != before.layout_hash:
                raise Busy(retry_after_s=1)  # another request changed the layout since it was read
            await self.apply(tx, show, change, layout)
        self._catalogue.forget(show_id)
        self._catalogue.clear_cached_responses()
        return await self.show(show_id)

    async def show(self, show_id: int) -> ManagedShow:
        rows = await self._postgres.fetch(Q.list_shows, self._organiser_id, 1, 0, None, show_id)
        if not rows:
            raise NoSuchShow(show_id=show_id)
        return _build_show(rows[0])

    async def shows(self, shows_query: ShowsQuery) -> tuple[int, list[ManagedShow]]:
        total, rows = await fetch_page(
            self._postgres, Q.list_shows, (self._organiser_id,), shows_query, shows_query.event, None
        )
        return total, [_build_show(row) for row in rows]

    async def apply(
        self, tx: Transaction, show: ShowRow, change: ShowChange, layout: Layout, *, always: bool = False
    ) -> int:
        """Write the change of a locked show as a new revision; `always`: even if no field differs."""
        given = change.given()
        prices = given.pop("prices", {})
        if given.get("refund_policy", show) is None:
            given["refund_policy"] = parse_refund_policy(await tx.fetchrow(Q.policy_of_event, show.event_id))
        after = msgspec.structs.replace(show, **given)
        if after == show and not prices and not always:
            return show.revision
        if after.times != show.times:
            after.times.check()
            await self._hall(tx, show.hall_id)
            await _refuse_busy_hall(tx, show.hall_id, after.times, show.id)
        old_prices = {row["category"]: row["price_minor"] for row in await tx.fetch(Q.prices, show.id)}
        rules = await load_price_rules(tx, show.id)
        _refuse_ruled(rules, prices)
        after.terms.check((*prices_by_category(layout, old_prices | prices), *list_floors(rules)))
        if prices:
            refuse_prices_without_gateway(self._config.gateway, prices.values())
            await tx.execute(Q.put_prices, [show.id] * len(prices), list(prices), list(prices.values()))
        revision: int = await tx.fetchval(
            Q.change_show,
            after.id,
            after.layout_hash,
            after.starts_at,
            after.ends_at,
            after.opens_at,
            after.closes_at,
            after.hold_ttl_s,
            after.owner_seats_max,
            after.order_seats_max,
            after.orphan_rule,
            after.cancelled,
            after.published,
        )
        await put_terms(tx, [(show.id, revision, after.terms)])
        await set_sale(
            tx,
            show_id=show.id,
            opens_at=after.opens_at,
            closes_at=after.closes_at,
            cancelled=after.cancelled,
            owner_seats_max=after.owner_seats_max,
            revision=revision,
        )
        moved = {name: (old_prices.get(name), price) for name, price in prices.items()}
        if moved := {name: both for name, both in moved.items() if both[0] != both[1]}:
            await record_price_changes(tx, (show.id, revision), moved, self.actor_id)
        if after.published != show.published:
            await tx.fetch(CATALOGUE_EDITS.refresh_visibility, None, None, show.id)
        await mark_prices_due(tx, show.id)
        if after.starts_at != show.starts_at:
            await move_releases(tx, show.id, after.starts_at)
        await self._record(tx, show, after, moved)
        return revision

    async def _record(
        self, tx: Transaction, before: ShowRow, after: ShowRow, prices: Mapping[str, tuple[int | None, int]]
    ) -> None:
        old, new = differing(before, after)
        if prices:
            old["prices"] = {name: price for name, (price, _) in prices.items()}
            new["prices"] = {name: price for name, (_, price) in prices.items()}
        action = (
            "show.cancelled"
            if after.cancelled and not before.cancelled
            else name_change("show", before, after)
        )
        title = await tx.fetchval(Q.title_of_event, before.event_id)
        await record(tx, replace(_entry(action, before.id, title), before=old, after=new))

    async def _grown(self, old_hash: str, new_hash: str) -> Layout:
        old = await self._catalogue.layout(old_hash)
        if new_hash == old_hash:
            return old
        new = await self.open_layout(new_hash)
        if not new.grows_from(old):
            raise LayoutInUse(layout=old_hash)
        return new

    async def open_layout(self, layout_hash: str) -> Layout:
        """A layout that the caller has uploaded, or that of a hall they may use."""
        if await self._postgres.fetchrow(CATALOGUE_EDITS.layout, layout_hash, self._organiser_id) is None:
            raise NoSuchLayout(layout=layout_hash)
        return await self._catalogue.layout(layout_hash)

    async def _hall(self, tx: Transaction, hall_id: int) -> Any:
        """A hall that the caller may use. Locked: two shows created at once must see each other's times."""
        if row := await tx.fetchrow(CATALOGUE_EDITS.hall, hall_id, self._organiser_id):
            return row
        raise NoSuchHall(hall_id=hall_id)

    async def row(self, tx: Queryable, show_id: int) -> ShowRow:
        """One of the caller's shows, locked until the transaction ends."""
        row = await tx.fetchrow(Q.show, show_id, self._organiser_id)
        if row is None:
            raise NoSuchShow(show_id=show_id)
        terms = require_row(await tx.fetchrow(Q.terms, show_id, row["revision"]))
        rule, policy = OrphanRule(row["orphan_rule"]), parse_refund_policy(terms)
        return ShowRow(**{**row, **terms, "orphan_rule": rule, "refund_policy": policy})

    def _planned(self, new: NewShow, times: Times, terms: Terms, layout_hash: str) -> PlannedShow:
        return PlannedShow(
            event_id=new.event_id,
            hall_id=new.hall_id,
            layout_hash=layout_hash,
            times=times,
            currency=new.currency,
            prices=new.prices,
            terms=terms,
            hold_ttl_s=new.hold_ttl_s or self._config.hold_ttl_s,
            owner_seats_max=new.owner_seats_max or self._config.owner_seats_max,
            order_seats_max=new.order_seats_max or self._config.order_seats_max,
            orphan_rule=new.orphan_rule,
            published=new.published,
        )


def _entry(action: str, show_id: int, title: str) -> AuditEntry:
    return AuditEntry(action=action, subject=("show", show_id), show_id=show_id, name=title)


def _refuse_ruled(rules: PriceRules | None, prices: Mapping[str, int]) -> None:
    ruled = {rule.category for rule in rules.rules} if rules else set()
    if both := sorted(ruled & prices.keys()):
        raise PricedByRules(categories=both)


async def _refuse_busy_hall(tx: Transaction, hall_id: int, times: Times, show_id: int) -> None:
    other = await tx.fetchrow(Q.hall_busy, hall_id, times.starts_at, times.ends_at, show_id)
    if other is not None:
        starts_at, ends_at = other["starts_at"].isoformat(), other["ends_at"].isoformat()
        raise HallBusy(show_id=other["id"], starts_at=starts_at, ends_at=ends_at)


def _build_show(row: Any) -> ManagedShow:
    state = sale_state(
        datetime.now(UTC), row["opens_at"], row["closes_at"], cancelled=row["cancelled"], free=row["seats"]
    )
    prices = dict(zip(row["categories"], row["prices"], strict=True))
    rule = OrphanRule(row["orphan_rule"])
    known = {
        "sale_state": state,
        "prices": prices,
        "orphan_rule": rule,
        "refund_policy": parse_refund_policy(row),
    }
    return build_from_row(ManagedShow, dict(row) | known)
