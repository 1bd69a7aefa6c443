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

-- name: step_table_exists
SELECT to_regclass('schema_step') IS NOT NULL;

-- name: steps_done
  SELECT number, name, checksum
    FROM schema_step
ORDER BY number;

-- name: functions_done
SELECT name, checksum, program FROM schema_functions;

-- name: step_lock
-- One process at a time applies changes. Released with the transaction, so that it works through a pooler.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast.schema_step', 0));

-- name: step_limits
-- A change that cannot get its lock soon would make every query behind it wait.
-- A step that needs longer says so with SET LOCAL.
SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true);

-- name: step_is_done
SELECT EXISTS (SELECT FROM schema_step WHERE number = $1);

-- name: step_done
INSERT INTO schema_step (number, name, checksum)
     VALUES ($1, $2, $3);

-- name: functions_applied
INSERT INTO schema_functions (name, checksum, program)
     VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
        SET checksum = excluded.checksum, program = excluded.program, applied_at = now();

-- name: ledger_settings
-- What decides whether a commit survives.
SELECT current_setting('server_version')     AS version,
       current_setting('server_version_num') AS version_number,
       current_setting('fsync')              AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes')   AS full_page_writes,
       current_setting('server_encoding')    AS server_encoding,
       pg_is_in_recovery()                   AS is_standby;

-- name: ledger_clock
SELECT extract(epoch FROM clock_timestamp())::float8;

-- name: server_process
-- The process that serves this very statement: behind a pooler it may be another one each time.
SELECT pg_backend_pid();

-- name: set_session
-- After connecting and not as startup parameters: PgBouncer refuses those that it does not know.
SELECT set_config(input.name, input.value, false)
  FROM unnest($1::text[], $2::text[]) AS input (name, value);

-- name: use_fresh_plans
-- For the rest of the transaction: no plan that was made when a table was smaller.
SET LOCAL plan_cache_mode = force_custom_plan;
