-- 0022_visits.sql: people who come by browser: a cookie for a session; guests, who buy without a password.

-- Where letters to a guest go. Its `email` is made up, because one address may have bought as a guest often
-- and have an account besides; nobody has shown that the address is theirs.
ALTER TABLE account ADD COLUMN contact_email text
    CONSTRAINT a_contact_is_short CHECK (char_length(contact_email) BETWEEN 3 AND 254);

-- A guest who then logged in: what it has held and bought is shown to that account.
ALTER TABLE account ADD COLUMN guest_of bigint REFERENCES account ON DELETE CASCADE;
CREATE INDEX guests_of_an_account ON account (guest_of) WHERE guest_of IS NOT NULL;

-- The cookie itself is known to the browser alone. It ends with its session.
CREATE TABLE session_cookie (
    hash       bytea  PRIMARY KEY,  -- SHA-256
    session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE
);
CREATE INDEX cookies_of_a_session ON session_cookie (session_id);
