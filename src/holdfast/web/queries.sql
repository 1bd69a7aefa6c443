-- name: start_key
-- The first request with a key starts; for every later one nothing is inserted and nothing comes back.
     INSERT INTO idempotent_response (caller, route, key_hash, body_hash)
     VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
  RETURNING attempt;

-- name: look_at_key
-- What became of the first request. `is_dead` when it has not finished within $4 seconds.
SELECT body_hash, attempt, answer,
       answer IS NULL AND started_at < now() - make_interval(secs => $4) AS is_dead
  FROM idempotent_response
 WHERE caller = $1
   AND route = $2
   AND key_hash = $3;

-- name: take_over_key
-- Of many who find the same dead attempt, one takes over; the others see that the attempt has moved on.
   UPDATE idempotent_response
      SET attempt = nextval('idempotent_response_attempt'), started_at = now()
    WHERE caller = $1
      AND route = $2
      AND key_hash = $3
      AND attempt = $4
      AND answer IS NULL
RETURNING attempt;

-- name: keep_answer
-- An attempt that was taken over keeps nothing: the answer belongs to who took over.
UPDATE idempotent_response
   SET answer = $5
 WHERE caller = $1
   AND route = $2
   AND key_hash = $3
   AND attempt = $4
   AND answer IS NULL;

-- name: forget_key
-- The attempt gave a response that is not stored; the next request with this key starts over.
DELETE FROM idempotent_response
 WHERE caller = $1
   AND route = $2
   AND key_hash = $3
   AND attempt = $4
   AND answer IS NULL;

-- name: purge_keys
-- Oldest first, a bounded number at a time; another purge's rows are skipped.
WITH old AS (
  SELECT caller, route, key_hash
    FROM idempotent_response
   WHERE started_at < now() - make_interval(secs => $1)
ORDER BY started_at
   LIMIT $2
     FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotent_response
 USING old
 WHERE idempotent_response.caller = old.caller
   AND idempotent_response.route = old.route
   AND idempotent_response.key_hash = old.key_hash;
