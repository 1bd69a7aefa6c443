"""The only file that writes price rules, and the one that lets prices follow them.

    rules ──► look: the ledger's now, seats sold ──► another price? ──► price, revision, terms, price_change:
                                                                         one transaction, one fact

A hold is never priced by a rule: it is priced by the show's revision, and the ledger refuses one of before.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from holdfast.bookings import reprice_sale, seats_by_category
from holdfast.catalogue import Catalogue, NoSuchShow, Times, parse_next_prices, parse_terms
from holdfast.engines.postgres import Postgres, Transaction
from holdfast.engines.sql import Queries
from holdfast.errors import Busy
from holdfast.layouts import Layout
from holdfast.organisers.errors import ShowCancelled
from holdfast.organisers.show_forms import PlannedPrice, PriceChange, PricePlan
from holdfast.organisers.store import Scope
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

Q = Queries("holdfast.organisers", "price_rules")
SCHEDULE = Queries("holdfast.organisers", "shows")

CHANGES_TOLD_MAX = 100
SHOWS_MAX = 200  # looked at in one go


class PriceRulesStore:
    """The price rules of one keeper's shows."""

    def __init__(self, postgres: Postgres, catalogue: Catalogue, keeper: Scope, pause_s: float) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._keeper = keeper
        self._pause_s = pause_s

    async def preview(self, show_id: int, rules: PriceRules) -> RulesPreview:
        """What the rules would do. Nothing is changed."""
        layout = await self._layout(show_id)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            counted = await _counted(tx, show, layout)
        _refuse_bad(rules, show, counted)
        return preview_rules(rules, counted)

    async def put(self, show_id: int, rules: PriceRules) -> PricePlan:
        """From now on the prices follow these rules; they do so before this returns."""
        layout = await self._layout(show_id)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            if show["cancelled"]:
                raise ShowCancelled(show_id=show_id)
            counted = await _counted(tx, show, layout)
            _refuse_bad(rules, show, counted)
            text = msgspec.json.encode(rules).decode()
            before = await load_price_rules(tx, show_id)
            await tx.execute(Q.put_plan, show_id, text)
            await tx.execute(Q.keep_rules, show_id, text, self._keeper.account_id)
            back = _left_out(before, rules)
            await _follow(tx, show, counted, rules, back=back, actor_id=self._keeper.account_id)
            await _looked(tx, show, counted, rules, self._pause_s)
        return await self._told(show_id)

    async def remove(self, show_id: int) -> PricePlan:
        """No more rules: every category costs its base again."""
        layout = await self._layout(show_id)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            if (before := await load_price_rules(tx, show_id)) is not None:
                await tx.execute(Q.drop_plan, show_id)
                await tx.execute(Q.keep_rules, show_id, None, self._keeper.account_id)
                counted = await _counted(tx, show, layout)
                back = _left_out(before, None)
                await _follow(tx, show, counted, None, back=back, actor_id=self._keeper.account_id)
        return await self._told(show_id)

    async def plan(self, show_id: int) -> PricePlan:
        """Rules, prices and the newest changes, as of one moment."""
        layout = await self._layout(show_id)
        async with self._postgres.transaction() as tx:
            show = await self._show(tx, show_id, layout)
            prices = await _prices(tx, show_id)
            row = await tx.fetchrow(Q.plan, show_id)
            changes = await tx.fetch(Q.changes, show_id, CHANGES_TOLD_MAX)
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

    async def _told(self, show_id: int) -> PricePlan:
        self._catalogue.forget(show_id)
        self._catalogue.clear_cached_responses()
        return await self.plan(show_id)

    async def _layout(self, show_id: int) -> Layout:
        """Before the transaction: it may take a connection of its own."""
        return (await self._catalogue.organiser_show(show_id, self._keeper.organiser_id)).layout

    async def _show(self, tx: Transaction, show_id: int, layout: Layout) -> Any:
        show = await tx.fetchrow(Q.show, show_id, self._keeper.organiser_id)
        if show is None:
            raise NoSuchShow(show_id=show_id)
        if show["layout_hash"] != layout.hash:  # somebody has changed it since we looked
            self._catalogue.forget(show_id)
            raise Busy(retry_after_s=1)
        return show


async def list_due_shows(postgres: Postgres) -> list[tuple[int, str]]:
    """(show, layout) of those whose rules may say something new."""
    return [(row["show_id"], row["layout_hash"]) for row in await postgres.fetch(Q.due, SHOWS_MAX)]


async def update_prices(postgres: Postgres, show_id: int, layout: Layout, pause_s: float) -> bool:
    """Let the show's prices follow its rules; whether one has moved."""
    async with postgres.transaction() as tx:
        show = await tx.fetchrow(Q.show_if_free, show_id)
        if show is None or show["layout_hash"] != layout.hash:
            return False
        plan = await tx.fetchrow(Q.plan, show_id)
        if plan is None or not plan["is_due"]:
            return False  # somebody was faster
        rules, counted = _rules(plan), await _counted(tx, show, layout)
        moved = not _is_over(show) and await _follow(tx, show, counted, rules)
        await _looked(tx, show, counted, rules, pause_s)
    return moved


