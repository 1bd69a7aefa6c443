-- 0006_payments.sql: payments, refunds and the journal of all money.
--
-- Every step is stored before it is tried; a booking and its payment change in one transaction. show_id is in
-- every key here too. Lock order: sale (shared), bookings, payments, tickets, seats, counters.

CREATE TYPE payment_step AS ENUM (
    'charge',      -- a charge request to the gateway is under way
    'look_up',     -- the gateway has not answered, or waits for the payer
    'call_off',    -- a cancel request to the gateway is under way
    'watch',       -- the seats are released, the gateway is silent: money may still arrive
    'late',        -- the money arrived, and its booking was not waiting any more
    'paid', 'declined', 'called_off', 'expired', 'returned'  -- ends; returned: see refund
);

CREATE TYPE refund_state AS ENUM (
    'requested',   -- decided; the request to the gateway is under way
    'done',        -- the money is on its way back
    'by_hand'      -- the gateway refuses: a person must pay it back
);

-- owner: payments
CREATE TABLE payment (
    show_id       bigint       NOT NULL,
    number        bigint       NOT NULL,                  -- of the booking
    attempt       int          NOT NULL,                  -- 1, 2, …: each has its own key at the gateway
    owner_id      bigint       NOT NULL,
    fence         bigint       NOT NULL,                  -- of the booking during this attempt
    request_id    text         NOT NULL,                  -- the client's Idempotency-Key
    body_hash     bigint       NOT NULL,
    key           text         NOT NULL,                  -- idempotency key at the gateway, our reference
    gateway       text         NOT NULL,
    method        text         NOT NULL,                  -- a token; empty: the payer confirms at the gateway
    return_url    text         NOT NULL DEFAULT '',
    step          payment_step NOT NULL,
    amount_minor  bigint       NOT NULL,
    fee_minor     bigint       NOT NULL DEFAULT 0,        -- our part of the amount; known when it is paid
    tax_minor     bigint       NOT NULL DEFAULT 0,        -- the tax in the amount
    currency      text         NOT NULL,
    refunds_minor bigint       NOT NULL DEFAULT 0,        -- decided or done
    reference     text,                                   -- the gateway's own id
    card          text,                                   -- fingerprint of the payment card
    action_url    text,                                   -- where the payer must go
    client_secret text,
    reason        text,                                   -- of a decline, for the payer
    code          text,
    hold_ends_at  timestamptz  NOT NULL,                  -- a decline restores this expiry
    deadline_at   timestamptz  NOT NULL,
    turn          int          NOT NULL DEFAULT 0,        -- fence of the lease: grows with every taker
    tries         int          NOT NULL DEFAULT 0,        -- since the step was stored
    due_at        timestamptz,                            -- when a worker takes it; NULL: it has ended
    requested_at  timestamptz  NOT NULL DEFAULT now(),
    ended_at      timestamptz,
    PRIMARY KEY (show_id, number, attempt),
    CONSTRAINT a_payment_is_of_something CHECK (amount_minor > 0),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                                 AND fee_minor + tax_minor <= amount_minor),
    CONSTRAINT no_more_goes_back_than_came CHECK (refunds_minor BETWEEN 0 AND amount_minor),
    CONSTRAINT ended_or_due CHECK ((due_at IS NULL) = (ended_at IS NOT NULL))
);
-- A request id whose payment failed may be used again; any other returns the first answer.
CREATE UNIQUE INDEX one_payment_per_request ON payment (owner_id, show_id, request_id)
    WHERE step NOT IN ('declined', 'called_off', 'expired');
CREATE INDEX payments_due ON payment (due_at) WHERE due_at IS NOT NULL;
-- Webhooks about refunds, and some gateways' about payments, name the gateway's id and not our key.
CREATE INDEX payments_by_reference ON payment (reference) WHERE reference IS NOT NULL;
-- Read by time once a minute, written with every payment: BRIN is the cheapest index to keep.
CREATE INDEX payments_by_time ON payment USING brin (requested_at);

