-- name: store
-- Many webhooks, as they came; copies are counted. A verdict for each, in order (webhooks.py). Of those that
-- are not about our payments, or about another amount, nothing is stored. Nor of those of a show that another
-- database sells or that is being moved: they would stay behind when its rows are removed.
WITH requested AS (
    SELECT *
      FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::int[], $7::text[], $8::text[],
                  $9::bigint[], $10::text[], $11::boolean[], $12::bytea[]) WITH ORDINALITY
           AS a (event_id, kind, show_id, number, attempt, key, reference,
                 amount_minor, currency, is_afterwards, body, ord)
), judged AS MATERIALIZED (
    SELECT a.ord, a.event_id, a.kind, a.reference, a.body, p.show_id, p.number, p.attempt,
           row_number() OVER same AS nth, count(*) OVER (PARTITION BY a.event_id) AS copies,
           CASE WHEN NOT show_is_here(coalesce(p.show_id, a.show_id)) THEN 'elsewhere'
                WHEN p.show_id IS NULL THEN 'foreign'
                WHEN a.amount_minor <> p.amount_minor THEN 'amount'
                WHEN a.currency <> p.currency THEN 'currency'
                WHEN a.is_afterwards THEN 'look'
                WHEN p.step IN ('paid', 'returned') AND coalesce(a.reference = p.reference, true) THEN 'done'
                WHEN p.step = 'charge' AND p.due_at > now() THEN 'wait'
                ELSE 'look' END AS verdict
      FROM requested AS a
      LEFT JOIN LATERAL (
           SELECT * FROM payment
            WHERE a.key IS NOT NULL AND payment.show_id = a.show_id AND payment.number = a.number
              AND payment.attempt = a.attempt AND payment.key = a.key AND payment.gateway = $1
            UNION ALL
           (SELECT * FROM payment
             WHERE a.key IS NULL AND payment.reference = a.reference AND payment.gateway = $1
             LIMIT 1)) AS p ON true
    WINDOW same AS (PARTITION BY a.event_id ORDER BY a.ord)
), stored AS (
    INSERT INTO gateway_webhook AS w (gateway, event_id, kind, show_id, number, attempt, reference, body,
                                      copies, tries, due_at, done_at)
    SELECT $1, event_id, kind, show_id, number, attempt, reference, body, copies,
           (verdict = 'look')::int,
           CASE verdict WHEN 'look' THEN now() + $13 * interval '1 s'
                        WHEN 'wait' THEN now() + $14 * interval '1 s' END,
           CASE verdict WHEN 'done' THEN now() END
      FROM judged
     WHERE nth = 1 AND verdict IN ('done', 'wait', 'look')
  ORDER BY event_id
        ON CONFLICT (gateway, event_id) DO UPDATE
       SET copies = w.copies + excluded.copies, done_at = coalesce(w.done_at, excluded.done_at),
           due_at = CASE WHEN excluded.done_at IS NULL THEN w.due_at END,
           dead = w.dead AND excluded.done_at IS NULL
 RETURNING event_id, xmax = 0 AS is_new
)
   SELECT verdict, show_id, number, attempt, nth = 1 AND coalesce(is_new, false) AS is_first
     FROM judged LEFT JOIN stored USING (event_id)
 ORDER BY ord;

-- name: show_of_reference
SELECT show_id FROM payment WHERE gateway = $1 AND reference = $2 LIMIT 1;

-- name: settle
-- What looking into many came to: a reason, or none. One that was tried often enough is dead; one that has
-- been settled by another worker meanwhile stays as it is.
   UPDATE gateway_webhook AS w
      SET done_at = CASE WHEN a.reason IS NULL THEN now() END, reason = a.reason,
          due_at = CASE WHEN a.reason IS NOT NULL AND tries <= $4 THEN due_at END,
          dead = a.reason IS NOT NULL AND tries > $4
     FROM unnest($1::text[], $2::text[], $3::text[]) AS a (gateway, event_id, reason)
    WHERE w.gateway = a.gateway AND w.event_id = a.event_id AND w.due_at IS NOT NULL
RETURNING w.event_id, w.dead;

-- name: settle_due
-- Webhooks that waited for a charging worker and whose payment is settled: many at once, without a look-up.
WITH due AS (
      SELECT w.gateway, w.event_id
        FROM gateway_webhook AS w JOIN payment USING (show_id, number, attempt)
       WHERE w.due_at <= now() AND w.tries = 0 AND payment.step IN ('paid', 'returned')
         AND coalesce(w.reference = payment.reference, true) AND show_is_here(show_id)
       LIMIT $1
         FOR UPDATE OF w SKIP LOCKED
)
   UPDATE gateway_webhook AS w SET done_at = now(), due_at = NULL
     FROM due
    WHERE w.gateway = due.gateway AND w.event_id = due.event_id
RETURNING w.event_id;

-- name: take_due
-- Due webhooks, oldest first, now leased to this worker. The time of the next try is stored before the
-- look-up: a worker that dies over one counts as a failed try.
WITH due AS (
      SELECT gateway, event_id
        FROM gateway_webhook
       WHERE due_at <= now() AND show_is_here(show_id)
    ORDER BY due_at
       LIMIT $1
         FOR UPDATE SKIP LOCKED
)
   UPDATE gateway_webhook AS w
      SET tries = tries + 1,
          due_at = now() + ($2::int[])[least(tries + 1, cardinality($2))] * interval '1 s'
     FROM due
    WHERE w.gateway = due.gateway AND w.event_id = due.event_id
RETURNING w.gateway, w.event_id, w.kind, w.show_id, w.number, w.attempt,
          w.reference;

-- name: take
-- This one, whatever became of it before: as if it had just come.
   UPDATE gateway_webhook
      SET tries = 1, due_at = now() + $3 * interval '1 s', done_at = NULL, dead = false, reason = NULL
    WHERE gateway = $1 AND event_id = $2
RETURNING gateway, event_id, kind, show_id, number, attempt, reference;

-- name: webhook
SELECT * FROM gateway_webhook WHERE gateway = $1 AND event_id = $2;

-- name: newest
-- A page of them, newest first: dead, due, or all.
  SELECT *
    FROM gateway_webhook
   WHERE CASE $1 WHEN 'dead' THEN dead WHEN 'due' THEN due_at IS NOT NULL ELSE true END
ORDER BY received_at DESC, event_id
  OFFSET $2
   LIMIT $3;

-- name: named
-- Every gateway's with this name.
SELECT gateway, event_id FROM gateway_webhook WHERE event_id = $1;

-- name: dead
SELECT gateway, event_id FROM gateway_webhook WHERE dead ORDER BY received_at;

-- name: forget
-- Done, and of long ago: a copy that comes now finds its payment settled, and is done at once again.
DELETE FROM gateway_webhook
 WHERE (gateway, event_id) IN (SELECT gateway, event_id FROM gateway_webhook
                                WHERE received_at < now() - $1 * interval '1 s' AND done_at IS NOT NULL
                                  AND show_is_here(show_id)
                                LIMIT $2);

-- name: is_due
SELECT count(*) FROM (SELECT FROM gateway_webhook WHERE due_at <= now() ORDER BY due_at LIMIT 1) AS due;
