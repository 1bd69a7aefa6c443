-- Bulk inserts of places and events. Idempotent: existing rows stay as they are.

-- name: add_cities
INSERT INTO city (slug, name, country, timezone, lat, lon)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[])
ON CONFLICT (slug) DO NOTHING;

-- name: add_venues
INSERT INTO venue (city_id, name, address, postal_code, lat, lon)
     SELECT city.id, input.name, input.address, input.postal_code, input.lat, input.lon
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[])
         AS input (city, name, address, postal_code, lat, lon)
       JOIN city ON city.slug = input.city
      WHERE NOT EXISTS (SELECT FROM venue WHERE venue.city_id = city.id AND venue.name = input.name);

-- name: add_halls
INSERT INTO hall (venue_id, name, layout_hash)
     SELECT venue.id, input.name, input.layout_hash
       FROM unnest($1::text[], $2::text[], $3::text[]) AS input (venue, name, layout_hash)
       JOIN venue ON venue.name = input.venue AND venue.organiser_id IS NULL
ON CONFLICT (venue_id, name) DO NOTHING;

-- name: halls
  SELECT hall.id, hall.name, venue.name AS venue, city.slug AS city, city.timezone, hall.layout_hash,
         array(SELECT category ->> 'name' FROM jsonb_array_elements(layout.body -> 'categories') AS category)
             AS categories
    FROM hall
    JOIN venue ON venue.id = hall.venue_id
    JOIN city ON city.id = venue.city_id
    JOIN layout ON layout.hash = hall.layout_hash
   WHERE venue.name = ANY ($1::text[]) AND venue.organiser_id IS NULL
ORDER BY hall.id;

-- name: add_events
INSERT INTO event (organiser_id, kind, title, genre, language, duration_min, rating, description, featured,
                   people, refund_policy)
     SELECT $1, kind, title, genre, language, duration_min, rating, description, featured,
            string_to_array(people, '|'), refund_policy::jsonb
       FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::float8[], $8::text[],
                   $9::boolean[], $10::text[], $11::text[])
         AS input (kind, title, genre, language, duration_min, rating, description, featured, people,
                   refund_policy)
      WHERE NOT EXISTS (SELECT FROM event WHERE event.organiser_id = $1 AND event.title = input.title);

-- name: events
SELECT id, title, duration_min
  FROM event
 WHERE organiser_id = $1;

-- name: price_plans
-- Which of these shows have price rules, and whether they look at what is sold.
SELECT show_id, rules @? '$.rules[*].demand[*]' AS by_demand
  FROM price_plan
 WHERE show_id = ANY ($1::bigint[]);
