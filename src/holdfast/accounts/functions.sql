-- accounts/functions.sql: what other folders read of an account.

CREATE OR REPLACE VIEW account_with_second_factor AS
SELECT account_id FROM totp WHERE confirmed_at IS NOT NULL
 UNION
SELECT account_id FROM passkey;

-- Never the password hash. `reached_at` is where e-mail goes: the address of a guest account is made up.
-- `contact_at`: what was paid for earlier was paid for with another address. A guest who is an account's by
-- now has its proof, too.
CREATE OR REPLACE VIEW account_profile AS
SELECT id, email, name, role, locale, contact_email, contact_at,
       verified_at IS NOT NULL
       OR EXISTS (SELECT FROM account AS later
                   WHERE later.id = account.guest_of AND later.verified_at IS NOT NULL
                     AND later.email = account.contact_email) AS is_verified,
       banned_at IS NOT NULL OR erased_at IS NOT NULL AS is_shut,
       password_hash IS NULL AND email LIKE '%@guest.invalid' AS is_guest,
       coalesce(contact_email, CASE WHEN email NOT LIKE '%@guest.invalid' THEN email END) AS reached_at
  FROM account;

-- The accounts of one person: the account, and guests that it was before.
CREATE OR REPLACE FUNCTION accounts_of_person(p_account bigint) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT id FROM account WHERE id = p_account OR guest_of = p_account;
$$;

-- The guests that these accounts were before, by an index: for batches.
CREATE OR REPLACE FUNCTION guests_of_accounts(p_accounts bigint[])
RETURNS TABLE (account_id bigint, guest_id bigint) LANGUAGE sql STABLE AS $$
    SELECT guest_of, id FROM account WHERE guest_of = ANY (p_accounts);
$$;

-- Every address of these accounts.
CREATE OR REPLACE FUNCTION addresses_of(p_accounts bigint[]) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT email FROM account WHERE id = ANY (p_accounts)
     UNION
    SELECT contact_email FROM account WHERE id = ANY (p_accounts) AND contact_email IS NOT NULL;
$$;

-- Whether this database knows that they are erased: in a pod, that the change has arrived from home.
CREATE OR REPLACE FUNCTION are_erased(p_accounts bigint[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM account WHERE id = ANY (p_accounts) AND erased_at IS NULL);
$$;

-- Name, addresses, password, sessions and links of one person are deleted. The rows stay: bookings and the
-- journal refer to them. Returns the new version of each account, so that its access tokens are refused.
CREATE OR REPLACE FUNCTION erase_accounts(p_accounts bigint[], p_addresses text[])
RETURNS TABLE (account_id bigint, new_version int) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mail_token WHERE mail_token.account_id = ANY (p_accounts) OR email = ANY (p_addresses);
    DELETE FROM totp WHERE totp.account_id = ANY (p_accounts);
    DELETE FROM passkey WHERE passkey.account_id = ANY (p_accounts);
    DELETE FROM recovery_code WHERE recovery_code.account_id = ANY (p_accounts);
    DELETE FROM sign_in_step WHERE sign_in_step.account_id = ANY (p_accounts);
    UPDATE session SET ended_at = now(), ended_by = 'erased', device = ''
     WHERE session.account_id = ANY (p_accounts) AND ended_at IS NULL;
    RETURN QUERY
    UPDATE account
       SET email = 'erased-' || id || '@guest.invalid', name = 'Erased', password_hash = NULL,
           contact_email = NULL, verified_at = NULL, locale = 'en', guest_of = NULL, erased_at = now(),
           version = version + 1, changed_at = now()
     WHERE id = ANY (p_accounts)
    RETURNING id, version;
END $$;
