-- Links that are sent by mail: made when the mail is composed, used once.

-- name: add_token
INSERT INTO mail_token (hash, purpose, account_id, email, show_id, number, edition, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8));

-- name: look_at_token
-- No row: unknown, used or expired.
SELECT purpose, account_id, email, show_id, number, edition
  FROM mail_token
 WHERE hash = $1
   AND used_at IS NULL
   AND expires_at > now();

-- name: use_token
-- Of two tabs at once, the second waits for the first and finds it used. No row as above.
   UPDATE mail_token
      SET used_at = now()
    WHERE hash = $1
      AND purpose = ANY ($2::text[])
      AND used_at IS NULL
      AND expires_at > now()
RETURNING purpose, account_id, email, show_id, number, edition;

-- name: end_tokens_alike
-- A mail that was sent twice has two tokens: with the first, the others end.
UPDATE mail_token
   SET used_at = now()
 WHERE email = $1
   AND purpose = $2
   AND account_id IS NOT DISTINCT FROM $3
   AND show_id IS NOT DISTINCT FROM $4
   AND number IS NOT DISTINCT FROM $5
   AND used_at IS NULL;

-- name: end_tokens_of_account
-- Those that let someone in: after a new password, a ban, another address.
UPDATE mail_token
   SET used_at = now()
 WHERE email = ANY ($2::text[])
   AND (account_id = $1 OR account_id IS NULL)
   AND purpose IN ('reset', 'sign_in', 'verify')
   AND used_at IS NULL;

-- name: prune_tokens
-- A bounded number at a time.
WITH old AS (
    SELECT hash FROM mail_token WHERE expires_at < now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM mail_token USING old WHERE mail_token.hash = old.hash RETURNING 1
)
SELECT count(*) FROM gone;
