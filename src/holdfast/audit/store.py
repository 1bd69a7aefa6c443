"""Count violations of the invariants: in the ledger by SQL, on the map by comparing it with the ledger.

The money is counted in the ledger by SQL, and compared with the gateway's answers. Storm
tests, the demo and operators run this same function (`holdfast audit`).
"""

import asyncio
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

import asyncpg

from holdfast.audit.report import CHECK as GATEWAY_CHECK
from holdfast.audit.report import OurPayment, Report, TheirPayment, Violation, disagreements, unknown_payments
from holdfast.bookings import Bookings
from holdfast.claim import Claims, PoolMap
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.holds import differences
from holdfast.payments import Charge, Gateway, GatewayAnswer, parse_payment_key

Q = Queries("holdfast.audit")
MONEY = Queries("holdfast.audit", "money")
AUDIT_LOG = Queries("holdfast.audit", "audit_log")
QUEUES = Queries("holdfast.audit", "queues")
WAITLIST = Queries("holdfast.audit", "waitlist")

CHECKS = (
    "one_owner_per_seat",
    "seats_taken_as_booked",
    "no_owner_over_the_limit",
    "no_range_miscounted",
    "every_move_recorded",
    "moves_follow_the_state_machine",
    "one_fact_per_move",
    "amounts_add_up",
)
QUEUE_CHECKS = (
    "one_live_place_per_person",
    "one_place_per_number",
    "people_called_in_order",
    "people_inside_within_the_cap",
    "draw_as_committed",
)
AUDIT_LOG_CHECKS = ("audit_log_is_whole", "audit_log_is_erased_on_record", "audit_log_has_its_end")
WAITLIST_CHECKS = ("reserved_seats_have_their_key", "reserved_seats_are_waited_for", "every_offer_ends")
# What holds in the rows of past shows, too: of one show, in the files of an archive.
ARCHIVED_CHECKS = {
    **dict.fromkeys(
        ("one_owner_per_seat", "every_move_recorded", "moves_follow_the_state_machine", "amounts_add_up"), Q
    ),
    **dict.fromkeys(
        ("every_entry_balances", "journal_matches_payments", "paid_what_it_costs", "money_has_a_booking"),
        MONEY,
    ),
    **dict.fromkeys(("no_more_back_than_came", "one_ticket_per_seat", "late_refunds_were_late"), MONEY),
}
AUDIT_WITHIN_S = 600  # for each of its statements: they read whole tables
SWEPT_WITHIN_S = 10
OFFERED_WITHIN_S = 60  # a step of the waitlist that is later than this is missing
SETTLE_S = 1.0  # between two looks at a map or a gateway: what differs in both is not just on its way
LOOKS_MAX = 2


async def audit(
    postgres: Postgres, bookings: Bookings, claims: Claims | None = None, gateway: Gateway | None = None
) -> Report:
    """With `claims`, the map of every show with something on it is compared with the ledger too.

    With a `gateway`, every payment and refund is compared with the gateway's.
    """
    report = Report()
    for check in CHECKS:
        rows = await postgres.fetch(getattr(Q, check), timeout=AUDIT_WITHIN_S)
        report.note(check, [Violation(check, row["show_id"], row["what"]) for row in rows])
    rows = await postgres.fetch(Q.expired_holds_are_closed, SWEPT_WITHIN_S, timeout=AUDIT_WITHIN_S)
    report.note(
        "expired_holds_are_closed",
        [Violation("expired_holds_are_closed", r["show_id"], r["what"]) for r in rows],
    )
    for check in WAITLIST_CHECKS:
        rows = await postgres.fetch(getattr(WAITLIST, check), OFFERED_WITHIN_S, timeout=AUDIT_WITHIN_S)
        report.note(check, [Violation(check, row["show_id"], row["what"]) for row in rows])
    for check in MONEY_CHECKS:
        report.note(check, await money_violations(postgres, check))
    for check in QUEUE_CHECKS:
        rows = await postgres.fetch(getattr(QUEUES, check), timeout=AUDIT_WITHIN_S)
        report.note(check, [Violation(check, row["show_id"], row["what"]) for row in rows])
    for check in AUDIT_LOG_CHECKS:
        report.note(check, await audit_log_violations(postgres, check))
    if gateway is not None:
        report.note(GATEWAY_CHECK, await gateway_violations(postgres, gateway))
    if claims is not None:
        report.note("map_equals_ledger", await _map_violations(postgres, bookings, claims))
    metrics.measure("oversold_seats", report.checks["one_owner_per_seat"])
    return report


