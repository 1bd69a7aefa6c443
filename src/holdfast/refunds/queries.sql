-- A decision is one transaction in store.py: lock, cases, tickets, decided_before, record, count_…, after.

-- name: lock
-- The lock wait is limited until the end of the transaction.
SELECT lock_for_refunds($1, $2) FROM set_config('lock_timeout', $3, true);

-- name: cases
-- The bookings under their locks, each with the payment that confirmed it. A missing one does not exist.
SELECT booking.show_id, booking.number, booking.owner_id, booking.state::text AS state, booking.seats,
       booking.prices_minor, booking.currency, payment.attempt, payment.amount_minor, payment.fee_minor,
       payment.tax_minor, payment.refunds_minor, payment.is_disputed
  FROM unnest($1::bigint[], $2::bigint[]) AS a (show_id, number)
  JOIN payable_booking AS booking USING (show_id, number)
  LEFT JOIN LATERAL (SELECT * FROM payment_for_refund AS p
                      WHERE p.show_id = a.show_id AND p.number = a.number AND p.step = 'paid'
                      LIMIT 1) AS payment ON true;

-- name: tickets
SELECT ticket.show_id, ticket.number, ticket.seat, ticket.voided_at IS NOT NULL AS is_void,
       ticket.used_at IS NOT NULL AS is_used, ticket.owner_id, ticket.owner_email
  FROM unnest($1::bigint[], $2::bigint[]) AS a (show_id, number)
  JOIN ticket_for_refund AS ticket USING (show_id, number);

-- name: decided_before
  SELECT refund.show_id, refund.number, refund.attempt, refund.id, refund.why, refund.seats,
         refund.seats_minor, refund.amount_minor, refund.fee_minor, refund.tax_minor
    FROM unnest($1::bigint[], $2::bigint[]) AS a (show_id, number)
    JOIN refund USING (show_id, number)
ORDER BY refund.id;

-- name: record
-- In the order given: facts of one booking are published in this order.
  SELECT record_refund(show_id, number, attempt, id, why, seats::int[], seats_minor, amount_minor, fee_minor,
                       tax_minor, currency, note, actor_id, $14)
    FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::text[], $6::text[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::bigint[])
         WITH ORDINALITY AS a (show_id, number, attempt, id, why, seats, seats_minor, amount_minor, fee_minor,
                               tax_minor, currency, note, actor_id, ord)
ORDER BY ord;

-- name: count_owners_down
-- Counters of owners are locked before those of parties.
SELECT count_owners_down($1, $2, $3), count_free_seats_down($1, $2, $3);

-- name: after
-- The current bookings, which callers get as the response.
SELECT booking.*
  FROM unnest($1::bigint[], $2::bigint[]) AS a (show_id, number)
  JOIN payable_booking AS booking USING (show_id, number);

-- name: settle
SELECT * FROM settle_refund($1, $2, $3, $4, $5, $6, $7, $8);

-- name: reopen
SELECT * FROM reopen_refund($1, $2, $3, $4, $5);

-- name: take_due
-- Due refunds, oldest first, now leased to this worker; rows that another worker is taking are skipped, and
-- those of a show that is being moved, which the guard would refuse with all others.
WITH due AS (
      SELECT show_id, number, attempt, id
        FROM refund
       WHERE state = 'requested' AND due_at <= now() AND show_is_here(show_id)
    ORDER BY due_at
       LIMIT $1
         FOR UPDATE SKIP LOCKED
)
   UPDATE refund
      SET tries = tries + 1, due_at = now() + $2 * interval '1 ms'
     FROM due
    WHERE refund.show_id = due.show_id AND refund.number = due.number
      AND refund.attempt = due.attempt AND refund.id = due.id
RETURNING refund.show_id, refund.number, refund.attempt, refund.id;

-- name: taken
-- In a statement of its own: beside the UPDATE it would read the rows as they were before.
SELECT c.*
  FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[]) AS a (show_id, number, attempt, id)
  JOIN refund_detail AS c USING (show_id, number, attempt, id);

