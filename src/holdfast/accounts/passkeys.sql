-- Passkeys of accounts.

-- name: person
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at
  FROM account
 WHERE id = $1;

-- name: credentials
SELECT credential_id, transports FROM passkey WHERE account_id = $1 ORDER BY id;

-- name: lock_passkey
-- Its counter is compared and written by one request at a time. No row: unknown, or the account is banned.
SELECT account.id, email, contact_email, account.name, role::text, version, account.created_at, locale,
       verified_at, passkey.id AS passkey_id, public_key, sign_count
  FROM passkey
  JOIN account ON account.id = passkey.account_id
 WHERE credential_id = $1
   AND banned_at IS NULL
   AND erased_at IS NULL
   FOR UPDATE OF passkey;

-- name: note_use
UPDATE passkey SET sign_count = $2, last_used_at = now() WHERE id = $1;

-- name: add_passkey
INSERT INTO passkey (account_id, credential_id, public_key, sign_count, transports, name)
     VALUES ($1, $2, $3, $4, $5, $6)
  RETURNING id, name, created_at, last_used_at;

-- name: rename
   UPDATE passkey
      SET name = $3
    WHERE account_id = $1
      AND id = $2
RETURNING id, name, created_at, last_used_at;

-- name: remove
DELETE FROM passkey WHERE account_id = $1 AND id = $2 RETURNING id;