async def postpone_price_update(postgres: Postgres, show_id: int, pause_s: float) -> None:
    await postgres.execute(Q.put_off, show_id, pause_s)


async def load_price_rules(tx: Transaction, show_id: int) -> PriceRules | None:
    row = await tx.fetchrow(Q.plan, show_id)
    return _rules(row) if row else None


async def mark_prices_due(tx: Transaction, show_id: int) -> None:
    """Part of the transaction that changes a show's times or layout."""
    await tx.execute(Q.look_again, show_id)


async def record_price_changes(
    tx: Transaction, show: tuple[int, int], changed: Mapping[str, tuple[int | None, int]], actor_id: int
) -> None:
    """Audit rows of prices that an organiser has set, by category: what it was and what it is."""
    was, now = [old for old, _ in changed.values()], [new for _, new in changed.values()]
    unknown: list[int | None] = [None] * len(changed)
    await tx.execute(Q.add_changes, *show, list(changed), was, now, "organiser", actor_id, unknown, unknown)


def _refuse_bad(rules: PriceRules, show: Any, counted: PricingSnapshot) -> None:
    names = [category.name for category in counted.layout.categories]
    times = Times(**{name: show[name] for name in ("starts_at", "ends_at", "opens_at", "closes_at")})
    check_price_rules(rules, currency=show["currency"], categories=names, times=times)
    counted.terms.check(list_floors(rules))


async def _counted(tx: Transaction, show: Any, layout: Layout) -> PricingSnapshot:
    terms = parse_terms(await tx.fetchrow(SCHEDULE.terms, show["id"], show["revision"]))
    by_letter = await seats_by_category(tx, show["id"], layout.category_of)
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
        kept_back={name: by_letter.get((index, "blocked"), 0) for index, name in enumerate(names)},
    )


async def _prices(tx: Transaction, show_id: int) -> dict[str, int]:
    return {row["category"]: row["price_minor"] for row in await tx.fetch(SCHEDULE.prices, show_id)}


async def _follow(
    tx: Transaction,
    show: Any,
    counted: PricingSnapshot,
    rules: PriceRules | None,
    *,
    back: Mapping[str, int] | None = None,
    actor_id: int | None = None,
) -> bool:
    """Write the prices that differ from what the rules say, as a new revision of the show."""
    wanted = dict(back or {})
    for rule in rules.rules if rules else ():
        sold = counted.sold(rule.category)
        wanted[rule.category] = price_at(rule, counted.at, counted.starts_at, sold)
    moved = {name: price for name, price in wanted.items() if counted.prices[name] != price}
    if not moved:
        return False
    show_id, names, prices = show["id"], list(moved), list(moved.values())
    revision = await tx.fetchval(Q.raise_revision, show_id)
    await tx.execute(SCHEDULE.put_prices, [show_id] * len(names), names, prices)
    await tx.execute(SCHEDULE.copy_terms, show_id, revision)
    await reprice_sale(tx, show_id, revision)
    await tx.execute(
        Q.add_changes,
        show_id,
        revision,
        names,
        [counted.prices[name] for name in names],
        prices,
        "step" if actor_id is None else "rules",
        actor_id,
        [counted.sold(name).sold for name in names],
        [counted.sold(name).seats for name in names],
    )
    return True


async def _looked(
    tx: Transaction, show: Any, counted: PricingSnapshot, rules: PriceRules, pause_s: float
) -> None:
    """Write down what is told of the next step by time, and when to look again."""
    told: dict[str, NextPrice | None] = {
        rule.category: find_next_price(rule, counted.at, counted.starts_at, counted.sold(rule.category))
        for rule in rules.rules
    }
    due = [at for rule in rules.rules for at in list_step_instants(rule, counted.starts_at, counted.at)]
    if any(rule.demand for rule in rules.rules):
        due.append(counted.at + timedelta(seconds=pause_s))
    due_at = None if _is_over(show) else min(due, default=None)
    await tx.execute(Q.looked, counted.show_id, msgspec.json.encode(told).decode(), due_at)


def _is_over(show: Any) -> bool:
    return bool(show["cancelled"] or show["closes_at"] <= show["at"])


def _left_out(before: PriceRules | None, now: PriceRules | None) -> dict[str, int]:
    """Categories that had a rule and have none any more go back to their base."""
    kept = {rule.category for rule in now.rules} if now else set()
    gone = [rule for rule in (before.rules if before else ()) if rule.category not in kept]
    return {rule.category: rule.base_minor for rule in gone}


def _rules(row: Any) -> PriceRules:
    return msgspec.json.decode(row["rules"], type=PriceRules)
