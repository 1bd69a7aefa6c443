-- 0025_organisations.sql: organisations, their members, and invitations to them.
-- works with: 0.1.0

-- Events, venues, webhooks, invoices and passes belong to one: their `organiser_id` is its id.
-- owner: organisations
CREATE TABLE organisation (
    id         bigint      PRIMARY KEY,                   -- drawn from the sequence of account ids
    name       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT an_organisation_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120)
);

-- owner: organisations
CREATE TABLE membership (
    organisation_id bigint      NOT NULL REFERENCES organisation,
    account_id      bigint      NOT NULL REFERENCES account,
    rights          text[]      NOT NULL,                 -- Right in Python; `owner` includes all others
    joined_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organisation_id, account_id),
    CONSTRAINT known_rights CHECK (rights <@ ARRAY['catalogue', 'prices', 'counter', 'refund', 'money',
                                                   'door', 'messages', 'settings', 'owner'])
);
CREATE INDEX memberships_of_an_account ON membership (account_id);

-- owner: organisations
CREATE TABLE invitation (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id bigint      NOT NULL REFERENCES organisation,
    email           text        NOT NULL,
    rights          text[]      NOT NULL,
    token_hash      bytea,                                -- SHA-256 of the mailed token; NULL: no mail yet
    invited_by      bigint      NOT NULL,                 -- account
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    ended_as        text,
    accepted_by     bigint,                               -- account
    CONSTRAINT one_invitation_per_token UNIQUE (token_hash),
    CONSTRAINT an_end_has_a_reason CHECK ((ended_at IS NULL) = (ended_as IS NULL)),
    CONSTRAINT the_reasons_to_end CHECK (ended_as IN ('accepted', 'declined', 'withdrawn', 'replaced'))
);
CREATE UNIQUE INDEX one_open_invitation_per_address ON invitation (organisation_id, email)
 WHERE ended_at IS NULL;
CREATE INDEX invitations_to_an_address ON invitation (email, created_at);
CREATE INDEX invitations_by_age ON invitation (created_at);

-- Until now an account was the organiser. Every account that is one, or owns something, gets an organisation
-- with its own id, so that every `organiser_id` keeps its meaning for this release and for the one before.
WITH owner (id) AS (
    SELECT id FROM account WHERE role = 'organiser'
     UNION SELECT organiser_id FROM event
     UNION SELECT organiser_id FROM venue WHERE organiser_id IS NOT NULL
     UNION SELECT organiser_id FROM layout_organiser
     UNION SELECT organiser_id FROM gate_pass WHERE organiser_id IS NOT NULL
     UNION SELECT organiser_id FROM webhook_endpoint
     UNION SELECT organiser_id FROM organiser_sender
     UNION SELECT organiser_id FROM invoice_seller
     UNION SELECT organiser_id FROM invoice_count
)
INSERT INTO organisation (id, name, created_at)
SELECT account.id, account.name, account.created_at FROM owner JOIN account USING (id);

INSERT INTO membership (organisation_id, account_id, rights, joined_at)
SELECT id, id, '{owner}', created_at FROM organisation;

-- A pass that an administrator made for a person belongs to the organisation of its shows from now on.
UPDATE gate_pass
   SET organiser_id = (SELECT event.organiser_id
                         FROM gate_pass_show
                         JOIN show ON show.id = gate_pass_show.show_id
                         JOIN event ON event.id = show.event_id
                        WHERE gate_pass_show.pass_id = gate_pass.id
                     ORDER BY show.id
                        LIMIT 1)
 WHERE organiser_id IS NULL AND code_hash IS NULL;

-- People with a pass work at the door of the organisation that gave it to them.
INSERT INTO membership (organisation_id, account_id, rights)
SELECT DISTINCT organisation.id, account.id, '{door}'::text[]
  FROM gate_pass
  JOIN organisation ON organisation.id = gate_pass.organiser_id
  JOIN account ON account.id = gate_pass.account_id
 WHERE gate_pass.code_hash IS NULL AND gate_pass.revoked_at IS NULL
ON CONFLICT DO NOTHING;
