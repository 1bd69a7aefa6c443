-- accounts/functions.sql: what other folders read of an account.

DROP VIEW IF EXISTS account_profile CASCADE;

-- Never the password hash. `reached_at` is where e-mail goes: the address of a guest account is made up.
CREATE VIEW account_profile AS
SELECT id, email, name, role, locale, contact_email,
       coalesce(contact_email, CASE WHEN email NOT LIKE '%@guest.invalid' THEN email END) AS reached_at
  FROM account;
