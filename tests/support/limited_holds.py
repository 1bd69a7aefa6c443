"""Holds of guests from an address range, and what the ledger's history says about the limits."""

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.app import App
from holdfast.bookings import Booking, address_party
from holdfast.engines.postgres import Postgres
from holdfast.errors import Refusal
from holdfast.holds import HoldRequest
from tests.support.claim_pool import Pool
from tests.support.own_engines import a_request
from tests.support.show_fixture import an_owner

# Seats without a payment, by party and by owner, after every move; the largest value each had.
HISTORY = """
WITH live AS (
    SELECT split_part(booking.claim_id, '@', 2) AS party, booking.owner_id, m.id,
           CASE WHEN m.move = 'hold' THEN 1 WHEN m.move IN ('confirm', 'expire', 'cancel') THEN -1 ELSE 0 END
               AS holds,
           cardinality(booking.seats) AS seats
      FROM booking_move AS m JOIN booking USING (show_id, number)
     WHERE show_id = $1 AND booking.claim_id LIKE '%@%'
), sums AS (
    SELECT party, owner_id,
           sum(holds * seats) OVER (PARTITION BY party ORDER BY id) AS party_seats,
           sum(holds) OVER (PARTITION BY owner_id ORDER BY id) AS owner_holds
      FROM live
)
SELECT (SELECT coalesce(jsonb_object_agg(party, most), '{}')
          FROM (SELECT party, max(party_seats) AS most FROM sums GROUP BY party) AS a)::text AS parties,
       (SELECT coalesce(max(owner_holds), 0) FROM sums) AS owner_holds
"""
TURN_CLOCK = (
    "UPDATE booking SET expires_at = expires_at - $2 * interval '1 s' WHERE show_id = $1",
    "UPDATE owner_count SET lapses_since = lapses_since - $2 * interval '1 s',"
    " lapsed_at = lapsed_at - $2 * interval '1 s' WHERE show_id = $1",
    "UPDATE party_count SET lapses_since = lapses_since - $2 * interval '1 s',"
    " lapsed_at = lapsed_at - $2 * interval '1 s' WHERE show_id = $1",
)


@dataclass(frozen=True)
class Most:
    """The most that was ever held at once without a payment."""

    party_seats: int  # of any address range
    owner_holds: int  # of any guest


async def most_at_once(postgres: Postgres, show_id: int) -> Most:
    row = await postgres.fetchrow(HISTORY, show_id)
    assert row is not None
    parties = msgspec.json.decode(row["parties"], type=dict[str, int])
    return Most(max(parties.values(), default=0), int(row["owner_holds"]))


async def guest_request(
    app: App, show_id: int, address: str, *seats: int, owner: int | None = None, **other: Any
) -> HoldRequest:
    """As the form of the show's page sends it for a guest at this address."""
    owner = owner or an_owner()
    request = await a_request(app, show_id, owner, *seats, **other)
    party = address_party(address, app.config.range_ipv4_bits, app.config.range_ipv6_bits)
    is_guest = other.get("is_guest", True)
    return replace(request, claim_id=f"{request.claim_id}@{party}", is_guest=is_guest)


async def guest_holds(app: App, show_id: int, address: str, *seats: int, **other: Any) -> Booking | Refusal:
    try:
        return await app.holds.hold(await guest_request(app, show_id, address, *seats, **other))
    except Refusal as refusal:
        return refusal


async def end_unpaid(app: App, booking: Booking) -> None:
    """The time of a hold is up, in both engines, and each has noticed."""
    await app.postgres.execute(
        "UPDATE booking SET expires_at = now() WHERE show_id = $1 AND number = $2",
        booking.show_id,
        booking.number,
    )
    pool = Pool(app.claims, app.redis, booking.show_id)
    now_ms = await pool.now_ms()
    await app.redis.call("ZADD", pool.key("ends"), "XX", now_ms - 1, str(booking.claim))
    await app.bookings.sweep(1000)
    await pool.map()


async def turn_clock(app: App, show_id: int, by_s: int) -> None:
    """So much time passes for the holds and the limits of this show, in both engines, and is noticed."""
    for statement in TURN_CLOCK:
        await app.postgres.execute(statement, show_id, by_s)
    pool, by_ms = Pool(app.claims, app.redis, show_id), by_s * 1000
    for claim in await app.redis.call("ZRANGE", pool.key("ends"), 0, -1):
        await app.redis.call("ZINCRBY", pool.key("ends"), -by_ms, claim)
    fields: dict[bytes, bytes] = await app.redis.call("HGETALL", pool.key("owners"))
    for name, value in fields.items():
        if name.startswith(b"-"):  # lapsed holds of an owner or a party
            lapses, first, last = map(int, value.split(b":"))
            turned = f"{lapses}:{first - by_ms}:{last - by_ms}"
            await app.redis.call("HSET", pool.key("owners"), name, turned)
    await app.bookings.sweep(1000)
    await pool.map()


async def forget_map(app: App, show_id: int) -> None:
    """Redis has lost the show; the next hold rebuilds it from the ledger."""
    pool = Pool(app.claims, app.redis, show_id)
    await app.redis.call("DEL", *[pool.key(name) for name in ("units", "ends", "owners", "meta", "changes")])
