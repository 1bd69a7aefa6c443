-- Figures: updated by facts, rebuilt from the bookings, summed.

-- name: revisions
-- Of these bookings; one that is not there: NULL.
SELECT show_id, number,
       (SELECT revision FROM payable_booking AS booking
         WHERE booking.show_id = requested.show_id AND booking.number = requested.number) AS revision
  FROM unnest($1::bigint[], $2::bigint[]) AS requested (show_id, number);

-- name: add_seats
-- Sold before, or sold and given back: stays as it is.
INSERT INTO report_seat (show_id, number, seat, category, currency, price_minor, base_minor, fee_minor,
                         tax_minor, sold_at, returned_at)
SELECT *
  FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
              $8::bigint[], $9::bigint[], $10::timestamptz[], $11::timestamptz[])
    ON CONFLICT DO NOTHING;

-- name: return_seats
-- Of bookings: a seat, or all (NULL). Returned before: stays as it was. Twice in here: the first time counts.
UPDATE report_seat AS sold
   SET returned_at = given.at, price_minor = 0, base_minor = 0, fee_minor = 0, tax_minor = 0
  FROM (SELECT one.show_id, one.number, one.seat, min(back.at) AS at
          FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::timestamptz[])
               AS back (show_id, number, seat, at)
          JOIN report_seat AS one ON one.show_id = back.show_id AND one.number = back.number
           AND one.seat = coalesce(back.seat, one.seat)
         GROUP BY one.show_id, one.number, one.seat) AS given
 WHERE sold.show_id = given.show_id AND sold.number = given.number AND sold.seat = given.seat
   AND sold.returned_at IS NULL;

-- name: add_stages
-- The first time counts, here and there.
INSERT INTO report_stage (show_id, number, stage, at)
SELECT show_id, number, stage::booking_state, min(at)
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[]) AS a (show_id, number, stage, at)
 GROUP BY show_id, number, stage
    ON CONFLICT (show_id, number, stage) DO UPDATE SET at = excluded.at WHERE report_stage.at > excluded.at;

-- name: set_refunds
-- The newest fact counts, here and there.
INSERT INTO report_refund (show_id, number, attempt, refund, amount_minor, currency, state, fact_id)
SELECT DISTINCT ON (show_id, number, attempt, refund)
       show_id, number, attempt, refund, amount, currency, state::refund_state, fact_id
  FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::text[], $7::text[],
              $8::bigint[])
       AS a (show_id, number, attempt, refund, amount, currency, state, fact_id)
 ORDER BY show_id, number, attempt, refund, fact_id DESC
    ON CONFLICT (show_id, number, attempt, refund)
    DO UPDATE SET state = excluded.state, fact_id = excluded.fact_id
    WHERE report_refund.fact_id <= excluded.fact_id;

-- name: lock
-- Consumers of facts wait meanwhile: they could change rows that are being rebuilt.
LOCK TABLE report_seat, report_stage, report_refund IN SHARE ROW EXCLUSIVE MODE;

-- name: shows_sold
SELECT DISTINCT show_id FROM payable_booking ORDER BY show_id;

-- name: forget_seats
DELETE FROM report_seat WHERE show_id = $1;

-- name: forget_stages
-- Those of unpaid bookings that retention has deleted cannot be rebuilt: they stay.
DELETE FROM report_stage
 WHERE show_id = $1
   AND NOT EXISTS (SELECT FROM report_past_stage WHERE show_id = $1)
   AND (stage IN ('paying', 'confirmed', 'failed', 'refunded')
        OR EXISTS (SELECT FROM payable_booking AS booking
                    WHERE booking.show_id = report_stage.show_id AND booking.number = report_stage.number));

-- name: forget_refunds
DELETE FROM report_refund WHERE show_id = $1;

