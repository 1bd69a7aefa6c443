-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: personal_data
-- Addresses, browsers and names in old entries; the entries stay. There is no position: what is left to
-- erase is what the index has.
WITH old AS MATERIALIZED (
      SELECT chain, number
        FROM audit_entry
       WHERE personal IS NOT NULL AND at < now() - $2 * interval '1 day' AND $1 >= 0
    ORDER BY at
       LIMIT $3
), chains AS (
      SELECT chain, array_agg(number) AS numbers FROM old GROUP BY chain ORDER BY chain
)
SELECT CASE WHEN (SELECT count(*) FROM old) = $3 THEN 1 END::bigint AS reached,
       coalesce(sum(erase_from_audit_log(chain, numbers, 'age')), 0)::bigint AS deleted
  FROM chains;
