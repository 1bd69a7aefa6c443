-- 0012_web.sql: responses stored under an Idempotency-Key, so that a retried request has one effect.

CREATE SEQUENCE idempotent_response_attempt;

-- owner: web
CREATE TABLE idempotent_response (
    caller     text        NOT NULL,  -- "account 7", or "address 192.0.2.1" of a client without a session
    route      text        NOT NULL,
    key_hash   bytea       NOT NULL,  -- the key itself is not stored: it salts body_hash and encrypts answer
    body_hash  bytea       NOT NULL,
    -- Raised when another request takes over: only the latest attempt may store its answer.
    attempt    bigint      NOT NULL DEFAULT nextval('idempotent_response_attempt'),
    started_at timestamptz NOT NULL DEFAULT now(),
    answer     bytea,                 -- NULL: the attempt has not finished
    PRIMARY KEY (caller, route, key_hash)
);
CREATE INDEX idempotent_responses_by_age ON idempotent_response (started_at);
