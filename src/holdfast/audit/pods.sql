-- For audit/pods.py: what one database knows about pods, and digests of what home and pods must have alike.

-- name: identity
SELECT name FROM pod_identity;

-- name: known_pods
-- Those that were added, and those that the directory names.
SELECT name FROM pod UNION SELECT pod FROM show_pod WHERE pod <> '';

-- name: shows_sold_here
-- What the guard of this database says about the shows that its directory or its copies name, and about $1.
SELECT show_id
  FROM (SELECT show_id FROM show_pod
         UNION SELECT show_id FROM show_copy
         UNION SELECT unnest($1::bigint[])) AS named
 WHERE show_is_here(show_id);

-- name: directory
SELECT show_id, pod, epoch FROM show_pod;

-- name: deleted_shows
-- Closed for good, where the directory names another database than home: pods/close.py.
SELECT show_id FROM show_pod JOIN show_detail USING (show_id) WHERE show_detail.deleted_at IS NOT NULL;

-- name: copies
-- A fenced copy has its epoch with a minus.
SELECT show_id, epoch FROM show_copy;

-- name: rows_elsewhere
-- Rows of {table} whose show is sold by another database.
  SELECT show_id, count(*) AS rows
    FROM {table}
GROUP BY show_id
  HAVING NOT show_is_here(show_id);

-- name: columns_of
SELECT (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attname)
          FROM pg_attribute
         WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '')
           AS columns,
       (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attname)
          FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
         WHERE indrelid = $1::text::regclass AND indisprimary) AS key;

-- name: write_alike
-- Rows as text must not depend on the settings of a server.
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, MDY', true),
       set_config('bytea_output', 'hex', true), set_config('extra_float_digits', '1', true);

-- name: digests
-- Of {table}, in 1024 parts by {key}: two databases with the same digest have the same rows in a part.
  SELECT hashtext(ROW({key})::text) & 1023 AS part,
         count(*) || ' ' || sum(hashtextextended(ROW({columns})::text, 0)) AS digest
    FROM {table}
GROUP BY 1;

-- name: rows_of_parts
SELECT ROW({key})::text AS key, hashtextextended(ROW({columns})::text, 0) AS digest
  FROM {table}
 WHERE hashtext(ROW({key})::text) & 1023 = ANY ($1::int[]);

-- name: end_of_log
SELECT pg_current_wal_lsn()::text;

-- name: has_received
-- At home: whether the pod $1 has applied its log up to $2. What it has received may not be applied yet.
SELECT confirmed_flush_lsn >= $2::text::pg_lsn AS is_done, active AS is_connected
  FROM pg_replication_slots
 WHERE slot_name = 'holdfast_pod_' || $1;
