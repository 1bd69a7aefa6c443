-- Organisers' endpoints, and what is delivered to them.

-- name: add_endpoint
-- As many as one may have: no row. Two that are added at once wait for each other: the organisation is
-- locked first.
   INSERT INTO webhook_endpoint (organiser_id, url, kinds, active, secret)
   SELECT $1, $2, $3, $4, $5
    WHERE (SELECT count(*) FROM webhook_endpoint WHERE organiser_id = $1) < $6
RETURNING *;

-- name: lock_organiser
SELECT id FROM organisation_profile WHERE id = $1 FOR NO KEY UPDATE;

-- name: endpoints
-- Of an organiser, or of all (NULL); the newest first.
SELECT *
  FROM webhook_endpoint
 WHERE ($1::bigint IS NULL OR organiser_id = $1) AND id < $2
 ORDER BY id DESC
 LIMIT $3;

-- name: switched_off
SELECT id, off_reason FROM webhook_endpoint WHERE id = ANY ($1) AND NOT active;

-- name: endpoint
-- Another organiser's: no row.
SELECT * FROM webhook_endpoint WHERE id = $1 AND ($2::bigint IS NULL OR organiser_id = $2);

-- name: lock_endpoint
SELECT * FROM webhook_endpoint WHERE id = $1 AND ($2::bigint IS NULL OR organiser_id = $2) FOR UPDATE;

-- name: change_endpoint
-- Another organiser's: no row. Switching an endpoint on resets its failures.
   UPDATE webhook_endpoint
      SET url = coalesce($3, url),
          kinds = coalesce($4::text[], kinds),
          active = coalesce($5, active),
          off_reason = CASE WHEN coalesce($5, active) THEN NULL ELSE off_reason END,
          failing_since = CASE WHEN $5 OR $3 IS NOT NULL THEN NULL ELSE failing_since END
    WHERE id = $1 AND ($2::bigint IS NULL OR organiser_id = $2)
RETURNING *;

-- name: miss_queued
UPDATE webhook_delivery SET state = 'missed', due_at = NULL WHERE endpoint_id = $1 AND state = 'queued';

-- name: remove_endpoint
   DELETE FROM webhook_endpoint WHERE id = $1 AND ($2::bigint IS NULL OR organiser_id = $2)
RETURNING *;

-- name: change_secret
-- The previous secret also signs for $4 hours. An older one stops at once.
   UPDATE webhook_endpoint
      SET old_secret = secret, old_until = now() + $4 * interval '1 hour', secret = $3
    WHERE id = $1 AND ($2::bigint IS NULL OR organiser_id = $2)
RETURNING *;

-- name: wanted_by
-- For each fact kind and its show, event or account: the endpoints of its organiser that subscribed to the
-- kind. No row: no endpoint did.
SELECT subject.place, endpoint.id
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
       WITH ORDINALITY AS subject (kind, show_id, event_id, account_id, place)
  JOIN webhook_endpoint AS endpoint ON endpoint.organiser_id = coalesce(
           subject.account_id,
           (SELECT organiser_id FROM event_summary WHERE event_summary.event_id = subject.event_id),
           (SELECT organiser_id FROM show_organiser WHERE show_organiser.show_id = subject.show_id))
 WHERE endpoint.kinds = '{}' OR subject.kind = ANY (endpoint.kinds);

-- name: add_deliveries
-- While an endpoint is off, its deliveries are missed; they can be replayed once it is on again. The lock on
-- its row orders this against a concurrent switch-off: either that sees these deliveries, or we see it off.
WITH receiver AS (SELECT id, active FROM webhook_endpoint WHERE id = ANY ($1) ORDER BY id FOR SHARE)
INSERT INTO webhook_delivery (endpoint_id, fact_id, kind, at, payload, state, due_at)
SELECT receiver.id, fact_id, kind, at, payload,
       CASE WHEN active THEN 'queued' ELSE 'missed' END::delivery_state, CASE WHEN active THEN now() END
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bytea[])
       AS a (endpoint_id, fact_id, kind, at, payload)
  JOIN receiver ON receiver.id = a.endpoint_id
    ON CONFLICT DO NOTHING;