-- name: seats_of_ledger
-- Every seat that was ever sold. A seat that its booking has not got any more was given back when its ticket
-- was voided; those of a refunded booking when that was refunded. What was given back has no price.
  SELECT ticket.show_id, ticket.number, ticket.seat, booking.revision, booking.currency,
         CASE WHEN booking.state = 'confirmed' THEN sold.price ELSE NULL END AS price_minor,
         ticket.issued_at AS sold_at,
         CASE WHEN sold.price IS NULL THEN ticket.voided_at ELSE given.at END AS returned_at
    FROM ticket_detail AS ticket
    JOIN payable_booking AS booking USING (show_id, number)
    LEFT JOIN LATERAL (
         SELECT price FROM unnest(booking.seats, booking.prices_minor) AS a (seat, price)
          WHERE a.seat = ticket.seat) AS sold ON true
    LEFT JOIN LATERAL (
         SELECT min(at) AS at FROM booking_history AS move
          WHERE move.show_id = ticket.show_id AND move.number = ticket.number
            AND move.state = 'refunded') AS given ON true
   WHERE ticket.show_id = $1
ORDER BY ticket.number, ticket.seat;

-- name: rebuild_stages
INSERT INTO report_stage (show_id, number, stage, at)
SELECT move.show_id, move.number, move.state, min(move.at)
  FROM booking_history AS move
  JOIN payable_booking AS booking USING (show_id, number)
 WHERE move.show_id = $1 AND booking.counts
   AND NOT EXISTS (SELECT FROM report_past_stage WHERE show_id = $1)
 GROUP BY move.show_id, move.number, move.state;

-- name: rebuild_refunds
-- Facts up to now say what the ledger says; the next ones are newer than any of them.
INSERT INTO report_refund (show_id, number, attempt, refund, amount_minor, currency, state, fact_id)
SELECT show_id, number, attempt, id, amount_minor, currency, state, 0
  FROM refund_detail
 WHERE show_id = $1 AND amount_minor > 0;

-- name: funnel
-- Of archived sales the sums are left.
SELECT coalesce(sum(bookings) FILTER (WHERE stage = 'held'), 0)::bigint AS held,
       coalesce(sum(bookings) FILTER (WHERE stage = 'paying'), 0)::bigint AS paying,
       coalesce(sum(bookings) FILTER (WHERE stage = 'confirmed'), 0)::bigint AS confirmed,
       coalesce(sum(bookings) FILTER (WHERE stage = 'expired'), 0)::bigint AS lapsed,
       coalesce(sum(bookings) FILTER (WHERE stage = 'cancelled'), 0)::bigint AS cancelled,
       coalesce(sum(bookings) FILTER (WHERE stage = 'failed'), 0)::bigint AS failed,
       coalesce(sum(bookings) FILTER (WHERE stage = 'refunded'), 0)::bigint AS refunded
  FROM (SELECT stage, count(*) AS bookings FROM report_stage WHERE show_id = ANY ($1) GROUP BY stage
         UNION ALL
        SELECT stage, bookings FROM report_past_stage WHERE show_id = ANY ($1)) AS reached;

-- name: seat_counts
SELECT count(*) FILTER (WHERE returned_at IS NULL) AS sold,
       count(*) FILTER (WHERE returned_at IS NOT NULL) AS returned
  FROM report_seat
 WHERE show_id = ANY ($1);

-- name: seat_sums
  SELECT show_id, count(*) FILTER (WHERE returned_at IS NULL) AS seats_sold,
         count(*) FILTER (WHERE returned_at IS NOT NULL) AS seats_returned,
         sum(price_minor)::bigint AS amount_minor
    FROM report_seat
   WHERE show_id = ANY ($1)
GROUP BY show_id;

-- name: revenue
  SELECT category, currency, count(*) AS seats, sum(price_minor)::bigint AS amount_minor,
         sum(base_minor)::bigint AS base_minor, sum(fee_minor)::bigint AS fee_minor,
         sum(tax_minor)::bigint AS tax_minor
    FROM report_seat
   WHERE show_id = ANY ($1) AND returned_at IS NULL
GROUP BY category, currency
ORDER BY category, currency;

