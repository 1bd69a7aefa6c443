-- Passes of devices and people at the door.

-- name: door_member
-- Looks at members only: what it returns says nothing about other accounts.
SELECT account.id
  FROM organisation_member AS member
  JOIN account_profile AS account ON account.id = member.account_id
 WHERE member.organisation_id = $1 AND account.email = $2 AND member.rights && '{door,owner}';

-- name: show_times
SELECT count(*) AS known, min(starts_at) AS starts_at, max(ends_at) AS ends_at,
       CASE WHEN count(DISTINCT organiser_id) = 1 THEN min(organiser_id) END AS organiser_id
  FROM show_detail
 WHERE show_id = ANY ($1)
   AND deleted_at IS NULL
   AND ($2::bigint IS NULL OR organiser_id = $2);

-- name: add_pass
INSERT INTO gate_pass (account_id, organiser_id, gate, name, code_hash, starts_at, ends_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
  RETURNING id;

-- name: add_shows
INSERT INTO gate_pass_show (show_id, pass_id) SELECT show_id, $1 FROM unnest($2::bigint[]) AS show_id;

-- name: passes
-- Of an organiser, or of all (NULL), of one show where it says; newest first.
SELECT gate_pass.*, array(SELECT show_id FROM gate_pass_show WHERE pass_id = gate_pass.id ORDER BY 1) AS shows
  FROM gate_pass
 WHERE ($1::bigint IS NULL OR organiser_id = $1)
   AND ($2::bigint IS NULL
        OR EXISTS (SELECT FROM gate_pass_show WHERE pass_id = gate_pass.id AND show_id = $2))
   AND ($3::bigint IS NULL OR gate_pass.id = $3)
   AND gate_pass.id < $4
 ORDER BY gate_pass.id DESC
 LIMIT $5;

-- name: revoke
-- A pass that was revoked keeps its first time.
UPDATE gate_pass SET revoked_at = coalesce(revoked_at, now())
 WHERE id = $1 AND ($2::bigint IS NULL OR organiser_id = $2)
RETURNING id;

-- name: sign_in
-- With the code, on the device that came first. One that is over has $3 seconds to tell what it has decided.
-- No row: no such code, over for longer, revoked, or another device.
UPDATE gate_pass SET device_key = coalesce(device_key, $2)
 WHERE code_hash = $1 AND revoked_at IS NULL AND ends_at + make_interval(secs => $3) > now()
   AND (device_key IS NULL OR device_key = $2)
RETURNING id, account_id;

-- name: code_is_good
-- Whether a pass has this code, whatever its device.
SELECT EXISTS (
    SELECT FROM gate_pass
     WHERE code_hash = $1 AND revoked_at IS NULL AND ends_at + make_interval(secs => $2) > now()
);

-- name: bind_device
-- The first device to come has every pass that the account has now. No row: another one has them.
UPDATE gate_pass SET device_key = $2
 WHERE id IN (SELECT id FROM good_pass WHERE account_id = $1 AND starts_at <= now() AND ends_at > now())
   AND (device_key IS NULL OR device_key = $2)
RETURNING id;
