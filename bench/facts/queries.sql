-- name: facts_now
-- How far facts are written, and how far everybody is with them; the age of the oldest that waits for them.
SELECT 'written' AS name, coalesce(max(id), 0) AS at_id, 0::float8 AS lag_s FROM outbox
 UNION ALL
SELECT name, checkpoint,
       coalesce(extract(epoch FROM now() - (SELECT at FROM outbox WHERE id > checkpoint
                                         ORDER BY id LIMIT 1)), 0)::float8
  FROM consumer_group;
