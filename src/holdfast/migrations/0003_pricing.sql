-- 0003_pricing.sql: prices, the terms of every revision of a show, and rules that change prices.
--
-- A price is all-in: the first price a buyer sees is what they pay. Base, fee and tax follow from it and from
-- the terms; they are computed in Python and stored nowhere, so they cannot contradict each other.

-- owner: organisers
CREATE TABLE price (
    show_id     bigint NOT NULL REFERENCES show,
    category    text   NOT NULL,
    price_minor bigint NOT NULL,
    PRIMARY KEY (show_id, category),
    CONSTRAINT a_price_is_not_negative CHECK (price_minor BETWEEN 0 AND 1000000000)
);

-- One row per revision of a show, inserted in the transaction that makes the revision and never changed: a
-- booking keeps the terms under which its seats were held.
-- owner: organisers
CREATE TABLE show_terms (
    show_id        bigint NOT NULL REFERENCES show,
    revision       bigint NOT NULL,
    fee_minor      bigint NOT NULL,                      -- service fee per seat: a fixed part
    fee_bp         int    NOT NULL,                      -- and a share of the base price, in 1/10 000
    tax_bp         int    NOT NULL,                      -- tax on base and fee, in 1/10 000; in the price
    refund_policy  jsonb  NOT NULL,
    card_seats_max int,                                  -- seats one payment card may buy; NULL: no limit
    PRIMARY KEY (show_id, revision),
    CONSTRAINT a_fee_is_not_negative CHECK (fee_minor BETWEEN 0 AND 1000000000),
    CONSTRAINT a_fee_is_at_most_its_base CHECK (fee_bp BETWEEN 0 AND 10000),
    CONSTRAINT a_tax_is_at_most_what_it_taxes CHECK (tax_bp BETWEEN 0 AND 10000),
    CONSTRAINT a_card_may_buy_a_seat CHECK (card_seats_max BETWEEN 1 AND 1000),
    CONSTRAINT a_policy_has_steps CHECK (jsonb_typeof(refund_policy -> 'steps') = 'array')
);

-- The current price rules of a show. Rules never price a hold: a job evaluates them and changes `price`,
-- revision, terms and audit rows in one transaction, so that all buyers see the same price.
-- owner: organisers
CREATE TABLE price_plan (
    show_id bigint      PRIMARY KEY REFERENCES show,
    rules   jsonb       NOT NULL,
    coming  jsonb       NOT NULL DEFAULT '{}',           -- the announced next change by time, per category
    due_at  timestamptz NOT NULL,                        -- when to evaluate the rules again
    CONSTRAINT a_plan_has_rules CHECK (jsonb_typeof(rules -> 'rules') = 'array')
);
CREATE INDEX price_plans_due ON price_plan (due_at);

-- Every version of a show's price rules and who set it. Rules of NULL: they were removed.
-- owner: organisers
CREATE TABLE price_rules_history (
    show_id  bigint      NOT NULL REFERENCES show,
    id       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    rules    jsonb,
    actor_id bigint      NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, id)
);

-- Every change of a price; rows are never changed.
-- owner: organisers
CREATE TABLE price_change (
    show_id     bigint      NOT NULL REFERENCES show,
    revision    bigint      NOT NULL,                    -- the first revision with this price
    category    text        NOT NULL,
    was_minor   bigint,                                  -- NULL: the category is new
    price_minor bigint      NOT NULL,
    why         text        NOT NULL,
    sold        int,                                     -- seats of the category sold at that time
    seats       int,                                     -- of this many for sale
    actor_id    bigint,                                  -- NULL: the rules did it
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, revision, category),
    CONSTRAINT a_change_has_a_known_reason CHECK (why IN ('organiser', 'rules', 'step')),
    CONSTRAINT a_price_is_not_negative CHECK (price_minor BETWEEN 0 AND 1000000000)
);
