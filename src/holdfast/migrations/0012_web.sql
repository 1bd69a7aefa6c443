-- 0012_web.sql: responses stored under an Idempotency-Key, so that a retried request has one effect.

CREATE SEQUENCE kept_answer_attempt;

-- owner: web
CREATE TABLE kept_answer (
    caller     text        NOT NULL,  -- "account 7", or "address 192.0.2.1" of a client without a session
    route      text        NOT NULL,
    key_hash   bytea       NOT NULL,  -- the key itself is not stored: it salts body_hash and encrypts answer
    body_hash  bytea       NOT NULL,
    attempt    bigint      NOT NULL DEFAULT nextval('kept_answer_attempt'),  -- only this attempt may answer
    started_at timestamptz NOT NULL DEFAULT now(),
    answer     bytea,                 -- NULL: the attempt has not finished
    PRIMARY KEY (caller, route, key_hash)
);
CREATE INDEX kept_answer_by_age ON kept_answer (started_at);
