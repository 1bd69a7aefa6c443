-- name: add_sign_up
-- With a made-up e-mail ($1): the address ($2) is the account's when the link in a mail has proved it.
INSERT INTO account (email, contact_email, contact_at, name, password_hash, locale)
     VALUES ($1, $2, now(), $3, $4, $5)
  RETURNING id, email, contact_email, name, role::text, version, created_at, locale, verified_at;

-- name: add_accounts
-- Many at once. An address that is taken keeps its account as it is, and answers with its id. Who runs the
-- program answers for the addresses, unless $5 says otherwise: a link that has still to be used.
INSERT INTO account (email, name, password_hash, role, verified_at)
     SELECT email, name, password_hash, role::account_role, CASE WHEN is_verified THEN now() END
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[])
            AS given (email, name, password_hash, role, is_verified)
ON CONFLICT (email) DO UPDATE SET email = excluded.email
  RETURNING id, email;

-- name: account_by_id
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at
  FROM account
 WHERE id = $1;

-- name: account_by_email
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at,
       password_hash, banned_at
  FROM account
 WHERE email = $1;

-- name: password_of
SELECT email, password_hash
  FROM account
 WHERE id = $1;

-- name: set_password
-- Only if it has not changed in the meantime: of two concurrent changes, one gets an error.
   UPDATE account
      SET password_hash = $3
    WHERE id = $1
      AND password_hash IS NOT DISTINCT FROM $2
RETURNING id;

-- name: set_locale
   UPDATE account
      SET locale = $2
    WHERE id = $1
RETURNING id, email, contact_email, name, role::text, version, created_at, locale, verified_at;

-- name: lock_role
SELECT role::text FROM account WHERE id = $1 FOR UPDATE;

-- name: set_role
-- Every token of the account dies with its version; the next refresh brings one with the new role.
   UPDATE account
      SET role = $2::text::account_role, version = version + 1, changed_at = now()
    WHERE id = $1
      AND role <> $2::text::account_role
RETURNING version;

-- name: open_session
INSERT INTO session (account_id, expires_at, device, signed_in_by)
     VALUES ($1, now() + make_interval(secs => $2), $3, $4)
  RETURNING id, (SELECT role::text FROM account WHERE account.id = $1) AS role,
            EXISTS (SELECT FROM totp WHERE totp.account_id = $1 AND totp.confirmed_at IS NOT NULL)
            OR EXISTS (SELECT FROM passkey WHERE passkey.account_id = $1) AS has_factor;

-- name: end_surplus_sessions
-- All but the youngest $2. A row that another login is ending at this moment is left to it.
   UPDATE session
      SET ended_at = now(), ended_by = 'surplus'
    WHERE id IN (SELECT id
                   FROM session
                  WHERE account_id = $1
                    AND ended_at IS NULL
               ORDER BY id DESC
                 OFFSET $2
                    FOR UPDATE SKIP LOCKED)
RETURNING id;

-- name: add_refresh_token
INSERT INTO refresh_token (hash, session_id, expires_at)
     VALUES ($1, $2, now() + make_interval(secs => $3));

-- name: use_refresh_token
-- Use it up. A token that was used, has expired, or whose session has ended, is left alone and gives no row.
   UPDATE refresh_token
      SET used_at = now()
     FROM session
    WHERE refresh_token.hash = $1
      AND refresh_token.used_at IS NULL
      AND refresh_token.expires_at > now()
      AND session.id = refresh_token.session_id
      AND session.ended_at IS NULL
RETURNING session.id AS session_id, session.account_id;

-- name: look_at_refresh_token
-- Why it could not be used.
SELECT session_id, used_at IS NOT NULL AS is_used, expires_at <= now() AS is_expired
  FROM refresh_token
 WHERE hash = $1;

-- name: extend_session
UPDATE session
   SET expires_at = now() + make_interval(secs => $2), last_used_at = now()
 WHERE id = $1;

-- name: end_session
-- A session that has ended keeps its first reason.
UPDATE session
   SET ended_at = now(), ended_by = $2
 WHERE id = $1
   AND ended_at IS NULL;

-- name: end_other_sessions
-- All sessions of an account but $2 (0: all), for the reason $3.
   UPDATE session
      SET ended_at = now(), ended_by = $3
    WHERE account_id = $1
      AND id <> $2
      AND ended_at IS NULL
RETURNING id;

-- name: revocations
-- What a living access token may need to be checked against: $1 seconds is the longest life of one, and some.
SELECT 'session' AS kind, id, 0 AS version
  FROM session
 WHERE ended_at > now() - make_interval(secs => $1)
 UNION ALL
SELECT 'account', id, version
  FROM account
 WHERE version > 1
   AND changed_at > now() - make_interval(secs => $1);

-- name: lock_signing_keys
-- Two processes that start at once must not make a first key each.
LOCK TABLE signing_key IN SHARE ROW EXCLUSIVE MODE;

-- name: signing_keys
  SELECT jwk, extract(epoch FROM signs_from)::float8 AS signs_from
    FROM signing_key
ORDER BY signs_from;

-- name: add_signing_key
-- It signs $2 seconds from now, when every process has read it.
INSERT INTO signing_key (jwk, signs_from)
     VALUES ($1, now() + make_interval(secs => $2));

-- name: drop_signing_keys
DELETE FROM signing_key;

-- name: drop_old_signing_keys
-- A key goes when its successor has signed for $1 seconds: nothing it has signed is alive.
DELETE FROM signing_key
      WHERE EXISTS (SELECT FROM signing_key AS younger
                     WHERE younger.signs_from > signing_key.signs_from
                       AND younger.signs_from < now() - make_interval(secs => $1));

-- name: prune_sessions
-- Sessions that ended a day ago, with their refresh tokens. A bounded number at a time.
WITH old AS (
    SELECT id
      FROM session
     WHERE ended_at < now() - interval '1 day'
        OR expires_at < now() - interval '1 day'
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM session
          USING old
          WHERE session.id = old.id
      RETURNING session.id
)
SELECT count(*) FROM gone;

-- name: prune_refresh_tokens
-- A used token that has expired can no longer be mistaken for a good one.
WITH old AS (
    SELECT hash
      FROM refresh_token
     WHERE expires_at < now()
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM refresh_token
          USING old
          WHERE refresh_token.hash = old.hash
      RETURNING refresh_token.hash
)
SELECT count(*) FROM gone;
