-- A box office with a past: run in a database that has one show, which is on sale. 1 000 past shows with
-- 20 000 bookings, 300 of them cancelled with one blocked seat each, and 20 000 lapsed holds of the one show.

CREATE TEMP TABLE live AS SELECT * FROM show;

INSERT INTO account (email, name)
SELECT 'guest' || i || '@guest.invalid', 'Guest' FROM generate_series(1, 5000) AS i;

INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency,
                  hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule, cancelled)
SELECT event_id, hall_id, layout_hash, at, at + interval '2 hours', at - interval '30 days', at, currency,
       hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule, i <= 300
  FROM live, generate_series(1, 1000) AS i, LATERAL (SELECT now() - (500 + i) * interval '1 day' AS at) AS a;

ALTER TABLE sale DISABLE TRIGGER publish_new_sale;
INSERT INTO sale (show_id, opens_at, closes_at, cancelled, owner_seats_max, revision, epoch, map_stale)
SELECT id, opens_at, closes_at, cancelled, owner_seats_max, revision, 2, id % 2 = 0
  FROM show WHERE id NOT IN (SELECT id FROM live);
ALTER TABLE sale ENABLE TRIGGER publish_new_sale;
INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max)
SELECT show.id, 1, fee_minor, fee_bp, tax_bp, terms.refund_policy, card_seats_max
  FROM show, show_terms AS terms WHERE show.id NOT IN (SELECT id FROM live);

INSERT INTO price (show_id, category, price_minor)
SELECT show.id, category, price_minor FROM show, price WHERE show.id NOT IN (SELECT id FROM live);

-- Sold: 20 of each past show that took place.
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, opened_at, expires_at, confirmed_at)
SELECT show.id, nextval('ledger_number'), i, 1, 'confirmed', 'sold' || i, 0, 'sold' || i,
       ARRAY[2 * i, 2 * i + 1], '{1500,1500}', 3000, 'EUR', show.closes_at - interval '2 days',
       show.closes_at - interval '2 days',
       show.closes_at - interval '2 days'
  FROM show, generate_series(0, 19) AS i
 WHERE show.id NOT IN (SELECT id FROM live) AND NOT show.cancelled;
-- Cancelled shows keep their blocked seats.
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, note, counts, opened_at, expires_at)
SELECT id, nextval('ledger_number'), 1, 1, 'blocked', 'block', 0, 'block', '{0}', '{0}', 0, 'XXX', 'camera',
       false, closes_at - interval '2 days', now() + interval '100 years'
  FROM show WHERE cancelled;
-- Lapsed holds of the show on sale.
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, opened_at, expires_at)
SELECT live.id, nextval('ledger_number'), 1000000 + i, 1, 'expired', 'lapsed' || i, 0, 'lapsed' || i, '{1,2}',
       '{1500,1500}', 3000, 'EUR', now() - interval '41 days',
       now() - interval '40 days' - i * interval '1 ms'
  FROM live, generate_series(1, 20000) AS i;

INSERT INTO taken_seat (show_id, seat, number)
SELECT show_id, unnest(seats), number FROM booking WHERE state IN ('confirmed', 'blocked');
INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
SELECT show_id, owner_id, 2, 10 FROM booking WHERE state = 'confirmed' AND counts;
INSERT INTO booking_move (show_id, number, move, state, fence, actor_id, at)
SELECT booking.show_id, booking.number, m.move, m.state::booking_state, 1, NULL::bigint, booking.opened_at
  FROM booking,
       LATERAL (VALUES ('hold', 'held'),
                       (CASE booking.state WHEN 'confirmed' THEN 'confirm' ELSE 'expire' END,
                        booking.state::text)) AS m (move, state)
 WHERE booking.counts
 UNION ALL
SELECT show_id, number, 'block', 'blocked', 1, NULL, opened_at FROM booking WHERE NOT counts
ORDER BY 7, 2, 3 DESC;  -- 'hold' before 'confirm' and 'expire'
SELECT brin_summarize_new_values('moves_by_time');
UPDATE fact_log SET purged_until = now();

INSERT INTO ticket (show_id, number, seat, issued_at)
SELECT show_id, number, unnest(seats), confirmed_at FROM booking WHERE state = 'confirmed';
INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, scanned_at, at)
SELECT show_id, 1, serial::text, 'North', 'entry', 'admitted', serial, issued_at, issued_at FROM ticket;
INSERT INTO report_stage (show_id, number, stage, at)
SELECT DISTINCT ON (show_id, number, state) show_id, number, state, at
  FROM booking_move WHERE move <> 'block';
INSERT INTO report_seat (show_id, number, seat, category, currency, price_minor, base_minor, fee_minor,
                         tax_minor, sold_at)
SELECT show_id, number, seat, 'Standard', 'EUR', 1500, 1500, 0, 0, issued_at FROM ticket;

INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway, method,
                     step, amount_minor, refunds_minor, currency, reference, hold_ends_at, deadline_at,
                     requested_at, ended_at)
SELECT show_id, number, 1, owner_id, 1, 'pay', 0, 'key' || number, 'sandbox', '', 'paid', 3000, 100, 'EUR',
       'ref' || number, expires_at, expires_at, opened_at, opened_at
  FROM booking WHERE state = 'confirmed';
INSERT INTO refund (show_id, number, attempt, id, why, amount_minor, state, due_at, requested_at, done_at)
SELECT show_id, number, 1, 1, 'admin:1', 100, 'done', NULL, requested_at, requested_at FROM payment;
INSERT INTO gateway_webhook (gateway, event_id, kind, show_id, number, attempt, body, received_at, done_at)
SELECT 'sandbox', key, 'charge', show_id, number, 1, '{}', now() - interval '1 day', now() FROM payment;

INSERT INTO webhook_endpoint (organiser_id, url, kinds, active, secret)
VALUES (1, 'https://a.example', '{}', true, 'x');
INSERT INTO webhook_delivery (endpoint_id, fact_id, kind, at, payload, state, written_at)
SELECT id, i, 'booking.held', now(), 'payload', 'done', now() - interval '1 day'
  FROM webhook_endpoint, generate_series(1, 20000) AS i;
INSERT INTO notice (kind, channel, address, name, locale, show_id, state, due_at, written_at, ended_at)
SELECT 'tickets', 'mail', i || '@example.org', 'Fan', 'en', 1, 'sent', NULL, now(), now()
  FROM generate_series(1, 20000) AS i;
INSERT INTO idempotent_response (caller, route, key_hash, body_hash, started_at, answer)
SELECT 'account ' || i, 'r', 'k', 'b', now() - interval '1 hour', 'a' FROM generate_series(1, 10000) AS i;

INSERT INTO seat_demand (show_id, refused, seats, times)
SELECT show.id, 1, '{1,2}', '{1,1}' FROM show, generate_series(1, 20) AS i;

DROP TABLE live;
ANALYZE;
