-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: stages
-- The stages of bookings of archived sales become one sum per stage: the funnel of the show stays as it was.
WITH shows AS MATERIALIZED (
      SELECT show_id, archived_at
        FROM archived_sale
       WHERE archived_at > timestamptz '1970-01-01 UTC' + $1 * interval '1 microsecond' AND $2::int > 0
    ORDER BY archived_at
       LIMIT 50
), gone AS (
    DELETE FROM report_stage
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN report_stage AS old USING (show_id) LIMIT $3))
 RETURNING show_id, stage
), summed AS (
    INSERT INTO report_past_stage (show_id, stage, bookings)
    SELECT show_id, stage, count(*) FROM gone GROUP BY show_id, stage
        ON CONFLICT (show_id, stage) DO UPDATE
       SET bookings = report_past_stage.bookings + excluded.bookings
)
SELECT CASE WHEN (SELECT count(*) FROM gone) = $3 THEN $1::bigint
            WHEN count(*) = 50 THEN (extract(epoch FROM max(archived_at)) * 1000000)::bigint END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM shows;
