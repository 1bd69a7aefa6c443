-- 0031_house.sql: the house: its name, currency and time zone, set up on pages at the first start.
-- works with: 0.1.0

-- At most one row; none: the house was never set up. Settings of the environment win where there are any.
-- owner: house
CREATE TABLE house (
    is_only    boolean     PRIMARY KEY DEFAULT true,
    name       text        NOT NULL,
    currency   text        NOT NULL,                      -- ISO 4217; what new shows are sold in
    timezone   text        NOT NULL,                      -- IANA
    gateway    text        NOT NULL,                      -- the one that was chosen; HOLDFAST_GATEWAY decides
    begun_at   timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT there_is_one_house CHECK (is_only),
    CONSTRAINT a_house_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT currencies_have_three_letters CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT known_gateways CHECK (gateway IN ('sandbox', 'stripe', 'razorpay', 'none'))
);

-- What administrators decide at the desk. At most one row; the settings of the environment apply as well.
-- owner: house
CREATE TABLE house_rule (
    is_only           boolean     PRIMARY KEY DEFAULT true,
    second_factor_for text        NOT NULL,               -- who needs one to work
    changed_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT there_is_one_set_of_rules CHECK (is_only),
    CONSTRAINT known_groups CHECK (second_factor_for IN ('none', 'admins', 'staff'))
);
