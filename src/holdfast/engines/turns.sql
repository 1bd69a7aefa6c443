-- For engines/turns.py: the fragments that engines/leases.py asks for.

-- name: add_job
INSERT INTO job_turn (name) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: lease_due
SELECT name FROM job_turn WHERE name = $3 AND due_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED;
