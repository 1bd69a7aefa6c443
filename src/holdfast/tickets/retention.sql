-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: addresses
-- The addresses to which tickets of long archived sales were given. The transfers themselves stay.
WITH shows AS MATERIALIZED (
      SELECT show_id, archived_at
        FROM archived_sale
       WHERE archived_at > timestamptz '1970-01-01 UTC' + $1 * interval '1 microsecond'
         AND archived_at < now() - $2 * interval '1 day' AND show_is_here(show_id)
    ORDER BY archived_at
       LIMIT 50
), gone AS (
    UPDATE ticket_transfer SET email = ''
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN ticket_transfer AS old USING (show_id)
                              WHERE old.email <> '' LIMIT $3))
 RETURNING 1
), owners AS (
    UPDATE ticket SET owner_email = ''
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN ticket AS old USING (show_id)
                              WHERE old.owner_email <> '' LIMIT $3))
 RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM gone) = $3 OR (SELECT count(*) FROM owners) = $3 THEN $1::bigint
            WHEN count(*) = 50 THEN (extract(epoch FROM max(archived_at)) * 1000000)::bigint END AS reached,
       (SELECT count(*) FROM gone) + (SELECT count(*) FROM owners) AS deleted
  FROM shows;
