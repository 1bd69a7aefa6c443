"""Writes price rules and updates prices according to them.

    rules ──► read the database clock and seats sold ──► price differs? ──► write price, revision, terms and
                                                                            price_change in one transaction

A hold is never priced by a rule directly: it uses the prices of the show's revision, and the ledger rejects
an outdated revision. So a price step between displaying and holding never charges an unexpected price.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from holdfast.bookings import reprice_sale, seats_by_category
from holdfast.catalogue import Catalogue, NoSuchShow, Times, parse_next_prices, parse_terms
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.errors import Busy
from holdfast.layouts import Layout
from holdfast.organisers.errors import ShowCancelled
from holdfast.organisers.pod_seats import CountSeats, SeatsByCategory
from holdfast.organisers.show_forms import PlannedPrice, PriceChange, PricePlan
from holdfast.payments import refuse_prices_without_gateway
from holdfast.pricing import (
    NextPrice,
    PriceRules,
    PricingSnapshot,
    RulesPreview,
    check_price_rules,
    find_next_price,
    list_floors,
    list_step_instants,
    preview_rules,
    price_at,
)
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.caller import Scope

Q = Queries("holdfast.organisers", "price_rules")
SHOWS = Queries("holdfast.organisers", "shows")

CHANGES_LISTED_MAX = 100
SHOWS_MAX = 200  # per run of the job


class PriceRulesStore:
    """Price rules of the shows in the caller's scope."""

    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        scope: Scope,
        pause_s: float,
        gateway: str = "",
        count_seats: CountSeats | None = None,
    ) -> None:
        """`count_seats`: in a house with pods; None: seats are counted in the transaction."""
        self._count_seats = count_seats
        self._postgres = postgres
        self._catalogue = catalogue
        self._scope = scope
        self._pause_s = pause_s
        self._gateway = gateway

    async def preview(self, show_id: int, rules: PriceRules) -> RulesPreview:
        """What the rules would do, without storing them."""
        layout = await self._layout(show_id)
        seats = await self._seats(show_id, layout)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            snapshot = await _load_snapshot(tx, show, layout, seats)
        _refuse_bad(rules, show, snapshot)
        return preview_rules(rules, snapshot)

    async def put(self, show_id: int, rules: PriceRules) -> PricePlan:
        """Store the rules and apply them before returning."""
        layout = await self._layout(show_id)
        seats = await self._seats(show_id, layout)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            if show["cancelled"]:
                raise ShowCancelled(show_id=show_id)
            snapshot = await _load_snapshot(tx, show, layout, seats)
            _refuse_bad(rules, show, snapshot)
            refuse_prices_without_gateway(self._gateway, (rule.ceiling_minor for rule in rules.rules))
            text = msgspec.json.encode(rules).decode()
            before = await load_price_rules(tx, show_id)
            await tx.execute(Q.put_plan, show_id, text)
            await tx.execute(Q.record_rules, show_id, text, self._scope.account_id)
            base_prices = _base_prices_of_removed(before, rules)
            await _apply_rules(
                tx, show, snapshot, rules, base_prices=base_prices, actor_id=self._scope.account_id
            )
            await _schedule_next_update(tx, show, snapshot, rules, self._pause_s)
            await record(tx, _entry("price_rules.changed", show_id, before, rules))
        return await self._reload_plan(show_id)

    async def remove(self, show_id: int) -> PricePlan:
        """Remove the rules: every category returns to its base price."""
        layout = await self._layout(show_id)
        seats = await self._seats(show_id, layout)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            if (before := await load_price_rules(tx, show_id)) is not None:
                await tx.execute(Q.drop_plan, show_id)
                await tx.execute(Q.record_rules, show_id, None, self._scope.account_id)
                snapshot = await _load_snapshot(tx, show, layout, seats)
                base_prices = _base_prices_of_removed(before, None)
                await _apply_rules(
                    tx, show, snapshot, None, base_prices=base_prices, actor_id=self._scope.account_id
                )
                await record(tx, _entry("price_rules.removed", show_id, before, None))
        return await self._reload_plan(show_id)

    async def plan(self, show_id: int) -> PricePlan:
        """Rules, prices and the latest changes, read in one transaction."""
        layout = await self._layout(show_id)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            prices = await _prices(tx, show_id)
            row = await tx.fetchrow(Q.plan, show_id)
            changes = await tx.fetch(Q.changes, show_id, CHANGES_LISTED_MAX)
        moving = parse_next_prices(row["coming"] if row else None)
        return PricePlan(
            show_id=show_id,
            currency=show["currency"],
            revision=show["revision"],
            rules=_rules(row) if row else None,
            prices=[
                PlannedPrice(
                    category=category.name,
                    price_minor=prices[category.name],
                    follows_rules=category.name in moving,
                    until=soon.until if (soon := moving.get(category.name)) else None,
                    then_minor=soon.then_minor if soon else None,
                )
                for category in layout.categories
            ],
            changes=[PriceChange(**change) for change in changes],
        )

    async def _reload_plan(self, show_id: int) -> PricePlan:
        self._catalogue.forget(show_id)
        self._catalogue.clear_cached_responses()
        return await self.plan(show_id)

    async def _layout(self, show_id: int) -> Layout:
        """Called before the transaction: loading a layout may need a second connection."""
        return (await self._catalogue.organiser_show(show_id, self._scope.organiser_id)).layout

    async def _seats(self, show_id: int, layout: Layout) -> SeatsByCategory | None:
        """Before the transaction: no lock of the show waits for another database."""
        return await self._count_seats(show_id, layout) if self._count_seats is not None else None

    async def _show(self, tx: Transaction, show_id: int, layout: Layout) -> Any:
        show = await tx.fetchrow(Q.show, show_id, self._scope.organiser_id)
        if show is None:
            raise NoSuchShow(show_id=show_id)
        if show["layout_hash"] != layout.hash:  # changed by another request since it was read
            self._catalogue.forget(show_id)
            raise Busy(retry_after_s=1)
        return show


