-- name: copy_shows
-- Copies of a show, with the ids that follow its own.
INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency,
                  hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule)
SELECT event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency,
       hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule
  FROM show, unnest($2::bigint[]) AS copy
 WHERE id = $1 AND copy <> $1;

-- name: copy_prices
INSERT INTO price (show_id, category, price_minor)
SELECT copy, category, price_minor
  FROM price, unnest($2::bigint[]) AS copy
 WHERE show_id = $1 AND copy <> $1;

-- name: copy_terms
INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max)
SELECT copy, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max
  FROM show_terms, unnest($2::bigint[]) AS copy
 WHERE show_id = $1 AND copy <> $1;

-- name: copy_sales
INSERT INTO sale (show_id, opens_at, closes_at, cancelled, owner_seats_max, revision)
SELECT copy, opens_at, closes_at, cancelled, owner_seats_max, revision
  FROM sale, unnest($2::bigint[]) AS copy
 WHERE show_id = $1 AND copy <> $1;

-- name: one_booking
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, opened_at, expires_at)
VALUES ($1, $2::bigint, $2::bigint, $2::bigint, 'held', 'r' || $2::bigint, 1, 'c' || $2::bigint, $3,
        '{1500,1500}', 3000, 'EUR', now(), now() + interval '10 min');

-- name: one_pair
INSERT INTO taken_seat (show_id, seat, number) SELECT $1, seat, $2 FROM unnest($3::int[]) AS seat;

-- name: one_count
INSERT INTO owner_count (show_id, owner_id, seats, seats_max) VALUES ($1, $2, 2, 10)
    ON CONFLICT (show_id, owner_id) DO UPDATE SET seats = owner_count.seats + 2;

-- name: one_move
INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
VALUES ($1, $2, 'hold', 'held', $2, $2);

-- name: one_fact
INSERT INTO outbox (show_id, number, kind, ends_at) VALUES ($1, $2, 'booking.held', now());

-- name: seat_table
-- What a shop without a seat map would lock: one row per seat.
CREATE TABLE seat_row (show_id bigint, seat int, number bigint, PRIMARY KEY (show_id, seat));

-- name: seat_rows
INSERT INTO seat_row SELECT $1, seat, NULL FROM generate_series(0, $2 - 1) AS seat;

-- name: lock_seats
  SELECT seat
    FROM seat_row
   WHERE show_id = $1 AND seat = ANY ($2::int[]) AND number IS NULL
ORDER BY seat
     FOR UPDATE;

-- name: take_seats
UPDATE seat_row SET number = $3 WHERE show_id = $1 AND seat = ANY ($2::int[]);

-- name: seats_confirmed
SELECT coalesce(sum(cardinality(seats)), 0)::int FROM booking WHERE show_id = $1 AND state = 'confirmed';

-- name: payments_in_progress
SELECT count(*)::int FROM payment WHERE due_at IS NOT NULL;

-- name: commits
-- Of all clients; a statement outside a transaction counts as one.
SELECT xact_commit FROM pg_stat_database WHERE datname = current_database();

-- name: transactions_and_writes
-- Transactions of all clients, this one included, and rows written to the tables that a sale writes to.
SELECT xact_commit::int AS "transactions",
       (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int
          FROM pg_stat_user_tables
         WHERE relname IN ('booking', 'booking_move', 'outbox', 'owner_count', 'sale', 'taken_seat'))
       AS "rows written"
  FROM pg_stat_database
 WHERE datname = current_database();

-- name: tickets_sent
SELECT count(*)::int FROM notice WHERE kind = 'tickets' AND state = 'sent';

-- name: notices_dead
SELECT count(*)::int FROM notice WHERE state = 'dead';

-- name: facts_now
-- The last fact written; of each consumer its checkpoint and the age of the oldest fact after it.
SELECT 'written' AS name, coalesce(max(id), 0) AS at_id, 0::float8 AS lag_s FROM outbox
 UNION ALL
SELECT name, checkpoint,
       coalesce(extract(epoch FROM now() - (SELECT at FROM outbox WHERE id > checkpoint
                                         ORDER BY id LIMIT 1)), 0)::float8
  FROM consumer_group;

-- name: fill_queue
-- As after a draw with so many people in it.
UPDATE queue
   SET joined = $2, entrants = $2, state = 'admitting', drawn_at = now(), key = '\x00'
 WHERE show_id = $1;
