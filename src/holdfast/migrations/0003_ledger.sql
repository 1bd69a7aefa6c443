-- 0003_ledger.sql: bookings, and the key no double booking gets past.
--
-- show_id is in every key, so that the same tables run on one server, on shards chosen by show, and on Citus.

CREATE TYPE booking_state AS ENUM
    ('held', 'paying', 'confirmed', 'expired', 'cancelled', 'failed', 'refunded', 'blocked');

-- Numbers of bookings and fences: one sequence, so that a fence always grows. Never from Redis: a counter
-- there goes back when a fail-over loses writes.
CREATE SEQUENCE ledger_number;

-- What a show's sale needs to know at the moment of a hold. Its row is the lock between holds (shared)
-- and whoever writes the map anew (exclusive).
CREATE TABLE sale (
    show_id         bigint      PRIMARY KEY,
    epoch           bigint      NOT NULL DEFAULT 1,      -- which writing of the map is the current one
    map_stale       boolean     NOT NULL DEFAULT true,   -- Redis must not sell from its map before a rebuild
    marked_at       timestamptz NOT NULL DEFAULT now(),  -- when the epoch was raised last
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    cancelled       boolean     NOT NULL DEFAULT false,
    owner_seats_max int         NOT NULL,
    revision        bigint      NOT NULL,                -- the catalogue's: prices and layout as of then
    CONSTRAINT a_sale_closes_after_it_opens CHECK (closes_at > opens_at)
);

CREATE TABLE booking (
    show_id      bigint        NOT NULL,
    number       bigint        NOT NULL,
    owner_id     bigint        NOT NULL,
    fence        bigint        NOT NULL,                 -- changes at open and at every attempt to pay
    state        booking_state NOT NULL,
    request_id   text          NOT NULL,                 -- the same id gives the same booking
    body_hash    bigint        NOT NULL,
    claim_id     text          NOT NULL,                 -- names the claim in Redis
    seats        int[]         NOT NULL,
    prices_minor bigint[]      NOT NULL,                 -- of each seat, frozen at hold
    amount_minor bigint        NOT NULL,
    currency     text          NOT NULL,
    note         text          NOT NULL DEFAULT '',      -- why these seats; of a block: its name
    counts       boolean       NOT NULL DEFAULT true,    -- towards the owner's limit; a block does not
    opened_at    timestamptz   NOT NULL,
    expires_at   timestamptz   NOT NULL,
    confirmed_at timestamptz,
    PRIMARY KEY (show_id, number),
    CONSTRAINT one_booking_a_request UNIQUE (owner_id, show_id, request_id),
    CONSTRAINT a_price_for_every_seat CHECK (cardinality(seats) = cardinality(prices_minor)),
    CONSTRAINT no_negative_amount CHECK (amount_minor >= 0),
    CONSTRAINT confirmed_has_a_time CHECK ((confirmed_at IS NULL) = (state NOT IN ('confirmed', 'refunded')))
);

CREATE INDEX lapsing ON booking (expires_at) WHERE state = 'held';

-- The last word. Redis decides quickly; this key decides for good. A row exists while its booking is HELD,
-- PAYING, CONFIRMED or BLOCKED, as TAKES_SEATS in ledger/booking.py says too, and is deleted when it lets go.
CREATE TABLE taken_seat (
    show_id bigint NOT NULL,
    seat    int    NOT NULL,
    number  bigint NOT NULL,
    CONSTRAINT one_live_booking_a_seat PRIMARY KEY (show_id, seat)
);

-- Seats a person has in a show: the limit holds even when Redis has forgotten everything.
CREATE TABLE owner_count (
    show_id   bigint NOT NULL,
    owner_id  bigint NOT NULL,
    seats     int    NOT NULL,
    seats_max int    NOT NULL,
    PRIMARY KEY (show_id, owner_id),
    CONSTRAINT nobody_has_more_seats_than_allowed CHECK (seats BETWEEN 0 AND seats_max)
);

-- Every move of every booking, for ever.
CREATE TABLE booking_move (
    show_id  bigint        NOT NULL,
    number   bigint        NOT NULL,
    id       bigint        NOT NULL GENERATED ALWAYS AS IDENTITY,
    move     text          NOT NULL,
    state    booking_state NOT NULL,                     -- the state after the move
    fence    bigint        NOT NULL,
    actor_id bigint,                                     -- NULL: time did it
    at       timestamptz   NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, number, id)
);

-- Facts to be told, written in the transaction that made them true. A row stays until everyone has heard it.
-- What never changes of a booking (owner, seats, prices) is not repeated here: the relay reads it there.
CREATE TABLE outbox (
    id      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    show_id bigint      NOT NULL,
    number  bigint,
    kind    text        NOT NULL,
    ends_at timestamptz,                                 -- of booking.held: until when
    body    jsonb,                                       -- of facts that say more
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, show_id)
);

-- The drawing in ledger/booking.py, where nobody can go round it.
CREATE FUNCTION booking_moves_as_drawn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'), ('paying', 'failed'),
        ('expired', 'confirmed'), ('confirmed', 'refunded'), ('blocked', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a booking does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER booking_moves_as_drawn BEFORE UPDATE OF state ON booking
    FOR EACH ROW EXECUTE FUNCTION booking_moves_as_drawn();
