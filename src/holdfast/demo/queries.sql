-- Bringing the demo's data in, and up to date. Every statement may run again and then adds nothing.

-- name: lock_demo
-- Two demos on one ledger take turns.
SELECT pg_advisory_xact_lock(7466215310);

-- name: instants
-- Times on the walls of cities as instants. The ledger's time zones, so that no machine needs its own.
  SELECT input.at AT TIME ZONE input.timezone AS instant
    FROM unnest($1::timestamp[], $2::text[]) WITH ORDINALITY AS input (at, timezone, place)
ORDER BY input.place;

-- name: shows_to_come
-- What is on from now on: what need not be added, and what the welcome tells.
  SELECT show_id AS id, event_id, hall_id, title, seats, currency, from_price_minor, starts_at, opens_at
    FROM show_detail
   WHERE hall_id = ANY ($1::bigint[])
     AND starts_at > now()
     AND NOT cancelled
ORDER BY starts_at, show_id;

-- name: has_accounts_table
SELECT to_regclass('account') IS NOT NULL;

-- name: has_other_data
-- Visitors of the demo may sign up; organisers, their events and an office without the demo are real.
WITH demo AS (SELECT id, email FROM account WHERE email LIKE '%@holdfast.example')
SELECT EXISTS (SELECT FROM account WHERE role <> 'fan' AND id NOT IN (SELECT id FROM demo))
    OR EXISTS (SELECT FROM event WHERE organiser_id NOT IN (SELECT id FROM demo))
    OR EXISTS (SELECT FROM account WHERE id NOT IN (SELECT id FROM demo))
       AND NOT EXISTS (SELECT FROM demo WHERE email = 'organiser@holdfast.example');
