-- name: visits
-- Whom these cookies speak for, and whose bookings are theirs.
SELECT session_cookie.hash, account.id, account.email, account.name, account.role::text, account.version,
       account.created_at, account.locale, account.contact_email, account.verified_at,
       account.password_hash IS NULL AND account.email LIKE '%@guest.invalid' AS is_guest,
       session.id AS session_id, session.last_used_at, clock_timestamp() AS seen_at,
       ARRAY(SELECT guest.id FROM account AS guest WHERE guest.guest_of = account.id
              UNION
             SELECT opened.account_id FROM session_guest AS opened WHERE opened.session_id = session.id
              ORDER BY 1) AS guests
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
  RETURNING id, email, contact_email, name, role::text, version, created_at, locale, verified_at;

-- name: name_guest
-- The address and name for mail to a guest. Accounts have their own address. What was proved or paid for with
-- another address says nothing about this one.
   UPDATE account
      SET contact_email = $2, name = $3,
          verified_at = CASE WHEN contact_email = $2 THEN verified_at END,
          contact_at = CASE WHEN contact_email = $2 THEN contact_at ELSE now() END
    WHERE id = $1
      AND password_hash IS NULL
      AND email LIKE '%@guest.invalid'
RETURNING id;

-- name: become_account
-- A guest signs up: the same account, now with a password. The address is theirs when a mailed link proves
-- it. No row: it signed up in another tab.
   UPDATE account
      SET contact_email = $2, contact_at = now(), verified_at = NULL, name = $3, password_hash = $4
    WHERE id = $1
      AND password_hash IS NULL
      AND email LIKE '%@guest.invalid'
RETURNING id, email, contact_email, name, role::text, version, created_at, locale, verified_at;

-- name: take_guest
-- A guest logs in to an account they have: what they hold goes on as theirs, and letters go to the account.
UPDATE account AS guest
   SET guest_of = account.id,
       contact_email = coalesce(guest.contact_email, account.contact_email, account.email),
       contact_at = CASE WHEN guest.contact_email IS NULL THEN now() ELSE guest.contact_at END,
       name = account.name
  FROM account
 WHERE guest.id = $1
   AND guest.password_hash IS NULL
   AND guest.email LIKE '%@guest.invalid'
   AND guest.guest_of IS NULL
   AND guest.id <> account.id
   AND account.id = $2;

-- name: merge_counts
-- What a guest has counts for their account as well.
SELECT merge_owner_counts(id, guest_of) FROM account WHERE id = $1 AND guest_of IS NOT NULL;

-- name: prove_guest
UPDATE account
   SET contact_email = $2, contact_at = now(), verified_at = now(),
       guest_of = coalesce(guest_of, (SELECT owner.id FROM account AS owner
                                       WHERE owner.email = $2 AND owner.verified_at IS NOT NULL))
 WHERE id = $1
   AND password_hash IS NULL
   AND email LIKE '%@guest.invalid';

-- name: note_use
-- Written every few minutes, however many pages are opened.
UPDATE session
   SET last_used_at = now()
 WHERE id = $1;

-- name: open_guest_bookings
-- The bookings of guest $2 are shown in session $1 from now on.
INSERT INTO session_guest (session_id, account_id)
     VALUES ($1, $2)
ON CONFLICT DO NOTHING;