async def list_due_shows(postgres: Postgres) -> list[tuple[int, str]]:
    """(show id, layout hash) of the shows whose prices are due for an update."""
    return [(row["show_id"], row["layout_hash"]) for row in await postgres.fetch(Q.due, SHOWS_MAX)]


async def update_prices(
    postgres: Postgres,
    show_id: int,
    layout: Layout,
    pause_s: float,
    seats: SeatsByCategory | None = None,
) -> bool:
    """Apply the show's rules; True if a price changed. `seats`: None: they are counted here."""
    async with postgres.transaction() as tx:
        show = await tx.fetchrow(Q.show_if_free, show_id)
        if show is None or show["layout_hash"] != layout.hash:
            return False
        plan = await tx.fetchrow(Q.plan, show_id)
        if plan is None or not plan["is_due"]:
            return False  # another worker was faster
        rules, snapshot = _rules(plan), await _load_snapshot(tx, show, layout, seats)
        moved = not _is_over(show) and await _apply_rules(tx, show, snapshot, rules)
        await _schedule_next_update(tx, show, snapshot, rules, pause_s)
    return moved


async def postpone_price_update(postgres: Postgres, show_id: int, pause_s: float) -> None:
    await postgres.execute(Q.put_off, show_id, pause_s)


async def load_price_rules(tx: Transaction, show_id: int) -> PriceRules | None:
    row = await tx.fetchrow(Q.plan, show_id)
    return _rules(row) if row else None


async def mark_prices_due(tx: Transaction, show_id: int) -> None:
    """Mark prices as due; called in transactions that change a show's times or layout."""
    await tx.execute(Q.look_again, show_id)


async def record_price_changes(
    tx: Transaction, show: tuple[int, int], changed: Mapping[str, tuple[int | None, int]], actor_id: int
) -> None:
    """Write audit rows for prices set by an organiser: (old, new) by category."""
    was, now = [old for old, _ in changed.values()], [new for _, new in changed.values()]
    unknown: list[int | None] = [None] * len(changed)
    await tx.execute(Q.add_changes, *show, list(changed), was, now, "organiser", actor_id, unknown, unknown)


def _entry(action: str, show_id: int, before: PriceRules | None, after: PriceRules | None) -> AuditEntry:
    old = {"rules": before.rules} if before else {}
    new = {"rules": after.rules} if after else {}
    return AuditEntry(action=action, subject=("show", show_id), show_id=show_id, before=old, after=new)


