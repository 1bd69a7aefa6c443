-- name: count_statements
-- Every server process counts the statements that clients send, with those that begin and end transactions.
ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements';

-- name: create_counter
CREATE EXTENSION pg_stat_statements;

-- name: statements
-- Sent by all clients since the start; this one counts, too, after it was answered.
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements;
