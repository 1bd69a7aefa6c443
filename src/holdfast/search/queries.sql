-- Reads. Every statement runs on search's own connections, is planned for its parameters, and is cancelled
-- after a second. $1 is a tsquery as text; NULL: no words.

-- name: hits
-- Events in this order, after a position or from an offset on. Matches in title, people, place and kind rank
-- above matches in the description and are searched first ($2).
  SELECT event_id, key
    FROM (SELECT event_id,
                 CASE $7::text
                      WHEN 'showtime' THEN soonest_s
                      WHEN 'rating' THEN unrated
                      WHEN 'popularity' THEN unpopular
                      WHEN 'price' THEN coalesce(from_price_minor::float8, 'Infinity'::float8)
                      -- Ties: the more popular event first.
                      ELSE CASE $2::text WHEN 'rest' THEN 10 ELSE 0 END
                           + greatest(unpopular, -1e5) * 1e-9 - ts_rank(doc, $1::text::tsquery)::float8
                 END AS key
            FROM matching_listings($1::text::tsquery, $2, $3, $4, $5)
           WHERE $6::text IS NULL OR $6 = ANY (cities)) AS found
   WHERE $8::float8 IS NULL OR (key, event_id) > ($8, $9::bigint)
ORDER BY key, event_id
   LIMIT $10 OFFSET $11;

-- name: hits_by_rank
-- The best first: matches in title, people, place and kind; only if these are too few, matches that need the
-- description. The second half is not executed while the first fills the page.
  SELECT event_id, key
    FROM (SELECT *
            FROM (SELECT event_id,
                         greatest(unpopular, -1e5) * 1e-9 - ts_rank(doc, $1::text::tsquery)::float8 AS key
                    FROM matching_listings($1::text::tsquery, 'brief', $2, $3, $4)
                   WHERE ($5::text IS NULL OR $5 = ANY (cities))
                     AND ($6::float8 IS NULL OR $6 < 5)) AS first
           WHERE $6::float8 IS NULL OR (key, event_id) > ($6, $7::bigint)
        ORDER BY key, event_id
           LIMIT $8) AS first
UNION ALL
  SELECT event_id, key
    FROM (SELECT *
            FROM (SELECT event_id, 10 + greatest(unpopular, -1e5) * 1e-9
                                   - ts_rank(doc, $1::text::tsquery)::float8 AS key
                    FROM matching_listings($1::text::tsquery, 'rest', $2, $3, $4)
                   WHERE $5::text IS NULL OR $5 = ANY (cities)) AS rest
           WHERE $6::float8 IS NULL OR (key, event_id) > ($6, $7::bigint)
        ORDER BY key, event_id
           LIMIT $8) AS rest
   LIMIT $8 OFFSET $9;

-- name: hits_with_show
-- Events, ordered by a property of the event, with a show that passes all filters.
  SELECT event_id, key
    FROM (SELECT listing.event_id,
                 CASE $6::text
                      WHEN 'rating' THEN listing.unrated
                      WHEN 'popularity' THEN listing.unpopular
                      ELSE CASE $2::text WHEN 'rest' THEN 10 ELSE 0 END
                           + greatest(listing.unpopular, -1e5) * 1e-9
                           - ts_rank(listing.doc, $1::text::tsquery)::float8
                 END AS key
            FROM matching_listings($1::text::tsquery, $2, $3, $4, $5) AS listing
           WHERE EXISTS (SELECT FROM matching_shows($7, $8, $9, $10, $11, $12, $13, $14, $15) AS show
                          WHERE show.event_id = listing.event_id)) AS found
   WHERE $16::float8 IS NULL OR (key, event_id) > ($16, $17::bigint)
ORDER BY key, event_id
   LIMIT $18 OFFSET $19;

-- name: hits_by_show
-- The same, ordered by a property of their shows. $20, $21: venues and how far they are, in km.
  SELECT event_id, key
    FROM (SELECT listing.event_id,
                 CASE $6::text
                      WHEN 'price' THEN coalesce(min(show.from_price_minor)::float8, 'Infinity'::float8)
                      WHEN 'distance' THEN min(near.km)
                      ELSE min(extract(epoch FROM show.starts_at))::float8
                 END AS key
            FROM matching_shows($7, $8, $9, $10, $11, $12, $13, $14, $15) AS show
            JOIN matching_listings($1::text::tsquery, $2, $3, $4, $5) AS listing USING (event_id)
            LEFT JOIN unnest($20::bigint[], $21::float8[]) AS near (venue_id, km) USING (venue_id)
        GROUP BY listing.event_id) AS found
   WHERE $16::float8 IS NULL OR (key, event_id) > ($16, $17::bigint)
