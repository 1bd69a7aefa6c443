-- 0017_organiser_webhooks.sql: where organisers want to be told facts of their own events, and what was told.

CREATE TYPE delivery_state AS ENUM (
    'queued',      -- to be sent when it is due
    'done',        -- the other side said 2xx
    'dead',        -- tried often enough; it may be replayed
    'missed'       -- its endpoint was switched off; it may be replayed
);

CREATE TABLE webhook_endpoint (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organiser_id  bigint      NOT NULL,                  -- hears of events of this account, and of no others
    url           text        NOT NULL,
    kinds         text[]      NOT NULL,                  -- of facts; empty: all there are
    active        boolean     NOT NULL DEFAULT true,
    off_reason    text,                                  -- why we switched it off; NULL: we did not
    secret        bytea       NOT NULL,                  -- signs; as it is, because we sign with it
    old_secret    bytea,                                 -- signs too, for a while after a change
    old_until     timestamptz,
    failing_since timestamptz,                           -- the first no after the last yes
    made_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_url_fits_a_line CHECK (char_length(url) BETWEEN 1 AND 2000),
    CONSTRAINT an_old_secret_has_an_end CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CONSTRAINT off_has_a_reason_only_when_off CHECK (off_reason IS NULL OR NOT active)
);
CREATE INDEX endpoints_of_an_organiser ON webhook_endpoint (organiser_id);

-- One fact for one endpoint. Written in the transaction that consumes the fact.
CREATE TABLE webhook_delivery (
    endpoint_id bigint         NOT NULL REFERENCES webhook_endpoint ON DELETE CASCADE,
    fact_id     bigint         NOT NULL,
    kind        text           NOT NULL,
    at          timestamptz    NOT NULL,                 -- when the fact became true
    payload     bytea          NOT NULL,                 -- as it is sent: what is signed are these bytes
    state       delivery_state NOT NULL,
    tries       int            NOT NULL DEFAULT 0,       -- since it was queued last
    turn        int            NOT NULL DEFAULT 0,       -- whose turn it is to send it: grows for ever
    due_at      timestamptz,
    written_at  timestamptz    NOT NULL DEFAULT now(),
    CONSTRAINT one_delivery_a_fact_and_endpoint PRIMARY KEY (endpoint_id, fact_id),
    CONSTRAINT queued_is_due CHECK ((state = 'queued') = (due_at IS NOT NULL))
);
CREATE INDEX deliveries_due ON webhook_delivery (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_by_age ON webhook_delivery (written_at);

-- Every try, for whoever wonders what became of it.
CREATE TABLE webhook_try (
    endpoint_id bigint      NOT NULL,
    fact_id     bigint      NOT NULL,
    turn        int         NOT NULL,
    status      int,                                     -- of HTTP; NULL: it did not come to an answer
    took_ms     int         NOT NULL,
    reason      text,                                    -- why that is no yes
    said        text        NOT NULL,                    -- the first letters of the answer
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (endpoint_id, fact_id, turn),
    CONSTRAINT a_try_is_of_a_delivery FOREIGN KEY (endpoint_id, fact_id) REFERENCES webhook_delivery
        ON DELETE CASCADE
);
