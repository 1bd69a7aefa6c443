-- A ticket changes hands under the lock of its row: the same that a gate and a refund take.

-- name: lock_ticket
SELECT serial FROM ticket WHERE show_id = $1 AND serial = $2 FOR UPDATE;

-- name: account_at
SELECT id FROM account WHERE email = $1;

-- name: show_is_over
SELECT ends_at <= now() FROM show WHERE id = $1;

-- name: last_giver
-- Who gave it away the last time; nobody when that was taken back.
SELECT CASE WHEN NOT taken_back THEN from_id END
  FROM ticket_transfer
 WHERE show_id = $1 AND serial = $2
 ORDER BY edition DESC
 LIMIT 1;

-- name: change_hands
-- To an account ($3), or to an address nobody has an account by ($4). Its phone is nobody's any more.
INSERT INTO ticket_life AS life (show_id, serial, edition, owner_id, owner_email)
     VALUES ($1, $2, 2, $3, $4)
ON CONFLICT (show_id, serial) DO UPDATE
        SET edition = life.edition + 1, owner_id = excluded.owner_id, owner_email = excluded.owner_email,
            phone = NULL, binding = life.binding + 1
  RETURNING edition;

-- name: note_transfer
INSERT INTO ticket_transfer (show_id, serial, edition, from_id, to_id, email, taken_back)
     VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: tell
SELECT tell_of_ticket($1, $2, $3, $4::text::jsonb);
