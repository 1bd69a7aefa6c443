-- One scan that a device decided offline, in one transaction: upload.py.

-- name: pass_for_upload
-- The pass that covers the show, and when the scan was: a device whose clock runs ahead, or is before its
-- pass began, scanned at the nearest possible time. No row: no such pass.
SELECT pass_id, gate, greatest(least($3::timestamptz, clock_timestamp()), starts_at) AS scanned_at
  FROM pass_now($1, $2, make_interval(secs => $4))
 WHERE covers;

-- name: lock_ticket
SELECT number, seat, edition, coalesce(voided_at, suspended_at) IS NOT NULL AS is_void
  FROM lock_ticket($1, $2);

-- name: known_scans
SELECT id, scan_id, serial, verdict
  FROM check_in
 WHERE show_id = $1 AND pass_id = $2 AND scan_id = ANY ($3::text[]);

-- name: conflict_of
SELECT min(why) FROM check_in_conflict WHERE show_id = $1 AND $2 IN (first_id, second_id);

-- name: add_scan
INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, offline, scanned_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, true, $9)
  RETURNING id;

-- name: history
-- The other scans of the ticket that moved a visitor.
SELECT c.id, c.verdict, c.scanned_at,
       EXISTS (SELECT FROM check_in AS u WHERE u.show_id = $1 AND u.undoes = c.id) AS is_undone
  FROM check_in AS c
 WHERE c.show_id = $1 AND c.serial = $2 AND c.id <> $3 AND c.verdict IN ('admitted', 'left');

-- name: add_conflict
-- A check-in is raised once.
INSERT INTO check_in_conflict (show_id, serial, why, first_id, second_id) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (show_id, second_id) DO NOTHING;

-- name: publish
SELECT add_fact($1, $2, $3, $4::text::jsonb);

-- name: apply_verdict
SELECT apply_verdict($1, $2, $3, $4);

-- name: mark_used
-- A later scan has decided already whether the visitor is inside.
SELECT mark_ticket($1, $2, NULL, $3);