-- name: lease_due
-- For engines/leases.py: at most $3 deliveries per endpoint, so that a busy endpoint does not delay the
-- others. $4: endpoints that are failing, or those that are not.
SELECT one.endpoint_id, one.fact_id, endpoint.url,
       CASE WHEN endpoint.old_until > now() THEN ARRAY[endpoint.secret, endpoint.old_secret]
            ELSE ARRAY[endpoint.secret] END AS secrets
  FROM webhook_endpoint AS endpoint
 CROSS JOIN LATERAL (
       SELECT endpoint_id, fact_id
         FROM webhook_delivery
        WHERE endpoint_id = endpoint.id AND due_at <= now()
        ORDER BY due_at, fact_id
        LIMIT $3
          FOR UPDATE SKIP LOCKED) AS one
 WHERE endpoint.active AND (endpoint.failing_since IS NOT NULL) = $4
 LIMIT $1;

-- name: trace
SELECT trace_of_fact($1);

-- name: lease_result
state = $2::text::delivery_state;

-- name: lease_replayed
state = 'queued';

-- name: lease_dead
state = 'dead';

-- name: replay_one
leased.endpoint_id = $1 AND leased.fact_id = $2;

-- name: replay_since
-- $3: only deliveries that the endpoint has not accepted.
leased.endpoint_id = $1 AND leased.at >= $2 AND (NOT $3 OR leased.state <> 'done');

-- name: add_try
-- The delivery may have been deleted with its endpoint: then nothing is inserted.
INSERT INTO webhook_try (endpoint_id, fact_id, turn, status, took_ms, reason, response)
SELECT $1, $2, $3, $4, $5, $6, $7
 WHERE EXISTS (SELECT FROM webhook_delivery WHERE endpoint_id = $1 AND fact_id = $2)
    ON CONFLICT DO NOTHING;

-- name: note_yes
UPDATE webhook_endpoint SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL;

-- name: note_no
-- Does not change an earlier failing_since; locks the row in any case.
UPDATE webhook_endpoint SET failing_since = coalesce(failing_since, now()) WHERE id = $1;

-- name: switch_off
-- If it has been failing for long, or returned 410 ($3). No row: it stays on, or is off already.
   UPDATE webhook_endpoint
      SET active = false, off_reason = $2
    WHERE id = $1 AND active AND ($3 OR failing_since < now() - $4 * interval '1 hour')
RETURNING id, organiser_id, url, failing_since;

-- name: deliveries
  SELECT delivery.fact_id, delivery.kind, delivery.state, delivery.at, delivery.due_at,
         coalesce((SELECT json_agg(json_build_object(
                              'tried_at', one.at, 'status', one.status, 'took_ms', one.took_ms,
                              'reason', one.reason, 'response', one.response) ORDER BY one.turn DESC)
                     FROM webhook_try AS one
                    WHERE one.endpoint_id = delivery.endpoint_id AND one.fact_id = delivery.fact_id),
                  '[]') AS tries_json
    FROM webhook_delivery AS delivery
   WHERE delivery.endpoint_id = $1
     AND delivery.fact_id < $2
     AND ($3::delivery_state IS NULL OR delivery.state = $3)
     AND ($4::bigint IS NULL OR delivery.fact_id = $4)
ORDER BY delivery.fact_id DESC
   LIMIT $5;

-- name: forget
-- Queued deliveries stay, however old.
DELETE FROM webhook_delivery
 WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM webhook_delivery
        WHERE written_at < now() - $1 * interval '1 day' AND state <> 'queued'
        LIMIT $2));

-- name: forget_orphans
-- In a pod: replication deletes an endpoint without its deliveries. Reads an entry of the index per endpoint.
WITH RECURSIVE receiver AS (
     SELECT min(endpoint_id) AS id FROM webhook_delivery
      UNION ALL
     SELECT (SELECT min(endpoint_id) FROM webhook_delivery WHERE endpoint_id > receiver.id)
       FROM receiver WHERE id IS NOT NULL
), gone AS (
     SELECT id FROM receiver
      WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM webhook_endpoint AS e WHERE e.id = receiver.id)
)
DELETE FROM webhook_delivery
 WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM webhook_delivery WHERE endpoint_id IN (SELECT id FROM gone) LIMIT $1));

-- name: is_due
-- Of any endpoint, failing or not.
SELECT count(*)
  FROM webhook_endpoint AS endpoint
 CROSS JOIN LATERAL (SELECT FROM webhook_delivery
                      WHERE endpoint_id = endpoint.id AND due_at <= now()
                   ORDER BY due_at LIMIT 1) AS due
 WHERE endpoint.active;
