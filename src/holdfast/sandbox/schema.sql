-- The sandbox's database. Times are seconds since 1970.

CREATE TABLE IF NOT EXISTS payment (
    seq            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    reference      TEXT NOT NULL,
    amount_minor   INTEGER NOT NULL CHECK (amount_minor > 0),
    currency       TEXT NOT NULL,
    state          TEXT NOT NULL,
    method         TEXT NOT NULL,
    card           TEXT,
    code           TEXT,
    reason         TEXT,
    description    TEXT NOT NULL,
    return_url     TEXT NOT NULL,
    page           TEXT NOT NULL,
    refunded_minor INTEGER NOT NULL CHECK (refunded_minor BETWEEN 0 AND amount_minor),
    is_firm        INTEGER NOT NULL,
    webhooks        TEXT NOT NULL,
    due_at         REAL,
    created_at     REAL NOT NULL,
    metadata       TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS payment_by_reference ON payment (reference);
CREATE INDEX IF NOT EXISTS payment_by_time ON payment (created_at);
CREATE INDEX IF NOT EXISTS payment_by_page ON payment (page) WHERE page != '';
CREATE INDEX IF NOT EXISTS payment_due ON payment (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS refund (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    payment_id   TEXT NOT NULL REFERENCES payment (id),
    amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
    state        TEXT NOT NULL,
    reason       TEXT,
    created_at   REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS refund_by_payment ON refund (payment_id);

CREATE TABLE IF NOT EXISTS dispute (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    payment_id   TEXT NOT NULL UNIQUE REFERENCES payment (id),
    amount_minor INTEGER NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT NOT NULL,
    created_at   REAL NOT NULL
);

CREATE TABLE IF NOT EXISTS webhook (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL,
    kind         TEXT NOT NULL,
    payment_id   TEXT NOT NULL,
    body         BLOB NOT NULL,
    created_at   REAL NOT NULL,
    due_at       REAL,
    copies       INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    delivered_at REAL
);
CREATE INDEX IF NOT EXISTS webhook_due ON webhook (due_at) WHERE due_at IS NOT NULL;

-- Answers by idempotency key. Without a status: begun, and we ended before it was answered.
CREATE TABLE IF NOT EXISTS answer (
    seq        INTEGER PRIMARY KEY,
    key        TEXT NOT NULL UNIQUE,
    print      BLOB NOT NULL,
    made       TEXT,
    status     INTEGER,
    body       BLOB,
    created_at REAL NOT NULL
);

CREATE TABLE IF NOT EXISTS note (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;
