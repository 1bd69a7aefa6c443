-- 0036_replay.sql: what the replay of a sale needs besides the moves of bookings.
-- works with: 0.1.0

-- The seats that a 'merge' brought to the booking, or that a 'reduce' took from it. NULL: the move was of all
-- its seats, or is older than this column.
ALTER TABLE booking_move ADD COLUMN seats int[];

-- How often seats were refused. A web process adds a row for a show that turned buyers down, every
-- few seconds at most; a row per refused hold would cost a statement each.
-- owner: replay
CREATE TABLE seat_demand (
    show_id bigint      NOT NULL,
    id      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at      timestamptz NOT NULL DEFAULT now(),
    refused int         NOT NULL,                        -- holds
    seats   int[]       NOT NULL,
    times   int[]       NOT NULL,                        -- that each of these seats was in a refused hold
    PRIMARY KEY (show_id, id),
    CONSTRAINT a_count_for_every_wanted_seat CHECK (cardinality(seats) = cardinality(times)),
    CONSTRAINT some_hold_was_refused CHECK (refused > 0)
);
