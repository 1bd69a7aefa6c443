-- pricing/functions.sql: terms and price changes that stay as they are, and the fact of a price change.
-- needs: outbox

CREATE OR REPLACE FUNCTION terms_are_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'terms of show % at revision % were promised to buyers and never change',
                    OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE OR REPLACE TRIGGER terms_are_never_changed BEFORE UPDATE OR DELETE ON show_terms
    FOR EACH ROW EXECUTE FUNCTION terms_are_never_changed();

CREATE OR REPLACE FUNCTION price_changes_are_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the price of show % at revision % is history and never changes',
                    OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE OR REPLACE TRIGGER price_changes_are_never_changed BEFORE UPDATE OR DELETE ON price_change
    FOR EACH ROW EXECUTE FUNCTION price_changes_are_never_changed();

-- One fact per show and revision, added by a trigger, so that no way of changing a price can miss it.
CREATE OR REPLACE FUNCTION publish_prices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_fact(show_id, NULL, 'show.prices_changed', jsonb_build_object(
                'revision', revision, 'why', min(why),
                'prices', jsonb_agg(jsonb_build_object('category', category, 'was_minor', was_minor,
                                                       'price_minor', price_minor) ORDER BY category)))
       FROM changed
   GROUP BY show_id, revision;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publish_prices AFTER INSERT ON price_change REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION publish_prices();
