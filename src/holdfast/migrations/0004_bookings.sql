-- 0004_bookings.sql: sales, bookings, and the key that makes a double booking impossible.
--
-- show_id is in every key, so that the same tables run on one server, on shards chosen by show, and on Citus.

CREATE TYPE booking_state AS ENUM
    ('held', 'paying', 'confirmed', 'expired', 'cancelled', 'failed', 'refunded', 'blocked');

-- Booking numbers and fences come from one sequence, so that a fence always grows. Never from Redis: a
-- counter there goes back when a fail-over loses writes.
CREATE SEQUENCE ledger_number;

-- What a hold must know of a show's sale. Its row is the lock between holds (shared) and a rebuild of the
-- seat map (exclusive).
-- owner: bookings
CREATE TABLE sale (
    show_id         bigint      PRIMARY KEY,
    epoch           bigint      NOT NULL DEFAULT 1,      -- the current generation of the seat map
    map_stale       boolean     NOT NULL DEFAULT true,   -- Redis must not sell from its map before a rebuild
    marked_at       timestamptz NOT NULL DEFAULT now(),  -- when the epoch was raised last
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    cancelled       boolean     NOT NULL DEFAULT false,
    owner_seats_max int         NOT NULL,
    revision        bigint      NOT NULL,                -- of the show: which prices and layout are valid
    CONSTRAINT a_sale_closes_after_it_opens CHECK (closes_at > opens_at)
);
CREATE INDEX sales_cancelled ON sale (show_id) WHERE cancelled;

-- owner: bookings
CREATE TABLE booking (
    show_id      bigint        NOT NULL,
    number       bigint        NOT NULL,
    owner_id     bigint        NOT NULL,
    fence        bigint        NOT NULL,                 -- changes at opening and at every payment attempt
    state        booking_state NOT NULL,
    request_id   text          NOT NULL,                 -- the same id returns the same booking
    body_hash    bigint        NOT NULL,
    claim_id     text          NOT NULL,                 -- of the claim in Redis
    seats        int[]         NOT NULL,
    prices_minor bigint[]      NOT NULL,                 -- one per seat, frozen when the seats were held
    amount_minor bigint        NOT NULL,
    currency     text          NOT NULL,
    note         text          NOT NULL DEFAULT '',      -- why these seats; of a block: its name
    counts       boolean       NOT NULL DEFAULT true,    -- towards the owner's limit; a block does not
    opened_at    timestamptz   NOT NULL,
    expires_at   timestamptz   NOT NULL,
    confirmed_at timestamptz,
    revision     bigint        NOT NULL DEFAULT 0,       -- of the show when the seats were held; 0: a block
    PRIMARY KEY (show_id, number),
    CONSTRAINT one_booking_per_request UNIQUE (owner_id, show_id, request_id),
    CONSTRAINT a_price_for_every_seat CHECK (cardinality(seats) = cardinality(prices_minor)),
    CONSTRAINT no_negative_amount CHECK (amount_minor >= 0),
    CONSTRAINT confirmed_has_a_time CHECK ((confirmed_at IS NULL) = (state NOT IN ('confirmed', 'refunded')))
);
CREATE INDEX holds_by_expiry ON booking (expires_at) WHERE state = 'held';

-- The final decision about a seat: Redis is fast, this key is right. A row exists while its booking is HELD,
-- PAYING, CONFIRMED or BLOCKED (TAKES_SEATS in booking.py) and is deleted when the booking releases the seat.
-- owner: bookings
CREATE TABLE taken_seat (
    show_id bigint NOT NULL,
    seat    int    NOT NULL,
    number  bigint NOT NULL,
    CONSTRAINT one_live_booking_per_seat PRIMARY KEY (show_id, seat)
);

-- Seats an owner has in a show: enforces the limit even when Redis has lost its data.
-- owner: bookings
CREATE TABLE owner_count (
    show_id   bigint NOT NULL,
    owner_id  bigint NOT NULL,
    seats     int    NOT NULL,
    seats_max int    NOT NULL,
    PRIMARY KEY (show_id, owner_id),
    CONSTRAINT no_owner_has_more_seats_than_allowed CHECK (seats BETWEEN 0 AND seats_max)
);

-- The audit trail: every move of every booking, never deleted.
-- owner: bookings
CREATE TABLE booking_move (
    show_id  bigint        NOT NULL,
    number   bigint        NOT NULL,
    id       bigint        NOT NULL GENERATED ALWAYS AS IDENTITY,
    move     text          NOT NULL,
    state    booking_state NOT NULL,                     -- after the move
    fence    bigint        NOT NULL,
    actor_id bigint,                                     -- NULL: a timer or a rule did it
    at       timestamptz   NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, number, id)
);
-- Which shows had moves lately: every worker queries it every few seconds. BRIN, because rows are only
-- appended in the order of their times: an entry covers a range of pages. 470 ms without it, at a million
-- rows.
CREATE INDEX moves_by_time ON booking_move USING brin (at) WITH (autosummarize = on);

-- What a block has besides its row in `booking`. Its name is the booking's note: only organisers see it.
-- owner: bookings
CREATE TABLE seat_block (
    show_id      bigint      NOT NULL,
    number       bigint      NOT NULL,
    release_at   timestamptz,                            -- then a job releases the seats to the sale
    hours_before int,                                    -- set relative to the start: moves with the show
    withdrawn    boolean     NOT NULL DEFAULT false,     -- permanent: the seat no longer exists in the hall
    PRIMARY KEY (show_id, number),
    CONSTRAINT hours_before_have_a_time CHECK (hours_before IS NULL OR release_at IS NOT NULL),
    CONSTRAINT a_withdrawn_seat_is_not_released CHECK (NOT withdrawn OR release_at IS NULL)
);
CREATE INDEX blocks_to_release ON seat_block (release_at) WHERE release_at IS NOT NULL;
