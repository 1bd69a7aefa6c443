-- Queries for organisers: their rooms, and changes of them.

-- name: room
-- No row: the show has no waiting room.
SELECT room.*, queue.opened_by, queue.beacon_value, queue.held_back_by
  FROM waiting_room AS room
  JOIN queue ON queue.show_id = room.show_id AND queue.opening = room.opening
 WHERE room.show_id = $1;

-- name: lock_room
-- As above; joins, the draw and calls wait until the change is done.
SELECT room.*, queue.state, queue.entrants, queue.beacon AS stated_beacon, queue.beacon_value,
       queue.beacon_until <= clock_timestamp() AS is_beacon_late,
       (SELECT seats FROM show_detail WHERE show_detail.show_id = $1) AS seats
  FROM waiting_room AS room
  JOIN queue ON queue.show_id = room.show_id AND queue.opening = room.opening
 WHERE room.show_id = $1
   FOR UPDATE OF room, queue;

-- name: set_room
INSERT INTO waiting_room (show_id, opening, opens_at, draw_at, inside_max, per_minute_max, turn_s, window_s,
                          beacon, opens_above_holds_per_second, opens_above_viewers, beacon_until)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (show_id) DO UPDATE
        SET opening = $2, opens_at = $3, draw_at = $4, inside_max = $5, per_minute_max = $6, turn_s = $7,
            window_s = $8, beacon = $9, opens_above_holds_per_second = $10, opens_above_viewers = $11,
            beacon_until = $12, changed_at = now();

-- name: add_queue
-- Nothing, if this opening is there.
INSERT INTO queue (show_id, opening) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: set_room_state
UPDATE queue SET state = $3 WHERE show_id = $1 AND opening = $2;

-- name: set_beacon
UPDATE queue SET beacon_value = $3 WHERE show_id = $1 AND opening = $2;

-- name: ended_places
  SELECT state, count(*)::int AS people
    FROM queue_place
   WHERE show_id = $1
     AND opening = $2
     AND state <> 0
GROUP BY state;
