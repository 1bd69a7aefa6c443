-- organisations/functions.sql: what other folders read, and organisers that the release before makes.
-- needs: accounts

CREATE OR REPLACE VIEW organisation_profile AS
SELECT id, name FROM organisation;

CREATE OR REPLACE VIEW organisation_member AS
SELECT organisation_id, account_id, rights FROM membership;

-- The account's own organisation, which has the account's id; nothing happens if there is one. An account
-- that has left it is not made its owner again.
CREATE OR REPLACE FUNCTION make_own_organisation(p_account bigint, p_name text) RETURNS void
LANGUAGE sql AS $$
    WITH made AS (
        INSERT INTO organisation (id, name) VALUES (p_account, p_name) ON CONFLICT DO NOTHING RETURNING id
    )
    INSERT INTO membership (organisation_id, account_id, rights) SELECT id, id, '{owner}' FROM made;
$$;

-- The accounts leave every organisation. Returns those of which they are the only owners; if there are any,
-- nothing changes. The organisations stay locked: of two owners who leave at once one is the last.
CREATE OR REPLACE FUNCTION end_memberships(p_accounts bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM organisation
      WHERE id IN (SELECT organisation_id FROM membership WHERE account_id = ANY (p_accounts))
      ORDER BY id FOR NO KEY UPDATE;
    RETURN QUERY
        SELECT DISTINCT own.organisation_id FROM membership AS own
         WHERE own.account_id = ANY (p_accounts) AND 'owner' = ANY (own.rights)
           AND NOT EXISTS (SELECT FROM membership AS other
                            WHERE other.organisation_id = own.organisation_id
                              AND other.account_id <> ALL (p_accounts) AND 'owner' = ANY (other.rights));
    IF FOUND THEN
        RETURN;
    END IF;
    DELETE FROM membership WHERE account_id = ANY (p_accounts);
    UPDATE invitation SET ended_at = now(), ended_as = 'withdrawn'
     WHERE invited_by = ANY (p_accounts) AND ended_at IS NULL;
END $$;

-- An account that becomes an organiser has an organisation from the same moment, also if the release before
-- this one made it so.
CREATE OR REPLACE FUNCTION organisers_have_an_organisation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM make_own_organisation(NEW.id, NEW.name);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER organisers_have_an_organisation AFTER INSERT OR UPDATE OF role ON account
    FOR EACH ROW WHEN (NEW.role = 'organiser') EXECUTE FUNCTION organisers_have_an_organisation();

-- An admin who creates something without naming an organisation creates it in their own.
CREATE OR REPLACE FUNCTION owners_are_organisations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM organisation WHERE id = NEW.organiser_id) THEN
        PERFORM make_own_organisation(id, name) FROM account_profile
          WHERE id = NEW.organiser_id AND role IN ('organiser', 'admin');
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER owners_are_organisations BEFORE INSERT ON event
    FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();
CREATE OR REPLACE TRIGGER owners_are_organisations BEFORE INSERT ON webhook_endpoint
    FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();
CREATE OR REPLACE TRIGGER owners_are_organisations BEFORE INSERT ON organiser_sender
    FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();
CREATE OR REPLACE TRIGGER owners_are_organisations BEFORE INSERT ON invoice_seller
    FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();
