-- 0007_tickets.sql: tickets, the keys that sign them and their transfers.
--
-- One row decides: admission, refund and transfer lock the ticket's row first, so a ticket is used or given
-- back, never both. show_id is in every key here too.

-- One per seat of a confirmed booking, inserted in the transaction that confirmed it.
-- owner: tickets
CREATE TABLE ticket (
    show_id     bigint      NOT NULL,
    number      bigint      NOT NULL,
    seat        int         NOT NULL,
    serial      bigint      NOT NULL DEFAULT nextval('ledger_number'),
    issued_at   timestamptz NOT NULL DEFAULT now(),
    voided_at   timestamptz,                              -- refunded
    used_at     timestamptz,                              -- admitted: cannot be refunded after that
    edition     int         NOT NULL DEFAULT 1,           -- raised with every transfer
    owner_id    bigint,                                   -- NULL: see owner_email, else the booking's owner
    owner_email text,                                     -- transferred to an address without an account
    phone       bytea,                                    -- hash of the name the phone goes by
    binding     int         NOT NULL DEFAULT 0,           -- changes with the phone: live codes carry it
    is_inside   boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (show_id, number, seat),
    CONSTRAINT voided_tickets_are_unused CHECK (voided_at IS NULL OR used_at IS NULL),
    CONSTRAINT a_ticket_has_one_owner CHECK (owner_id IS NULL OR owner_email IS NULL)
);
CREATE UNIQUE INDEX one_ticket_per_serial ON ticket (show_id, serial);
CREATE INDEX tickets_given_to ON ticket (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX tickets_waiting_for ON ticket (owner_email) WHERE owner_email IS NOT NULL;

-- Keys that sign tickets. They are never deleted: a ticket bought a year ahead must stay valid.
-- owner: tickets
CREATE TABLE ticket_key (
    id         smallint    PRIMARY KEY,                   -- a byte of every code
    private    bytea       NOT NULL,                      -- Ed25519
    secret     bytea       NOT NULL,                      -- live codes are derived from it
    signs_from timestamptz NOT NULL,
    CONSTRAINT a_key_id_is_a_byte CHECK (id BETWEEN 1 AND 255)
);

-- How a show's tickets are checked; no row: the defaults.
-- owner: tickets
CREATE TABLE entry_policy (
    show_id bigint  PRIMARY KEY,
    codes   text    NOT NULL DEFAULT 'fixed',
    reentry boolean NOT NULL DEFAULT true,                -- a visitor who was scanned out may enter again
    CONSTRAINT codes_are_fixed_or_live CHECK (codes IN ('fixed', 'live', 'live_or_paper'))
);

-- Every transfer of a ticket.
-- owner: tickets
CREATE TABLE ticket_transfer (
    show_id    bigint      NOT NULL,
    serial     bigint      NOT NULL,
    edition    int         NOT NULL,                      -- the edition this transfer began
    from_id    bigint      NOT NULL,
    to_id      bigint,                                    -- NULL: no account with this address
    email      text        NOT NULL,
    taken_back boolean     NOT NULL DEFAULT false,        -- back to the sender before it was accepted
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, serial, edition)
);

-- When the tickets of a booking were sent again; limits how often.
-- owner: tickets
CREATE TABLE ticket_resend (
    show_id bigint      NOT NULL,
    number  bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (show_id, number, at)
);
