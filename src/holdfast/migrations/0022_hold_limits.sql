-- 0022_hold_limits.sql: limits of guests, of address ranges, and of holds that end unpaid.
-- works with: 0.1.0

ALTER TABLE owner_count
    ADD COLUMN holds        int NOT NULL DEFAULT 0,      -- unpaid, of owners who count for a party
    ADD COLUMN lapses       int NOT NULL DEFAULT 0,      -- holds that ended unpaid in an hour
    ADD COLUMN lapses_since timestamptz,                 -- the first of them
    ADD COLUMN lapsed_at    timestamptz,                 -- the last of them
    ADD COLUMN guest_seats  int NOT NULL DEFAULT 0,      -- of guests who have signed in to this account
    ADD COLUMN counts_for   bigint;                      -- of such a guest: the account

-- Seats that guests and unverified accounts of an address range have without a payment: enforces the limit
-- even when Redis has lost its data. The party is in the claim id of their bookings, behind the @.
-- owner: bookings
CREATE TABLE party_count (
    show_id      bigint NOT NULL,
    party        text   NOT NULL,                        -- hash of the range
    seats        int    NOT NULL,
    lapses       int    NOT NULL DEFAULT 0,              -- as in owner_count
    lapses_since timestamptz,
    lapsed_at    timestamptz,
    PRIMARY KEY (show_id, party),
    CONSTRAINT no_party_has_negative_seats CHECK (seats >= 0)
);

-- Arguments of open_holds: what the settings allow; the largest int: unlimited.
CREATE TYPE hold_limits AS (
    range_seats_max  int,
    guest_holds_max  int,
    lapses_max       int,
    range_lapses_max int,
    cooldown_s       int
);
