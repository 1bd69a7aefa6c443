-- name: ours
-- Payments by their keys, with their refunds through the gateway. An unknown key has no row.
   SELECT payment.key, payment.show_id, payment.number, payment.attempt, payment.step, payment.amount_minor,
          payment.currency, payment.reference, back.back_minor, back.requested_minor,
          extract(epoch FROM clock_timestamp() - payment.requested_at)::float8 AS age_s
     FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::text[]) AS a (show_id, number, attempt, key)
     JOIN payment USING (show_id, number, attempt, key),
          LATERAL (SELECT coalesce(sum(amount_minor) FILTER (WHERE state = 'done' AND NOT is_settled_by_hand),
                                   0)::bigint AS back_minor,
                          coalesce(sum(amount_minor) FILTER (WHERE state = 'requested'),
                                   0)::bigint AS requested_minor
                     FROM decided_refund AS refund
                    WHERE refund.show_id = payment.show_id AND refund.number = payment.number
                      AND refund.attempt = payment.attempt) AS back
    WHERE payment.gateway = $1;

-- name: unseen
-- Paid here since then, and not among the keys that the gateway listed.
  SELECT payment.key
    FROM payment
   WHERE payment.gateway = $1 AND payment.requested_at >= $2 AND payment.step IN ('paid', 'returned')
     AND NOT EXISTS (SELECT 1 FROM unnest($3::text[]) AS seen (key) WHERE seen.key = payment.key)
ORDER BY payment.requested_at
   LIMIT $4;

-- name: watched
-- Payments whose gateway has been silent for long.
SELECT key
  FROM payment
 WHERE gateway = $1 AND due_at IS NOT NULL AND step = 'watch' AND requested_at < now() - $2 * interval '1 s'
 LIMIT $3;

-- name: left_over
-- What an earlier comparison could not settle.
SELECT * FROM payment_difference WHERE gateway = $1 ORDER BY found_at, key LIMIT $2;

-- name: delete_settled
-- Differences that no longer exist. One found while we compared stays for the next comparison.
DELETE FROM payment_difference
 WHERE gateway = $1 AND found_at < $4
   AND (key, kind) NOT IN (SELECT * FROM unnest($2::text[], $3::text[]));

-- name: store_differences
-- Found again: it is as old as it was.
INSERT INTO payment_difference (gateway, key, kind, reference, ours, theirs)
SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    ON CONFLICT (gateway, key, kind) DO UPDATE
   SET reference = excluded.reference, ours = excluded.ours, theirs = excluded.theirs;

-- name: store_comparison
-- How far we are; a shorter look back than last time does not move the mark.
INSERT INTO reconciliation_run (gateway, since_at, began_at, ended_at, seen, settled, deep_at)
VALUES ($1, $2, $3, now(), $4, $5, CASE WHEN $6 THEN $3::timestamptz ELSE 'epoch' END)
    ON CONFLICT (gateway) DO UPDATE
   SET since_at = excluded.since_at, began_at = excluded.began_at, ended_at = excluded.ended_at,
       seen = excluded.seen, settled = excluded.settled,
       deep_at = greatest(reconciliation_run.deep_at, excluded.deep_at);

-- name: latest_comparison
SELECT *, now() AS now FROM reconciliation_run WHERE gateway = $1;

-- name: now
SELECT now();

-- name: figures
-- For the gauges: what waits, and what waits for people.
SELECT (SELECT count(*) FROM payment WHERE due_at IS NOT NULL) AS payments_under_way,
       (SELECT count(*) FROM payment WHERE due_at IS NOT NULL AND step = 'watch') AS payments_watched,
       (SELECT count(*) FROM gateway_webhook WHERE due_at IS NOT NULL) AS webhooks_due,
       (SELECT count(*) FROM gateway_webhook WHERE dead) AS webhooks_dead,
       (SELECT count(*) FROM payment_difference) AS payment_differences;
