-- name: step_table
-- What has been done to this database. Made by the first who asks; later askers find it.
CREATE TABLE IF NOT EXISTS schema_step (
    number     int         PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: step_table_exists
SELECT to_regclass('schema_step') IS NOT NULL;

-- name: steps_done
  SELECT number, name, checksum
    FROM schema_step
ORDER BY number;

-- name: step_lock
-- One process at a time takes a step. Let go with the transaction, so that it works through a pooler too.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast.schema_step', 0));

-- name: step_limits
-- For the step itself: one that cannot get its lock soon would make everybody behind it wait.
-- A step that needs longer says so with SET LOCAL.
SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true);

-- name: step_is_done
SELECT EXISTS (SELECT FROM schema_step WHERE number = $1);

-- name: step_done
INSERT INTO schema_step (number, name, checksum)
     VALUES ($1, $2, $3);

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

-- name: plan_anew
-- For the rest of the transaction: no plan that was made when a table was smaller.
SET LOCAL plan_cache_mode = force_custom_plan;
