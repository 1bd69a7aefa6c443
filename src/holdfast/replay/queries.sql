-- The history of one show, page by page; other shows cost nothing. And which seats were refused how often.

-- name: moves_after
-- In the order of their key, which is that of the table. Moves after $5 happened while we read.
  SELECT number, id, move, state::text AS state, moved_seats, seats,
         (extract(epoch FROM at) * 1000000)::bigint AS at_us
    FROM seat_history
   WHERE show_id = $1 AND (number, id) > ($2, $3) AND at <= $5
ORDER BY number, id
   LIMIT $4;

-- name: demand_after
  SELECT id, (extract(epoch FROM at) * 1000000)::bigint AS at_us, refused, seats, times
    FROM seat_demand
   WHERE show_id = $1 AND id > $2 AND at <= $4
ORDER BY id
   LIMIT $3;

-- name: now
SELECT now();

-- name: add_demand
INSERT INTO seat_demand (show_id, refused, seats, times) VALUES ($1, $2, $3, $4);
