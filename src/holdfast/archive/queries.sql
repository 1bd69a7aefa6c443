-- name: run_alone
SELECT pg_try_advisory_lock(43, 0);

-- name: past_shows
-- Shows that ended $1 days ago, that retention has reduced, and in which nothing is under way.
  SELECT show.id AS show_id, show.ends_at
    FROM show JOIN sale ON sale.show_id = show.id
   WHERE show.ends_at < now() - $1 * interval '1 day' AND sale.purged_at IS NOT NULL AND sale.filed_at IS NULL
     AND show_is_here(show.id)
     AND EXISTS (SELECT FROM booking AS b WHERE b.show_id = show.id)
     AND NOT EXISTS (SELECT FROM booking AS b WHERE b.show_id = show.id AND b.state IN ('held', 'paying'))
     AND NOT EXISTS (SELECT FROM payment AS p WHERE p.show_id = show.id AND p.due_at IS NOT NULL)
     AND NOT EXISTS (SELECT FROM refund AS r WHERE r.show_id = show.id AND r.due_at IS NOT NULL)
     AND NOT EXISTS (SELECT FROM chargeback AS c WHERE c.show_id = show.id AND c.state = 'open')
     AND NOT EXISTS (SELECT FROM refund_proposal AS p WHERE p.show_id = show.id AND p.state = 'pending')
     AND NOT EXISTS (SELECT FROM outbox AS f WHERE f.show_id = show.id)
ORDER BY show.ends_at, show.id
   LIMIT $2;

-- name: filed_shows
-- Marked at home, and perhaps not deleted yet by the pod that has the rows.
SELECT sale.show_id, sale.filed_as, show.ends_at, show_is_here(sale.show_id) AS is_here,
       EXISTS (SELECT FROM booking WHERE booking.show_id = sale.show_id) AS has_rows
  FROM sale JOIN show ON show.id = sale.show_id
 WHERE sale.filed_at IS NOT NULL
 ORDER BY sale.show_id;

-- name: filed_as
SELECT filed_as FROM sale WHERE show_id = $1;

-- name: columns
  SELECT attname AS name, format_type(atttypid, NULL) AS type, typtype = 'e' AS is_enum
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
   WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
ORDER BY attnum;

-- name: write_alike
-- Rows as text must not depend on the settings of a session.
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, MDY', true),
       set_config('bytea_output', 'hex', true);

-- name: sum_rows
SELECT count(*) || ' ' || coalesce(sum(hashtextextended(rows::text, 0)), 0)
  FROM {table} AS rows
 WHERE show_id = $1;

-- name: rows
SELECT {columns} FROM {table} WHERE show_id = $1;

-- name: delete_rows
DELETE FROM {table} WHERE show_id = $1;

-- name: mark
SELECT file_sale($1, $2);

-- name: unmark
SELECT unfile_sale($1);

-- name: load
-- The files of one show are audited by the same statements as the ledger: in tables that hide its own.
CREATE TEMPORARY TABLE {table} ON COMMIT DROP AS SELECT * FROM {table} WITH NO DATA;
