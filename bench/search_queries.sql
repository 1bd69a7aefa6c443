-- Creates a large catalogue fast. Only for an empty database that is not sold from.

-- name: skip_checks
-- No triggers and no foreign keys on this connection; the rows are valid by construction.
SELECT set_config('session_replication_role', 'replica', false),
       set_config('synchronous_commit', 'off', false);

-- name: add_places
-- Cities with ten venues each, one hall per venue.
WITH cities AS (
    INSERT INTO city (slug, name, country, timezone, lat, lon)
    SELECT 'city-' || n, 'City ' || n, 'IN', 'Asia/Kolkata', 8 + (n * 37 % 280) / 10.0,
           69 + (n * 53 % 280) / 10.0
      FROM generate_series(1, $1::int) AS n
    RETURNING id, lat, lon
), venues AS (
    INSERT INTO venue (city_id, name, address, postal_code, lat, lon)
    SELECT id, 'Venue ' || id || ' ' || place, '', (100000 + id * 100 + place)::text,
           lat + (place * 7 % 10 - 5) / 60.0, lon + (place * 3 % 10 - 5) / 60.0
      FROM cities, generate_series(1, 10) AS place
    RETURNING id
)
INSERT INTO hall (venue_id, name, layout_hash) SELECT id, 'Hall', $2 FROM venues;

-- name: add_shows
-- Five shows of every event in one city, over sixty days, some hours apart.
INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency,
                  hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule)
SELECT event_id, 1 + event_id * 7919 % $3::int + $3::int * ((event_id / 7 + place) % 10), $2, at,
       at + interval '2 hours', now() - interval '1 day', at, 'INR', 600, 10, 10, 'off'
  FROM generate_series(1, $1::bigint) AS event_id, generate_series(0, 4) AS place,
       LATERAL (SELECT date_trunc('hour', now())
                       + (1 + (event_id * 31 + event_id / 60 + place * 17) % 60) * interval '1 day'
                       + (event_id % 9) * interval '1 hour' AS at) AS time;

-- name: add_prices
INSERT INTO price (show_id, category, price_minor) SELECT id, 'Standard', 10000 + id % 90 * 1000 FROM show;

-- name: add_terms
INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy)
SELECT id, 1, 0, 0, 0, '{"steps": [], "keep_fee": false}' FROM show;

-- name: analyze
ANALYZE;

-- name: look_up
SELECT * FROM event WHERE id = $1;