def _refuse_bad(rules: PriceRules, show: Any, snapshot: PricingSnapshot) -> None:
    names = [category.name for category in snapshot.layout.categories]
    times = Times(**{name: show[name] for name in ("starts_at", "ends_at", "opens_at", "closes_at")})
    check_price_rules(rules, currency=show["currency"], categories=names, times=times)
    snapshot.terms.check(list_floors(rules))


async def _load_snapshot(
    tx: Transaction, show: Any, layout: Layout, seats: SeatsByCategory | None
) -> PricingSnapshot:
    terms = parse_terms(await tx.fetchrow(SHOWS.terms, show["id"], show["revision"]))
    by_letter = await seats_by_category(tx, show["id"], layout.category_of) if seats is None else seats
    names = [category.name for category in layout.categories]
    return PricingSnapshot(
        show_id=show["id"],
        revision=show["revision"],
        at=show["at"],
        starts_at=show["starts_at"],
        layout=layout,
        terms=terms,
        prices=await _prices(tx, show["id"]),
        booked={name: by_letter.get((index, "confirmed"), 0) for index, name in enumerate(names)},
        blocked={name: by_letter.get((index, "blocked"), 0) for index, name in enumerate(names)},
    )


async def _prices(tx: Transaction, show_id: int) -> dict[str, int]:
    return {row["category"]: row["price_minor"] for row in await tx.fetch(SHOWS.prices, show_id)}


async def _apply_rules(
    tx: Transaction,
    show: Any,
    snapshot: PricingSnapshot,
    rules: PriceRules | None,
    *,
    base_prices: Mapping[str, int] | None = None,
    actor_id: int | None = None,
) -> bool:
    """Write the prices that differ from those of the rules, as a new revision of the show."""
    wanted = dict(base_prices or {})
    for rule in rules.rules if rules else ():
        sold = snapshot.sold(rule.category)
        wanted[rule.category] = price_at(rule, snapshot.at, snapshot.starts_at, sold)
    moved = {name: price for name, price in wanted.items() if snapshot.prices[name] != price}
    if not moved:
        return False
    show_id, names, prices = show["id"], list(moved), list(moved.values())
    revision = await tx.fetchval(Q.raise_revision, show_id)
    await tx.execute(SHOWS.put_prices, [show_id] * len(names), names, prices)
    await tx.execute(SHOWS.copy_terms, show_id, revision)
    # Before the sale: in a pod, where both arrive in this order, they say that the map can stay.
    await tx.execute(
        Q.add_changes,
        show_id,
        revision,
        names,
        [snapshot.prices[name] for name in names],
        prices,
        "step" if actor_id is None else "rules",
        actor_id,
        [snapshot.sold(name).sold for name in names],
        [snapshot.sold(name).seats for name in names],
    )
    await reprice_sale(tx, show_id, revision)
    return True


async def _schedule_next_update(
    tx: Transaction, show: Any, snapshot: PricingSnapshot, rules: PriceRules, pause_s: float
) -> None:
    """Store the next price change by time, and when the job must look at the show again."""
    next_prices: dict[str, NextPrice | None] = {
        rule.category: find_next_price(rule, snapshot.at, snapshot.starts_at, snapshot.sold(rule.category))
        for rule in rules.rules
    }
    due = [at for rule in rules.rules for at in list_step_instants(rule, snapshot.starts_at, snapshot.at)]
    if any(rule.demand for rule in rules.rules):
        due.append(snapshot.at + timedelta(seconds=pause_s))
    due_at = None if _is_over(show) else min(due, default=None)
    await tx.execute(Q.looked, snapshot.show_id, msgspec.json.encode(next_prices).decode(), due_at)


def _is_over(show: Any) -> bool:
    return bool(show["cancelled"] or show["closes_at"] <= show["at"])


def _base_prices_of_removed(before: PriceRules | None, now: PriceRules | None) -> dict[str, int]:
    """Base prices of the categories that lose their rule."""
    ruled = {rule.category for rule in now.rules} if now else set()
    gone = [rule for rule in (before.rules if before else ()) if rule.category not in ruled]
    return {rule.category: rule.base_minor for rule in gone}


def _rules(row: Any) -> PriceRules:
    return msgspec.json.decode(row["rules"], type=PriceRules)
