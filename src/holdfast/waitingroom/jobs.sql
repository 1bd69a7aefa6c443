-- Queries of the job that opens rooms, draws orders and admits people.

-- name: rooms_at_work
-- Rooms with something to do now.
  SELECT show_id
    FROM current_queue
   WHERE state IN ('admitting', 'overridden')
      OR state = 'scheduled'
         AND (opens_at <= now() OR is_over
              OR show_id IN (SELECT demand.show_id FROM room_in_demand AS demand))
      OR state = 'open' AND (draw_at <= now() OR is_over)
ORDER BY show_id;

-- name: try_turn
-- False: another worker is at this room.
SELECT pg_try_advisory_xact_lock(hashtextextended('waiting room', $1));

-- name: lock_queue
-- The row that joins wait for. No row: the room is closed by now.
SELECT queue.opening
  FROM queue
 WHERE show_id = $1
   AND opening = (SELECT opening FROM waiting_room WHERE show_id = $1)
   FOR UPDATE;

-- name: is_in_demand
SELECT EXISTS (SELECT FROM room_in_demand WHERE show_id = $1);

-- name: planned_beacon
SELECT beacon, beacon_until FROM waiting_room WHERE show_id = $1;

-- name: open_queue
   UPDATE queue
      SET state = $3, opened_by = $4, seed = $5, commitment = $6, beacon = $7, beacon_until = $8,
          opened_at = now(),
          entrants = CASE WHEN $5::bytea IS NULL THEN 0 END
    WHERE show_id = $1
      AND opening = $2
      AND state = 'scheduled'
RETURNING opening;

-- name: draw_order
-- The seed, for the draw.
SELECT seed FROM queue WHERE show_id = $1 AND opening = $2;

-- name: set_order
UPDATE queue SET state = 'admitting', entrants = joined, key = $3, drawn_at = now()
 WHERE show_id = $1
   AND opening = $2
   AND state = 'open';

-- name: end_due_turns
SELECT end_due_turns($1, $2, $3);

-- name: end_buyers
-- People who have bought since they came in make room for others.
SELECT end_visits($1, $2, array_agg(turn.number), 3, $3)
  FROM queue_turn AS turn
  JOIN queue_place AS place
    ON place.show_id = turn.show_id AND place.opening = turn.opening AND place.number = turn.number
 WHERE turn.show_id = $1
   AND turn.opening = $2
   AND turn.freed_at IS NULL
   AND turn.state = 'inside'
   AND EXISTS (SELECT FROM payable_booking AS booking
                WHERE booking.show_id = $1 AND booking.owner_id = place.account_id
                  AND booking.state = 'confirmed' AND booking.confirmed_at >= turn.redeemed_at)
HAVING count(*) > 0;

-- name: inside
SELECT count(*)::int FROM queue_turn WHERE show_id = $1 AND opening = $2 AND freed_at IS NULL;

-- name: missed
SELECT count(*)::int FROM queue_turn WHERE show_id = $1 AND opening = $2 AND state = 'missed';

-- name: call_people
SELECT called, serving, called_at FROM call_people($1, $2, $3, $4, $5, $6);

-- name: set_serving
UPDATE queue
   SET serving = $3, rate = $4, called_at = CASE WHEN $5 THEN now() ELSE called_at END, held_back_by = $6
 WHERE show_id = $1
   AND opening = $2;

-- name: set_state
UPDATE queue
   SET state = $3, ended_at = CASE WHEN $3 IN ('drained', 'closed') THEN now() END
 WHERE show_id = $1
   AND opening = $2;

-- name: begin_next_opening
-- A room that may open by itself again.
WITH moved AS (
    UPDATE waiting_room SET opening = $2 WHERE show_id = $1
)
INSERT INTO queue (show_id, opening) VALUES ($1, $2);

-- name: log
INSERT INTO queue_log (show_id, opening, kind, joined, serving, inside, called, seats_left)
     SELECT show_id, opening, $3, joined, serving,
            (SELECT count(*) FROM queue_turn AS turn
              WHERE turn.show_id = $1 AND turn.opening = $2 AND turn.freed_at IS NULL), $4, $5
       FROM queue
      WHERE show_id = $1
        AND opening = $2;

-- name: is_due
-- Whether there is a room that may have something to do.
SELECT count(*)
  FROM (SELECT FROM queue WHERE state IN ('scheduled', 'open', 'admitting', 'overridden')
      ORDER BY show_id LIMIT 1) AS due;
