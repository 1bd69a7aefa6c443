-- 0009_outbox.sql: who has heard which facts. Nothing is added to outbox itself: its writers are in a hurry.

-- One row. How far the outbox is settled: every fact up to there is written for good, and nothing can still
-- appear among them. Ids are handed out before a commit, so "the highest id there is" would be no such place.
CREATE TABLE fact_log (
    is_only      boolean     PRIMARY KEY DEFAULT true,
    -- Names the log on the bus: one that another database has left there is none of ours.
    name         text        NOT NULL DEFAULT 'facts-' || left(replace(gen_random_uuid()::text, '-', ''), 12),
    settled_id   bigint      NOT NULL DEFAULT 0,
    purged_until timestamptz NOT NULL DEFAULT '-infinity',  -- facts from before then may be gone
    CONSTRAINT there_is_one_log CHECK (is_only)
);

INSERT INTO fact_log DEFAULT VALUES;

-- Everybody who hears facts, the relay to the bus among them. A fact stays until all have passed it.
CREATE TABLE consumer_group (
    name       text        PRIMARY KEY,
    checkpoint bigint      NOT NULL,                        -- done with every fact up to this one
    reader     text        NOT NULL DEFAULT '',             -- the process whose turn it is
    turn_until timestamptz NOT NULL DEFAULT '-infinity',    -- after that it may be another's
    moved_at   timestamptz NOT NULL DEFAULT now()
);

-- Facts that a group could not deal with yet. Later ones with the same key wait behind them; the rest goes on.
CREATE TABLE parked_fact (
    group_name text        NOT NULL REFERENCES consumer_group (name) ON DELETE CASCADE,
    fact_id    bigint      NOT NULL,
    key        text        NOT NULL,
    fact       bytea       NOT NULL,                        -- whole, as it was told: it outlives its outbox row
    tries      int         NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT now(),
    reason     text        NOT NULL DEFAULT '',             -- why not, the last time
    dead_at    timestamptz,                                 -- tried often enough: a person must look
    PRIMARY KEY (group_name, fact_id)
);

CREATE INDEX parked_in_order ON parked_fact (group_name, key, fact_id) WHERE dead_at IS NULL;

-- What a group has done, written in the transaction that did it: the same fact again does nothing.
CREATE TABLE consumed_fact (
    group_name text        NOT NULL,
    fact_id    bigint      NOT NULL,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_name, fact_id)
);
