-- 0009_notifications.sql: messages to people, and webhooks to organisers, from the fact to the delivery.

CREATE TYPE notice_state AS ENUM (
    'queued',      -- to be sent when it is due
    'sent',        -- accepted by the mail server or the provider
    'stored',      -- no mail server here: the message is stored for the demo's mail page
    'unsent',      -- no sender for its channel, and not stored
    'obsolete',    -- no longer true when it was due
    'dead'         -- refused, or out of tries: a person must look
);

-- owner: notifications
CREATE TABLE notice (
    id         bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fact_id    bigint,                                   -- NULL: a job wrote it, not a fact
    kind       text         NOT NULL,                    -- Kind in Python
    channel    text         NOT NULL,                    -- mail, sms, push
    account_id bigint,                                   -- NULL: no account with this address
    address    text         NOT NULL,
    name       text         NOT NULL,
    locale     text         NOT NULL,
    show_id    bigint       NOT NULL,
    number     bigint,                                   -- of the booking
    body       jsonb        NOT NULL DEFAULT '{}',       -- what cannot be read when the message is composed
    state      notice_state NOT NULL DEFAULT 'queued',
    round      int          NOT NULL DEFAULT 1,          -- raised when a person sends it again
    tries      int          NOT NULL DEFAULT 0,          -- in this round
    turn       int          NOT NULL DEFAULT 0,          -- fence of the lease: grows with every taker
    due_at     timestamptz  DEFAULT now(),               -- when a worker takes it; NULL: it has ended
    reason     text,                                     -- of the last failure
    written_at timestamptz  NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    CONSTRAINT one_notice_per_fact_and_person UNIQUE (fact_id, kind, channel, address),
    CONSTRAINT queued_is_due CHECK ((state = 'queued') = (due_at IS NOT NULL)),
    CONSTRAINT queued_or_ended CHECK ((state = 'queued') = (ended_at IS NULL)),
    CONSTRAINT channels_to_people CHECK (channel IN ('mail', 'sms', 'push'))
);
-- One warning before a hold expires, however often the job runs.
CREATE UNIQUE INDEX one_warning_per_booking ON notice (show_id, number, channel) WHERE kind = 'hold_lapsing';
CREATE INDEX notices_due ON notice (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notices_dead ON notice (id) WHERE state = 'dead';
CREATE INDEX notices_by_end ON notice (ended_at) WHERE ended_at IS NOT NULL;

-- Complete messages where no mail server is set up. They contain ticket codes and are deleted soon.
-- owner: notifications
CREATE TABLE stored_message (
    notice_id bigint      PRIMARY KEY REFERENCES notice ON DELETE CASCADE,
    subject   text        NOT NULL,
    message   bytea       NOT NULL,                      -- as it would have gone to the mail server
    stored_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX stored_messages_by_age ON stored_message (stored_at);

-- The sender name of an organiser's messages, and where replies go.
-- owner: notifications
CREATE TABLE organiser_sender (
    organiser_id bigint PRIMARY KEY,
    from_name    text   NOT NULL,
    reply_to     text   NOT NULL DEFAULT '',             -- empty: to us
    CONSTRAINT a_sender_has_a_short_name CHECK (char_length(from_name) BETWEEN 1 AND 80)
);

CREATE TYPE delivery_state AS ENUM (
    'queued',      -- to be sent when it is due
    'done',        -- the endpoint answered 2xx
    'dead',        -- out of tries; it may be replayed
    'missed'       -- its endpoint was switched off; it may be replayed
);

-- owner: webhooks_out
CREATE TABLE webhook_endpoint (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organiser_id  bigint      NOT NULL,                  -- receives facts of this organiser's events only
    url           text        NOT NULL,
    kinds         text[]      NOT NULL,                  -- of facts; empty: all
    active        boolean     NOT NULL DEFAULT true,
    off_reason    text,                                  -- why we switched it off; NULL: we did not
    secret        bytea       NOT NULL,                  -- in clear text, because we sign with it
    old_secret    bytea,                                 -- signs as well, for a while after a change
    old_until     timestamptz,
    failing_since timestamptz,                           -- the first failure after the last success
    made_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_url_fits_a_line CHECK (char_length(url) BETWEEN 1 AND 2000),
    CONSTRAINT an_old_secret_has_an_end CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CONSTRAINT off_has_a_reason_only_when_off CHECK (off_reason IS NULL OR NOT active)
);
CREATE INDEX endpoints_of_an_organiser ON webhook_endpoint (organiser_id);

-- One fact for one endpoint, inserted in the transaction that consumes the fact.
-- owner: webhooks_out
CREATE TABLE webhook_delivery (
    endpoint_id bigint         NOT NULL REFERENCES webhook_endpoint ON DELETE CASCADE,
    fact_id     bigint         NOT NULL,
    kind        text           NOT NULL,
    at          timestamptz    NOT NULL,                 -- when the fact became true
    payload     bytea          NOT NULL,                 -- exactly the bytes that are signed and sent
    state       delivery_state NOT NULL,
    tries       int            NOT NULL DEFAULT 0,       -- since it was queued last
    turn        int            NOT NULL DEFAULT 0,       -- fence of the lease: grows with every taker
    due_at      timestamptz,
    written_at  timestamptz    NOT NULL DEFAULT now(),
    CONSTRAINT one_delivery_per_fact_and_endpoint PRIMARY KEY (endpoint_id, fact_id),
    CONSTRAINT queued_is_due CHECK ((state = 'queued') = (due_at IS NOT NULL))
);
CREATE INDEX deliveries_due ON webhook_delivery (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_by_age ON webhook_delivery (written_at);

-- Every try, so that an organiser can see what happened.
-- owner: webhooks_out
CREATE TABLE webhook_try (
    endpoint_id bigint      NOT NULL,
    fact_id     bigint      NOT NULL,
    turn        int         NOT NULL,
    status      int,                                     -- of HTTP; NULL: no response
    took_ms     int         NOT NULL,
    reason      text,                                    -- why it counts as a failure
    response    text        NOT NULL,                    -- the beginning of its body
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (endpoint_id, fact_id, turn),
    CONSTRAINT a_try_is_of_a_delivery FOREIGN KEY (endpoint_id, fact_id) REFERENCES webhook_delivery
        ON DELETE CASCADE
);
