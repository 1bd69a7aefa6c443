-- oidc/functions.sql: what other folders read and erase of identities.

CREATE OR REPLACE VIEW sign_in_service AS
SELECT account_id, issuer, subject, email, linked_at, last_used_at FROM oidc_identity;

CREATE OR REPLACE FUNCTION erase_identities(p_accounts bigint[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM oidc_identity WHERE account_id = ANY (p_accounts);
$$;
