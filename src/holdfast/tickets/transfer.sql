-- A ticket changes hands under the lock of its row: the same that a gate and a refund take.

-- name: lock_ticket
SELECT serial FROM ticket WHERE show_id = $1 AND serial = $2 FOR UPDATE;

-- name: show_is_over
SELECT ends_at <= now() FROM show_detail WHERE show_id = $1;

-- name: last_giver
-- Who gave it away the last time; no row if that was taken back.
SELECT CASE WHEN NOT taken_back THEN from_id END
  FROM ticket_transfer
 WHERE show_id = $1 AND serial = $2
 ORDER BY edition DESC
 LIMIT 1;

-- name: change_hands
-- To an account ($3), or to an address without an account ($4). It is bound to no phone any more.
   UPDATE ticket
      SET edition = edition + 1, owner_id = $3, owner_email = $4, phone = NULL, binding = binding + 1
    WHERE show_id = $1 AND serial = $2
RETURNING edition;

-- name: accept
-- No code of this edition was shown to anyone, so the edition stays.
UPDATE ticket
   SET owner_id = $3, owner_email = NULL
 WHERE show_id = $1 AND serial = $2;

-- name: note_acceptance
UPDATE ticket_transfer
   SET to_id = $4
 WHERE show_id = $1 AND serial = $2 AND edition = $3;

-- name: note_transfer
INSERT INTO ticket_transfer (show_id, serial, edition, from_id, to_id, email, taken_back)
     VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: add_fact
SELECT add_fact($1, $2, $3, $4::text::jsonb);
