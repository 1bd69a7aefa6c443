-- Reads of the catalogue for the search index.

-- name: event_ids_after
  SELECT id
    FROM event
   WHERE id > $1
ORDER BY id
   LIMIT $2;

-- name: event_count
SELECT count(*) FROM event;

-- name: events
SELECT id AS event_id, title, kind, language, genre, rating::float8 AS rating, people, description
  FROM event
 WHERE id = ANY ($1::bigint[])
   AND published;

-- name: shows
-- Upcoming shows of these events, without cancelled ones. Each layout is inspected once, not per show.
WITH upcoming AS MATERIALIZED (
    SELECT show.*, hall.venue_id
      FROM show
      JOIN hall ON hall.id = show.hall_id
     WHERE show.event_id = ANY ($1::bigint[])
       AND NOT show.cancelled
       AND NOT show.hidden
       AND show.ends_at > now()
), layouts AS MATERIALIZED (
    SELECT hash, seats,
           jsonb_path_exists(body, '$.sections[*].rows[*].wheelchair ? (@ != null)') AS accessible
      FROM layout
     WHERE hash IN (SELECT layout_hash FROM upcoming)
)
  SELECT upcoming.id AS show_id, upcoming.event_id, upcoming.venue_id, city.slug AS city,
         (upcoming.starts_at AT TIME ZONE city.timezone)::date AS local_date,
         upcoming.starts_at, upcoming.ends_at, upcoming.opens_at, upcoming.closes_at, upcoming.currency,
         array(SELECT category FROM price WHERE show_id = upcoming.id ORDER BY category) AS categories,
         array(SELECT price_minor FROM price WHERE show_id = upcoming.id ORDER BY category) AS prices,
         layouts.seats, layouts.accessible
    FROM upcoming
    JOIN venue ON venue.id = upcoming.venue_id
    JOIN city ON city.id = venue.city_id
    JOIN layouts ON layouts.hash = upcoming.layout_hash
ORDER BY upcoming.starts_at, upcoming.id;

-- name: prices
SELECT show.id AS show_id, layout.seats,
       array(SELECT category FROM price WHERE show_id = show.id ORDER BY category) AS categories,
       array(SELECT price_minor FROM price WHERE show_id = show.id ORDER BY category) AS prices
  FROM show
  JOIN layout ON layout.hash = show.layout_hash
 WHERE show.id = ANY ($1::bigint[]);

-- name: venues
SELECT venue.id AS venue_id, venue.name, venue.postal_code, venue.lat, venue.lon, city.slug AS city,
       city.name AS city_name
  FROM venue
  JOIN city ON city.id = venue.city_id
 WHERE venue.id = ANY ($1::bigint[]);

-- name: event_of_show
SELECT event_id
  FROM show
 WHERE id = $1;

-- name: events_at
-- Events with upcoming shows at a venue ($1), or anywhere in a city ($2); the other one is 0.
SELECT DISTINCT show.event_id
  FROM venue
  JOIN hall ON hall.venue_id = venue.id
  JOIN show ON show.hall_id = hall.id
 WHERE (venue.id = $1 OR venue.city_id = $2)
   AND show.ends_at > now();
