-- A leased table for test_leases.py.

-- name: create
CREATE TABLE errand (
    shop     text NOT NULL,
    number   int NOT NULL,
    tries    int NOT NULL DEFAULT 0,
    turn     int NOT NULL DEFAULT 0,
    due_at   timestamptz DEFAULT now(),
    state    text NOT NULL DEFAULT 'queued',
    reason   text,
    PRIMARY KEY (shop, number)
);

-- name: add
INSERT INTO errand (shop, number, due_at) VALUES ($1, $2, now() - $3 * interval '1 s');

-- name: end_leases
UPDATE errand SET due_at = now() WHERE due_at IS NOT NULL;

-- name: errand
SELECT *, extract(epoch FROM due_at - now())::float8 AS due_in_s FROM errand WHERE shop = $1 AND number = $2;

-- name: lease_due
SELECT shop, number, upper(shop) AS sign
  FROM errand
 WHERE due_at <= now() AND shop = $3
 ORDER BY due_at
 LIMIT $1
   FOR UPDATE SKIP LOCKED;

-- name: lease_result
state = $2, reason = $3;

-- name: lease_returned
reason = $1;

-- name: lease_replayed
state = 'queued', reason = NULL;

-- name: lease_dead
state = 'dead';

-- name: replay_one
leased.shop = $1 AND leased.number = $2;

-- name: plain_due
SELECT shop, number FROM errand WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED;
