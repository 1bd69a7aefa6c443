-- Steps of sign-ins. A banned or erased account has none.

-- name: factors_of
SELECT EXISTS (SELECT FROM totp WHERE account_id = $1 AND confirmed_at IS NOT NULL) AS totp,
       EXISTS (SELECT FROM passkey WHERE account_id = $1) AS passkeys,
       EXISTS (SELECT FROM recovery_code WHERE account_id = $1 AND used_at IS NULL) AS codes;

-- name: begin
INSERT INTO sign_in_step (hash, purpose, account_id, first, expires_at)
     VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5));

-- name: look
SELECT step.account_id, step.first
  FROM sign_in_step AS step
  LEFT JOIN account ON account.id = step.account_id
 WHERE step.hash = $1
   AND step.purpose = $2
   AND step.expires_at > now()
   AND account.banned_at IS NULL
   AND account.erased_at IS NULL;

-- name: use
-- No row: unknown, used, expired, or the account is banned.
DELETE FROM sign_in_step AS step
      WHERE step.hash = $1
        AND step.purpose = $2
        AND step.expires_at > now()
        AND NOT EXISTS (SELECT FROM account
                         WHERE account.id = step.account_id
                           AND (account.banned_at IS NOT NULL OR account.erased_at IS NOT NULL))
  RETURNING step.account_id, step.first;

-- name: count_wrong
WITH counted AS (
    UPDATE sign_in_step SET tries = tries + 1 WHERE hash = $1 AND tries + 1 < $2 RETURNING 1
)
DELETE FROM sign_in_step WHERE hash = $1 AND NOT EXISTS (SELECT FROM counted);

-- name: prune
-- A bounded number at a time.
WITH old AS (
    SELECT hash FROM sign_in_step WHERE expires_at < now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM sign_in_step USING old WHERE sign_in_step.hash = old.hash RETURNING 1
)
SELECT count(*) FROM gone;