-- name: refunds
  SELECT currency, count(*) AS refunds, sum(amount_minor)::bigint AS amount_minor,
         coalesce(sum(amount_minor) FILTER (WHERE state = 'done'), 0)::bigint AS done_minor
    FROM report_refund
   WHERE show_id = ANY ($1)
GROUP BY currency
ORDER BY currency;

-- name: minutes
WITH moved AS (
    SELECT sold_at AS at, 1 AS sold, 0 AS returned FROM report_seat WHERE show_id = $1
     UNION ALL
    SELECT returned_at, 0, 1 FROM report_seat WHERE show_id = $1 AND returned_at IS NOT NULL)
  SELECT date_trunc('minute', at) AS begins_at, sum(sold)::int AS sold, sum(returned)::int AS returned
    FROM moved
   WHERE $2::timestamptz IS NULL OR at >= $2
GROUP BY 1
ORDER BY 1
   LIMIT $3;

-- name: gate_minutes
-- Of every scan there was. One that the gate took back does not count; one that it should not have made does.
  SELECT gate, date_trunc('minute', scanned_at) AS begins_at,
         count(*) FILTER (WHERE verdict = 'admitted')::int AS came_in,
         count(*) FILTER (WHERE verdict = 'left')::int AS went_out
    FROM gate_scan
   WHERE show_id = $1
GROUP BY 1, 2
ORDER BY 2, 1
   LIMIT $2;

-- name: event
-- Another organiser's: no row.
SELECT event_id AS id, title
  FROM event_summary
 WHERE event_id = $1 AND ($2::bigint IS NULL OR organiser_id = $2);

-- name: shows_of_event
  SELECT show.show_id, show.starts_at, show.timezone, show.currency,
         coalesce(sums.sold, 0) AS seats_sold, coalesce(sums.returned, 0) AS seats_returned,
         coalesce(sums.amount, 0)::bigint AS amount_minor
    FROM show_detail AS show
    LEFT JOIN LATERAL (
         SELECT count(*) FILTER (WHERE returned_at IS NULL) AS sold,
                count(*) FILTER (WHERE returned_at IS NOT NULL) AS returned,
                sum(price_minor) AS amount
           FROM report_seat WHERE report_seat.show_id = show.show_id) AS sums ON true
   WHERE show.event_id = $1
ORDER BY show.starts_at, show.show_id;

-- name: shows_of_organiser
-- Shows that are not over, the soonest first; with $2 those that are, the latest first.
  SELECT page.*, coalesce(sums.sold, 0) AS seats_sold, coalesce(sums.returned, 0) AS seats_returned,
         coalesce(sums.amount, 0)::bigint AS amount_minor
    FROM (SELECT show_id, event_id, title, venue, hall, timezone, starts_at, currency, cancelled, hidden,
                 seats, opens_at, closes_at
            FROM show_detail
           WHERE organiser_id = $1 AND deleted_at IS NULL AND (ends_at < now()) = $2
        ORDER BY CASE WHEN $2 THEN NULL ELSE starts_at END, starts_at DESC, show_id
           LIMIT $3 OFFSET $4) AS page
    LEFT JOIN LATERAL (
         SELECT count(*) FILTER (WHERE returned_at IS NULL) AS sold,
                count(*) FILTER (WHERE returned_at IS NOT NULL) AS returned,
                sum(price_minor) AS amount
           FROM report_seat WHERE report_seat.show_id = page.show_id) AS sums ON true
ORDER BY CASE WHEN $2 THEN NULL ELSE starts_at END, starts_at DESC, show_id;

-- name: seats_after
-- A page of everything that was sold, in the order of the key.
  SELECT show_id, number, seat, category, currency, price_minor, base_minor, fee_minor, tax_minor, sold_at,
         returned_at
    FROM report_seat
   WHERE show_id = ANY ($1) AND (show_id, number, seat) > ($2, $3, $4)
ORDER BY show_id, number, seat
   LIMIT $5;
