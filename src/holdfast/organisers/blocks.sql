-- Seats kept back by organisers: rows of booking, and what seat_block says of them.

-- name: block
SELECT * FROM block_seats($1, $2, $3, $4);

-- name: set_release
INSERT INTO seat_block (show_id, number, release_at, hours_before)
     VALUES ($1, $2, $3, $4)
ON CONFLICT (show_id, number) DO UPDATE
        SET release_at = excluded.release_at, hours_before = excluded.hours_before;

-- name: rename
-- One that is no block any more is left alone: no row in the answer.
   UPDATE booking SET note = $3
    WHERE show_id = $1 AND number = $2 AND state = 'blocked'
RETURNING number;

-- name: blocks
-- Those of a show; or, with $2, one of them.
  SELECT booking.number, booking.owner_id, booking.claim_id, booking.seats, booking.note AS name,
         booking.opened_at AS made_at, more.release_at, more.hours_before,
         coalesce(more.withdrawn, false) AS withdrawn
    FROM booking
    LEFT JOIN seat_block AS more ON more.show_id = booking.show_id AND more.number = booking.number
   WHERE booking.show_id = $1
     AND booking.state = 'blocked'
     AND ($2::bigint IS NULL OR booking.number = $2)
ORDER BY booking.number;

-- name: release
SELECT was, released FROM release_block($1, $2, $3, $4);

-- name: due
  SELECT show_id, number
    FROM seat_block
   WHERE release_at <= now()
ORDER BY release_at
   LIMIT $1;
