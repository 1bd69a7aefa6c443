-- 0011_reports.sql: sales reports, invoices and credit notes.

-- Reports are a copy that a consumer of facts maintains; `holdfast figures rebuild` rebuilds it from the
-- bookings. A row records what happened to one thing, so that the same fact twice changes nothing; sums are
-- computed on request.

-- A seat that was sold. Its amounts are those of seats sold now: zero once it was refunded.
-- owner: reports
CREATE TABLE report_seat (
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
    returned_at timestamptz,                             -- refunded
    PRIMARY KEY (show_id, number, seat),
    CONSTRAINT lines_sum_to_the_price CHECK (base_minor + fee_minor + tax_minor = price_minor),
    CONSTRAINT a_returned_seat_is_worth_nothing CHECK (returned_at IS NULL OR price_minor = 0)
);

-- Which states a booking has been in, and since when. Blocks are not bookings here.
-- owner: reports
CREATE TABLE report_stage (
    show_id bigint        NOT NULL,
    number  bigint        NOT NULL,
    stage   booking_state NOT NULL,
    at      timestamptz   NOT NULL,                      -- the first time
    PRIMARY KEY (show_id, number, stage)
);

-- owner: reports
CREATE TABLE report_refund (
    show_id      bigint       NOT NULL,
    number       bigint       NOT NULL,
    attempt      int          NOT NULL,
    refund       int          NOT NULL,
    amount_minor bigint       NOT NULL,
    currency     text         NOT NULL,
    state        refund_state NOT NULL,
    fact_id      bigint       NOT NULL,                  -- the newest fact about it; older ones are ignored
    PRIMARY KEY (show_id, number, attempt, refund)
);

-- The seller as printed on invoices; without a row, the name of the organiser's account is printed.
-- owner: invoices
CREATE TABLE invoice_seller (
    organiser_id bigint PRIMARY KEY,
    name         text   NOT NULL,
    address      text   NOT NULL DEFAULT '',             -- several lines
    tax_number   text   NOT NULL DEFAULT '',
    CONSTRAINT a_seller_has_a_name CHECK (char_length(name) BETWEEN 1 AND 200)
);

-- Invoice numbers have no gaps per organiser. They come from this row, not from a sequence, because a
-- transaction that is rolled back must not leave a gap; the row stays locked until the commit.
-- owner: invoices
CREATE TABLE invoice_count (
    organiser_id bigint PRIMARY KEY,
    last_number  bigint NOT NULL DEFAULT 0
);

-- Invoices and credit notes as they were issued; rows are never changed.
-- owner: invoices
CREATE TABLE invoice (
    organiser_id   bigint      NOT NULL,
    serial         bigint      NOT NULL,                 -- 1, 2, … of the organiser
    show_id        bigint      NOT NULL,
    number         bigint      NOT NULL,                 -- of the booking
    attempt        int         NOT NULL,                 -- of the payment it is for
    refund_id      int         NOT NULL DEFAULT 0,       -- 0: an invoice; else the refund of a credit note
    credits        bigint,                               -- of a credit note: the serial of its invoice
    seats          int[]       NOT NULL,                 -- sold, or given back; empty: money alone
    amount_minor   bigint      NOT NULL,
    fee_minor      bigint      NOT NULL,
    tax_minor      bigint      NOT NULL,
    currency       text        NOT NULL,
    seller_name    text        NOT NULL,
    seller_address text        NOT NULL,
    seller_tax     text        NOT NULL,
    issued_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organiser_id, serial),
    CONSTRAINT one_document_per_payment_and_refund UNIQUE (show_id, number, attempt, refund_id),
    CONSTRAINT a_credit_note_names_its_invoice CHECK ((refund_id = 0) = (credits IS NULL)),
    CONSTRAINT lines_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                           AND fee_minor + tax_minor <= amount_minor)
);
