-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.
-- The position is a show. After a full batch of rows, the same shows are met again.

-- name: places
-- Who waited for a show, some time after it.
WITH shows AS MATERIALIZED (
      SELECT room.show_id
        FROM waiting_room AS room
        JOIN show_detail USING (show_id)
       WHERE room.show_id > $1 AND show_detail.ends_at < now() - $2 * interval '1 day'
         AND show_is_here(room.show_id)
    ORDER BY room.show_id
       LIMIT 50
), gone AS (
    DELETE FROM queue_place
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN queue_place AS old USING (show_id) LIMIT $3))
 RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM gone) = $3 THEN $1::bigint
            WHEN count(*) = 50 THEN max(show_id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM shows;

-- name: turns
-- Who was called, as places.
WITH shows AS MATERIALIZED (
      SELECT room.show_id
        FROM waiting_room AS room
        JOIN show_detail USING (show_id)
       WHERE room.show_id > $1 AND show_detail.ends_at < now() - $2 * interval '1 day'
         AND show_is_here(room.show_id)
    ORDER BY room.show_id
       LIMIT 50
), gone AS (
    DELETE FROM queue_turn
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN queue_turn AS old USING (show_id) LIMIT $3))
 RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM gone) = $3 THEN $1::bigint
            WHEN count(*) = 50 THEN max(show_id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM shows;

-- name: log
-- How a queue moved.
WITH shows AS MATERIALIZED (
      SELECT room.show_id
        FROM waiting_room AS room
        JOIN show_detail USING (show_id)
       WHERE room.show_id > $1 AND show_detail.ends_at < now() - $2 * interval '1 day'
         AND show_is_here(room.show_id)
    ORDER BY room.show_id
       LIMIT 50
), gone AS (
    DELETE FROM queue_log
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN queue_log AS old USING (show_id) LIMIT $3))
 RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM gone) = $3 THEN $1::bigint
            WHEN count(*) = 50 THEN max(show_id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM shows;
