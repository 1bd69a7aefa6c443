-- Check-in: one statement per scan. The functions are in checkin/functions.sql.

-- name: check_in
SELECT checked.*, checked.verdict = 'void' AND is_ticket_suspended($4, $5) AS is_suspended
  FROM check_in_now($1, $2, $3, $4, $5, $6, $7, $8) AS checked;

-- name: show_of_scan
-- The show under which a scan is written: the ticket's, or any of the pass. No row: no pass.
SELECT CASE WHEN covers THEN $2 ELSE any_show END FROM pass_now($1, $2);

-- name: undo
SELECT * FROM undo_check_in($1, $2, $3, $4, make_interval(secs => $5));

-- name: shows_of_pass
-- The shows this account may ask about now. The newest pass with a device names the gate, so that another
-- pass, which has no device yet, does not stop the device from fetching its pack. No row: no pass. Deleted
-- shows are not among them: one in a pod stays closed, and nothing could be fetched.
SELECT pass.id AS pass_id, pass.gate, pass.device_key, pass.ends_at, gate_pass_show.show_id
  FROM good_pass AS pass
  JOIN gate_pass_show ON gate_pass_show.pass_id = pass.id
 WHERE pass.account_id = $1
   AND pass.starts_at <= now()
   AND pass.ends_at > now()
   AND NOT EXISTS (SELECT FROM show_detail AS show
                    WHERE show.show_id = gate_pass_show.show_id AND show.deleted_at IS NOT NULL)
 ORDER BY pass.device_key IS NULL, pass.id DESC, gate_pass_show.show_id;

-- name: count_tickets
SELECT show_id, count(*) FILTER (WHERE voided_at IS NULL)::int AS tickets,
       count(*) FILTER (WHERE used_at IS NOT NULL)::int AS used,
       count(*) FILTER (WHERE is_inside)::int AS inside
  FROM ticket_detail
 WHERE show_id = ANY ($1)
 GROUP BY show_id;

-- name: count_scans
SELECT show_id, gate,
       count(*) FILTER (WHERE verdict = 'admitted')::int AS admitted,
       count(*) FILTER (WHERE verdict = 'left')::int AS left,
       count(*) FILTER (WHERE verdict = 'undone')::int AS undone,
       count(*) FILTER (WHERE verdict NOT IN ('admitted', 'left', 'undone'))::int AS refused
  FROM check_in
 WHERE show_id = ANY ($1)
 GROUP BY show_id, gate
 ORDER BY gate;

-- name: count_conflicts
SELECT show_id, count(*)::int AS conflicts FROM check_in_conflict WHERE show_id = ANY ($1) GROUP BY show_id;

-- name: conflicts
SELECT conflict.id, conflict.serial, conflict.why, conflict.at, ticket.seat, ticket.number,
       first.gate AS first_gate, first.scanned_at AS first_at,
       second.gate AS second_gate, second.scanned_at AS second_at
  FROM check_in_conflict AS conflict
  LEFT JOIN ticket_detail AS ticket USING (show_id, serial)
  LEFT JOIN check_in AS first ON first.show_id = conflict.show_id AND first.id = conflict.first_id
  JOIN check_in AS second ON second.show_id = conflict.show_id AND second.id = conflict.second_id
 WHERE conflict.show_id = $1
 ORDER BY conflict.id DESC
 LIMIT $2;

-- name: note_search
-- No row: looked people up $2 times in the last minute. Older rows are deleted.
WITH forgotten AS (
    DELETE FROM gate_search WHERE pass_id = $1 AND at <= now() - interval '1 minute'
)
INSERT INTO gate_search (pass_id)
SELECT $1 WHERE (SELECT count(*) FROM gate_search
                  WHERE pass_id = $1 AND at > now() - interval '1 minute') < $2
RETURNING at;

-- name: search_by_name
-- By a prefix of any word of the current ticket holder's name.
SELECT ticket_detail.*, account.name
  FROM ticket_detail
  JOIN account_profile AS account ON account.id = coalesce(ticket_detail.owner_id, ticket_detail.booked_by)
 WHERE ticket_detail.show_id = ANY ($1)
   AND ticket_detail.owner_email IS NULL
   AND (starts_with(lower(account.name), lower($2))
        OR position(' ' || lower($2) IN lower(account.name)) > 0)
 ORDER BY ticket_detail.show_id, ticket_detail.seat
 LIMIT $3;

-- name: search_by_number
SELECT ticket_detail.*, account.name
  FROM unnest($1::bigint[], $2::bigint[]) AS requested (show_id, number)
  JOIN ticket_detail USING (show_id, number)
  LEFT JOIN account_profile AS account
    ON account.id = coalesce(ticket_detail.owner_id, ticket_detail.booked_by)
 ORDER BY ticket_detail.seat
 LIMIT $3;

-- name: pack_tickets
-- Everything of a show in the order of issue, and who came in with it last; read in one statement, so that it
-- is of one moment.
SELECT ticket_detail.serial, edition, binding, seat, voided_at IS NOT NULL AS is_void,
       used_at IS NOT NULL AS is_used, is_inside,
       coalesce(extract(epoch FROM latest.scanned_at), 0)::float8 AS since_s,
       coalesce(latest.gate, '') AS gate, suspended_ticket.serial IS NOT NULL AS is_suspended
  FROM ticket_detail
  LEFT JOIN suspended_ticket USING (show_id, serial)
  LEFT JOIN LATERAL (SELECT check_in.scanned_at, check_in.gate FROM check_in
                      WHERE check_in.show_id = $1 AND check_in.serial = ticket_detail.serial
                        AND check_in.verdict = 'admitted'
                      ORDER BY check_in.id DESC
                      LIMIT 1) AS latest ON ticket_detail.used_at IS NOT NULL
 WHERE ticket_detail.show_id = $1
 ORDER BY ticket_detail.serial;

-- name: oldest_key
SELECT oldest_ticket_key($1);

-- name: may_upload
SELECT EXISTS (SELECT FROM good_pass
                WHERE account_id = $1 AND starts_at <= now()
                  AND ends_at + make_interval(secs => $2) > now());
