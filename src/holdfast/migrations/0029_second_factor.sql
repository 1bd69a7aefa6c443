-- 0029_second_factor.sql: authenticator apps, passkeys, recovery codes, and sign-ins in two steps.
-- works with: 0.1.0

-- An authenticator app (RFC 6238).
-- owner: accounts
CREATE TABLE totp (
    account_id   bigint      PRIMARY KEY REFERENCES account ON DELETE CASCADE,
    secret       bytea       NOT NULL,              -- sealed, if the setting totp_key is set
    last_step    bigint      NOT NULL DEFAULT 0,    -- of the code that was used last: no code works twice
    created_at   timestamptz NOT NULL DEFAULT now(),
    confirmed_at timestamptz                        -- NULL: not in use until a first code was right
);

-- owner: accounts
CREATE TABLE passkey (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint      NOT NULL REFERENCES account ON DELETE CASCADE,
    credential_id bytea       NOT NULL,
    public_key    bytea       NOT NULL,             -- COSE
    sign_count    bigint      NOT NULL,             -- an authenticator that counts, counts up
    transports    text[]      NOT NULL,
    name          text        NOT NULL,             -- given by the owner
    created_at    timestamptz NOT NULL DEFAULT now(),
    last_used_at  timestamptz,
    CONSTRAINT one_account_per_passkey UNIQUE (credential_id)
);
CREATE INDEX passkeys_of_an_account ON passkey (account_id);

-- For an account whose app or passkey is lost. Each works once.
-- owner: accounts
CREATE TABLE recovery_code (
    account_id bigint      NOT NULL REFERENCES account ON DELETE CASCADE,
    hash       bytea       NOT NULL,                -- SHA-256 of 80 random bits
    used_at    timestamptz,
    PRIMARY KEY (account_id, hash)
);

-- Sign-ins whose second step is open, and challenges that a passkey is to sign. Each is used once.
-- owner: accounts
CREATE TABLE sign_in_step (
    hash       bytea       PRIMARY KEY,             -- SHA-256 of the token or challenge
    purpose    text        NOT NULL,                -- StepPurpose in Python
    account_id bigint      REFERENCES account ON DELETE CASCADE,  -- NULL: the passkey names it
    first      text        NOT NULL DEFAULT '',     -- how the first step was done
    tries      int         NOT NULL DEFAULT 0,      -- wrong codes
    expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_steps_by_end ON sign_in_step (expires_at);

ALTER TABLE session ADD COLUMN signed_in_by text NOT NULL DEFAULT '';  -- "password", "link+totp"; '': unknown
ALTER TABLE session DROP CONSTRAINT the_reasons_to_end;
ALTER TABLE session ADD CONSTRAINT the_reasons_to_end CHECK (
    ended_by IN ('logout', 'password', 'reuse', 'surplus', 'revoked', 'reset', 'ban', 'erased', 'merged',
                 'factor'));

ALTER TABLE organisation ADD COLUMN needs_second_factor boolean NOT NULL DEFAULT false;
