-- 0037_admission.sql: what web processes measure for waiting rooms, ways into one, deadlines of beacons.
-- works with: 0.1.0

-- What one web process measured in the last seconds. It writes its row once per second, while a room guards
-- a show or may open by itself; a process that has died leaves a row that grows old.
-- owner: waitingroom
CREATE TABLE web_load (
    process      text        PRIMARY KEY,
    at           timestamptz NOT NULL DEFAULT now(),
    holds        int         NOT NULL,
    slow_holds   int         NOT NULL,
    refused      int         NOT NULL,                    -- answers 503 and 504 to holds, and connections
    payments     int         NOT NULL,                    -- calls of the gateway under way
    payments_max int         NOT NULL,                    -- that this process makes at once
    shows        bigint[]    NOT NULL,                    -- whose rooms open by themselves
    show_holds   int[]       NOT NULL,                    -- per second, of each of them
    show_viewers int[]       NOT NULL,                    -- people who look at its map now
    CONSTRAINT figures_for_every_show CHECK
        (cardinality(shows) = cardinality(show_holds) AND cardinality(shows) = cardinality(show_viewers))
) WITH (fillfactor = 50);                                 -- updated every second

ALTER TABLE waiting_room
    ADD COLUMN opens_above_viewers int NOT NULL DEFAULT 0, -- 0: never by itself
    ADD COLUMN beacon_until timestamptz;                  -- the draw goes on without the value then

ALTER TABLE queue
    ADD COLUMN held_back_by text NOT NULL DEFAULT '',     -- why the rate does not grow; empty: it does
    ADD COLUMN beacon_until timestamptz;                  -- as committed to

-- By which way a person came in: it is in the signed pass, too.
ALTER TABLE queue_turn ADD COLUMN way_in text NOT NULL DEFAULT 'queue';
