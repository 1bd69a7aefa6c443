-- Reads of the public catalogue. Results are cached for at least a second: see store.py.

-- name: cities
  SELECT id, slug, name, country, timezone, lat, lon
    FROM city
ORDER BY name, id;

-- name: cities_playing
-- Slugs of the cities with a show to come.
SELECT slug
  FROM city
 WHERE EXISTS (SELECT
                 FROM venue
                 JOIN hall ON hall.venue_id = venue.id
                 JOIN show ON show.hall_id = hall.id
                WHERE venue.city_id = city.id
                  AND show.starts_at > now()
                  AND NOT show.cancelled
                  AND NOT show.hidden);

-- name: events_playing
-- Ids of the events that have a show in a city ($1, null: any) on its local date ($2, null: from now on).
-- The range around the date is what the index on starts_at can use; local_date is exact.
  SELECT event_id
    FROM show_detail
   WHERE NOT cancelled
     AND NOT hidden
     AND ($1::text IS NULL OR city = $1)
     AND ($3::text IS NULL OR kind = $3)
     AND CASE WHEN $2::date IS NULL THEN ends_at > now() ELSE local_date = $2 END
     AND starts_at >= coalesce($2::date::timestamptz, now()) - interval '15 days'
     AND starts_at < coalesce($2::date::timestamptz + interval '3 days', 'infinity')
GROUP BY event_id
ORDER BY min(starts_at), event_id;

-- name: shows_playing
-- The shows behind events_playing, for some of its events ($3), at most $4 per event, the soonest first.
WITH playing AS (
  SELECT show_id, row_number() OVER soonest AS place, count(*) OVER (PARTITION BY event_id) AS shows_total
    FROM show_detail
   WHERE NOT cancelled
     AND NOT hidden
     AND event_id = ANY ($3::bigint[])
     AND ($1::text IS NULL OR city = $1)
     AND CASE WHEN $2::date IS NULL THEN ends_at > now() ELSE local_date = $2 END
  WINDOW soonest AS (PARTITION BY event_id ORDER BY starts_at, show_id)
)
  SELECT show_detail.*, playing.shows_total
    FROM playing
    JOIN show_detail USING (show_id)
   WHERE playing.place <= $4
ORDER BY show_detail.starts_at, show_detail.show_id;

-- name: events_by_id
SELECT id, kind, title, description, language, genre, rating::float8 AS rating, duration_min, poster,
       poster_alt, people, featured, refund_policy
  FROM event
 WHERE id = ANY ($1::bigint[])
   AND published;

-- name: poster_image
SELECT image
  FROM poster_image
 WHERE event_id = $1 AND hash = $2 AND width = $3;

-- name: featured_events
-- Featured events with upcoming shows, the soonest first.
  SELECT event.id
    FROM event
    JOIN show ON show.event_id = event.id
   WHERE event.featured
     AND NOT show.cancelled
     AND NOT show.hidden
     AND show.closes_at > now()
GROUP BY event.id
ORDER BY min(show.starts_at), event.id
   LIMIT $1;

-- name: shows_selling
-- Shows on sale, in a city ($2, null: any), the soonest first.
  SELECT show.id, show.event_id
    FROM show
    JOIN hall ON hall.id = show.hall_id
    JOIN venue ON venue.id = hall.venue_id
    JOIN city ON city.id = venue.city_id
   WHERE NOT show.cancelled
     AND NOT show.hidden
     AND show.opens_at <= now()
     AND show.closes_at > now()
     AND ($2::text IS NULL OR city.slug = $2)
ORDER BY show.starts_at, show.id
   LIMIT $1;

-- name: shows_of_event
-- Every show of an event that has not ended. Cancelled ones too: ticket holders look here.
  SELECT show_detail.*, count(*) OVER () AS shows_total
    FROM show_detail
   WHERE event_id = $1
     AND NOT hidden
     AND ends_at > now()
ORDER BY starts_at, show_id
   LIMIT $2;

-- name: shows_of_venue
  SELECT show_detail.*, count(*) OVER () AS shows_total
    FROM show_detail
   WHERE venue_id = $1
     AND NOT hidden
     AND ends_at > now()
     AND NOT cancelled
ORDER BY starts_at, show_id
   LIMIT $2;

-- name: show_detail
SELECT *
  FROM show_detail
 WHERE show_id = $1;

-- name: timezones
SELECT show_id, timezone
  FROM show_detail
 WHERE show_id = ANY ($1::bigint[]);

-- name: venue_by_id
SELECT venue.id, venue.city_id, city.slug AS city, city.timezone, venue.name, venue.address,
       venue.postal_code, venue.lat, venue.lon, venue.published
  FROM venue
  JOIN city ON city.id = venue.city_id
 WHERE venue.id = $1;

-- name: halls_of_venue
  SELECT hall.id, hall.venue_id, hall.name, hall.layout_hash, layout.seats
    FROM hall
    JOIN layout ON layout.hash = hall.layout_hash
   WHERE hall.venue_id = $1
     AND hall.deleted_at IS NULL
ORDER BY hall.name;

-- name: show_on_sale
-- The show for the hold path; prices are two arrays in the same order.
SELECT show.revision, show.layout_hash, show.currency, show.hold_ttl_s, show.owner_seats_max,
       show.order_seats_max, show.orphan_rule, show.opens_at, show.closes_at, show.starts_at, show.cancelled,
       show.hidden, event.title, plan.coming,
       terms.fee_minor, terms.fee_bp, terms.tax_bp, terms.refund_policy, terms.card_seats_max,
       array(SELECT category FROM price WHERE show_id = show.id ORDER BY category) AS categories,
       array(SELECT price_minor FROM price WHERE show_id = show.id ORDER BY category) AS prices
  FROM show
  JOIN event ON event.id = show.event_id
  JOIN show_terms AS terms ON terms.show_id = show.id AND terms.revision = show.revision
  LEFT JOIN price_plan AS plan ON plan.show_id = show.id
 WHERE show.id = $1;

-- name: terms
-- The terms of a show at a revision; no row for revision 0, which existed before terms did.
SELECT fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max
  FROM show_terms
 WHERE show_id = $1 AND revision = $2;

-- name: layout_body
SELECT body
  FROM layout
 WHERE hash = $1;

-- name: add_layout
-- The hash is the content: storing the same layout again changes nothing.
INSERT INTO layout (hash, name, body, seats)
     VALUES ($1, $2, $3::jsonb, $4)
ON CONFLICT (hash) DO NOTHING;

-- name: show_belongs_to
-- Whether a show belongs to this organiser; NULL means an admin, who may see every show.
SELECT true
  FROM show
  JOIN event ON event.id = show.event_id
 WHERE show.id = $1
   AND show.deleted_at IS NULL
   AND ($2::bigint IS NULL OR event.organiser_id = $2);
