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

-- Facts that a group could not deal with yet. Later ones with the same key wait behind; the rest goes on.
CREATE TABLE parked_fact (
    group_name text        NOT NULL REFERENCES consumer_group (name) ON DELETE CASCADE,
    fact_id    bigint      NOT NULL,
    key        text        NOT NULL,
    fact       bytea       NOT NULL,                        -- whole: it outlives its outbox row
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

-- What the programme says of a show is told where it is decided: no way of changing a show goes round it.
CREATE FUNCTION tell_of_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    VALUES (NEW.show_id, CASE TG_OP WHEN 'INSERT' THEN 'show.on_sale' ELSE 'show.changed' END,
            jsonb_build_object('opens_at', NEW.opens_at, 'closes_at', NEW.closes_at,
                               'revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_new_show AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION tell_of_show();
CREATE TRIGGER tell_of_changed_show AFTER UPDATE OF revision ON sale
    FOR EACH ROW WHEN (NEW.revision <> OLD.revision AND NOT NEW.cancelled) EXECUTE FUNCTION tell_of_show();
