-- name: step_table
-- The steps that were applied to this database. Created by the first process that migrates it.
CREATE TABLE IF NOT EXISTS schema_step (
    number     int         PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: functions_table
-- The files of functions as they were applied last, and by which version of the program.
CREATE TABLE IF NOT EXISTS schema_functions (
    name       text        PRIMARY KEY,
    checksum   text        NOT NULL,
    program    text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: works_with_columns
-- The oldest release of the program that runs on what was applied; NULL: only the one that applied it.
ALTER TABLE schema_step ADD COLUMN IF NOT EXISTS works_with text;
ALTER TABLE schema_functions ADD COLUMN IF NOT EXISTS works_with text;

-- name: step_table_exists
SELECT to_regclass('schema_step') IS NOT NULL;

-- name: steps_done
-- As JSON: a database that was last migrated by an older program has no column works_with.
  SELECT number, name, checksum, to_jsonb(schema_step) ->> 'works_with' AS works_with
    FROM schema_step
ORDER BY number;

-- name: functions_done
SELECT name, checksum, program, to_jsonb(schema_functions) ->> 'works_with' AS works_with
  FROM schema_functions;

-- name: step_try_lock
-- One process at a time applies changes. Of the session: a step may run outside a transaction.
SELECT pg_try_advisory_lock(hashtextextended('holdfast.schema_step', 0));

-- name: step_unlock
SELECT pg_advisory_unlock(hashtextextended('holdfast.schema_step', 0));

-- name: step_limits
-- A change that cannot get its lock soon would make every query behind it wait.
-- A step that needs longer says so with SET LOCAL.
SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true);

-- name: step_done
INSERT INTO schema_step (number, name, checksum, works_with)
     VALUES ($1, $2, $3, $4);

-- name: functions_applied
INSERT INTO schema_functions (name, checksum, program, works_with)
     VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
        SET checksum = excluded.checksum, program = excluded.program, works_with = excluded.works_with,
            applied_at = now();

-- name: view_columns
-- NULL: the view does not exist.
SELECT array_agg(attname::text ORDER BY attnum)
  FROM pg_attribute
 WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped;

-- name: ledger_settings
-- What decides whether a commit survives.
SELECT current_setting('server_version')     AS version,
       current_setting('server_version_num') AS version_number,
       current_setting('fsync')              AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes')   AS full_page_writes,
       current_setting('server_encoding')    AS server_encoding,
       pg_is_in_recovery()                   AS is_standby;

-- name: standbys
-- One row, also without standbys. An account without pg_monitor sees them without their state. Lag: as the
-- standby measured it last, or since its last word if it has not replayed everything.
SELECT current_setting('synchronous_standby_names') AS names,
       current_setting('synchronous_commit')        AS synchronous_commit,
       count(*) FILTER (WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum'))::int AS synchronous,
       count(*) FILTER (WHERE state = 'streaming')::int AS streaming,
       count(*) FILTER (WHERE state IS NULL)::int       AS hidden,
       coalesce(max(extract(epoch FROM greatest(replay_lag, silent.since))), 0)::float8 AS lag_s
  FROM pg_stat_replication
  LEFT JOIN LATERAL (SELECT clock_timestamp() - reply_time AS since
                      WHERE CASE WHEN pg_is_in_recovery() THEN false
                                 ELSE replay_lsn < pg_current_wal_lsn() END) AS silent
    ON true;

-- name: ledger_position
-- How long the ledger's log is.
SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint;

-- name: replica_position
-- How much of it a replica has replayed; 0 on a server that never was one.
SELECT (coalesce(pg_last_wal_replay_lsn(), '0/0') - '0/0'::pg_lsn)::bigint;

-- name: ledger_clock
SELECT extract(epoch FROM clock_timestamp())::float8;

-- name: ledger_size
-- An account without pg_monitor does not see the folder. No address: a socket of the server's machine.
SELECT pg_database_size(current_database())                                AS bytes,
       (SELECT setting FROM pg_settings WHERE name = 'data_directory')     AS folder,
       host(inet_server_addr())                                            AS host;

-- name: ledger_connections
-- Every account may see the sum; sessions of other accounts are hidden in pg_stat_activity.
SELECT current_setting('max_connections')::int
       - current_setting('superuser_reserved_connections')::int                             AS most,
       (SELECT sum(numbackends)::int FROM pg_stat_database)                                 AS used,
       (SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'holdfast')     AS ours;

-- name: server_process
-- The process that serves this very statement: behind a pooler it may be another one each time.
SELECT pg_backend_pid();

-- name: set_session
-- After connecting and not as startup parameters: PgBouncer refuses those that it does not know.
SELECT set_config(input.name, input.value, false)
  FROM unnest($1::text[], $2::text[]) AS input (name, value);

-- name: set_trace
-- For the rest of the transaction: facts that it writes carry the trace to their consumers (outbox.trace).
SELECT set_config('holdfast.trace', $1, true);

-- name: use_fresh_plans
-- For the rest of the transaction: no plan that was made when a table was smaller.
SET LOCAL plan_cache_mode = force_custom_plan;