ORDER BY key, event_id
   LIMIT $18 OFFSET $19;

-- name: hits_soon
-- The soonest, wherever they are: only the next $13 shows are looked at, out of possibly all. After a
-- position, events with an earlier show are left out: a previous page had them. Fewer than $13: there are
-- no more shows.
WITH soon AS MATERIALIZED (
    SELECT event_id, extract(epoch FROM starts_at)::float8 AS key
      FROM matching_shows(NULL, NULL, $4, $5, $6, $7, $8, $9, $10) AS show
     WHERE starts_at >= coalesce(to_timestamp($11) - interval '1 ms', '-infinity')
       AND starts_at >= coalesce($4::date - interval '1 day', '-infinity')
       AND (num_nulls($1::text, $2::text, $3::text) = 3
            OR EXISTS (SELECT FROM matching_listings(NULL, 'doc', $1, $2, $3) AS listing
                        WHERE listing.event_id = show.event_id))
  ORDER BY starts_at
     LIMIT $13
)
  SELECT event_id, min(key) AS key, (SELECT count(*) FROM soon) AS looked_at,
         (SELECT max(key) FROM soon) AS up_to
    FROM soon
   WHERE $11::float8 IS NULL
      OR NOT EXISTS (SELECT FROM matching_shows(NULL, NULL, $4, $5, $6, $7, $8, $9, $10) AS earlier
                      WHERE earlier.event_id = soon.event_id
                        AND extract(epoch FROM earlier.starts_at)::float8 < $11)
GROUP BY event_id
  HAVING $11::float8 IS NULL OR (min(key), event_id) > ($11, $12::bigint)
ORDER BY min(key), event_id;

-- name: hits_of_shows
-- The same without filters or order on events: their rows are not read.
  SELECT event_id, key
    FROM (SELECT show.event_id,
                 CASE $1::text
                      WHEN 'price' THEN coalesce(min(show.from_price_minor)::float8, 'Infinity'::float8)
                      WHEN 'distance' THEN min(near.km)
                      ELSE min(extract(epoch FROM show.starts_at))::float8
                 END AS key
            FROM matching_shows($2, $3, $4, $5, $6, $7, $8, $9, $10) AS show
            LEFT JOIN unnest($15::bigint[], $16::float8[]) AS near (venue_id, km) USING (venue_id)
        GROUP BY show.event_id) AS found
   WHERE $11::float8 IS NULL OR (key, event_id) > ($11, $12::bigint)
ORDER BY key, event_id
   LIMIT $13 OFFSET $14;

-- name: shows_of_hits
-- At most $3 shows per event: first those at a place named in the query ($1), then the soonest.
WITH input AS (
  SELECT show.show_id, show.event_id, show.venue_id,
         count(*) OVER (PARTITION BY show.event_id) AS shows_total,
         row_number() OVER (PARTITION BY show.event_id
                            ORDER BY (venue.doc @@ $1::text::tsquery) IS NOT TRUE,
                                     show.starts_at, show.show_id) AS place
    FROM matching_shows($4, $5, $6, $7, $8, $9, $10, $11, $12) AS show
    JOIN listing_venue AS venue USING (venue_id)
   WHERE show.event_id = ANY ($2::bigint[])
)
SELECT show_id, event_id, venue_id, shows_total
  FROM input
 WHERE place <= $3;

-- name: facets
-- Event counts by facet. A filter does not narrow its own facet, so that the alternatives stay visible.
WITH base AS MATERIALIZED (
  SELECT kind, language, language_name, genre, genre_name, cities, dates, currency, from_price_minor AS price,
         $2::text IS NULL OR kind = $2 AS k,
         $3::text IS NULL OR language = $3 AS l,
         $4::text IS NULL OR genre = $4 AS g
    FROM (SELECT kind, language, language_name, genre, genre_name, cities, dates, currency, from_price_minor
            FROM matching_listings($1::text::tsquery, 'doc', NULL, NULL, NULL)
           WHERE NOT $14::boolean
       UNION ALL
          SELECT kind, language, language_name, genre, genre_name, show.cities, show.dates, show.currency,
                 show.price
            FROM (SELECT event_id, array_agg(DISTINCT city) AS cities,
                         array_agg(DISTINCT local_date) AS dates, min(currency) AS currency,
                         min(from_price_minor) AS price
                    FROM matching_shows($5, $6, $7, $8, $9, $10, $11, $12, $13)
                GROUP BY event_id) AS show
            JOIN matching_listings($1::text::tsquery, 'doc', NULL, NULL, NULL) AS listing USING (event_id)
           WHERE $14::boolean) AS matching
)
   SELECT 'total' AS facet, '' AS value, '' AS name, count(*) AS events FROM base WHERE k AND l AND g
