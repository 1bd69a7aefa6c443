-- 0028_api_keys.sql: keys with which machines act for an organisation.
-- works with: 0.1.0

-- A revoked key is deleted; the audit log has its history.
-- owner: organisations
CREATE TABLE api_key (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id bigint      NOT NULL REFERENCES organisation,
    name            text        NOT NULL,
    rights          text[]      NOT NULL,                 -- Right in Python; never `owner`
    created_by      bigint      NOT NULL REFERENCES account,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,                          -- NULL: it works until it is revoked
    last_used_at    timestamptz,                          -- to some minutes
    CONSTRAINT a_key_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT known_rights CHECK (rights <@ ARRAY['catalogue', 'prices', 'counter', 'refund', 'money',
                                                   'door', 'messages', 'settings'])
);
CREATE INDEX keys_of_an_organisation ON api_key (organisation_id, id);
CREATE INDEX keys_by_their_maker ON api_key (created_by);

-- owner: organisations
CREATE TABLE api_key_secret (
    hash          bytea       PRIMARY KEY,                -- SHA-256; the secret itself is not stored
    key_id        bigint      NOT NULL REFERENCES api_key ON DELETE CASCADE,
    prefix        text        NOT NULL,                   -- its first characters, to recognise it
    created_at    timestamptz NOT NULL DEFAULT now(),
    ends_at       timestamptz,                            -- after a rotation
    first_used_at timestamptz
);
CREATE INDEX secrets_of_a_key ON api_key_secret (key_id);