async def find_violations(connection: Queryable, check: str) -> list[Violation]:
    """One of ARCHIVED_CHECKS, in the tables that the connection sees."""
    rows = await connection.fetch(getattr(ARCHIVED_CHECKS[check], check))
    return [Violation(check, row["show_id"], row["what"]) for row in rows]


async def shows_on_the_map(postgres: Postgres) -> list[int]:
    """Shows with a live booking, or a sale that is open."""
    return [row["show_id"] for row in await postgres.fetch(Q.shows_on_the_map, timeout=AUDIT_WITHIN_S)]


async def _map_violations(postgres: Postgres, bookings: Bookings, claims: Claims) -> list[Violation]:
    """Shows without a map are skipped: their map is built from the ledger on the first request."""
    shows = await shows_on_the_map(postgres)
    found = {show_id: await _differences(show_id, bookings, claims) for show_id in shows}
    for _ in range(LOOKS_MAX - 1):
        if any(found.values()):
            await asyncio.sleep(SETTLE_S)
        for show_id in [show_id for show_id, seen in found.items() if seen]:
            found[show_id] &= await _differences(show_id, bookings, claims)
    return [
        Violation("map_equals_ledger", show_id, difference)
        for show_id, seen in found.items()
        for difference in sorted(seen)
    ]


async def _differences(show_id: int, bookings: Bookings, claims: Claims) -> set[str]:
    try:
        pool = await claims.read(show_id, with_claims=True)
        if not isinstance(pool, PoolMap):
            return set()
        return {str(one) for one in differences(pool, await bookings.live_bookings(show_id))}
    except (EngineDown, asyncpg.PostgresError):
        raise
    except Exception as error:  # a key of another type, or text that is not a claim: this show alone
        return {f"the map in Redis is broken: {error}; run `holdfast rebuild {show_id}`"}


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
MARGIN = timedelta(hours=1)  # our clock and the gateway's


async def money_violations(postgres: Postgres, check: str) -> list[Violation]:
    rows = await postgres.fetch(getattr(MONEY, check), *MONEY_CHECKS[check], timeout=AUDIT_WITHIN_S)
    return [Violation(check, row["show_id"], row["what"]) for row in rows]


async def audit_log_violations(postgres: Postgres, check: str) -> list[Violation]:
    rows = await postgres.fetch(getattr(AUDIT_LOG, check), timeout=AUDIT_WITHIN_S)
    return [Violation(check, None, row["what"]) for row in rows]


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
    rows = await postgres.fetch(MONEY.payments, gateway.name)
    return [OurPayment(**{name: row[name] for name in names}) for row in rows]


async def _since(postgres: Postgres, gateway: Gateway) -> datetime:
    oldest: datetime | None = await postgres.fetchval(MONEY.oldest_payment, gateway.name)
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
    known |= {row["key"] for row in await postgres.fetch(MONEY.keys_under_way, gateway.name)}
    of = {key: parts for key in theirs if key not in known and (parts := parse_payment_key(key))}
    shows, numbers = [show for show, _, _ in of.values()], [number for _, number, _ in of.values()]
    rows = await postgres.fetch(MONEY.bookings_known, shows, numbers)
    here = {(row["show_id"], row["number"]) for row in rows}
    is_ours = {key: show for key, (show, number, _) in of.items() if (show, number) in here}
    return list(unknown_payments(known, theirs, is_ours))
