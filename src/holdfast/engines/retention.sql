-- For engines/retention.py.

-- name: add_rules
INSERT INTO retention_pass (rule) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING;

-- name: next_due
-- Locked until the batch is committed: two workers never delete the same batch.
  SELECT rule, reached
    FROM retention_pass
   WHERE rule = ANY ($1::text[]) AND due_at <= now()
ORDER BY due_at, rule
   LIMIT 1
     FOR UPDATE SKIP LOCKED;

-- name: limits
-- A batch that meets a lock of the sale gives way, and is tried again later.
SELECT set_config('lock_timeout', '500ms', true);

-- name: moved_on
-- A position of NULL ends the pass.
UPDATE retention_pass
   SET reached = coalesce($2::bigint, 0), deleted = deleted + $3,
       due_at = now() + CASE WHEN $2::bigint IS NULL THEN $4 ELSE 0 END * interval '1 s',
       ended_at = CASE WHEN $2::bigint IS NULL THEN now() ELSE ended_at END
 WHERE rule = $1;

-- name: put_off
UPDATE retention_pass SET due_at = now() + $2 * interval '1 s' WHERE rule = $1;

-- name: rows_of_archived_shows
-- A rule for a table with a show_id ({table}). It walks the archived sales, 50 at a time; after a full batch
-- of rows it meets the same sales again. Rows of a show that is being moved cannot be deleted.
WITH shows AS MATERIALIZED (
      SELECT show_id, archived_at
        FROM archived_sale
       WHERE archived_at > timestamptz '1970-01-01 UTC' + $1 * interval '1 microsecond' AND $2::int > 0
         AND show_is_here(show_id)
    ORDER BY archived_at
       LIMIT 50
), gone AS (
    DELETE FROM {table}
     WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM shows JOIN {table} AS old USING (show_id) LIMIT $3))
 RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM gone) = $3 THEN $1::bigint
            WHEN count(*) = 50 THEN (extract(epoch FROM max(archived_at)) * 1000000)::bigint END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM shows;
