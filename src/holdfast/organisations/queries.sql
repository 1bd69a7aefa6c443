-- Organisations and their members. A transaction that changes members has locked the organisation first.

-- name: memberships
-- `is_held_back`: the organisation, or the house ($2), wants a second factor, and the account has none.
SELECT organisation_id, rights,
       (needs_second_factor OR $2 OR EXISTS (SELECT FROM house_second_factor WHERE who = 'staff'))
       AND NOT EXISTS (SELECT FROM account_with_second_factor AS has WHERE has.account_id = $1)
       AS is_held_back
  FROM membership
  JOIN organisation ON organisation.id = organisation_id
 WHERE account_id = $1;

-- name: has_second_factor
SELECT EXISTS (SELECT FROM account_with_second_factor WHERE account_id = $1);

-- name: lacks_second_factor
-- Of an administrator, where the setting ($2) or the house wants one.
SELECT ($2 OR EXISTS (SELECT FROM house_second_factor WHERE who IN ('admins', 'staff')))
       AND NOT EXISTS (SELECT FROM account_with_second_factor WHERE account_id = $1);

-- name: require_second_factor
   UPDATE organisation
      SET needs_second_factor = $2
    WHERE id = $1
      AND needs_second_factor <> $2
RETURNING id;

-- name: exists
SELECT EXISTS (SELECT FROM organisation WHERE id = $1);

-- name: add
-- The id comes from the sequence of accounts: no account ever has it, so the release before this one, which
-- takes `organiser_id` for an account, gives what belongs to this organisation to no one but admins.
INSERT INTO organisation (id, name) VALUES (nextval(pg_get_serial_sequence('account', 'id')), $1)
  RETURNING id, name, created_at, needs_second_factor;

-- name: add_member
-- A member keeps the rights they have.
INSERT INTO membership (organisation_id, account_id, rights) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
  RETURNING account_id;

-- name: organisation
SELECT id, name, created_at, needs_second_factor FROM organisation WHERE id = $1;

-- name: rename
UPDATE organisation SET name = $2 WHERE id = $1 RETURNING id, name, created_at, needs_second_factor;

-- name: lock
SELECT id FROM organisation WHERE id = $1 FOR NO KEY UPDATE;

-- name: list_all
-- By the beginning of any word of the name.
  SELECT id, name, created_at, needs_second_factor, count(*) OVER () AS total
    FROM organisation
   WHERE starts_with(lower(name), lower($1)) OR position(' ' || lower($1) IN lower(name)) > 0
ORDER BY lower(name), id
   LIMIT $2 OFFSET $3;

-- name: list_mine
  SELECT organisation.id, organisation.name, membership.rights
    FROM membership
    JOIN organisation ON organisation.id = membership.organisation_id
   WHERE membership.account_id = $1
ORDER BY lower(organisation.name), organisation.id;

-- name: members
  SELECT membership.account_id, account.name, account.email, membership.rights, membership.joined_at
    FROM membership
    JOIN account_profile AS account ON account.id = membership.account_id
   WHERE membership.organisation_id = $1
     AND ($2::bigint IS NULL OR membership.account_id = $2)
ORDER BY membership.joined_at, membership.account_id;

-- name: count_members
SELECT count(*) FROM membership WHERE organisation_id = $1;

-- name: other_owners
SELECT count(*) FROM membership WHERE organisation_id = $1 AND account_id <> $2 AND 'owner' = ANY (rights);

-- name: set_rights
UPDATE membership SET rights = $3 WHERE organisation_id = $1 AND account_id = $2;

-- name: remove_member
DELETE FROM membership WHERE organisation_id = $1 AND account_id = $2;

-- name: withdraw_by_inviter
-- A member who loses rights may not have passed them on by an invitation that is still open.
UPDATE invitation
   SET ended_at = now(), ended_as = 'withdrawn'
 WHERE organisation_id = $1 AND invited_by = $2 AND ended_at IS NULL;
