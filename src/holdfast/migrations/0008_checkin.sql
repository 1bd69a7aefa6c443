-- 0008_checkin.sql: passes of gate devices, and every scan they made.

-- Lets a device check tickets: for some shows, at one gate, for a day. Created and revoked by the organiser.
-- owner: checkin
CREATE TABLE gate_pass (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   bigint      NOT NULL,                    -- the account of role gate the device signs in as
    organiser_id bigint,                                  -- NULL: created by an admin
    gate         text        NOT NULL,
    name         text        NOT NULL,                    -- of the device or the person
    code_hash    bytea,                                   -- signs it in; NULL: a password does
    device_key   bytea,                                   -- X25519 of the first device; seals its packs
    starts_at    timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    revoked_at   timestamptz,
    made_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_pass_ends_after_it_starts CHECK (starts_at < ends_at),
    CONSTRAINT a_gate_has_a_name CHECK (char_length(gate) BETWEEN 1 AND 60)
);
CREATE INDEX passes_of_an_account ON gate_pass (account_id);
CREATE UNIQUE INDEX one_pass_per_code ON gate_pass (code_hash) WHERE code_hash IS NOT NULL;

-- owner: checkin
CREATE TABLE gate_pass_show (
    show_id bigint NOT NULL,
    pass_id bigint NOT NULL REFERENCES gate_pass,
    PRIMARY KEY (show_id, pass_id)
);
CREATE INDEX shows_of_a_pass ON gate_pass_show (pass_id);

-- Every scan; rows are appended and never changed.
-- owner: checkin
CREATE TABLE check_in (
    show_id    bigint      NOT NULL,                      -- of the pass, if the code is unknown
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    pass_id    bigint      NOT NULL,
    scan_id    text        NOT NULL,                      -- the device's: the same id is the same scan
    gate       text        NOT NULL,
    way        text        NOT NULL,
    verdict    text        NOT NULL,
    serial     bigint,                                    -- NULL: not one of our tickets
    edition    int,
    undoes     bigint,                                    -- id of the check-in that this row takes back
    by_hand    boolean     NOT NULL DEFAULT false,        -- found by name or reference, not scanned
    offline    boolean     NOT NULL DEFAULT false,        -- decided by the device, uploaded later
    scanned_at timestamptz NOT NULL,                      -- offline: by the device's clock
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (show_id, id),
    CONSTRAINT one_row_per_scan UNIQUE (show_id, pass_id, scan_id),
    CONSTRAINT known_ways CHECK (way IN ('entry', 'exit', 'undo')),
    CONSTRAINT known_verdicts CHECK (verdict IN
        ('admitted', 'left', 'undone', 'unknown', 'wrong_show', 'void', 'transferred', 'used', 'stale_code',
         'live_code_needed', 'not_inside'))
);
CREATE INDEX check_ins_of_a_ticket ON check_in (show_id, serial, id) WHERE serial IS NOT NULL;

-- Two admissions with one ticket, or one with an invalid ticket: found when a device that was offline
-- uploaded its scans. Both check-ins stay as they were.
-- owner: checkin
CREATE TABLE check_in_conflict (
    show_id   bigint      NOT NULL,
    id        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    serial    bigint      NOT NULL,
    why       text        NOT NULL,
    first_id  bigint,                                     -- by the devices' clocks; NULL: there is none
    second_id bigint      NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, id),
    CONSTRAINT one_conflict_per_check_in UNIQUE (show_id, second_id),
    CONSTRAINT reasons_of_a_conflict CHECK (why IN ('used', 'void', 'transferred', 'unknown'))
);

-- Searches for ticket holders by name at a gate; limits how many per minute.
-- owner: checkin
CREATE TABLE gate_search (
    pass_id bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pass_id, at)
);
