-- name: table_bytes
-- Every table with its indexes and its long values.
SELECT relname AS name, pg_total_relation_size(oid) AS bytes
  FROM pg_class
 WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace;

-- name: log_bytes
-- Written to the write-ahead log since the cluster was created.
SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint;

-- name: facts_waiting
-- Facts that a consumer has not processed.
SELECT count(*)::int FROM outbox WHERE id > (SELECT min(checkpoint) FROM consumer_group);
