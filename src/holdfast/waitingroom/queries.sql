-- name: current_queue
-- No row: the show has no waiting room. `serving_1m` and `serving_5m`: where the queue was that long ago, for
-- the measured rate; NULL before that.
SELECT queue.*, now() AS now,
       (SELECT count(*)::int FROM queue_turn AS turn
         WHERE turn.show_id = queue.show_id AND turn.opening = queue.opening
           AND turn.freed_at IS NULL) AS inside,
       (SELECT log.serving FROM queue_log AS log
         WHERE log.show_id = queue.show_id AND log.opening = queue.opening
           AND log.at <= now() - interval '60 s'
         ORDER BY log.id DESC LIMIT 1) AS serving_1m,
       (SELECT log.serving FROM queue_log AS log
         WHERE log.show_id = queue.show_id AND log.opening = queue.opening
           AND log.at <= now() - interval '5 min'
         ORDER BY log.id DESC LIMIT 1) AS serving_5m,
       (SELECT log.seats_left FROM queue_log AS log
         WHERE log.show_id = queue.show_id AND log.opening = queue.opening
         ORDER BY log.id DESC LIMIT 1) AS seats_left
  FROM current_queue AS queue
 WHERE queue.show_id = $1;

-- name: guarded_rooms
-- Rooms whose show needs an admission, and those that open by themselves, with the time. Few. Without a room
-- there is one row, with the time alone.
SELECT room.show_id, room.opening, room.opens_above_holds_per_second, room.is_guarding, now() AS now
  FROM (VALUES (true)) AS always
  LEFT JOIN (SELECT room.*, queue.state IN ('open', 'admitting') AS is_guarding
               FROM queue
               JOIN waiting_room AS room ON room.show_id = queue.show_id AND room.opening = queue.opening
              WHERE queue.state IN ('open', 'admitting')
                 OR queue.state = 'scheduled'
                    AND greatest(room.opens_above_holds_per_second, room.opens_above_viewers) > 0) AS room
    ON true;

-- name: ended_passes
-- Passes that were ended before their time, since $1; their windows would have gone on.
SELECT show_id, opening, number, redeemed_at, ended_at
  FROM queue_turn
 WHERE ended_at > $1;

-- name: join
SELECT * FROM join_queues($1, $2);

-- name: find_place
-- The person's current place with their last turn. No row: none.
SELECT place.number, place.state, place.joined_s, turn.call, turn.state AS turn_state, turn.ends_at,
       turn.redeemed_at, turn.recall_at, turn.way_in
  FROM current_place($1, $2, $3) AS place
  LEFT JOIN LATERAL (SELECT * FROM queue_turn AS called
                      WHERE called.show_id = $1 AND called.opening = $2 AND called.number = place.number
                   ORDER BY called.call DESC LIMIT 1) AS turn ON true;

-- name: adopt_place
SELECT adopt_places($1, $2, ARRAY[$3::bigint]);

-- name: end_visit
SELECT end_visits($1, $2, ARRAY[$3::int], $4, $5);

-- name: redeem
SELECT * FROM redeem_turn($1, $2, $3);

-- name: left_waiting
-- People who still waited when everything was sold, in the order of their numbers, behind $3.
  SELECT place.number, place.account_id
    FROM queue_place AS place
   WHERE place.show_id = $1 AND place.opening = $2 AND place.number > $3 AND place.state = 0
     AND NOT EXISTS (SELECT FROM queue_turn AS turn
                      WHERE turn.show_id = $1 AND turn.opening = $2 AND turn.number = place.number
                        AND turn.state = 'inside')
ORDER BY place.number
   LIMIT $4;

-- name: draw
SELECT show_id, opening, commitment, beacon, beacon_value, beacon_until, drawn_at, entrants, key,
       CASE WHEN entrants IS NOT NULL THEN seed END AS seed
  FROM queue
 WHERE show_id = $1
   AND opening = (SELECT opening FROM waiting_room WHERE show_id = $1);

-- name: log_points
-- Where the queue was, for the calibration of waits: one row per step.
SELECT extract(epoch FROM at)::float8 AS at_s, serving
  FROM queue_log
 WHERE show_id = $1
   AND opening = $2
   AND kind IN ('drawn', 'called')
 ORDER BY id;
