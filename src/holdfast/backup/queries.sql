-- name: instant
SELECT clock_timestamp();

-- name: name_moment
SELECT pg_create_restore_point($1)::text;

-- name: tables
-- Every table and its stored columns. The contents list the steps; functions are applied again.
  SELECT relname AS name, array_agg(attname::text ORDER BY attnum) AS columns
    FROM pg_class
    JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
   WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
     AND relname NOT IN ('schema_step', 'schema_functions')
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
-- Read after the tables: a number drawn meanwhile is skipped.
SELECT sequencename AS name, coalesce(last_value, 0) AS number
  FROM pg_sequences
 WHERE schemaname = current_schema();

-- name: is_used
-- Whether the database has any table.
SELECT EXISTS (
    SELECT FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
);

-- name: make_room
-- Deletes the rows that steps have inserted. There are no triggers yet: those come with the functions.
DO $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT oid
          FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
           AND relname NOT IN ('schema_step', 'schema_functions')
    LOOP
        EXECUTE format('TRUNCATE %s CASCADE', v_table);
    END LOOP;
END $$;

-- name: set_sequence
SELECT setval(quote_ident($1)::regclass, $2);

-- name: skip_numbers
-- Sequences go back with the database: accounts, shows and facts that were lost had numbers from these.
SELECT setval(format('%I.%I', schemaname, sequencename)::regclass,
              least(coalesce(last_value, 0) + $1, max_value))
  FROM pg_sequences
 WHERE schemaname = current_schema();

-- name: distrust_caches
-- Redis and the bus may have seen more than the ledger has: neither is trusted after a restore.
SELECT mark_every_map_stale(), rename_fact_log();

-- name: mark_exists
SELECT to_regclass('ledger_mark') IS NOT NULL;

-- name: ledger_id
SELECT ledger_id FROM ledger_mark;

-- name: beat
SELECT beat FROM ledger_mark;

-- name: raise_beat
-- By the clock, so that it is above every stored one, also of machines that are off; never back with it.
   UPDATE ledger_mark
      SET beat = greatest(beat + 1, (date_part('epoch', clock_timestamp()) * 1000)::bigint)
RETURNING beat;

-- name: note_restore
UPDATE ledger_mark SET restored_at = now();

-- name: look_at_sizes
ANALYZE;

-- name: is_read_only
SELECT pg_is_in_recovery();

-- name: record_backup
INSERT INTO backup_made (made_by) VALUES ($1);

-- name: forget_backups
-- Older rows say nothing more; the newest one stays however old it is.
DELETE FROM backup_made
      WHERE made_at < now() - $1 * interval '1 day'
        AND made_at < (SELECT max(made_at) FROM backup_made);

-- name: backup_age
-- NULL: none was made.
SELECT extract(epoch FROM clock_timestamp() - max(made_at))::float8 FROM backup_made;

-- name: unprotected_for
-- Since the newest backup; before the first one, since the ledger was made.
SELECT extract(epoch FROM clock_timestamp() - coalesce((SELECT max(made_at) FROM backup_made),
                                                       (SELECT min(applied_at) FROM schema_step)))::float8;
