-- 0005_outbox.sql: facts to publish, and how far each consumer group has read them.

-- Facts, inserted in the transaction that made them true (transactional outbox). A row stays until every
-- consumer group has passed it. What never changes of a booking (owner, seats, prices) is not repeated here:
-- the relay reads it from the booking.
-- owner: outbox
CREATE TABLE outbox (
    id      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    show_id bigint      NOT NULL,
    number  bigint,
    kind    text        NOT NULL,
    ends_at timestamptz,                                 -- of booking.held: when the hold expires
    body    jsonb,                                       -- of facts that carry more
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, show_id)
);
-- A booking that gives back some seats updates its unread facts while it holds its locks: 360 ms without this
-- index at a million rows, 0.2 ms with it. Inserting a fact costs the same within noise.
CREATE INDEX facts_of_a_booking ON outbox (show_id, number) WHERE number IS NOT NULL;

-- One row: up to which id the outbox is settled, that is, every fact up to there is committed and no other
-- can still appear among them. The highest id is not such a place: ids are drawn before the commit.
-- owner: outbox
CREATE TABLE fact_log (
    is_only      boolean     PRIMARY KEY DEFAULT true,
    -- Names the log on the bus, so that a log left there by another database is not mistaken for ours.
    name         text        NOT NULL DEFAULT 'facts-' || left(replace(gen_random_uuid()::text, '-', ''), 12),
    settled_id   bigint      NOT NULL DEFAULT 0,
    purged_until timestamptz NOT NULL DEFAULT '-infinity',  -- older facts may be deleted
    CONSTRAINT there_is_one_log CHECK (is_only)
);
INSERT INTO fact_log DEFAULT VALUES;

-- Every reader of facts, the relay to the bus among them. A fact stays until all have passed it.
-- owner: outbox
CREATE TABLE consumer_group (
    name        text        PRIMARY KEY,
    checkpoint  bigint      NOT NULL,                        -- every fact up to this id is done
    reader      text        NOT NULL DEFAULT '',             -- the process that has the lease
    lease_until timestamptz NOT NULL DEFAULT '-infinity',    -- when the lease ends
    moved_at    timestamptz NOT NULL DEFAULT now()
);

-- Facts a group could not process yet. Later facts with the same key wait behind them; others continue.
-- owner: outbox
CREATE TABLE parked_fact (
    group_name text        NOT NULL REFERENCES consumer_group (name) ON DELETE CASCADE,
    fact_id    bigint      NOT NULL,
    key        text        NOT NULL,
    fact       bytea       NOT NULL,                        -- complete: it outlives its outbox row
    tries      int         NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT now(),
    reason     text        NOT NULL DEFAULT '',             -- of the last failure
    dead_at    timestamptz,                                 -- dead-lettered: retried only by hand
    PRIMARY KEY (group_name, fact_id)
);
CREATE INDEX parked_in_order ON parked_fact (group_name, key, fact_id) WHERE dead_at IS NULL;

-- What a group has processed, inserted in the transaction that did it: the same fact again does nothing.
-- owner: outbox
CREATE TABLE consumed_fact (
    group_name text        NOT NULL,
    fact_id    bigint      NOT NULL,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_name, fact_id)
);
