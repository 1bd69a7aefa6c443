-- name: start
-- Many holds begin to be paid for: functions.sql. The lock wait is limited for this statement alone; the last
-- argument depends on it, so that it is set before the function runs. So is the trace that facts carry to
-- their consumers; empty: the batch is not sampled.
SELECT started.*
  FROM concat(set_config('lock_timeout', $13, true), set_config('holdfast.trace', $14, true)) AS lock_wait,
       start_payments($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
                      CASE WHEN lock_wait IS NOT NULL THEN $12::int END) AS started;

-- name: confirm
-- The lock wait: as for start.
SELECT confirmed.*
  FROM concat(set_config('lock_timeout', $10, true), set_config('holdfast.trace', $11, true)) AS lock_wait,
       confirm_payments($1, $2, $3, $4, $5, $6, $7, $8,
                        CASE WHEN lock_wait IS NOT NULL THEN $9::bigint[] END) AS confirmed;

-- name: give_back
-- The lock wait, here and in the next two: as for start.
SELECT declined.*
  FROM concat(set_config('lock_timeout', $7, true), set_config('holdfast.trace', $8, true)) AS lock_wait,
       decline_payments($1, $2, $3, $4, $5,
                        CASE WHEN lock_wait IS NOT NULL THEN $6::payment_step END) AS declined;

-- name: release
SELECT expired.*
  FROM concat(set_config('lock_timeout', $6, true), set_config('holdfast.trace', $7, true)) AS lock_wait,
       expire_payments($1, $2, $3, $4, CASE WHEN lock_wait IS NOT NULL THEN $5::int END) AS expired;

-- name: book_late
SELECT settled.*
  FROM concat(set_config('lock_timeout', $5, true), set_config('holdfast.trace', $6, true)) AS lock_wait,
       settle_late_payment($1, $2, $3, $4 AND lock_wait IS NOT NULL) AS settled;

-- name: advance
-- The next step, before it is tried. A worker that has lost its turn changes nothing and gets no row. While
-- the bank processes a payment ($11), its payer has nothing to do: the way to the gateway's page is removed.
WITH advanced AS (
       UPDATE payment
          SET step = $6, tries = CASE WHEN step = $6 THEN tries ELSE 0 END,
              due_at = now() + $7 * interval '1 ms',
              reference = coalesce($8, reference),
              action_url = CASE WHEN NOT $11 THEN coalesce($9, action_url) END,
              client_secret = CASE WHEN NOT $11 THEN coalesce($10, client_secret) END
        WHERE show_id = $1 AND number = $2 AND attempt = $3 AND turn = $4 AND step = $5
    RETURNING show_id, number, attempt
)
SELECT true FROM advanced;

-- name: payment
SELECT * FROM payment_detail WHERE show_id = $1 AND number = $2 AND attempt = $3;

-- name: latest
-- The latest attempt of each of these bookings.
SELECT found.*
  FROM unnest($1::bigint[], $2::bigint[]) AS wanted(show_id, number)
 CROSS JOIN LATERAL (SELECT *
                       FROM payment_detail
                      WHERE payment_detail.show_id = wanted.show_id AND payment_detail.number = wanted.number
                      ORDER BY attempt DESC
                      LIMIT 1) AS found;

-- name: take_due
SELECT * FROM take_due_payments($1, $2, $3, $4);

-- name: take_looks
SELECT take_gateway_looks($1, $2, $3);

-- name: note_look
-- A payer looks again: at most once in $4 seconds. No row: too soon.
   UPDATE payment
      SET looked_at = now()
    WHERE show_id = $1 AND number = $2 AND attempt = $3
      AND (looked_at IS NULL OR looked_at < now() - $4 * interval '1 s')
RETURNING true;

-- name: take_turn
-- This payment, if it has not ended: leased to this worker, even if another worker had it.
   UPDATE payment
      SET turn = turn + 1, due_at = now() + $4 * interval '1 ms'
    WHERE show_id = $1 AND number = $2 AND attempt = $3 AND due_at IS NOT NULL
RETURNING turn;

-- name: taken
SELECT * FROM payment_details($1, $2, $3);

-- name: is_due
SELECT count(*) FROM (SELECT FROM payment WHERE due_at <= now() ORDER BY due_at LIMIT 1) AS due;
