-- 0001_accounts.sql: accounts, their sessions and the keys that sign access tokens.

CREATE TYPE account_role AS ENUM ('fan', 'organiser', 'gate', 'admin');

-- owner: accounts
CREATE TABLE account (
    id            bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text         NOT NULL,                 -- of a guest: made up, see contact_email
    name          text         NOT NULL,
    password_hash text,                                  -- NULL: a guest, who cannot log in
    role          account_role NOT NULL DEFAULT 'fan',
    version       int          NOT NULL DEFAULT 1,       -- access tokens of an older version are rejected
    changed_at    timestamptz  NOT NULL DEFAULT now(),   -- when the version was raised
    created_at    timestamptz  NOT NULL DEFAULT now(),
    locale        text         NOT NULL DEFAULT 'en',    -- language of the e-mails to this account
    contact_email text,                                  -- where e-mail to a guest goes; not verified
    guest_of      bigint       REFERENCES account ON DELETE CASCADE,  -- the account this guest logged in to
    CONSTRAINT no_two_accounts_share_an_email UNIQUE (email),
    CONSTRAINT an_email_is_lower_case CHECK (email = lower(email)),
    CONSTRAINT an_email_is_short CHECK (char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT an_account_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT a_locale_is_a_short_name CHECK (locale ~ '^[a-z]{2,3}$'),
    CONSTRAINT a_contact_is_short CHECK (char_length(contact_email) BETWEEN 3 AND 254)
);
-- Versions raised in the last minutes: every web process reads them every few seconds.
CREATE INDEX raised_versions ON account (changed_at) WHERE version > 1;
CREATE INDEX guests_of_an_account ON account (guest_of) WHERE guest_of IS NOT NULL;

-- One login and all the refresh tokens that followed from it.
-- owner: accounts
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

-- A refresh token works once. Used ones stay: a used token that is presented again was stolen.
-- owner: accounts
CREATE TABLE refresh_token (
    hash       bytea       PRIMARY KEY,                  -- SHA-256; the token itself is not stored
    session_id bigint      NOT NULL REFERENCES session ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX refresh_tokens_of_a_session ON refresh_token (session_id);
CREATE INDEX expiring_refresh_tokens ON refresh_token (expires_at);

-- The session cookies of browsers. A cookie ends with its session.
-- owner: accounts
CREATE TABLE session_cookie (
    hash       bytea  PRIMARY KEY,                       -- SHA-256; the cookie itself is not stored
    session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE
);
CREATE INDEX cookies_of_a_session ON session_cookie (session_id);

-- Private keys (JWK). Every process signs with the newest key that is already valid and accepts all of them.
-- owner: accounts
CREATE TABLE signing_key (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    jwk        text        NOT NULL,
    signs_from timestamptz NOT NULL
);
