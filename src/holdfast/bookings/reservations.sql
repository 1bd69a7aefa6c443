-- Seats that are reserved for a waitlist, inside the waitlist's transaction.

-- name: lock
-- Shared, as for every move of seats: a rebuild of the map waits.
SELECT share_sales(ARRAY[$1::bigint]);

-- name: sale
SELECT revision, has_waitlist, is_open, is_over, closes_at FROM sale_for_waitlist WHERE show_id = $1;

-- name: reserved
  SELECT seat, extract(epoch FROM now() - since)::float AS waited_s
    FROM reserved_seat
   WHERE show_id = $1
ORDER BY seat;

-- name: open_offer
SELECT * FROM open_offer($1, $2, $3, $4, $5, $6, $7, $8::text::hold_limits);

-- name: unreserve
SELECT unreserve_seats($1, $2);

-- name: set_waitlist
SELECT set_waitlist($1, $2);
