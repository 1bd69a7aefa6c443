-- A past for bench/growth.py: shows that are over, sold ($2 bookings of each), and lapsed holds of this year.

-- name: past_shows
-- $2 copies of show $1, one per day, the last of them two years ago.
INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency,
                  hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule)
SELECT event_id, hall_id, layout_hash, at, at + interval '2 hours', at - interval '30 days', at, currency,
       hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule
  FROM show, generate_series(1, $2::int) AS i,
       LATERAL (SELECT now() - (730 + i % 1000) * interval '1 day' AS at) AS a
 WHERE id = $1
RETURNING id;

-- name: past_sales
INSERT INTO sale (show_id, opens_at, closes_at, owner_seats_max, revision, epoch, map_stale)
SELECT id, opens_at, closes_at, owner_seats_max, revision, 2, false FROM show WHERE id = ANY ($1::bigint[]);

-- name: sold
-- $2 bookings of two seats of each of these shows.
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, opened_at, expires_at, confirmed_at)
SELECT sale.show_id, nextval('ledger_number'), i, 1, 'confirmed', 'sold' || i, 0, 'sold' || i,
       ARRAY[2 * i, 2 * i + 1], '{1500,1500}', 3000, 'EUR', sale.closes_at, sale.closes_at, sale.closes_at
  FROM sale, generate_series(0, $2::int - 1) AS i
 WHERE sale.show_id = ANY ($1::bigint[]);

-- name: lapsed
-- $2 holds of each of these shows that lapsed more than a month ago.
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, opened_at, expires_at)
SELECT show_id, nextval('ledger_number'), 100000000 + i, 1, 'expired', 'lapsed' || i, 0, 'lapsed' || i,
       '{1,2}', '{1500,1500}', 3000, 'EUR', at, at
  FROM unnest($1::bigint[]) AS show_id, generate_series(1, $2::int) AS i,
       LATERAL (SELECT now() - interval '40 days' - (show_id * 1000 + i) * interval '1 ms' AS at) AS a;

-- name: taken
INSERT INTO taken_seat (show_id, seat, number)
SELECT show_id, unnest(seats), number FROM booking WHERE state = 'confirmed' AND show_id = ANY ($1::bigint[]);

-- name: counted
INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
SELECT show_id, owner_id, 2, 10 FROM booking WHERE state = 'confirmed' AND show_id = ANY ($1::bigint[]);

-- name: moved
INSERT INTO booking_move (show_id, number, move, state, fence, at)
SELECT booking.show_id, booking.number, step.move, step.state::booking_state, 1, booking.opened_at
  FROM booking,
       LATERAL (VALUES ('hold', 'held'),
                       (CASE booking.state WHEN 'confirmed' THEN 'confirm' ELSE 'expire' END,
                        booking.state::text)) AS step (move, state)
 WHERE booking.show_id = ANY ($1::bigint[]) AND booking.state IN ('confirmed', 'expired');

-- name: live
-- Bookings that the gauge of oversold seats reads: those of sales that are open.
SELECT count(*) FROM booking JOIN sale USING (show_id)
 WHERE booking.state = 'held' AND sale.closes_at > now();

-- name: open_sales
-- That the gauge of oversold seats goes through: those that were over yesterday are not among them.
SELECT count(*) FROM sale WHERE closes_at > now();

-- name: settle
VACUUM (ANALYZE) booking, booking_move, taken_seat, owner_count, sale;
