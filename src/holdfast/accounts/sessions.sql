-- name: visits
-- Whom these cookies speak for, and whose bookings are theirs.
SELECT session_cookie.hash, account.id, account.email, account.name, account.role::text, account.version,
       account.created_at, account.locale, account.contact_email, account.password_hash IS NULL AS is_guest,
       session.id AS session_id, clock_timestamp() AS seen_at,
       ARRAY(SELECT guest.id
               FROM account AS guest
              WHERE guest.guest_of = account.id
              ORDER BY guest.id) AS guests
  FROM session_cookie
  JOIN session ON session.id = session_cookie.session_id
  JOIN account ON account.id = session.account_id
 WHERE session_cookie.hash = ANY($1::bytea[])
   AND session.ended_at IS NULL
   AND session.expires_at > now();

-- name: add_cookie
INSERT INTO session_cookie (hash, session_id)
     VALUES ($1, $2);

-- name: add_guest
INSERT INTO account (email, name, locale)
     VALUES ($1, $2, $3)
  RETURNING id, email, name, role::text, version, created_at, locale;

-- name: name_guest
-- The address and name for mail to a guest. Accounts have their own address.
   UPDATE account
      SET contact_email = $2, name = $3
    WHERE id = $1
      AND password_hash IS NULL
RETURNING id;

-- name: become_account
-- A guest signs up: the same account, now with a password. An address that is taken changes nothing.
   UPDATE account
      SET email = $2, name = $3, password_hash = $4, contact_email = NULL, changed_at = now()
    WHERE id = $1
      AND password_hash IS NULL
      AND NOT EXISTS (SELECT FROM account AS other WHERE other.email = $2)
RETURNING id, email, name, role::text, version, created_at, locale;

-- name: take_guest
-- A guest logs in to an account they have: what they hold goes on as theirs, and letters go to the account.
UPDATE account AS guest
   SET guest_of = account.id,
       contact_email = coalesce(guest.contact_email, account.email),
       name = account.name
  FROM account
 WHERE guest.id = $1
   AND guest.password_hash IS NULL
   AND guest.guest_of IS NULL
   AND account.id = $2
   AND account.password_hash IS NOT NULL;
