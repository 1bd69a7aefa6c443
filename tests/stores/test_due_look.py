"""A worker asks once for all of its queues what is due. A job whose query missed its work would be late."""

import asyncio

import asyncpg
import pytest

from holdfast.app import App
from holdfast.background import worker_jobs
from holdfast.engines.due_look import DueLook, with_look
from holdfast.engines.loop import WhenDue, running

BOOKING = """
    INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                         prices_minor, amount_minor, currency, opened_at, expires_at)
    VALUES (1, 1, 1, 1, '{state}', 'r', 0, 'c', '{{1}}', '{{0}}', 0, 'EUR', now(), now())"""
SALE = """
    INSERT INTO sale (show_id, opens_at, closes_at, owner_seats_max, revision, epoch, map_stale, cancelled)
    VALUES (1, now() - interval '1 h', now() + interval '1 h', 1, 1, 2, {is_stale}, {is_cancelled})"""
NOTICE = """
    INSERT INTO notice (kind, channel, address, name, locale, show_id, due_at)
    VALUES ('booking_confirmed', 'mail', 'a@example.org', 'A', 'en', 1, now())"""
DELIVERY = """
    WITH endpoint AS (INSERT INTO webhook_endpoint (organiser_id, url, kinds, secret)
                      VALUES (1, 'https://example.org', '{}', '') RETURNING id)
    INSERT INTO webhook_delivery (endpoint_id, fact_id, kind, at, payload, state, due_at)
    SELECT id, 1, 'booking.held', now(), '', 'queued', now() FROM endpoint"""
LISTING = "INSERT INTO listing_due (what, id, due_at) VALUES ('event', 1, now())"
BLOCK = "INSERT INTO seat_block (show_id, number, release_at) VALUES (1, 1, now());"
PLAN = """INSERT INTO price_plan (show_id, rules, due_at) VALUES (1, '{"rules": []}', now())"""
# By job: what makes work for it.
WORK = {
    "SaleJobs.sweep": BOOKING.format(state="held"),
    "SaleJobs.rebuild_stale": SALE.format(is_stale=True, is_cancelled=False),
    "BlockJobs.release": BLOCK + BOOKING.format(state="blocked"),
    "RoomJobs.step": "INSERT INTO queue (show_id, opening) VALUES (1, 1)",
    "WaitlistJobs.poll": "INSERT INTO waitlist (show_id, is_live) VALUES (1, true)",
    "PriceJobs.step": PLAN,
    "PaymentJobs.carry_on": """
        INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway,
                             method, step, amount_minor, currency, hold_ends_at, deadline_at, due_at)
        VALUES (1, 1, 1, 1, 1, 'r', 0, 'k', 'sandbox', 'tok_ok', 'look_up', 1, 'EUR', now(), now(), now())""",
    "WebhookJobs.look": """
        INSERT INTO gateway_webhook (gateway, event_id, kind, show_id, number, attempt, body, due_at)
        VALUES ('sandbox', 'e', 'paid', 1, 1, 1, '', now())""",
    "RefundJobs.carry_out": """
        INSERT INTO refund (show_id, number, attempt, id, why, amount_minor, state, due_at)
        VALUES (1, 1, 1, 1, 'buyer', 1, 'requested', now())""",
    "RefundJobs.refund_shows": SALE.format(is_stale=False, is_cancelled=True),
    "SearchIndex.write_due": LISTING,
    "SearchIndex.write_counts": LISTING,
    "NoticeDelivery.set_aside": NOTICE,
    "DeliveryJobs.send": DELIVERY,
    "DeliveryJobs.send_again": DELIVERY,
    "Relay.relay": "INSERT INTO outbox (show_id, kind, body) VALUES (1, 'show.changed', '{}')",
}


def waiting_jobs(app: App) -> list[tuple[str, WhenDue]]:
    return [(job.__qualname__, pause) for pause, job in worker_jobs(app) if isinstance(pause, WhenDue)]


def test_every_job_that_waits_for_a_look_is_covered(app: App) -> None:
    assert {name for name, _ in waiting_jobs(app)} == set(WORK)


@pytest.mark.parametrize("name", WORK)
async def test_a_look_finds_the_work_of_a_job_and_nothing_without_it(app: App, name: str) -> None:
    queries = {pause.query for job, pause in waiting_jobs(app) if job == name}
    connection = await asyncpg.connect(app.config.database_url)
    await connection.execute("SET session_replication_role = replica")  # rows that stand alone
    undone = connection.transaction()
    await undone.start()
    before = [int(await connection.fetchval(query)) for query in queries]
    await connection.execute(WORK[name])
    after = [int(await connection.fetchval(query)) for query in queries]
    await undone.rollback()
    await connection.close()

    assert before == [0] * len(queries)
    assert all(after), queries


async def test_a_job_without_work_runs_once_and_again_when_a_look_finds_some(app: App) -> None:
    runs = asyncio.Queue[None]()

    async def work() -> int:
        runs.put_nowait(None)
        return 0

    is_due = False
    pause = WhenDue("SELECT 1", 0.0, above=1)
    many = WhenDue("SELECT 2", 0.0, above=1)
    async with running([(pause, work)]):
        await runs.get()
        await DueLook(app.postgres, [pause]).look()
        is_due = not runs.empty()
    async with running(with_look(app.postgres, [(many, work)])):
        await runs.get()
        await runs.get()

    assert not is_due, "one thing is left to another job"
