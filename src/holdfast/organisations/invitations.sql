-- Invitations. A transaction that adds or accepts one has locked its organisation first.

-- name: count_lately
-- In the last day: of this organisation, and to this address by any.
SELECT count(*) FILTER (WHERE organisation_id = $1) AS by_organisation,
       count(*) FILTER (WHERE email = $2) AS to_address
  FROM invitation
 WHERE created_at > now() - interval '1 day' AND (organisation_id = $1 OR email = $2);

-- name: is_member
SELECT EXISTS (SELECT FROM membership
                 JOIN account_profile AS account ON account.id = membership.account_id
                WHERE membership.organisation_id = $1 AND account.email = $2);

-- name: replace_open
-- Of two mails to one address the newer one works.
UPDATE invitation SET ended_at = now(), ended_as = 'replaced'
 WHERE organisation_id = $1 AND email = $2 AND ended_at IS NULL;

-- name: add
INSERT INTO invitation (organisation_id, email, rights, invited_by, expires_at)
     VALUES ($1, $2, $3, $4, now() + make_interval(days => $5))
  RETURNING id, email, rights, created_at, expires_at;

-- name: stored
SELECT email, rights FROM invitation
 WHERE organisation_id = $1 AND id = $2 AND ended_at IS NULL AND expires_at > now();

-- name: organisation_name
SELECT organisation.name
  FROM invitation JOIN organisation ON organisation.id = invitation.organisation_id
 WHERE invitation.id = $1;

-- name: set_token
-- No row: it has ended.
   UPDATE invitation SET token_hash = $2
    WHERE id = $1 AND ended_at IS NULL AND expires_at > now()
RETURNING id;

-- name: list_open
  SELECT id, email, rights, created_at, expires_at
    FROM invitation
   WHERE organisation_id = $1 AND ended_at IS NULL AND expires_at > now()
ORDER BY id DESC;

-- name: withdraw
UPDATE invitation SET ended_at = now(), ended_as = 'withdrawn'
 WHERE organisation_id = $1 AND id = $2 AND ended_at IS NULL
RETURNING id;

-- name: open
-- No row: unknown, ended or expired.
SELECT invitation.id, invitation.organisation_id, organisation.name, invitation.email, invitation.rights,
       invitation.expires_at
  FROM invitation
  JOIN organisation ON organisation.id = invitation.organisation_id
 WHERE invitation.token_hash = $1 AND invitation.ended_at IS NULL AND invitation.expires_at > now();

-- name: accept
-- No row: it was withdrawn or used while its organisation was locked by another.
UPDATE invitation SET ended_at = now(), ended_as = 'accepted', accepted_by = $2
 WHERE token_hash = $1 AND ended_at IS NULL AND expires_at > now()
RETURNING organisation_id, rights;

-- name: decline
UPDATE invitation SET ended_at = now(), ended_as = 'declined'
 WHERE token_hash = $1 AND ended_at IS NULL
RETURNING id;

-- name: is_person
-- Guests and devices cannot be members.
SELECT EXISTS (SELECT FROM account_profile WHERE id = $1 AND email NOT LIKE '%.invalid');
