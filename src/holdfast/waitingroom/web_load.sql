-- What web processes measure: each writes its own row, the job of rooms reads all of them.

-- name: report
INSERT INTO web_load (process, holds, slow_holds, refused, payments, payments_max, shows, show_holds,
                      show_viewers)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (process) DO UPDATE
        SET at = now(), holds = $2, slow_holds = $3, refused = $4, payments = $5, payments_max = $6,
            shows = $7, show_holds = $8, show_viewers = $9;

-- name: load
-- Rows older than $1 seconds are counted as silent, those older than $2 not at all.
SELECT count(*) FILTER (WHERE is_fresh)::int AS processes,
       count(*) FILTER (WHERE NOT is_fresh)::int AS silent,
       coalesce(sum(holds) FILTER (WHERE is_fresh), 0)::int AS holds,
       coalesce(sum(slow_holds) FILTER (WHERE is_fresh), 0)::int AS slow_holds,
       coalesce(sum(refused) FILTER (WHERE is_fresh), 0)::int AS refused,
       coalesce(sum(payments) FILTER (WHERE is_fresh), 0)::int AS payments,
       coalesce(sum(payments_max) FILTER (WHERE is_fresh), 0)::int AS payments_max
  FROM (SELECT *, at > clock_timestamp() - $1 * interval '1 s' AS is_fresh
          FROM web_load
         WHERE at > clock_timestamp() - $2 * interval '1 s') AS report;

-- name: forget
-- Rows of processes that are gone for long. One that another worker deletes now is skipped.
DELETE FROM web_load
 WHERE process IN (SELECT process FROM web_load WHERE at < now() - interval '1 hour' FOR UPDATE SKIP LOCKED);
