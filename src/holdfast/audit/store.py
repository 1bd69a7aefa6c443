"""Count violations of the invariants: in the ledger by SQL, on the map by comparing it with the ledger.

Storm tests, the demo and operators run this same function (`holdfast audit`).
"""

import asyncio

from holdfast.audit.money import MONEY_CHECKS, gateway_violations, money_violations
from holdfast.audit.report import CHECK as GATEWAY_CHECK
from holdfast.audit.report import Report, Violation
from holdfast.bookings import Bookings
from holdfast.claim import Claims, PoolMap
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.holds import MapDifference, differences
from holdfast.payments import Gateway

Q = Queries("holdfast.audit")

CHECKS = (
    "one_owner_per_seat",
    "seats_taken_as_booked",
    "no_owner_over_the_limit",
    "every_move_recorded",
    "moves_follow_the_state_machine",
    "one_fact_per_move",
    "amounts_add_up",
)
SWEPT_WITHIN_S = 10
SETTLE_S = 1.0  # between two looks at a map: what differs in both is not just on its way
LOOKS_MAX = 2


async def audit(
    postgres: Postgres, ledger: Bookings, claims: Claims | None = None, gateway: Gateway | None = None
) -> Report:
    """With `claims`, the map of every show with something on it is compared with the ledger too.

    With a `gateway`, every payment and refund is compared with the gateway's.
    """
    report = Report()
    for check in CHECKS:
        rows = await postgres.fetch(getattr(Q, check))
        report.note(check, [Violation(check, row["show_id"], row["what"]) for row in rows])
    rows = await postgres.fetch(Q.expired_holds_are_closed, SWEPT_WITHIN_S)
    report.note(
        "expired_holds_are_closed",
        [Violation("expired_holds_are_closed", r["show_id"], r["what"]) for r in rows],
    )
    for check in MONEY_CHECKS:
        report.note(check, await money_violations(postgres, check))
    if gateway is not None:
        report.note(GATEWAY_CHECK, await gateway_violations(postgres, gateway))
    if claims is not None:
        report.note("map_equals_ledger", await _map_violations(postgres, ledger, claims))
    metrics.set("oversold_seats", report.checks["one_owner_per_seat"])
    return report


async def oversold(postgres: Postgres) -> int:
    """Seats with two live owners, for the gauge that must be 0; the full audit runs on demand."""
    count = len(await postgres.fetch(Q.one_owner_per_seat))
    metrics.set("oversold_seats", count)
    return count


async def shows_on_the_map(postgres: Postgres) -> list[int]:
    """Shows with a live booking, or a sale that is open."""
    return [row["show_id"] for row in await postgres.fetch(Q.shows_on_the_map)]


async def _map_violations(postgres: Postgres, ledger: Bookings, claims: Claims) -> list[Violation]:
    """Shows without a map are skipped: their map is built from the ledger on the first request."""
    shows = await shows_on_the_map(postgres)
    found = {show_id: await _differences(show_id, ledger, claims) for show_id in shows}
    for _ in range(LOOKS_MAX - 1):
        if any(found.values()):
            await asyncio.sleep(SETTLE_S)
        for show_id in [show_id for show_id, seen in found.items() if seen]:
            found[show_id] &= await _differences(show_id, ledger, claims)
    return [
        Violation("map_equals_ledger", show_id, str(difference))
        for show_id, seen in found.items()
        for difference in sorted(seen, key=str)
    ]


async def _differences(show_id: int, ledger: Bookings, claims: Claims) -> set[MapDifference]:
    pool = await claims.read(show_id, with_claims=True)
    if not isinstance(pool, PoolMap):
        return set()
    return set(differences(pool, await ledger.live_bookings(show_id)))
