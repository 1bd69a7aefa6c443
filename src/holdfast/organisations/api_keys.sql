-- API keys. A transaction that adds one has locked its organisation first.

-- name: find
-- No row: unknown, revoked, or replaced by a rotation.
SELECT api_key.id, api_key.organisation_id, api_key.rights, api_key.created_by,
       coalesce(api_key.expires_at <= now(), false) AS is_expired,
       api_key_secret.first_used_at IS NULL
       OR api_key.last_used_at IS NULL
       OR api_key.last_used_at < now() - make_interval(secs => $2) AS is_to_note
  FROM api_key_secret
  JOIN api_key ON api_key.id = api_key_secret.key_id
 WHERE api_key_secret.hash = $1
   AND (api_key_secret.ends_at IS NULL OR api_key_secret.ends_at > now());

-- name: note_use
-- Every few minutes, however many requests there are. No row: another process was first.
UPDATE api_key SET last_used_at = now()
 WHERE id = $1
   AND (last_used_at IS NULL OR last_used_at < now() - make_interval(secs => $2));

-- name: note_first_use
-- No row: it was used before.
   UPDATE api_key_secret SET first_used_at = now()
    WHERE hash = $1 AND first_used_at IS NULL
RETURNING prefix;

-- name: count
SELECT count(*) FROM api_key WHERE organisation_id = $1;

-- name: add
-- No row: the time to end is over.
INSERT INTO api_key (organisation_id, name, rights, created_by, expires_at)
     SELECT $1, $2, $3::text[], $4, $5::timestamptz WHERE coalesce($5::timestamptz > now(), true)
  RETURNING id;

-- name: add_secret
INSERT INTO api_key_secret (hash, key_id, prefix) VALUES ($1, $2, $3);

-- name: keys
-- With $2, only that one. Secrets that have ended are not listed.
  SELECT api_key.id, api_key.name, api_key.rights, api_key.created_by, api_key.created_at,
         api_key.expires_at, api_key.last_used_at,
         array_agg((secret.prefix, secret.created_at, secret.ends_at)
                   ORDER BY secret.created_at DESC, secret.ends_at DESC NULLS FIRST) AS secrets
    FROM api_key
    JOIN api_key_secret AS secret ON secret.key_id = api_key.id
                                 AND (secret.ends_at IS NULL OR secret.ends_at > now())
   WHERE api_key.organisation_id = $1
     AND ($2::bigint IS NULL OR api_key.id = $2)
GROUP BY api_key.id
ORDER BY api_key.id DESC;

-- name: list_all
-- Secrets of all organisations that begin with $1, and have not ended.
  SELECT secret.prefix, api_key.id AS key_id, api_key.organisation_id, organisation.name AS organisation,
         api_key.name, api_key.rights, api_key.expires_at, api_key.last_used_at
    FROM api_key_secret AS secret
    JOIN api_key ON api_key.id = secret.key_id
    JOIN organisation ON organisation.id = api_key.organisation_id
   WHERE starts_with(secret.prefix, $1)
     AND (secret.ends_at IS NULL OR secret.ends_at > now())
ORDER BY secret.created_at DESC, secret.prefix
   LIMIT $2;

-- name: lock
-- No row: unknown, or of another organisation.
SELECT id, name, rights FROM api_key WHERE organisation_id = $1 AND id = $2 FOR UPDATE;

-- name: drop_older_secrets
-- Only the newest secret outlives a rotation.
DELETE FROM api_key_secret WHERE key_id = $1 AND ends_at IS NOT NULL;

-- name: end_secrets
UPDATE api_key_secret SET ends_at = now() + make_interval(hours => $2) WHERE key_id = $1;

-- name: remove
DELETE FROM api_key WHERE organisation_id = $1 AND id = $2;