-- Money on its way back. The key at the gateway is derived from the row's own key, so asking twice is asking
-- once.
-- owner: refunds
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
    state        refund_state NOT NULL DEFAULT 'requested',
    note         text         NOT NULL DEFAULT '',        -- from the person who decided it
    reference    text,                                    -- the gateway's
    reason       text,                                    -- why the gateway refused
    settled_note text,                                    -- how a person paid it outside the gateway
    actor_id     bigint,                                  -- NULL: a rule did it
    round        int          NOT NULL DEFAULT 1,         -- part of the key at the gateway: a person may ask
    tries        int          NOT NULL DEFAULT 0,         --   again after a refusal, under another key
    due_at       timestamptz  DEFAULT now(),              -- when a worker asks the gateway; NULL: not needed
    requested_at timestamptz  NOT NULL DEFAULT now(),
    done_at      timestamptz,
    PRIMARY KEY (show_id, number, attempt, id),
    CONSTRAINT one_refund_per_reason UNIQUE (show_id, number, attempt, why),
    CONSTRAINT a_refund_is_of_something CHECK (amount_minor > 0 OR (amount_minor = 0 AND seats <> '{}')),
    CONSTRAINT requested_is_due CHECK ((state = 'requested') = (due_at IS NOT NULL)),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                                 AND fee_minor + tax_minor <= amount_minor)
);
CREATE INDEX refunds_due ON refund (due_at) WHERE state = 'requested';
CREATE INDEX refunds_by_hand ON refund (requested_at) WHERE state = 'by_hand';

-- Double-entry journal: the lines of an entry add up to zero.
--   gateway:<name>  money at the gateway for us         organiser  what we owe to the organiser
--   fee             ours                                tax        owed to the tax office
--   owed            owed to buyers: money that arrived late, refunds on their way
--   by_hand         what a person paid back outside the gateway
-- owner: payments
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

-- Seats one payment card has in a show, where the show limits them.
-- owner: payments
CREATE TABLE card_count (
    show_id   bigint NOT NULL,
    card      text   NOT NULL,
    seats     int    NOT NULL,
    seats_max int    NOT NULL,
    PRIMARY KEY (show_id, card),
    CONSTRAINT no_card_has_more_seats_than_allowed CHECK (seats BETWEEN 0 AND seats_max)
);

-- Webhooks of gateways, stored as received before they are acknowledged.
-- owner: payments
CREATE TABLE gateway_webhook (
    gateway     text        NOT NULL,
    event_id    text        NOT NULL,                       -- the gateway's: duplicates share it
    kind        text        NOT NULL,                       -- the gateway's word
    show_id     bigint      NOT NULL,                       -- of the payment it is about
    number      bigint      NOT NULL,
    attempt     int         NOT NULL,
    reference   text,                                       -- the gateway's id of the payment, if it has one
    body        bytea       NOT NULL,
    copies      int         NOT NULL DEFAULT 1,
    tries       int         NOT NULL DEFAULT 0,
    due_at      timestamptz,                                -- when a worker takes it; NULL: done, or dead
    dead        boolean     NOT NULL DEFAULT false,         -- out of tries: a person may replay it
    reason      text,                                       -- of the last failure
    received_at timestamptz NOT NULL DEFAULT now(),
    done_at     timestamptz,
    PRIMARY KEY (gateway, event_id),
    CONSTRAINT due_done_or_dead CHECK (num_nonnulls(due_at, done_at) + dead::int = 1)
);
CREATE INDEX webhooks_due ON gateway_webhook (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhooks_dead ON gateway_webhook (received_at) WHERE dead;
CREATE INDEX webhooks_by_age ON gateway_webhook (received_at);

-- The last reconciliation with each gateway.
-- owner: payments
CREATE TABLE reconciliation_run (
    gateway  text        PRIMARY KEY,
    since_at timestamptz NOT NULL,                        -- payments since then were compared
    began_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    seen     bigint      NOT NULL,                        -- our payments that the gateway has
    settled  bigint      NOT NULL                         -- differences that were resolved
);

-- Differences the last reconciliation could not resolve. Each stays until a later one finds it resolved.
-- owner: payments
CREATE TABLE payment_difference (
    gateway   text        NOT NULL,
    key       text        NOT NULL,                       -- our reference at the gateway
    kind      text        NOT NULL,
    reference text        NOT NULL,                       -- the gateway's own id; empty: it has none
    ours      text        NOT NULL,
    theirs    text        NOT NULL,
    found_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (gateway, key, kind)
);
