-- 0035_waitlist.sql: parties that wait for seats of a full show, and the offers they get.
-- works with: 0.1.0

-- While it is set, freed seats are reserved for the waitlist: release_seats in bookings/functions.sql.
ALTER TABLE sale ADD COLUMN has_waitlist boolean NOT NULL DEFAULT false;

-- Seats that were freed while parties waited. Their rows in taken_seat have the number 0, so that the one key
-- refuses every other buyer.
-- owner: bookings
CREATE TABLE reserved_seat (
    show_id bigint      NOT NULL,
    seat    int         NOT NULL,
    since   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_seat_is_reserved_once PRIMARY KEY (show_id, seat)
);

-- The waitlist of a show. Its row is the lock of everything that changes the list.
-- owner: waitlist
CREATE TABLE waitlist (
    show_id  bigint      PRIMARY KEY,
    joined   bigint      NOT NULL DEFAULT 0,             -- the number of the last entry
    is_live  boolean     NOT NULL DEFAULT false,         -- parties wait, or did lately: the sale has the flag
    empty_at timestamptz                                 -- since when no party waits
);
CREATE INDEX live_waitlists ON waitlist (show_id) WHERE is_live;

-- A party that waits. Order: people from the drained queue of the waiting room by their place there, then
-- everybody else by number.
-- owner: waitlist
CREATE TABLE waitlist_entry (
    show_id         bigint      NOT NULL,
    number          bigint      NOT NULL,                -- 1, 2, … in the order of joining
    owner_id        bigint      NOT NULL,
    seats           int         NOT NULL,
    categories      text[]      NOT NULL,                -- names; empty: any
    price_minor_max bigint,                              -- per seat; NULL: any
    together        boolean     NOT NULL,
    queue_position  bigint,                              -- in the waiting room when the show sold out
    until           timestamptz NOT NULL,                -- no offers are wanted after this
    joined_at       timestamptz NOT NULL DEFAULT now(),
    state           text        NOT NULL DEFAULT 'waiting',
    ended_at        timestamptz,
    PRIMARY KEY (show_id, number),
    CONSTRAINT a_party_has_seats CHECK (seats BETWEEN 1 AND 6),
    CONSTRAINT the_states_of_an_entry CHECK (
        state IN ('waiting', 'offered', 'taken', 'declined', 'lapsed', 'left', 'timed_out', 'closed')),
    CONSTRAINT an_ended_entry_has_a_time CHECK ((ended_at IS NULL) = (state IN ('waiting', 'offered')))
);
CREATE UNIQUE INDEX one_live_entry_per_account ON waitlist_entry (show_id, owner_id) WHERE ended_at IS NULL;
CREATE INDEX parties_in_order
    ON waitlist_entry (show_id, coalesce(queue_position, 9223372036854775807), number)
    WHERE state = 'waiting';
CREATE INDEX parties_by_end ON waitlist_entry (until) WHERE state = 'waiting';
CREATE INDEX entries_of_owner ON waitlist_entry (owner_id, show_id, number);

-- An offer is a HELD booking of the party's owner; this says which party got it, and how it ended.
-- owner: waitlist
CREATE TABLE waitlist_offer (
    show_id    bigint      NOT NULL,
    number     bigint      NOT NULL,                     -- of the booking
    entry      bigint      NOT NULL,
    seats      int[]       NOT NULL,
    offered_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    outcome    text,                                     -- NULL: open
    ended_at   timestamptz,
    PRIMARY KEY (show_id, number),
    CONSTRAINT one_offer_per_entry UNIQUE (show_id, entry),
    CONSTRAINT the_outcomes_of_an_offer CHECK (outcome IN ('taken', 'declined', 'lapsed')),
    CONSTRAINT an_ended_offer_has_a_time CHECK ((outcome IS NULL) = (ended_at IS NULL))
);
CREATE INDEX open_offers ON waitlist_offer (show_id, number) WHERE outcome IS NULL;

-- Tickets whose owner offers them to the waitlist. They stay valid until a party is found for the seats.
-- owner: waitlist
CREATE TABLE waitlist_return (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    show_id     bigint      NOT NULL,
    number      bigint      NOT NULL,                    -- of the booking
    seats       int[]       NOT NULL,
    selling     int[]       NOT NULL DEFAULT '{}',       -- a party was found for these; they are refunded now
    returned_at timestamptz NOT NULL DEFAULT now(),
    state       text        NOT NULL DEFAULT 'open',
    ended_at    timestamptz,
    CONSTRAINT the_states_of_a_return CHECK (state IN ('open', 'sold', 'withdrawn', 'closed')),
    CONSTRAINT an_ended_return_has_a_time CHECK ((state = 'open') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX one_open_return_per_booking ON waitlist_return (show_id, number) WHERE ended_at IS NULL;
CREATE INDEX returns_of_a_booking ON waitlist_return (show_id, number, id);
