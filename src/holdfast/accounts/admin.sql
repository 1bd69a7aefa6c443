-- What administrators do with accounts.

-- name: accounts
-- Newest first. $1: a part of the name or the address, $2: a role, $3: the last id of the page before.
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at, banned_at,
       erased_at
  FROM account
 WHERE ($1 = '' OR strpos(lower(name), $1) > 0 OR strpos(email, $1) > 0
                OR strpos(coalesce(contact_email, ''), $1) > 0)
   AND ($2 = '' OR role::text = $2)
   AND ($4 OR NOT (password_hash IS NULL AND email LIKE '%@guest.invalid'))
   AND id < $3
 ORDER BY id DESC
 LIMIT $5;

-- name: one_account
SELECT id, email, contact_email, name, role::text, version, created_at, locale, verified_at, banned_at,
       erased_at
  FROM account
 WHERE id = $1;

-- name: lock_admins
-- Two administrators who demote each other at once must not both succeed.
  SELECT id FROM account WHERE role = 'admin' AND banned_at IS NULL AND erased_at IS NULL
ORDER BY id
     FOR UPDATE;

-- name: ban
-- Its tokens end with the version. No row: it is banned already.
   UPDATE account
      SET banned_at = now(), version = version + 1, changed_at = now()
    WHERE id = $1
      AND banned_at IS NULL
RETURNING version;

-- name: unban
-- No row: it is not banned.
   UPDATE account
      SET banned_at = NULL
    WHERE id = $1
      AND banned_at IS NOT NULL
RETURNING id;

-- name: drop_password
UPDATE account SET password_hash = NULL WHERE id = $1 AND email NOT LIKE '%@guest.invalid';

-- name: has_admin
SELECT EXISTS (SELECT FROM account WHERE role = 'admin' AND banned_at IS NULL AND erased_at IS NULL);

-- name: end_begin_tokens
UPDATE mail_token SET used_at = now() WHERE purpose = 'begin' AND used_at IS NULL;

-- name: add_first_admin
INSERT INTO account (email, name, password_hash, role, locale, verified_at)
     VALUES ($1, $2, $3, 'admin', $4, now())
  RETURNING id;
