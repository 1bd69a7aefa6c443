-- How much work jobs have, for engines/due_look.py, several times per second. Not EXISTS: for it the planner
-- may read a whole table in the hope of a match near its beginning. ORDER BY has it use the index.

-- name: lapsed
SELECT count(*)
  FROM (SELECT FROM booking WHERE state = 'held' AND expires_at <= now() ORDER BY expires_at LIMIT 1) AS due;

-- name: stale_maps
SELECT count(*)
  FROM (SELECT FROM sale
         WHERE map_stale AND epoch > 1 AND closes_at > now() AND opens_at < now() + interval '1 minute'
      ORDER BY closes_at LIMIT 1) AS due;

-- name: cancelled_shows
SELECT count(*)
  FROM (SELECT FROM sale WHERE cancelled AND emptied_at IS NULL ORDER BY show_id LIMIT 1) AS due;
