-- Making and changing what is on. Where a query takes an organiser, null stands for an admin, who sees all.

-- name: known_timezone
SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1);

-- name: add_city
INSERT INTO city (slug, name, country, timezone, lat, lon)
     VALUES ($1, $2, $3, $4, $5, $6)
  RETURNING id;

-- name: lock_city
SELECT id, slug, name, country, timezone, lat, lon
  FROM city
 WHERE id = $1
   FOR UPDATE;

-- name: change_city
UPDATE city
   SET slug = $2, name = $3, country = $4, timezone = $5, lat = $6, lon = $7, updated_at = now()
 WHERE id = $1;

-- name: list_cities
  SELECT id, slug, name, country, timezone, lat, lon, count(*) OVER () AS total
    FROM city
ORDER BY name, id
   LIMIT $1 OFFSET $2;

-- name: add_venue
-- No row when the city does not exist.
INSERT INTO venue (city_id, organiser_id, name, address, postal_code, lat, lon, published)
     SELECT city.id, $2, $3, $4, $5, $6, $7, $8
       FROM city
      WHERE city.id = $1
  RETURNING id;

-- name: venue
-- One venue that this organiser may use: their own, or the house's.
SELECT venue.id, venue.city_id, city.slug AS city, venue.organiser_id, venue.name, venue.address,
       venue.postal_code, venue.lat, venue.lon, venue.published
  FROM venue
  JOIN city ON city.id = venue.city_id
 WHERE venue.id = $1
   AND venue.deleted_at IS NULL
   AND ($2::bigint IS NULL OR venue.organiser_id IS NULL OR venue.organiser_id = $2)
   FOR UPDATE OF venue;

-- name: change_venue
UPDATE venue
   SET city_id = $2, name = $3, address = $4, postal_code = $5, lat = $6, lon = $7, published = $8,
       updated_at = now()
 WHERE id = $1
   AND EXISTS (SELECT FROM city WHERE city.id = $2)
RETURNING id;

-- name: list_venues
  SELECT venue.id, venue.city_id, city.slug AS city, venue.organiser_id, venue.name, venue.address,
         venue.postal_code, venue.lat, venue.lon, venue.published, count(*) OVER () AS total
    FROM venue
    JOIN city ON city.id = venue.city_id
   WHERE venue.deleted_at IS NULL
     AND ($1::bigint IS NULL OR venue.organiser_id IS NULL OR venue.organiser_id = $1)
ORDER BY venue.name, venue.id
   LIMIT $2 OFFSET $3;

-- name: add_hall
INSERT INTO hall (venue_id, name, layout_hash)
     VALUES ($1, $2, $3)
  RETURNING id;

-- name: hall
-- One hall that this organiser may use. Locked: two shows made at once must see each other's times.
SELECT hall.id, hall.venue_id, hall.name, hall.layout_hash, layout.seats, venue.organiser_id
  FROM hall
  JOIN venue ON venue.id = hall.venue_id
  JOIN layout ON layout.hash = hall.layout_hash
 WHERE hall.id = $1
   AND hall.deleted_at IS NULL
   AND ($2::bigint IS NULL OR venue.organiser_id IS NULL OR venue.organiser_id = $2)
   FOR UPDATE OF hall;

-- name: change_hall
UPDATE hall
   SET name = $2, layout_hash = $3, updated_at = now()
 WHERE id = $1;

-- name: list_halls
  SELECT hall.id, hall.venue_id, hall.name, hall.layout_hash, layout.seats, count(*) OVER () AS total
    FROM hall
    JOIN venue ON venue.id = hall.venue_id
    JOIN layout ON layout.hash = hall.layout_hash
   WHERE hall.deleted_at IS NULL
     AND ($1::bigint IS NULL OR venue.organiser_id IS NULL OR venue.organiser_id = $1)
     AND ($4::bigint IS NULL OR hall.venue_id = $4)
ORDER BY hall.venue_id, hall.name
   LIMIT $2 OFFSET $3;

-- name: add_layout_owner
INSERT INTO layout_organiser (hash, organiser_id)
     VALUES ($1, $2)
ON CONFLICT DO NOTHING;

-- name: layout
-- One layout that this organiser may use: brought in by them, or of a hall open to them.
SELECT layout.hash, layout.name, layout.seats, layout.body
  FROM layout
 WHERE layout.hash = $1
   AND (   $2::bigint IS NULL
        OR EXISTS (SELECT FROM layout_organiser AS owner WHERE owner.hash = $1 AND owner.organiser_id = $2)
        OR EXISTS (SELECT FROM hall
                     JOIN venue ON venue.id = hall.venue_id
                    WHERE hall.layout_hash = $1
                      AND (venue.organiser_id IS NULL OR venue.organiser_id = $2)));

-- name: list_layouts
  SELECT layout.hash, layout.name, layout.seats, count(*) OVER () AS total
    FROM layout
   WHERE $1::bigint IS NULL
      OR EXISTS (SELECT FROM layout_organiser AS owner
                  WHERE owner.hash = layout.hash AND owner.organiser_id = $1)
      OR EXISTS (SELECT FROM hall
                   JOIN venue ON venue.id = hall.venue_id
                  WHERE hall.layout_hash = layout.hash
                    AND (venue.organiser_id IS NULL OR venue.organiser_id = $1))
ORDER BY layout.name, layout.hash
   LIMIT $2 OFFSET $3;

-- name: add_event
INSERT INTO event (organiser_id, kind, title, description, language, genre, rating, duration_min, poster,
                   poster_alt, people, featured, published, refund_policy)
     VALUES ($1, $2, $3, $4, $5, $6, $7::float8, $8, $9, $10, $11, $12, $13, $14::text::jsonb)
  RETURNING id;

-- name: event
-- One event of this organiser.
SELECT id, organiser_id, kind, title, description, language, genre, rating::float8 AS rating, duration_min,
       poster, poster_alt, people, featured, published, refund_policy
  FROM event
 WHERE id = $1
   AND deleted_at IS NULL
   AND ($2::bigint IS NULL OR organiser_id = $2)
   FOR UPDATE;

-- name: change_event
UPDATE event
   SET kind = $2, title = $3, description = $4, language = $5, genre = $6, rating = $7::float8,
       duration_min = $8, poster = $9, poster_alt = $10, people = $11, featured = $12, published = $13,
       refund_policy = $14::text::jsonb, updated_at = now()
 WHERE id = $1;

-- name: list_events
  SELECT id, organiser_id, kind, title, description, language, genre, rating::float8 AS rating, duration_min,
         poster, poster_alt, people, featured, published, refund_policy, count(*) OVER () AS total
    FROM event
   WHERE deleted_at IS NULL AND ($1::bigint IS NULL OR organiser_id = $1)
ORDER BY title, id
   LIMIT $2 OFFSET $3;

-- name: remove_poster
DELETE FROM poster_image WHERE event_id = $1;

-- name: add_poster
INSERT INTO poster_image (event_id, hash, width, image)
SELECT $1, $2, width, image
  FROM unnest($3::int[], $4::bytea[]) AS input (width, image);

-- name: set_poster
UPDATE event SET poster = $2, updated_at = now() WHERE id = $1;

-- name: refresh_visibility
-- Shows of an event ($1), of a venue ($2), or one ($3), whose visibility has changed.
SELECT show_id FROM refresh_visibility($1, $2, $3) AS show_id;
