-- The lease queue: engines/leases.py fills in {table}, its key columns and the subject's own fragments.
-- Every leased table has due_at, tries and (if it is fenced) turn. A row is queued exactly while due_at is
-- not NULL.

-- name: take
-- $1 rows at most, $2 lease lengths by try. The subject's `lease_due` picks and locks the rows; it must say
-- FOR UPDATE SKIP LOCKED, so that two workers never wait for each other and never take the same row.
WITH due AS ({due})
   UPDATE {table} AS leased
      SET {fence_up} tries = leased.tries + 1,
          due_at = now() + ($2::float8[])[least(leased.tries + 1, cardinality($2))] * interval '1 s'
     FROM due
    WHERE {leased_is_due}
RETURNING leased.*, due.*;

-- name: take_over
-- One row, even if another worker holds its lease; that worker loses it. Not queued: no row.
   UPDATE {table} AS leased
      SET {fence_up} due_at = now() + $1 * interval '1 s'
    WHERE {is_row} AND leased.due_at IS NOT NULL
RETURNING leased.*;

-- name: renew
-- Rows that another worker took since, or that have ended, are not returned.
   UPDATE {table} AS leased
      SET due_at = now() + $1 * interval '1 s'
     FROM unnest({arrays}) AS mine ({fence_name}{keys})
    WHERE {leased_is_mine} AND leased.due_at IS NOT NULL
RETURNING {leased_keys};

-- name: give_back
-- Due at once, and the try does not count. Rows that another worker took since stay as they are.
UPDATE {table} AS leased
   SET due_at = now(), tries = leased.tries - 1 {returned}
  FROM unnest({arrays}) AS mine ({fence_name}{keys})
 WHERE {leased_is_mine} AND leased.due_at IS NOT NULL;

-- name: finish
-- $1 seconds until the next try; NULL: there is none, and the row is no longer queued. The subject's
-- `lease_result` writes its own columns. Another worker took the row since, or it has ended: no row.
   UPDATE {table} AS leased
      SET due_at = now() + $1::float8 * interval '1 s' {result}
    WHERE {is_row} AND {is_fenced} AND leased.due_at IS NOT NULL
RETURNING true;

-- name: replay
-- Queued again from the first try. A worker that is busy with such a row loses its lease.
   UPDATE {table} AS leased
      SET {fence_up} tries = 0, due_at = now() {replayed}
    WHERE {condition}
RETURNING {shown};

-- name: count
-- Two counts: one over both conditions could use neither of their partial indexes.
SELECT (SELECT count(*) FROM {table} WHERE due_at IS NOT NULL) AS queued,
       (SELECT count(*) FROM {table} WHERE {dead}) AS dead;
