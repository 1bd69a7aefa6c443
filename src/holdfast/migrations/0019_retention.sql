-- 0019_retention.sql: what jobs need to delete old rows in small batches. docs/operating/retention.md.

-- Lapsed and cancelled bookings in the order of their end. A HELD booking has no entry here.
CREATE INDEX ended_bookings ON booking (expires_at) WHERE state IN ('expired', 'cancelled');

-- An archived sale has no rows in taken_seat and owner_count; its bookings say what was sold.
ALTER TABLE sale ADD COLUMN archived_at timestamptz;     -- when their deletion began
ALTER TABLE sale ADD COLUMN purged_at   timestamptz;     -- when none were left
CREATE INDEX sales_to_archive ON sale (closes_at) WHERE purged_at IS NULL;
CREATE INDEX sales_archived ON sale (archived_at) WHERE archived_at IS NOT NULL;

CREATE INDEX guests ON account (id) WHERE password_hash IS NULL;

-- How many bookings of an archived sale reached a stage, when their rows in report_stage were deleted.
-- owner: reports
CREATE TABLE report_past_stage (
    show_id  bigint        NOT NULL,
    stage    booking_state NOT NULL,
    bookings bigint        NOT NULL,
    PRIMARY KEY (show_id, stage)
);

-- How far each rule of engines/retention.py is in its pass over a table.
-- owner: engines
CREATE TABLE retention_pass (
    rule     text        PRIMARY KEY,
    reached  bigint      NOT NULL DEFAULT 0,             -- the rule's own measure; 0: at the beginning
    due_at   timestamptz NOT NULL DEFAULT now(),         -- of the next batch
    deleted  bigint      NOT NULL DEFAULT 0,             -- rows, in all passes
    ended_at timestamptz                                 -- of the last complete pass
);
