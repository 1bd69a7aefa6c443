-- 0004_web.sql: answers kept under an Idempotency-Key, so that a retried request has one effect.
CREATE SEQUENCE kept_answer_attempt;

CREATE TABLE kept_answer (
    caller     text        NOT NULL,  -- "account 7", or "address 192.0.2.1" for somebody not signed in
    route      text        NOT NULL,
    key_hash   bytea       NOT NULL,  -- the key itself is not stored: it salts body_hash and seals answer
    body_hash  bytea       NOT NULL,
    attempt    bigint      NOT NULL DEFAULT nextval('kept_answer_attempt'),  -- who has it writes the answer
    started_at timestamptz NOT NULL DEFAULT now(),
    answer     bytea,                 -- NULL: the attempt has not finished
    PRIMARY KEY (caller, route, key_hash)
);

CREATE INDEX kept_answer_by_age ON kept_answer (started_at);
