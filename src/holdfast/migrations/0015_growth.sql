-- 0015_growth.sql: what jobs and lists need to read a bounded number of rows, however long the past is.
--
-- No index here has an entry for a HELD booking: opening a hold costs what it did before. A booking's state
-- is in the predicate of holds_by_expiry, so its moves never were HOT updates.

CREATE INDEX confirmed_bookings ON booking (show_id) WHERE state = 'confirmed';
CREATE INDEX paying_or_blocked_bookings ON booking (show_id) WHERE state IN ('paying', 'blocked');

-- When the last buyer of a cancelled show had given up their seats: nothing is left to refund.
ALTER TABLE sale ADD COLUMN emptied_at timestamptz;
DROP INDEX sales_cancelled;
CREATE INDEX sales_to_empty ON sale (show_id) WHERE cancelled AND emptied_at IS NULL;
CREATE INDEX sales_to_rebuild ON sale (closes_at) WHERE map_stale;
CREATE INDEX sales_by_end ON sale (closes_at, show_id);

CREATE INDEX deliveries_dead ON webhook_delivery (endpoint_id) WHERE state = 'dead';

-- Whose show it was, so that an organiser's list is one range of an index.
ALTER TABLE refund ADD COLUMN organiser_id bigint;
UPDATE refund SET organiser_id = event.organiser_id
  FROM show JOIN event ON event.id = show.event_id
 WHERE show.id = refund.show_id;
CREATE INDEX refunds_by_time ON refund (requested_at, show_id, number, attempt, id);
CREATE INDEX refunds_of_an_organiser ON refund (organiser_id, requested_at, show_id, number, attempt, id);

-- Jobs that one process of all runs at a time: engines/turns.py. A row is leased as in engines/leases.py.
-- owner: engines
CREATE TABLE job_turn (
    name   text        PRIMARY KEY,
    due_at timestamptz NOT NULL DEFAULT now(),           -- when the lease of the process that runs it ends
    tries  int         NOT NULL DEFAULT 0,
    turn   int         NOT NULL DEFAULT 0
);