-- name: wait
-- Requested again later. One that is settled by now is left alone.
UPDATE refund
   SET due_at = now() + $5 * interval '1 ms'
 WHERE show_id = $1 AND number = $2 AND attempt = $3 AND id = $4 AND state = 'requested';

-- name: retry
-- An operator retries it. One that is not by_hand is left alone: no row.
   UPDATE refund
      SET state = 'requested', round = round + 1, tries = 0, due_at = now() + $5 * interval '1 ms'
    WHERE show_id = $1 AND number = $2 AND attempt = $3 AND id = $4 AND state = 'by_hand'
RETURNING id;

-- name: refund
SELECT * FROM refund_detail WHERE show_id = $1 AND number = $2 AND attempt = $3 AND id = $4;

-- name: refunds_of
-- Of many bookings, in the order in which they were decided.
  SELECT refund_detail.*
    FROM refund_detail
    JOIN unnest($1::bigint[], $2::bigint[]) AS a (show_id, number) USING (show_id, number)
ORDER BY requested_at, attempt, id;

-- name: attempts_of
  SELECT attempt, step::text AS step, amount_minor, currency, gateway, reason, requested_at, ended_at
    FROM payment_detail
   WHERE show_id = $1 AND number = $2
ORDER BY attempt;

-- name: refunds
-- Newest first, of an organiser ($1; null: of all), in a state ($2), of a show ($3). A page starts before a
-- time. Planned for its arguments each time, so that each combination uses its own index.
  SELECT detail.*
    FROM (SELECT show_id, number, attempt, id
            FROM refund
           WHERE ($1::bigint IS NULL OR organiser_id = $1)
             AND ($2::refund_state IS NULL OR state = $2)
             AND ($3::bigint IS NULL OR show_id = $3)
             AND (requested_at, show_id, number, attempt, id) < ($4, $5, $6, $7, $8)
        ORDER BY requested_at DESC, show_id DESC, number DESC, attempt DESC, id DESC
           LIMIT $9) AS page
    JOIN refund_detail AS detail USING (show_id, number, attempt, id)
ORDER BY requested_at DESC, show_id DESC, number DESC, attempt DESC, id DESC;

-- name: waiting
-- For the gauges; each count has its partial index.
SELECT (SELECT count(*) FROM refund WHERE state = 'by_hand') AS by_hand,
       (SELECT count(*) FROM refund WHERE state = 'requested') AS requested;

-- name: ledger_now
SELECT now();

-- name: shows_to_refund
SELECT show_id FROM cancelled_shows_with_buyers($1) AS show_id;

-- name: bookings_left
-- Of a cancelled show: the next bookings to release or refund.
  SELECT *
    FROM bookings_with_seats($1)
   WHERE state IN ('held', 'confirmed')
ORDER BY number
   LIMIT $2;

-- name: payments_left
-- Of a cancelled show: payments that have not been cancelled yet.
  SELECT number, attempt
    FROM payment_detail
   WHERE show_id = $1 AND booking_state = 'paying' AND step IN ('charge', 'look_up')
ORDER BY number
   LIMIT $2;

-- name: let_holds_go
-- The lock wait is limited for this statement alone; an argument depends on it, so that it is set before.
SELECT show_id, number, owner_id, claim_id, seats
  FROM set_config('lock_timeout', $4, true) AS lock_wait,
       cancel_holds($1, $2, $3, CASE WHEN lock_wait IS NOT NULL THEN 'held'::booking_state END, NULL);

-- name: cancellation
-- A rule has no actor: what was refunded without one was refunded because the show was cancelled.
SELECT (SELECT count(*) FROM booking_history
         WHERE show_id = $1 AND move = 'refund' AND actor_id IS NULL) AS given_up,
       (SELECT count(*) FROM refund WHERE show_id = $1 AND why = 'show' AND state = 'requested') AS requested,
       (SELECT count(*) FROM refund WHERE show_id = $1 AND why = 'show' AND state = 'by_hand') AS by_hand,
       (SELECT count(DISTINCT number) FROM seat_holder WHERE show_id = $1) AS left_over;

-- name: is_due
SELECT count(*)
  FROM (SELECT FROM refund WHERE state = 'requested' AND due_at <= now() ORDER BY due_at LIMIT 1) AS due;