UNION ALL
   SELECT 'kind', kind, kind, count(*) FROM base WHERE l AND g GROUP BY kind
UNION ALL
   SELECT 'language', language, min(language_name), count(*) FROM base WHERE k AND g AND language <> ''
 GROUP BY language
UNION ALL
   SELECT 'genre', genre, min(genre_name), count(*) FROM base WHERE k AND l AND genre <> '' GROUP BY genre
UNION ALL
   SELECT 'city', city, city, count(*) FROM base, unnest(cities) AS city WHERE k AND l AND g GROUP BY city
UNION ALL
   SELECT 'date', day::text, '', count(*) FROM base, unnest(dates) AS day WHERE k AND l AND g GROUP BY day
UNION ALL
   SELECT 'price', width_bucket(price, $15::bigint[])::text, currency, count(*) FROM base
    WHERE k AND l AND g AND price IS NOT NULL
 GROUP BY currency, width_bucket(price, $15::bigint[]);

-- name: stored_tally
-- No row before the first count.
SELECT tally FROM listing_tally WHERE kind = $1;

-- name: try_lock_tallies
-- False: another process is counting.
SELECT pg_try_advisory_xact_lock(7466215316);

-- name: take_time
-- For this transaction: no client waits for it.
SET LOCAL statement_timeout = '60s';

-- name: store_tally
INSERT INTO listing_tally (kind, tally) VALUES ($1, $2)
    ON CONFLICT (kind) DO UPDATE SET tally = excluded.tally, counted_at = now();

-- name: venues_near
-- Venues within a radius, by haversine; the range of latitudes is what the index can use.
SELECT venue_id, km
  FROM (SELECT venue_id,
               2 * 6371.0088 * asin(least(1, sqrt(
                   sin(radians(lat - $1) / 2) ^ 2
                   + cos(radians($1)) * cos(radians(lat)) * sin(radians(lon - $2) / 2) ^ 2))) AS km
          FROM listing_venue
         WHERE lat BETWEEN $1 - $3 / 110.0 AND $1 + $3 / 110.0) AS found
 WHERE km <= $3
ORDER BY km, venue_id
 LIMIT $4;

-- name: place_of_postal_code
-- The middle of the venues with this postal code, or else of those whose code begins like it: $1 are its
-- beginnings, the longest first.
SELECT avg(venue.lat)::float8 AS lat, avg(venue.lon)::float8 AS lon
  FROM (SELECT beginning
          FROM unnest($1::text[]) WITH ORDINALITY AS input (beginning, place)
         WHERE EXISTS (SELECT FROM listing_venue AS one
                        WHERE one.postal_code COLLATE "C" >= beginning
                          AND one.postal_code COLLATE "C" < beginning || U&'\+10FFFF')
      ORDER BY place
         LIMIT 1) AS longest
  JOIN listing_venue AS venue
    ON venue.postal_code COLLATE "C" >= longest.beginning
   AND venue.postal_code COLLATE "C" < longest.beginning || U&'\+10FFFF'
HAVING count(*) > 0;

-- name: words_beginning
-- The most used words that begin so.
  SELECT word, uses
    FROM listing_word
   WHERE word >= $1 AND word < $1 || U&'\+10FFFF'
ORDER BY uses DESC, word
   LIMIT $2;

-- name: events_suggested
-- Few events match: read all of them and return the most popular.
WITH found AS MATERIALIZED (
    SELECT event_id, title, kind, cities, dates[1] AS next_date, unpopular
      FROM listing
     WHERE brief @@ $1::text::tsquery
       AND ends_at > now()
)
  SELECT event_id, title, kind, cities, next_date
    FROM found
ORDER BY unpopular, event_id
   LIMIT $2;

-- name: common_events_suggested
-- Many events match: read in order of popularity until there are enough.
  SELECT event_id, title, kind, cities, dates[1] AS next_date
    FROM listing
   WHERE brief @@ $1::text::tsquery
     AND ends_at > now()
ORDER BY unpopular, event_id
   LIMIT $2;

-- name: venues_suggested
-- Venues with upcoming shows among the first few that match.
  SELECT venue_id, name, city
    FROM (SELECT venue_id, name, city
            FROM listing_venue
           WHERE doc @@ $1::text::tsquery
        ORDER BY name, venue_id
           LIMIT $2 * 20) AS venue
   WHERE EXISTS (SELECT FROM listing_show AS show WHERE show.venue_id = venue.venue_id)
ORDER BY name, venue_id
   LIMIT $2;
