-- Second factors of an account.

-- name: person
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at
  FROM account
 WHERE id = $1
   AND erased_at IS NULL
   AND banned_at IS NULL;

-- name: status
SELECT (SELECT confirmed_at FROM totp WHERE account_id = $1) AS totp_since,
       (SELECT count(*) FROM recovery_code WHERE account_id = $1 AND used_at IS NULL) AS codes_left;

-- name: passkeys
SELECT id, name, created_at, last_used_at FROM passkey WHERE account_id = $1 ORDER BY id;

-- name: totp
-- Of the app that is in use ($3), or of the one that is being set up. $2: seconds per code.
SELECT secret, last_step, floor(extract(epoch FROM clock_timestamp()) / $2::int)::bigint AS now_step
  FROM totp
 WHERE account_id = $1
   AND (confirmed_at IS NOT NULL) = $3
   AND (confirmed_at IS NOT NULL OR created_at > now() - interval '1 hour')
   FOR UPDATE;

-- name: use_totp
-- Of two requests with the same code, the second waits for the first and finds it used. No row then.
   UPDATE totp
      SET last_step = $2
    WHERE account_id = $1
      AND last_step < $2
RETURNING account_id;

-- name: begin_totp
-- No row: one is in use.
INSERT INTO totp (account_id, secret)
     VALUES ($1, $2)
ON CONFLICT (account_id) DO UPDATE
        SET secret = excluded.secret, created_at = now(), last_step = 0
      WHERE totp.confirmed_at IS NULL
  RETURNING account_id;

-- name: confirm_totp
   UPDATE totp
      SET confirmed_at = now()
    WHERE account_id = $1
      AND confirmed_at IS NULL
RETURNING account_id;

-- name: remove_totp
DELETE FROM totp WHERE account_id = $1 AND confirmed_at IS NOT NULL RETURNING account_id;

-- name: lock
-- Two factors that are added or removed at once are counted one after the other.
SELECT id FROM account WHERE id = $1 FOR NO KEY UPDATE;

-- name: count_factors
SELECT (SELECT count(*) FROM totp WHERE account_id = $1 AND confirmed_at IS NOT NULL)
     + (SELECT count(*) FROM passkey WHERE account_id = $1);

-- name: remove_all
-- How many there were.
WITH apps AS (
    DELETE FROM totp WHERE account_id = $1 RETURNING confirmed_at
), keys AS (
    DELETE FROM passkey WHERE account_id = $1 RETURNING 1
)
SELECT (SELECT count(confirmed_at) FROM apps) + (SELECT count(*) FROM keys);

-- name: drop_codes
DELETE FROM recovery_code WHERE account_id = $1;

-- name: add_codes
INSERT INTO recovery_code (account_id, hash) SELECT $1, unnest($2::bytea[]);

-- name: use_recovery_code
-- No row: unknown, or used before.
   UPDATE recovery_code
      SET used_at = now()
    WHERE account_id = $1
      AND hash = $2
      AND used_at IS NULL
RETURNING account_id;
