-- organisers/functions.sql: facts about changes in the catalogue, and history that never changes.
-- needs: bookings, outbox

-- What other folders read of an event.
CREATE OR REPLACE VIEW event_summary AS
SELECT id AS event_id, organiser_id, kind, title FROM event;

-- Whose show it is.
CREATE OR REPLACE VIEW show_organiser AS
SELECT show.id AS show_id, show.event_id, event.organiser_id
  FROM show JOIN event ON event.id = show.event_id;

-- Shows that were moved to another time, for the messages to ticket holders.
CREATE OR REPLACE VIEW moved_show AS
SELECT show_id, revision, starts_before, starts_at FROM show_time_change;

-- Facts about events, venues and cities are added by triggers, so that no way of changing them can miss one:
-- search indexes from these facts.
CREATE OR REPLACE FUNCTION publish_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_fact(0, NULL, TG_TABLE_NAME || '.changed',
                     jsonb_build_object(TG_TABLE_NAME || '_id', NEW.id));
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publish_changed_event AFTER UPDATE ON event
    FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION publish_change();
CREATE OR REPLACE TRIGGER publish_changed_venue AFTER UPDATE ON venue
    FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION publish_change();
CREATE OR REPLACE TRIGGER publish_changed_city AFTER UPDATE ON city
    FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION publish_change();

-- Records the old start of a show that moved: the message to ticket holders contains both times.
CREATE OR REPLACE FUNCTION record_time_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_time_change (show_id, revision, starts_before, starts_at)
    VALUES (NEW.id, NEW.revision, OLD.starts_at, NEW.starts_at);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER record_time_change AFTER UPDATE OF starts_at ON show
    FOR EACH ROW WHEN (NEW.starts_at <> OLD.starts_at AND NEW.revision <> OLD.revision AND NOT NEW.cancelled)
    EXECUTE FUNCTION record_time_change();

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

-- Whether this revision of a show is a change by its price rules, and of nothing else.
CREATE OR REPLACE FUNCTION has_other_prices_only(p_show bigint, p_revision bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM price_change
                    WHERE show_id = p_show AND revision = p_revision AND why <> 'organiser')
$$;

-- Hides shows and closes their sales if they, their event or their venue are a draft or deleted; and the
-- other way round. Of an event, of a venue, or one show; returns those that have changed. Locks shows, then
-- sales.
CREATE OR REPLACE FUNCTION refresh_visibility(p_event bigint, p_venue bigint, p_show bigint)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    v_show   bigint[];
    v_hidden boolean[];
BEGIN
    WITH wanted AS (
          SELECT show.id, show.hidden,
                 NOT (show.published AND event.published AND venue.published) AS is_hidden
            FROM show
            JOIN event ON event.id = show.event_id
            JOIN hall ON hall.id = show.hall_id
            JOIN venue ON venue.id = hall.venue_id
           WHERE show.id = ANY (ARRAY(
                     SELECT id FROM show WHERE event_id = p_event
                      UNION ALL
                     SELECT show.id FROM hall JOIN show ON show.hall_id = hall.id
                      WHERE hall.venue_id = p_venue
                      UNION ALL
                     SELECT p_show))
        ORDER BY show.id
             FOR UPDATE OF show
    ), changed AS (
           UPDATE show SET hidden = wanted.is_hidden, updated_at = now()
             FROM wanted
            WHERE show.id = wanted.id AND wanted.hidden <> wanted.is_hidden
        RETURNING show.id, show.hidden
    )
    SELECT array_agg(id ORDER BY id), array_agg(hidden ORDER BY id) INTO v_show, v_hidden FROM changed;
    IF v_show IS NOT NULL THEN
        PERFORM hide_sales(v_show, v_hidden);
    END IF;
    RETURN QUERY SELECT unnest(v_show);
END $$;
