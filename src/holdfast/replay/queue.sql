-- What waiting rooms have logged of one show.

-- name: points_after
  SELECT opening, id, (extract(epoch FROM at) * 1000000)::bigint AS at_us, waiting, inside
    FROM queue_history
   WHERE show_id = $1 AND (opening, id) > ($2, $3)
ORDER BY opening, id
   LIMIT $4;

-- name: longest_wait
-- NULL: no person was called.
SELECT max(waited_s) FROM queue_wait WHERE show_id = $1;
