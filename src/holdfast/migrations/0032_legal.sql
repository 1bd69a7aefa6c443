-- 0032_legal.sql: terms, privacy policy, imprint and refund policy with versions, and consent to them.
-- works with: 0.1.0

-- Versions are added and never changed: a person who agreed to one can read it for good.
-- owner: legal
CREATE TABLE legal_text (
    organisation_id bigint      NOT NULL,                 -- 0: the house
    kind            text        NOT NULL,
    version         int         NOT NULL,
    texts           jsonb       NOT NULL,                 -- language -> text; empty: withdrawn
    published_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organisation_id, kind, version),
    CONSTRAINT known_kinds CHECK (kind IN ('terms', 'privacy', 'imprint', 'refunds')),
    CONSTRAINT versions_count_from_one CHECK (version >= 1)
);

-- Who agreed to which version, and when. It names the account by its number: erasing a person leaves it.
-- owner: legal
CREATE TABLE consent (
    account_id      bigint      NOT NULL,
    organisation_id bigint      NOT NULL,                 -- 0: the house
    kind            text        NOT NULL,
    version         int         NOT NULL,
    show_id         bigint      NOT NULL DEFAULT 0,       -- of the booking; 0: at the sign-up
    number          bigint      NOT NULL DEFAULT 0,
    agreed_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, organisation_id, kind, version, show_id, number),
    FOREIGN KEY (organisation_id, kind, version) REFERENCES legal_text
);
