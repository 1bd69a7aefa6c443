-- 0001_people.sql: accounts, the sessions they opened, and the keys that sign for them.
CREATE TYPE account_role AS ENUM ('fan', 'organiser', 'gate', 'admin');

CREATE TABLE account (
    id            bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text         NOT NULL,
    name          text         NOT NULL,
    password_hash text,                             -- null: a guest; nobody can log in
    role          account_role NOT NULL DEFAULT 'fan',
    version       int          NOT NULL DEFAULT 1,  -- tokens of an older version are refused
    changed_at    timestamptz  NOT NULL DEFAULT now(),  -- when the version was raised
    created_at    timestamptz  NOT NULL DEFAULT now(),
    CONSTRAINT no_two_accounts_share_an_email UNIQUE (email),
    CONSTRAINT an_email_has_one_spelling CHECK (email = lower(email)),
    CONSTRAINT an_email_is_short CHECK (char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT an_account_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120)
);
-- Raised versions of the last minutes; every web process reads them every few seconds.
CREATE INDEX raised_versions ON account (changed_at) WHERE version > 1;

-- One login and all the refresh tokens that followed from it.
CREATE TABLE session (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES account ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz,
    ended_by   text,
    CONSTRAINT an_end_has_a_reason CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CONSTRAINT the_reasons_to_end CHECK (ended_by IN ('logout', 'password', 'reuse', 'surplus'))
);
CREATE INDEX open_sessions_of_an_account ON session (account_id, id) WHERE ended_at IS NULL;
CREATE INDEX ended_sessions ON session (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX expiring_sessions ON session (expires_at);

-- A refresh token is used once. The used ones stay, because one that comes back was stolen.
CREATE TABLE refresh_token (
    hash       bytea       PRIMARY KEY,             -- SHA-256; the token itself is known to its holder alone
    session_id bigint      NOT NULL REFERENCES session ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX refresh_tokens_of_a_session ON refresh_token (session_id);
CREATE INDEX expiring_refresh_tokens ON refresh_token (expires_at);

-- Private keys (JWK). Every process signs with the youngest whose time has come and accepts all of them.
CREATE TABLE signing_key (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    jwk        text        NOT NULL,
    signs_from timestamptz NOT NULL
);
