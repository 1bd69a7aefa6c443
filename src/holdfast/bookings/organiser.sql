-- For organisers' changes, inside their transaction: the caller has locked the show.

-- name: reprice_sale
-- Holds at the prices of before are refused from now on. The map stays: it knows no prices.
UPDATE sale SET revision = $2 WHERE show_id = $1;

-- name: lock_sale
-- Against holds that are being opened, until the transaction ends.
SELECT 1 FROM sale WHERE show_id = $1 FOR UPDATE;

-- name: seats_by_category
-- Sold and blocked seats; $2 has the category of every seat, one byte each.
-- Each state by its own index: with IN the planner reads every booking of the show.
  SELECT get_byte($2::bytea, seat) AS category, state, count(*)::int AS seats
    FROM (SELECT seats, 'confirmed' AS state FROM booking WHERE show_id = $1 AND state = 'confirmed'
           UNION ALL
          SELECT seats, 'blocked' FROM booking WHERE show_id = $1 AND state = 'blocked') AS sold,
         unnest(sold.seats) AS seat
GROUP BY 1, 2;

-- name: taken_seats
-- Seats that are not free; those reserved for the waitlist are blocked. Seats of an expired hold are free,
-- even if its row is not closed yet.
SELECT unnest(seats) AS seat, state::text AS state
  FROM booking
 WHERE show_id = $1
   AND number = ANY (ARRAY(SELECT DISTINCT number FROM taken_seat WHERE show_id = $1))
   AND (state <> 'held' OR expires_at > now())
 UNION ALL
SELECT seat, 'blocked' FROM reserved_seat WHERE show_id = $1;

-- name: block
SELECT number FROM block_seats($1, $2, $3, $4);

-- name: move_releases
-- Blocks that are to be released so many hours before the start are, before the new one.
UPDATE seat_block SET release_at = $2::timestamptz - hours_before * interval '1 h'
 WHERE show_id = $1 AND hours_before IS NOT NULL;

-- name: is_sold
-- Whether a show has bookings that are, were or may be paid for. The caller has locked the sale. A hold whose
-- time has passed is not one of them.
SELECT EXISTS (SELECT FROM booking
                WHERE show_id = $1
                  AND (state IN ('paying', 'confirmed', 'refunded', 'failed')
                       OR state = 'held' AND expires_at > now()));
