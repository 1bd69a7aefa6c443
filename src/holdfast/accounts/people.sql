-- What people do with their own account.

-- name: person
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at, banned_at,
       password_hash IS NOT NULL AS has_password,
       password_hash IS NULL AND email LIKE '%@guest.invalid' AS is_guest
  FROM account
 WHERE id = $1
   AND erased_at IS NULL;

-- name: person_at
-- The account whose address this is. A sign-up that was never confirmed is not.
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at, banned_at
  FROM account
 WHERE email = $1;

-- name: prove_contact
-- A guest has the mailbox it named. No row: it names another one by now.
   UPDATE account
      SET verified_at = now()
    WHERE id = $1
      AND contact_email = $2
RETURNING id;

-- name: own_address
-- The address is the account's. It fails if another account has it: no_two_accounts_share_an_email.
   UPDATE account
      SET email = $2, contact_email = NULL, verified_at = now()
    WHERE id = $1
RETURNING id;

-- name: merge_into
-- Two sign-ups of one person: what the second holds goes on as the first one's, and only that can sign in.
UPDATE account
   SET guest_of = $2, password_hash = NULL, contact_email = $3, verified_at = now()
 WHERE id = $1
   AND email LIKE '%@guest.invalid';

-- name: add_proved
-- Signed in by a mailed link without an account: now there is one. No row: another tab was first.
INSERT INTO account (email, name, locale, verified_at)
     VALUES ($1, $2, $3, now())
ON CONFLICT (email) DO NOTHING
  RETURNING id;

-- name: distrust_password
-- The address was never proved, so the password may be that of another person who typed it.
UPDATE account
   SET verified_at = now(), password_hash = NULL
 WHERE id = $1;

-- name: reset_password
   UPDATE account
      SET password_hash = $3, verified_at = now()
    WHERE id = $1
      AND email = $2
RETURNING id;

-- name: rename
   UPDATE account
      SET name = $2
    WHERE id = $1
RETURNING id;

-- name: sessions
SELECT id, device, created_at, last_used_at, signed_in_by
  FROM session
 WHERE account_id = $1
   AND ended_at IS NULL
   AND expires_at > now()
 ORDER BY last_used_at DESC, id DESC
 LIMIT $2;

-- name: end_one_session
   UPDATE session
      SET ended_at = now(), ended_by = 'revoked'
    WHERE account_id = $1
      AND id = $2
      AND ended_at IS NULL
RETURNING id;
