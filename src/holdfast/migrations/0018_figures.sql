-- 0018_figures.sql: what organisers want to know of their sales, kept by a consumer of facts.
--
-- A copy: `holdfast figures rebuild` writes it anew from the ledger. A row says what happened to one thing,
-- so that the same fact twice changes nothing; sums are made when somebody asks.

-- A seat that was sold. Its money is that of seats sold now: nothing once it was given back.
CREATE TABLE figure_seat (
    show_id     bigint      NOT NULL,
    number      bigint      NOT NULL,                    -- of the booking
    seat        int         NOT NULL,
    category    text        NOT NULL,
    currency    text        NOT NULL,
    price_minor bigint      NOT NULL,
    base_minor  bigint      NOT NULL,
    fee_minor   bigint      NOT NULL,
    tax_minor   bigint      NOT NULL,
    sold_at     timestamptz NOT NULL,
    returned_at timestamptz,                             -- given back
    PRIMARY KEY (show_id, number, seat),
    CONSTRAINT lines_sum_to_the_price CHECK (base_minor + fee_minor + tax_minor = price_minor),
    CONSTRAINT what_was_given_back_is_worth_nothing CHECK (returned_at IS NULL OR price_minor = 0)
);

-- Which states a booking has been in, and since when; blocks are nobody's bookings.
CREATE TABLE figure_stage (
    show_id bigint        NOT NULL,
    number  bigint        NOT NULL,
    stage   booking_state NOT NULL,
    at      timestamptz   NOT NULL,                      -- the first time
    PRIMARY KEY (show_id, number, stage)
);

CREATE TABLE figure_refund (
    show_id      bigint       NOT NULL,
    number       bigint       NOT NULL,
    attempt      int          NOT NULL,
    refund       int          NOT NULL,
    amount_minor bigint       NOT NULL,
    currency     text         NOT NULL,
    state        refund_state NOT NULL,
    fact_id      bigint       NOT NULL,                  -- that said so; an older one says nothing any more
    PRIMARY KEY (show_id, number, attempt, refund)
);
