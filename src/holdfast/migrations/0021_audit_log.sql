-- 0021_audit_log.sql: what staff changed, in chains of hashes (decision 0025).
-- works with: 0.1.0

-- The end of each chain. Its row is locked from an entry to the commit, so that numbers have no gaps.
-- owner: audit_log
CREATE TABLE audit_chain (
    chain  bigint      PRIMARY KEY,                      -- an organisation; 0: the house
    number bigint      NOT NULL DEFAULT 0,               -- of the last entry
    hash   bytea       NOT NULL DEFAULT '',              -- of the last entry
    at     timestamptz NOT NULL DEFAULT '-infinity'
);

-- Entries are never changed or deleted. The personal part can be erased: the hash covers only its digest,
-- and the digest is salted, so that what was erased cannot be guessed from it.
-- owner: audit_log
CREATE TABLE audit_entry (
    chain        bigint      NOT NULL,
    number       bigint      NOT NULL,                   -- 1, 2, 3, … within the chain
    at           timestamptz NOT NULL,
    action       text        NOT NULL,                   -- "show.changed"
    subject_kind text        NOT NULL,                   -- "show"
    subject_id   text        NOT NULL,
    subject_name text        NOT NULL,                   -- for readers; never a person's
    actor_id     bigint,                                 -- NULL: not signed in, as on the command line
    person_id    bigint,                                 -- the account that the personal part is about
    via          text        NOT NULL,                   -- api, page, command
    before       jsonb       NOT NULL,                   -- of the fields that changed
    after        jsonb       NOT NULL,
    personal     jsonb,                                  -- address, browser, names; NULL: erased
    salt         bytea,
    digest       bytea       NOT NULL,                   -- SHA-256 of the salt and the personal part
    hash         bytea       NOT NULL,                   -- SHA-256 of the hash before it and all of the above
    PRIMARY KEY (chain, number),
    CONSTRAINT a_salt_is_erased_with_what_it_salts CHECK ((personal IS NULL) = (salt IS NULL))
);
CREATE INDEX audit_entries_by_time ON audit_entry (chain, at, number);
CREATE INDEX audit_entries_of_an_actor ON audit_entry (chain, actor_id, number);
CREATE INDEX audit_entries_of_a_subject ON audit_entry (chain, subject_kind, subject_id, number);
CREATE INDEX audit_entries_of_an_action ON audit_entry (chain, action, number);
-- For erasing: by age, by the person who acted, and by the person it is about.
CREATE INDEX audit_entries_to_erase ON audit_entry (at) WHERE personal IS NOT NULL;
CREATE INDEX audit_entries_by_a_person ON audit_entry (actor_id) WHERE personal IS NOT NULL;
CREATE INDEX audit_entries_about_a_person ON audit_entry (person_id)
    WHERE personal IS NOT NULL AND person_id IS NOT NULL;
