-- 0030_oidc.sql: sign-in with OpenID Connect providers.
-- works with: 0.1.0

-- Issuer and subject are the identity; the address is for its owner to recognise it.
-- owner: oidc
CREATE TABLE oidc_identity (
    issuer       text        NOT NULL,
    subject      text        NOT NULL,
    account_id   bigint      NOT NULL REFERENCES account ON DELETE CASCADE,
    email        text        NOT NULL,                    -- as the provider had it; may be empty
    linked_at    timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_of_an_account ON oidc_identity (account_id);
