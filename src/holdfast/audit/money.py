"""Count what must never be true of the money: in the ledger by SQL, at the gateway by asking it."""

import asyncio
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from holdfast.audit.report import OurPayment, TheirPayment, Violation, disagreements, unknown_payments
from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.payments import Charge, Gateway, GatewayAnswer, parse_payment_key

Q = Queries("holdfast.audit", "money")

# Each with what it allows, in seconds, where it is about time.
MONEY_CHECKS: dict[str, tuple[int, ...]] = {
    "every_entry_balances": (),
    "journal_matches_payments": (),
    "paid_what_it_costs": (),
    "money_has_a_booking": (),
    "no_more_back_than_came": (),
    "one_ticket_per_seat": (),
    "late_refunds_were_late": (),
    "late_money_is_settled": (60,),
    "refunds_end_in_time": (900,),
    "payments_end_in_time": (90,),  # 60 s beyond the deadline, and a margin for the job
}
LOOK_UPS_AT_ONCE = 16
SETTLE_S = 1.0  # between two looks: what differs in both is not just on its way
MARGIN = timedelta(hours=1)  # our clock and the gateway's


async def money_violations(postgres: Postgres, check: str) -> list[Violation]:
    rows = await postgres.fetch(getattr(Q, check), *MONEY_CHECKS[check])
    return [Violation(check, row["show_id"], row["what"]) for row in rows]


async def gateway_violations(postgres: Postgres, gateway: Gateway) -> list[Violation]:
    """Compares every settled payment of the ledger with the gateway, in both directions."""
    ours = await _ours(postgres, gateway)
    theirs = await _theirs(gateway, await _since(postgres, gateway))
    theirs |= await _looked_up(gateway, [our for our in ours if our.key not in theirs])
    suspects = {v.what for v in disagreements(ours, theirs)} | {
        v.what for v in await _strangers(postgres, gateway, ours, theirs)
    }
    if not suspects:
        return []
    await asyncio.sleep(SETTLE_S)
    ours = await _ours(postgres, gateway)
    differing = [our for our in ours if any(disagreements([our], theirs))]
    theirs |= await _looked_up(gateway, differing)
    found = [*disagreements(ours, theirs), *await _strangers(postgres, gateway, ours, theirs)]
    return [violation for violation in found if violation.what in suspects]


async def _ours(postgres: Postgres, gateway: Gateway) -> list[OurPayment]:
    names = OurPayment.__struct_fields__
    rows = await postgres.fetch(Q.payments, gateway.name)
    return [OurPayment(**{name: row[name] for name in names}) for row in rows]


async def _since(postgres: Postgres, gateway: Gateway) -> datetime:
    oldest: datetime | None = await postgres.fetchval(Q.oldest_payment, gateway.name)
    return (oldest or datetime.now(UTC)) - MARGIN


async def _theirs(gateway: Gateway, since: datetime) -> dict[str, TheirPayment]:
    found: dict[str, TheirPayment] = {}
    after: str | None = None
    while True:
        page, after = await gateway.list_recent(since=since, after=after)
        for seen in page:
            if seen.key is not None and (seen.charge.answer is GatewayAnswer.YES or seen.key not in found):
                found[seen.key] = _their(seen.charge)
        if after is None:
            return found


async def _looked_up(gateway: Gateway, ours: Iterable[OurPayment]) -> dict[str, TheirPayment]:
    room = asyncio.Semaphore(LOOK_UPS_AT_ONCE)

    async def look_up(our: OurPayment) -> tuple[str, TheirPayment]:
        async with room:
            return our.key, _their(await gateway.look_up(key=our.key, reference=our.reference))

    return dict(await asyncio.gather(*(look_up(our) for our in ours)))


def _their(charge: Charge) -> TheirPayment:
    came = (charge.amount_minor or 0) if charge.answer is GatewayAnswer.YES else 0
    return TheirPayment(charge.reference, charge.currency, came, charge.refunded_minor if came else 0)


async def _strangers(
    postgres: Postgres, gateway: Gateway, ours: Collection[OurPayment], theirs: dict[str, TheirPayment]
) -> list[Violation]:
    """Under keys of bookings that we have: what another box office did at this gateway is its own."""
    known = {our.key for our in ours}
    known |= {row["key"] for row in await postgres.fetch(Q.keys_under_way, gateway.name)}
    of = {key: parts for key in theirs if key not in known and (parts := parse_payment_key(key))}
    shows, numbers = [show for show, _, _ in of.values()], [number for _, number, _ in of.values()]
    rows = await postgres.fetch(Q.bookings_known, shows, numbers)
    here = {(row["show_id"], row["number"]) for row in rows}
    is_ours = {key: show for key, (show, number, _) in of.items() if (show, number) in here}
    return list(unknown_payments(known, theirs, is_ours))
