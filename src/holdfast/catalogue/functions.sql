-- catalogue/functions.sql: a show as listings show it.

-- The terms that limit how many seats one payment card may buy, by revision; payments read it.
CREATE OR REPLACE VIEW card_limit AS
SELECT show_id, revision, card_seats_max FROM show_terms WHERE card_seats_max IS NOT NULL;

-- A show with its event, place and terms. The price and the local date are computed only by queries that ask
-- for them. The terms are joined LEFT, though every show has some: so the planner drops them from queries
-- that do not ask for them.
CREATE OR REPLACE VIEW show_detail AS
SELECT show.id AS show_id, show.event_id, show.hall_id, hall.venue_id, venue.city_id,
       event.organiser_id, event.kind, event.title,
       hall.name AS hall, venue.name AS venue, city.slug AS city, city.timezone,
       show.starts_at, show.ends_at, show.opens_at, show.closes_at,
       (show.starts_at AT TIME ZONE city.timezone)::date AS local_date,
       show.currency, show.cancelled, show.published, show.hidden, show.deleted_at,
       show.layout_hash, layout.seats,
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
