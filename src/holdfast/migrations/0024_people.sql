-- 0024_people.sql: proved addresses, links that are sent by mail, sessions that their owner can list.
-- works with: 0.1.0

-- An address becomes an account's by a mailed link. Until then the sign-up is stored like a guest: with a
-- made-up e-mail and the address in contact_email, so that it neither takes nor blocks another account's.
ALTER TABLE account ADD COLUMN verified_at timestamptz;  -- when a mailed link proved the address
ALTER TABLE account ADD COLUMN contact_at  timestamptz NOT NULL DEFAULT '-infinity';  -- of contact_email
ALTER TABLE account ADD COLUMN banned_at   timestamptz;  -- signing in is refused since then
ALTER TABLE account ADD COLUMN erased_at   timestamptz;  -- when name and address were deleted

ALTER TABLE session ADD COLUMN device       text        NOT NULL DEFAULT '';  -- the client's User-Agent
ALTER TABLE session ADD COLUMN last_used_at timestamptz NOT NULL DEFAULT now();  -- to some minutes
ALTER TABLE session DROP CONSTRAINT the_reasons_to_end;
ALTER TABLE session ADD CONSTRAINT the_reasons_to_end CHECK (
    ended_by IN ('logout', 'password', 'reuse', 'surplus', 'revoked', 'reset', 'ban', 'erased', 'merged'));

-- Guests whose booking was opened in this session by the link in a mail.
-- owner: accounts
CREATE TABLE session_guest (
    session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE,
    account_id bigint NOT NULL REFERENCES account ON DELETE CASCADE,
    PRIMARY KEY (session_id, account_id)
);
CREATE INDEX sessions_that_show_a_guest ON session_guest (account_id);

-- Links that were sent by mail. Each proves one address for one purpose.
-- owner: accounts
CREATE TABLE mail_token (
    hash       bytea       PRIMARY KEY,                  -- SHA-256; the token itself is only in the mail
    purpose    text        NOT NULL,                     -- Purpose in Python
    account_id bigint      REFERENCES account ON DELETE CASCADE,  -- NULL: of no account yet
    email      text        NOT NULL,                     -- where it was sent: what it proves
    show_id    bigint,                                   -- of the ticket or booking that it opens
    number     bigint,                                   -- of the booking, or serial of the ticket
    edition    int,                                      -- of the ticket
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX mail_tokens_by_end ON mail_token (expires_at);
CREATE INDEX mail_tokens_of_an_account ON mail_token (account_id);
CREATE INDEX mail_tokens_of_an_address ON mail_token (email, purpose) WHERE used_at IS NULL;
