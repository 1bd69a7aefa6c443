-- name: use
-- No row: this identity has no account. A concurrent unlink wins.
   UPDATE oidc_identity
      SET last_used_at = now()
    WHERE issuer = $1 AND subject = $2
RETURNING account_id;

-- name: owner
SELECT account_id FROM oidc_identity WHERE issuer = $1 AND subject = $2;

-- name: link
-- An identity that has an account keeps it.
INSERT INTO oidc_identity (issuer, subject, account_id, email) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING;

-- name: list
  SELECT issuer, subject, email, linked_at, last_used_at
    FROM oidc_identity
   WHERE account_id = $1
ORDER BY linked_at, issuer, subject
   LIMIT $2;

-- name: unlink
DELETE FROM oidc_identity WHERE account_id = $1 AND issuer = $2 AND subject = $3;
