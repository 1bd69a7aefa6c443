-- 0014_restores.sql: a ledger that went back in time is noticed, and ticket keys can be revoked.

-- One row: which ledger this is, and a number that only grows. Processes store the number outside of the
-- ledger, too (backup/mark.py); a ledger whose number is smaller than theirs went back in time.
-- owner: backup
CREATE TABLE ledger_mark (
    is_only     boolean     PRIMARY KEY DEFAULT true,
    ledger_id   uuid        NOT NULL DEFAULT gen_random_uuid(),
    beat        bigint      NOT NULL DEFAULT 0,           -- milliseconds since 1970, or more
    restored_at timestamptz,                              -- the last time a restore was completed
    CONSTRAINT a_ledger_has_one_mark CHECK (is_only)
);
INSERT INTO ledger_mark DEFAULT VALUES;

-- Ticket keys whose codes and links are refused: at one show, or (show_id 0) at every show.
-- owner: tickets
CREATE TABLE revoked_ticket_key (
    show_id    bigint      NOT NULL,
    key_id     smallint    NOT NULL REFERENCES ticket_key,
    revoked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, key_id)
);

-- Two more verdicts. NOT VALID first: adding it does not scan the table under an exclusive lock.
ALTER TABLE check_in DROP CONSTRAINT known_verdicts;
ALTER TABLE check_in ADD CONSTRAINT known_verdicts CHECK (verdict IN
    ('admitted', 'left', 'undone', 'unknown', 'wrong_show', 'void', 'transferred', 'used', 'stale_code',
     'live_code_needed', 'not_inside', 'lost_in_restore', 'revoked_code')) NOT VALID;
ALTER TABLE check_in VALIDATE CONSTRAINT known_verdicts;
