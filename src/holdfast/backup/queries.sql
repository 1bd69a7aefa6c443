-- name: instant
SELECT clock_timestamp();

-- name: tables
-- Every table of ours and its columns that are stored; which steps were taken is told by the contents.
  SELECT relname AS name, array_agg(attname::text ORDER BY attnum) AS columns
    FROM pg_class
    JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
   WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'schema_step'
GROUP BY relname
ORDER BY relname;

-- name: references
-- Which table's rows must be there before another's.
SELECT child.relname AS name, parent.relname AS needs
  FROM pg_constraint
  JOIN pg_class child ON child.oid = conrelid
  JOIN pg_class parent ON parent.oid = confrelid
 WHERE contype = 'f' AND conrelid <> confrelid AND child.relnamespace = current_schema()::regnamespace;

-- name: sequences
-- Read after the tables: a number drawn meanwhile is skipped, never given twice.
SELECT sequencename AS name, coalesce(last_value, 0) AS number
  FROM pg_sequences
 WHERE schemaname = current_schema();

-- name: is_used
-- Whether there is any table here, ours or somebody's.
SELECT EXISTS (
    SELECT FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
);

-- name: make_room
-- Rows that steps have put there, and triggers that would tell of rows again.
DO $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT oid
          FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'schema_step'
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', v_table);
        EXECUTE format('TRUNCATE %s CASCADE', v_table);
    END LOOP;
END $$;

-- name: wake_triggers
DO $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE TRIGGER USER', v_table);
    END LOOP;
END $$;

-- name: set_sequence
SELECT setval(quote_ident($1)::regclass, $2);

-- name: mark_sales
-- Whatever Redis has is of another life. Versions of maps that people saw after the backup stay behind us.
UPDATE sale SET map_stale = true, epoch = epoch + 1000, marked_at = now();

-- name: rename_log
-- What the bus was told after the backup never happened: facts go on in a log of their own.
UPDATE fact_log SET name = 'facts-' || left(replace(gen_random_uuid()::text, '-', ''), 12);

-- name: look_at_sizes
ANALYZE;
