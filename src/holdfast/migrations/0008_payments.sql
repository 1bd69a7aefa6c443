-- 0008_payments.sql: money for bookings. Every step is written before it is tried; what happens to a booking
-- and what happens to its payment are one transaction.
--
-- show_id is in every key here too. Order of locks: sale (shared) → bookings → payments → seats → counters.

CREATE TYPE payment_step AS ENUM (
    'charge',      -- the gateway is being asked for the money
    'look_up',     -- it was asked and has not said, or waits for the payer
    'call_off',    -- it is being asked to forget it
    'watch',       -- the seats are gone, the gateway is silent: is the money?
    'late',        -- the money came, and its booking was not waiting any more
    'paid', 'declined', 'called_off', 'expired', 'returned'  -- ends; returned: see refund
);

CREATE TYPE refund_state AS ENUM (
    'asked',       -- decided; the gateway is being asked
    'done',        -- it goes back
    'by_hand'      -- the gateway will not: a person must look
);

CREATE TABLE payment (
    show_id       bigint       NOT NULL,
    number        bigint       NOT NULL,                  -- of the booking
    attempt       int          NOT NULL,                -- 1, 2, …: each has its own key at the gateway
    owner_id      bigint       NOT NULL,
    fence         bigint       NOT NULL,                  -- the booking's, as of this attempt
    request_id    text         NOT NULL,                  -- the asker's Idempotency-Key
    body_hash     bigint       NOT NULL,
    key           text         NOT NULL,                  -- the idempotency key at the gateway, our reference
    gateway       text         NOT NULL,
    method        text         NOT NULL,                  -- a token; empty: the payer confirms at the gateway
    return_url    text         NOT NULL DEFAULT '',
    step          payment_step NOT NULL,
    amount_minor  bigint       NOT NULL,
    fee_minor     bigint       NOT NULL DEFAULT 0,        -- of the amount: ours; known when it is paid
    tax_minor     bigint       NOT NULL DEFAULT 0,                 -- of the amount: the state's
    currency      text         NOT NULL,
    refunds_minor bigint       NOT NULL DEFAULT 0,        -- asked for or done
    reference     text,                                   -- the gateway's own id
    card          text,                                   -- a fingerprint
    action_url    text,                                   -- where the payer has to go
    client_secret text,
    reason        text,                                   -- why not, for the payer
    code          text,
    hold_ends_at  timestamptz  NOT NULL,                  -- what a decline gives back
    deadline_at   timestamptz  NOT NULL,
    turn          int          NOT NULL DEFAULT 0,        -- whose turn it is to carry it on: grows
    tries         int          NOT NULL DEFAULT 0,        -- since the step was written
    due_at        timestamptz,                            -- when somebody should look; NULL: it has ended
    asked_at      timestamptz  NOT NULL DEFAULT now(),
    ended_at      timestamptz,
    PRIMARY KEY (show_id, number, attempt),
    CONSTRAINT nobody_pays_nothing CHECK (amount_minor > 0),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                                 AND fee_minor + tax_minor <= amount_minor),
    CONSTRAINT no_more_goes_back_than_came CHECK (refunds_minor BETWEEN 0 AND amount_minor),
    CONSTRAINT ended_or_due CHECK ((due_at IS NULL) = (ended_at IS NOT NULL))
);

-- A key that failed may be used again; any other gives the first answer.
CREATE UNIQUE INDEX one_payment_a_request ON payment (owner_id, show_id, request_id)
    WHERE step NOT IN ('declined', 'called_off', 'expired');
CREATE INDEX payments_due ON payment (due_at) WHERE due_at IS NOT NULL;

-- Money on its way back. The key at the gateway is made of the row's own, so asking twice is asking once.
CREATE TABLE refund (
    show_id      bigint       NOT NULL,
    number       bigint       NOT NULL,
    attempt      int          NOT NULL,
    id           int          NOT NULL,                   -- 1, 2, … of this payment
    why          text         NOT NULL,                   -- late, owner, show, admin:<request>: once each
    seats        int[]        NOT NULL DEFAULT '{}',      -- given back with it; empty: money alone
    seats_minor  bigint       NOT NULL DEFAULT 0,         -- what those seats had cost
    amount_minor bigint       NOT NULL,
    fee_minor    bigint       NOT NULL DEFAULT 0,
    tax_minor    bigint       NOT NULL DEFAULT 0,
    state        refund_state NOT NULL DEFAULT 'asked',
    note         text         NOT NULL DEFAULT '',        -- what whoever decided it said
    reference    text,                                    -- the gateway's
    reason       text,                                    -- why it would not
    settled_note text,                                    -- how a person paid it: not through the gateway
    actor_id     bigint,                                  -- NULL: a rule did it
    round        int          NOT NULL DEFAULT 1,         -- of asking: after a no, a person may have it asked
    tries        int          NOT NULL DEFAULT 0,         --   anew, under another key
    due_at       timestamptz  DEFAULT now(),              -- when somebody should ask; NULL: nobody has to
    asked_at     timestamptz  NOT NULL DEFAULT now(),
    done_at      timestamptz,
    PRIMARY KEY (show_id, number, attempt, id),
    CONSTRAINT one_refund_a_reason UNIQUE (show_id, number, attempt, why),
    CONSTRAINT a_refund_is_of_something CHECK (amount_minor > 0 OR (amount_minor = 0 AND seats <> '{}')),
    CONSTRAINT asked_is_due CHECK ((state = 'asked') = (due_at IS NOT NULL)),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                                 AND fee_minor + tax_minor <= amount_minor)
);

