"""The audit finds what must never be: each violation, planted by hand, and none in a clean sale."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.app import App
from holdfast.audit import Report, audit
from holdfast.audit.store import AUDIT_LOG_CHECKS, MONEY_CHECKS, QUEUE_CHECKS
from tests.support.cli_process import run_holdfast
from tests.support.opened import engines_of
from tests.support.own_engines import hold
from tests.support.show_fixture import Till, a_till, an_owner

FORGET = (
    "DELETE FROM booking WHERE show_id = $1",
    "DELETE FROM taken_seat WHERE show_id = $1",
    "DELETE FROM owner_count WHERE show_id = $1",
    "DELETE FROM party_count WHERE show_id = $1",
    "DELETE FROM booking_move WHERE show_id = $1",
    "DELETE FROM outbox WHERE show_id = $1",
    "DELETE FROM ticket WHERE show_id = $1",
    "DELETE FROM reserved_seat WHERE show_id = $1",
    "DELETE FROM waitlist_offer WHERE show_id = $1",
)

# What a broken program, or a person with psql, could do to a show ($1) with a HELD booking of two seats.
PLANTS = {
    "one_owner_per_seat": "INSERT INTO booking (show_id, number, owner_id, fence, state, request_id,"
    " body_hash, claim_id, seats, prices_minor, amount_minor, currency, opened_at, expires_at)"
    " SELECT show_id, nextval('ledger_number'), 1, 1, state, 'twice', 0, 'c', seats, prices_minor,"
    " amount_minor, currency, opened_at, expires_at FROM booking WHERE show_id = $1",
    "seats_taken_as_booked": "DELETE FROM taken_seat WHERE show_id = $1 AND seat = 3",
    "no_owner_over_the_limit": "UPDATE owner_count SET seats = seats - 1 WHERE show_id = $1",
    "no_range_miscounted": "INSERT INTO party_count (show_id, party, seats) VALUES ($1, 'range', 2)",
    "every_move_recorded": "UPDATE booking SET state = 'cancelled' WHERE show_id = $1",
    "moves_follow_the_state_machine": "INSERT INTO booking_move (show_id, number, move, state, fence)"
    " SELECT show_id, number, 'refund', 'refunded', fence FROM booking WHERE show_id = $1",
    "one_fact_per_move": "DELETE FROM outbox WHERE show_id = $1",
    "amounts_add_up": "UPDATE booking SET amount_minor = amount_minor - 1 WHERE show_id = $1",
    "expired_holds_are_closed": "UPDATE booking SET expires_at = now() - interval '1 minute'"
    " WHERE show_id = $1",
    "reserved_seats_have_their_key": "INSERT INTO reserved_seat (show_id, seat) VALUES ($1, 7)",
    "reserved_seats_are_waited_for": "WITH key AS (INSERT INTO taken_seat (show_id, seat, number)"
    " VALUES ($1, 7, 0)) INSERT INTO reserved_seat (show_id, seat, since)"
    " VALUES ($1, 7, now() - interval '1 hour')",
    "every_offer_ends": "INSERT INTO waitlist_offer (show_id, number, entry, seats, expires_at)"
    " VALUES ($1, 1, 1, '{3}', now())",
}


@pytest.fixture
async def till(app: App) -> AsyncIterator[Till]:
    """A show with one hold; everything about it is forgotten afterwards."""
    till = await a_till(app, 10)
    await hold(app, till.show, an_owner(), 3, 4)
    yield till
    for forget in FORGET:
        await app.postgres.execute(forget, till.show)
    await app.redis.call("DEL", f"meta:{{{till.show}}}")


async def found(till: Till) -> list[str]:
    return _of(till, await audit(till.postgres, till.ledger, till.app.claims))


async def test_a_clean_sale_has_nothing_to_find(till: Till) -> None:
    """Held, cancelled, lapsed and swept, free and confirmed, blocked and unblocked."""
    app, show = till.app, till.show
    await app.holds.cancel(await hold(app, show, an_owner(), 0))
    lapsed = await hold(app, show, an_owner(), 1)
    await till.lapse(lapsed.number)
    await app.claims.settle_many(show, [])
    await till.ledger.sweep(500)
    await till.opened(7, price_minor=0)
    await app.holds.block(show, [8, 9], "camera", an_owner())
    (block,) = await till.ledger.blocks(show)
    await app.holds.unblock(block, an_owner())
    await till.ledger.mark_map_stale(show)
    await app.seatmap.rebuild(show, "test")

    assert await found(till) == []


@pytest.mark.parametrize("check", PLANTS)
async def test_a_planted_violation_is_found(till: Till, check: str) -> None:
    await till.postgres.execute(PLANTS[check], till.show)

    assert check in await found(till)


async def test_an_owner_with_more_than_is_allowed_is_found(till: Till) -> None:
    """The counter is correct, but the limit is exceeded: the constraint was dropped."""
    await till.postgres.execute(
        "ALTER TABLE owner_count DROP CONSTRAINT no_owner_has_more_seats_than_allowed"
    )
    await till.postgres.execute("UPDATE owner_count SET seats_max = 1 WHERE show_id = $1", till.show)

    names = await found(till)

    await till.postgres.execute("UPDATE owner_count SET seats_max = 2 WHERE show_id = $1", till.show)
    await till.postgres.execute(
        "ALTER TABLE owner_count ADD CONSTRAINT no_owner_has_more_seats_than_allowed"
        " CHECK (seats BETWEEN 0 AND seats_max)"
    )
    assert names == ["no_owner_over_the_limit"]


async def test_a_map_that_differs_from_the_ledger_is_found(till: Till) -> None:
    await till.app.redis.call("SETRANGE", f"units:{{{till.show}}}", 3, "A")

    assert await found(till) == ["map_equals_ledger"]


# What a broken program, or a person with redis-cli, could do to a map.
BROKEN_MAPS = {
    "states of a wrong type": (("DEL", "units"), ("RPUSH", "units", "A")),
    "states that are missing": (("DEL", "units"),),
    "claims of a wrong type": (("DEL", "ends"), ("SET", "ends", "x")),
    "a claim without seats": (("ZADD", "ends", 9e15, "claim|7|"),),
    "an epoch that is not a number": (("HSET", "meta", "epoch", "x"),),
    "a header of a wrong type": (("DEL", "meta"), ("SET", "meta", "x")),
}


@pytest.mark.parametrize("how", BROKEN_MAPS)
async def test_a_broken_map_is_a_violation_and_does_not_stop_the_audit(till: Till, how: str) -> None:
    differing = await a_till(till.app, 10)
    await hold(till.app, differing.show, an_owner(), 3)
    await till.app.redis.call("SETRANGE", f"units:{{{differing.show}}}", 3, "A")
    for command, key, *args in BROKEN_MAPS[how]:
        await till.app.redis.call(command, f"{key}:{{{till.show}}}", *args)

    report = await audit(till.postgres, till.ledger, till.app.claims)

    (broken,) = [violation.what for violation in report.violations if violation.show_id == till.show]
    assert broken.startswith("the map in Redis is broken: ")
    assert broken.endswith(f"; run `holdfast rebuild {till.show}`")
    assert _of(differing, report) == ["map_equals_ledger"], "and the maps after it are compared"
    for one in (till, differing):
        await one.ledger.mark_map_stale(one.show)
        await one.app.seatmap.rebuild(one.show, "test")
    assert await found(till) == await found(differing) == []


async def test_a_difference_that_disappears_by_itself_is_not_reported(till: Till) -> None:
    """A claim whose row is on its way: only what is still there at the second look counts."""
    units = f"units:{{{till.show}}}"
    await till.app.redis.call("SETRANGE", units, 3, "A")
    looking = asyncio.create_task(found(till))
    await asyncio.sleep(0.5)
    await till.app.redis.call("SETRANGE", units, 3, "H")

    assert await looking == []


async def test_every_audit_check_has_a_planted_violation(till: Till) -> None:
    report = await audit(till.postgres, till.ledger, till.app.claims)

    assert set(report.checks) == {
        *PLANTS,
        *MONEY_CHECKS,
        *AUDIT_LOG_CHECKS,
        *QUEUE_CHECKS,
        "map_equals_ledger",
    }


def _of(till: Till, report: Report) -> list[str]:
    """The checks that complain about this show."""
    return sorted({violation.check for violation in report.violations if violation.show_id == till.show})


async def test_the_command_fails_if_anything_is_violated(app: App, till: Till) -> None:
    """The exit code and the total of its report agree, with and without a violation."""
    env = {
        **engines_of(app.config),
        "HOLDFAST_GATEWAY": "sandbox",
        "HOLDFAST_GATEWAY_URL": app.config.gateway_url,
        "HOLDFAST_GATEWAY_SECRET": app.config.gateway_secret,
    }
    clean = await run_holdfast("audit", "--map", "--gateway", "--json", **env)
    await app.postgres.execute(PLANTS["amounts_add_up"], till.show)

    violated = await run_holdfast("audit", "--map", "--gateway", "--json", **env)

    assert (clean.code, clean.page["total"]) == (0, 0)
    assert violated.code == 1
    assert violated.page["total"] > 0
