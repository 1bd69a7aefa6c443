-- 0013_books.sql: the gateway's books held against ours, and what a webhook finds its payment by.

-- Webhooks about refunds, and some gateways' about payments, name the gateway's id and not our key.
CREATE INDEX payments_by_reference ON payment (reference) WHERE reference IS NOT NULL;
-- Read by time once a minute, written with every payment: the cheapest kind there is.
CREATE INDEX payments_by_time ON payment USING brin (asked_at);

-- How far the comparison is, one row a gateway.
CREATE TABLE books_compared (
    gateway  text        PRIMARY KEY,
    since_at timestamptz NOT NULL,                        -- payments since then were compared
    began_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    seen     bigint      NOT NULL,                        -- payments of ours the gateway has
    settled  bigint      NOT NULL                         -- differences that are none any more
);

-- What the latest comparison could not settle. Each stays until a later one finds nothing.
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
