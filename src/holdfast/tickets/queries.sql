-- Tickets, the keys that sign them, and the phones their live codes are for.

-- name: lock_ticket_keys
-- Two processes that start at once must not make a first key each.
LOCK TABLE ticket_key IN SHARE ROW EXCLUSIVE MODE;

-- name: ticket_keys
  SELECT id AS key_id, private, secret, extract(epoch FROM signs_from)::float8 AS signs_from,
         EXISTS (SELECT FROM revoked_ticket_key WHERE show_id = 0 AND key_id = ticket_key.id) AS is_revoked
    FROM ticket_key
ORDER BY id;

-- name: add_ticket_key
-- It signs $3 seconds from now, when every process has read it. The 256th is refused: a key id is a byte.
INSERT INTO ticket_key (id, private, secret, signs_from)
     SELECT coalesce(max(id), 0) + 1, $1, $2, now() + make_interval(secs => $3) FROM ticket_key;

-- name: revoke_ticket_keys
-- All but the youngest, at show $1; 0: at every show.
INSERT INTO revoked_ticket_key (show_id, key_id)
     SELECT $1, id FROM ticket_key WHERE id < (SELECT max(id) FROM ticket_key)
ON CONFLICT DO NOTHING;

-- name: send_reissued
-- A fact per booking and owner of tickets that can still be used, of show $1 or (0) of all shows to come.
-- Those that wait for an address have never been shown: there is no code to replace.
SELECT add_fact(show_id, number, 'tickets.sent_again', jsonb_build_object('account_id', account_id))
  FROM (SELECT DISTINCT show_id, number, coalesce(ticket.owner_id, booked_by) AS account_id
          FROM ticket_detail AS ticket
          JOIN show_detail USING (show_id)
         WHERE $1::bigint IN (0, show_id) AND ends_at > now() AND NOT cancelled
           AND voided_at IS NULL AND used_at IS NULL AND owner_email IS NULL) AS holder;

-- name: tickets_of_booking
  SELECT t.*,
         EXISTS (SELECT FROM suspended_ticket AS s
                  WHERE s.show_id = t.show_id AND s.serial = t.serial) AS is_suspended
    FROM ticket_detail AS t
   WHERE show_id = $1 AND number = $2
ORDER BY seat;

-- name: ticket
SELECT t.*,
       EXISTS (SELECT FROM suspended_ticket AS s
                WHERE s.show_id = t.show_id AND s.serial = t.serial) AS is_suspended
  FROM ticket_detail AS t
 WHERE show_id = $1 AND serial = $2;

-- name: tickets_of_owner
-- Those they booked and still own, those they were given, those waiting for their proved address ($2, NULL:
-- none); newest first.
SELECT * FROM (
    SELECT ticket_detail.* FROM ticket_detail
     WHERE booked_by = ANY ($1::bigint[]) AND owner_id IS NULL AND owner_email IS NULL
     UNION ALL
    SELECT ticket_detail.* FROM ticket_detail WHERE owner_id = ANY ($1::bigint[])
     UNION ALL
    SELECT ticket_detail.* FROM ticket_detail WHERE owner_email = $2
) AS mine
 WHERE voided_at IS NULL AND serial < $3
 ORDER BY serial DESC
 LIMIT $4;

-- name: bind_phone
-- Only the phone that opened the ticket last is valid; the number of its binding changes only with the
-- phone.
WITH locked AS (
    SELECT number, seat
      FROM ticket
     WHERE show_id = $1 AND serial = ANY ($2::bigint[])
  ORDER BY number, seat
       FOR UPDATE
)
UPDATE ticket
   SET phone = $3, binding = binding + (phone IS DISTINCT FROM $3)::int
  FROM locked
 WHERE ticket.show_id = $1 AND ticket.number = locked.number AND ticket.seat = locked.seat;

-- name: resend
-- Nothing is sent, and no row comes back, when it was sent $3 times in the last hour.
WITH noted AS (
    INSERT INTO ticket_resend (show_id, number)
    SELECT $1, $2
     WHERE (SELECT count(*) FROM ticket_resend
             WHERE show_id = $1 AND number = $2 AND at > now() - interval '1 hour') < $3
    RETURNING at
)
SELECT add_fact($1, $2, 'tickets.sent_again', jsonb_build_object('account_id', $4::bigint)) FROM noted;

-- name: door
SELECT codes, reentry FROM entry_policy WHERE show_id = $1;

-- name: set_door
INSERT INTO entry_policy (show_id, codes, reentry) VALUES ($1, $2, $3)
ON CONFLICT (show_id) DO UPDATE SET codes = excluded.codes, reentry = excluded.reentry;
