-- 0020_chargebacks.sql: disputes of payers, and the tickets that are suspended meanwhile.

CREATE TYPE chargeback_state AS ENUM (
    'open',        -- the gateway took the money back; it is decided later
    'won',         -- it came back to us
    'lost'         -- it did not: the organiser bears it
);

-- Chargebacks of payments, as the gateway reported them last.
-- owner: payments
CREATE TABLE chargeback (
    show_id      bigint           NOT NULL,
    number       bigint           NOT NULL,
    attempt      int              NOT NULL,
    reference    text             NOT NULL,               -- the gateway's
    state        chargeback_state NOT NULL,
    amount_minor bigint           NOT NULL,
    currency     text             NOT NULL,
    reason       text             NOT NULL,               -- the gateway's word: fraudulent, duplicate, …
    opened_at    timestamptz      NOT NULL DEFAULT now(),
    changed_at   timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, number, attempt, reference)
);
CREATE INDEX chargebacks_by_time ON chargeback (changed_at);

-- While its payment is disputed a ticket admits no visitor.
ALTER TABLE ticket ADD COLUMN suspended_at timestamptz;
