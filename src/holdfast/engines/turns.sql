-- For engines/turns.py: the fragments that engines/leases.py asks for.

-- name: add_job
INSERT INTO job_turn (name) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: lease_due
SELECT name FROM job_turn WHERE name = $3 AND due_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: workers
-- One row, also before any worker has run. $1 the job that every worker takes a turn at; $2 hours.
SELECT coalesce(bool_or(due_at > now()) FILTER (WHERE name = $1), false) AS is_alive,
       max(due_at) FILTER (WHERE name = $1)                              AS lease_end,
       coalesce(array_agg(name ORDER BY name)
                FILTER (WHERE due_at BETWEEN now() - $2 * interval '1 hour' AND now() - interval '5 minutes'),
                '{}')                                                    AS idle
  FROM job_turn;
