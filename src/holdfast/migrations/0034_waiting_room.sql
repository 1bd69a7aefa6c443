-- 0034_waiting_room.sql: waiting rooms of shows: settings, queues, places and turns.
-- works with: 0.1.0

-- What an organiser decides about the waiting room of a show.
-- owner: waitingroom
CREATE TABLE waiting_room (
    show_id        bigint      PRIMARY KEY,
    opens_at       timestamptz,                           -- NULL: when an organiser opens it, or demand does
    draw_at        timestamptz,                           -- NULL: when the sale opens
    inside_max     int         NOT NULL,
    per_minute_max int         NOT NULL,
    turn_s         int         NOT NULL,
    window_s       int         NOT NULL,
    beacon         text        NOT NULL,                  -- where a public value of the draw will come from
    opens_above_holds_per_second int NOT NULL,            -- 0: never by itself
    opening        int         NOT NULL DEFAULT 1,        -- the current queue
    changed_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT limits_are_positive CHECK (least(inside_max, per_minute_max, turn_s, window_s) >= 1)
);

-- One opening of a room. Its row is the lock between people who join, the draw and the admission.
-- owner: waitingroom
CREATE TABLE queue (
    show_id      bigint      NOT NULL,
    opening      int         NOT NULL,
    state        text        NOT NULL DEFAULT 'scheduled',
    opened_by    text        NOT NULL DEFAULT '',         -- schedule, organiser, demand
    seed         bytea,                                   -- secret until the draw; NULL: without a draw
    commitment   bytea,                                   -- published when the room opens
    beacon       text        NOT NULL DEFAULT '',         -- as stated then
    beacon_value text,
    key          bytea,                                   -- of the order, since the draw
    entrants     int,                                     -- numbers below this were in the draw
    joined       int         NOT NULL DEFAULT 0,          -- the next number
    serving      int         NOT NULL DEFAULT 0,          -- the next position to call
    rate         real        NOT NULL DEFAULT 0,          -- people per minute that the ledger stands now
    opened_at    timestamptz,
    drawn_at     timestamptz,
    called_at    timestamptz,                             -- the last time that people were called
    ended_at     timestamptz,                             -- drained or closed
    PRIMARY KEY (show_id, opening),
    CONSTRAINT known_room_states CHECK
        (state IN ('scheduled', 'open', 'admitting', 'overridden', 'drained', 'closed')),
    CONSTRAINT a_drawn_order_has_its_inputs CHECK
        (key IS NULL OR seed IS NOT NULL AND entrants IS NOT NULL),
    CONSTRAINT people_join_before_they_are_called CHECK (serving <= joined)
) WITH (fillfactor = 50);                                 -- updated by every batch of joins
CREATE INDEX queues_at_work ON queue (show_id)
    WHERE state IN ('scheduled', 'open', 'admitting', 'overridden');

-- A person's place: 32 bytes and two index entries, because there can be millions.
-- owner: waitingroom
CREATE TABLE queue_place (
    show_id    bigint   NOT NULL,
    account_id bigint   NOT NULL,
    number     int      NOT NULL,                         -- dense, in the order of joining
    opening    int      NOT NULL,
    joined_s   int      NOT NULL,                         -- seconds after the opening
    state      smallint NOT NULL DEFAULT 0,               -- 0 live, 1 left, 2 out, 3 done
    rejoined   smallint NOT NULL DEFAULT 0,               -- 0: current; else an earlier place of this person
    PRIMARY KEY (show_id, opening, number),
    CONSTRAINT one_place_per_person UNIQUE (account_id, show_id, opening, rejoined),
    CONSTRAINT an_earlier_place_has_ended CHECK (rejoined = 0 OR state <> 0)
);

-- A person who was called, once or twice. A row counts as one person inside from `called_at` to `freed_at`.
-- owner: waitingroom
CREATE TABLE queue_turn (
    show_id     bigint      NOT NULL,
    opening     int         NOT NULL,
    number      int         NOT NULL,
    call        smallint    NOT NULL DEFAULT 1,           -- 2: after a turn that was missed
    position    int         NOT NULL,
    state       text        NOT NULL DEFAULT 'called',
    inside_max  int         NOT NULL,                     -- the cap at that moment
    called_at   timestamptz NOT NULL DEFAULT now(),
    redeemed_at timestamptz,
    ends_at     timestamptz NOT NULL,                     -- of the turn; once redeemed, of the window
    ended_at    timestamptz,                              -- when the person left or bought, if before ends_at
    freed_at    timestamptz,
    recall_at   int,                                      -- missed: called again when `serving` is there
    PRIMARY KEY (show_id, opening, number, call),
    CONSTRAINT known_turn_states CHECK (state IN ('called', 'inside', 'ending', 'missed', 'over')),
    CONSTRAINT inside_until_freed CHECK ((freed_at IS NULL) = (state IN ('called', 'inside', 'ending')))
);
CREATE INDEX people_inside ON queue_turn (show_id, opening, ends_at) WHERE freed_at IS NULL;
CREATE INDEX missed_turns ON queue_turn (show_id, opening, recall_at) WHERE state = 'missed';
CREATE INDEX turns_ended_early ON queue_turn (ended_at) WHERE ended_at IS NOT NULL;

-- What happened in a queue, at most a row per second: waits, calibration and the replay of a sale read it.
-- owner: waitingroom
CREATE TABLE queue_log (
    show_id    bigint      NOT NULL,
    opening    int         NOT NULL,
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at         timestamptz NOT NULL DEFAULT now(),
    kind       text        NOT NULL,                      -- opened, drawn, called, or the new state
    joined     int         NOT NULL,
    serving    int         NOT NULL,
    inside     int         NOT NULL,
    called     int         NOT NULL DEFAULT 0,            -- people called by this step
    seats_left int         NOT NULL DEFAULT 0,
    PRIMARY KEY (show_id, opening, id)
);
