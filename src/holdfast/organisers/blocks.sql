-- Seat blocks of organisers.

-- name: block
SELECT * FROM block_seats($1, $2, $3, $4);

-- name: set_release
SELECT set_block_release($1, $2, $3, $4);

-- name: rename
SELECT rename_block($1, $2, $3);

-- name: blocks
-- All blocks of a show, or only number $2.
  SELECT number, owner_id, claim_id, seats, name, made_at, release_at, hours_before, withdrawn
    FROM seat_block_detail
   WHERE show_id = $1 AND ($2::bigint IS NULL OR number = $2)
ORDER BY number;

-- name: release
SELECT was, released FROM release_block($1, $2, $3, $4);

-- name: due
  SELECT show_id, number
    FROM seat_block_detail
   WHERE release_at <= now()
ORDER BY release_at
   LIMIT $1;

-- name: is_due
SELECT count(*)
  FROM (SELECT FROM seat_block_detail WHERE release_at <= now() ORDER BY release_at LIMIT 1) AS due;