CREATE INDEX refunds_due ON refund (due_at) WHERE state = 'asked';
CREATE INDEX refunds_by_hand ON refund (asked_at) WHERE state = 'by_hand';

-- The books. Lines of an entry add up to nothing: what one account gets, others give.
--   gateway:<name>  what lies at the gateway for us     organiser  what we owe to the organiser
--   fee             what is ours                        tax        what is the state's
--   owed            what we owe to fans: money that came for nothing, refunds on their way
--   by_hand         what a person paid back by another way than the gateway
CREATE TABLE journal (
    show_id      bigint      NOT NULL,
    entry        bigint      NOT NULL,                    -- from ledger_number
    account      text        NOT NULL,
    amount_minor bigint      NOT NULL,
    currency     text        NOT NULL,
    number       bigint      NOT NULL,
    attempt      int         NOT NULL,
    kind         text        NOT NULL,                    -- charge, late charge, late booking, refund, …
    at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, entry, account),
    CONSTRAINT no_empty_lines CHECK (amount_minor <> 0)
);

CREATE INDEX journal_of_a_booking ON journal (show_id, number);

CREATE FUNCTION journal_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written GROUP BY show_id, entry
                HAVING sum(amount_minor) <> 0 OR count(DISTINCT currency) > 1) THEN
        RAISE EXCEPTION 'an entry of the journal does not balance' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER journal_balances AFTER INSERT ON journal REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION journal_balances();

-- One for each seat of a confirmed booking, from the transaction that confirmed it.
CREATE TABLE ticket (
    show_id   bigint      NOT NULL,
    number    bigint      NOT NULL,
    seat      int         NOT NULL,
    serial    bigint      NOT NULL DEFAULT nextval('ledger_number'),
    issued_at timestamptz NOT NULL DEFAULT now(),
    voided_at timestamptz,                                -- given back
    used_at   timestamptz,                                -- let in: never given back after that
    PRIMARY KEY (show_id, number, seat),
    CONSTRAINT a_voided_ticket_lets_nobody_in CHECK (voided_at IS NULL OR used_at IS NULL)
);

CREATE UNIQUE INDEX one_ticket_a_serial ON ticket (show_id, serial);

-- Seats one card has in a show, where the show limits them.
CREATE TABLE card_count (
    show_id   bigint NOT NULL,
    card      text   NOT NULL,
    seats     int    NOT NULL,
    seats_max int    NOT NULL,
    PRIMARY KEY (show_id, card),
    CONSTRAINT no_card_has_more_seats_than_allowed CHECK (seats BETWEEN 0 AND seats_max)
);

-- Webhooks, as they came, stored before they are answered.
CREATE TABLE webhook (
    gateway   text        NOT NULL,
    event_id  text        NOT NULL,                       -- the gateway's: copies share it
    kind      text        NOT NULL,                       -- the gateway's word
    show_id   bigint      NOT NULL,                       -- of the payment it is about
    number    bigint      NOT NULL,
    attempt   int         NOT NULL,
    reference text,                                       -- the gateway's id of it, where it says
    body      bytea       NOT NULL,
    copies    int         NOT NULL DEFAULT 1,
    tries     int         NOT NULL DEFAULT 0,
    due_at    timestamptz,                                -- when somebody should look; NULL: done, or dead
    dead      boolean     NOT NULL DEFAULT false,         -- tried often enough: a person may replay it
    reason    text,                                       -- why it could not be settled
    came_at   timestamptz NOT NULL DEFAULT now(),
    done_at   timestamptz,
    PRIMARY KEY (gateway, event_id),
    CONSTRAINT due_done_or_dead CHECK (num_nonnulls(due_at, done_at) + dead::int = 1)
);

CREATE INDEX webhooks_due ON webhook (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhooks_dead ON webhook (came_at) WHERE dead;
CREATE INDEX webhooks_by_age ON webhook (came_at);

-- The drawing in ledger/booking.py: a booking fails when its money came after it had expired.
CREATE OR REPLACE FUNCTION booking_moves_as_drawn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'),
        ('expired', 'confirmed'), ('expired', 'failed'), ('confirmed', 'refunded'), ('blocked', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a booking does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

-- Audit row and fact of many bookings that have just moved; of a confirmed one also its tickets. An actor
-- of 0 is the owner of each.
CREATE OR REPLACE FUNCTION record_moves(p_show bigint[], p_number bigint[], p_move text, p_actor bigint)
RETURNS void LANGUAGE sql AS $$
    WITH moved AS (
        SELECT booking.*
          FROM unnest(p_show, p_number) WITH ORDINALITY AS asked (show_id, number, ord)
          JOIN booking USING (show_id, number)
      ORDER BY ord
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, p_move, state, fence, CASE p_actor WHEN 0 THEN owner_id ELSE p_actor END
          FROM moved
    ), tickets AS (
        INSERT INTO ticket (show_id, number, seat)
        SELECT show_id, number, unnest(seats) FROM moved WHERE p_move = 'confirm'
    )
    INSERT INTO outbox (show_id, number, kind) SELECT show_id, number, 'booking.' || state FROM moved;
$$;
