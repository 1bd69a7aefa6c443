-- 0026_refund_proposals.sql: refunds by staff above an amount wait for a second person.
-- works with: 0.1.0

-- Above which sum of refunds by staff per booking an organisation wants a second person; no row: never.
-- owner: refunds
CREATE TABLE refund_limit (
    organiser_id bigint NOT NULL,
    currency     text   NOT NULL,
    amount_minor bigint NOT NULL,
    PRIMARY KEY (organiser_id, currency),
    CONSTRAINT a_limit_is_an_amount CHECK (amount_minor >= 0)
);

-- A refund that waits for a second person. It changes nothing before that: neither seats nor money.
-- owner: refunds
CREATE TABLE refund_proposal (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    show_id      bigint      NOT NULL,
    number       bigint      NOT NULL,
    organiser_id bigint      NOT NULL,
    why          text        NOT NULL,                   -- of the refund that it becomes
    what         text        NOT NULL,
    seats        int[]       NOT NULL,
    amount_minor bigint      NOT NULL,                   -- that is approved, and no other
    currency     text        NOT NULL,
    note         text        NOT NULL,
    proposed_by  bigint      NOT NULL,
    proposed_at  timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    state        text        NOT NULL DEFAULT 'pending',
    decided_by   bigint,
    decided_at   timestamptz,
    decided_note text        NOT NULL DEFAULT '',
    CONSTRAINT one_proposal_per_reason UNIQUE (show_id, number, why),
    CONSTRAINT the_states_of_a_proposal CHECK (state IN ('pending', 'approved', 'rejected', 'withdrawn')),
    CONSTRAINT a_decision_has_a_time CHECK ((state = 'pending') = (decided_at IS NULL)),
    CONSTRAINT another_person_approves CHECK (state <> 'approved' OR decided_by <> proposed_by)
);
CREATE INDEX proposals_of_an_organiser ON refund_proposal (organiser_id, id);
CREATE INDEX pending_proposals ON refund_proposal (organiser_id, id) WHERE state = 'pending';
