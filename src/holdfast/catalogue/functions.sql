-- catalogue/functions.sql: a show as listings show it, and facts about changes in the catalogue.
-- needs: outbox

DROP VIEW IF EXISTS show_detail CASCADE;

-- A show with its event, place and terms. The price and the local date are computed only by queries that ask
-- for them. The terms are joined LEFT, though every show has some: so the planner drops them from queries
-- that do not ask for them.
CREATE VIEW show_detail AS
SELECT show.id AS show_id, show.event_id, show.hall_id, hall.venue_id, venue.city_id,
       event.organiser_id, event.kind, event.title,
       hall.name AS hall, venue.name AS venue, city.slug AS city, city.timezone,
       show.starts_at, show.ends_at, show.opens_at, show.closes_at,
       (show.starts_at AT TIME ZONE city.timezone)::date AS local_date,
       show.currency, show.cancelled, show.layout_hash, layout.seats,
       show.hold_ttl_s, show.owner_seats_max, show.order_seats_max, show.orphan_rule, show.revision,
       (SELECT min(price.price_minor) FROM price WHERE price.show_id = show.id) AS from_price_minor,
       terms.fee_minor, terms.fee_bp, terms.tax_bp, terms.refund_policy, terms.card_seats_max
  FROM show
  JOIN event ON event.id = show.event_id
  JOIN hall ON hall.id = show.hall_id
  JOIN venue ON venue.id = hall.venue_id
  JOIN city ON city.id = venue.city_id
  JOIN layout ON layout.hash = show.layout_hash
  LEFT JOIN show_terms AS terms ON terms.show_id = show.id AND terms.revision = show.revision;

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

-- Remembers the old start of a show that moved: its ticket holders are told from when to when.
CREATE OR REPLACE FUNCTION record_time_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_time_change (show_id, revision, starts_before, starts_at)
    VALUES (NEW.id, NEW.revision, OLD.starts_at, NEW.starts_at);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER record_time_change AFTER UPDATE OF starts_at ON show
    FOR EACH ROW WHEN (NEW.starts_at <> OLD.starts_at AND NEW.revision <> OLD.revision AND NOT NEW.cancelled)
    EXECUTE FUNCTION record_time_change();
