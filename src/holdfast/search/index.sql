-- Writes. One writer at a time, so that two never wait for each other's rows.

-- name: lock_listings
SELECT pg_advisory_xact_lock(7466215315);

-- name: try_lock_listings
-- False: another process is writing.
SELECT pg_try_advisory_xact_lock(7466215315);

-- name: mark
-- A row that is already due keeps its time but gets a new version, so that a writer that has read it before
-- does not delete it. Version 1: it was not due.
   INSERT INTO listing_due (what, id, due_at)
   SELECT $1, id, now() + $3 * interval '1 s' FROM unnest($2::bigint[]) AS id ORDER BY id
ON CONFLICT (what, id) DO UPDATE SET version = listing_due.version + 1
RETURNING version;

-- name: mark_listed
-- All existing listings, so that those of deleted events are removed, too.
   INSERT INTO listing_due (what, id, due_at) SELECT 'event', event_id, now() FROM listing ORDER BY event_id
ON CONFLICT (what, id) DO NOTHING;

-- name: mark_past
-- Events with a show that has ended: their next show has changed.
   INSERT INTO listing_due (what, id, due_at)
   SELECT DISTINCT 'event', event_id, now()
     FROM (SELECT event_id FROM listing_show WHERE ends_at <= now() LIMIT $1) AS past
 ORDER BY event_id
ON CONFLICT (what, id) DO NOTHING;

-- name: due
  SELECT id, version
    FROM listing_due
   WHERE what = $1 AND due_at <= now()
ORDER BY id
   LIMIT $2;

-- name: done
-- Rows that were marked again since they were read stay due.
DELETE FROM listing_due
 USING unnest($2::bigint[], $3::bigint[]) AS read (id, version)
 WHERE listing_due.what = $1 AND listing_due.id = read.id AND listing_due.version = read.version;

-- name: words_before
SELECT words FROM listing WHERE event_id = ANY ($1::bigint[]);

-- name: write_venues
-- Unchanged rows are not rewritten.
INSERT INTO listing_venue (venue_id, name, city, postal_code, lat, lon, doc)
SELECT venue_id, name, city, postal_code, lat, lon, doc::tsvector
  FROM jsonb_to_recordset($1::text::jsonb)
    AS a (venue_id bigint, name text, city text, postal_code text, lat float8, lon float8, doc text)
    ON CONFLICT (venue_id) DO UPDATE
   SET name = excluded.name, city = excluded.city, postal_code = excluded.postal_code, lat = excluded.lat,
       lon = excluded.lon, doc = excluded.doc, written_at = now()
 WHERE (listing_venue.name, listing_venue.city, listing_venue.postal_code, listing_venue.lat,
        listing_venue.lon, listing_venue.doc)
    IS DISTINCT FROM (excluded.name, excluded.city, excluded.postal_code, excluded.lat, excluded.lon,
                      excluded.doc);

-- name: write_listings
INSERT INTO listing (event_id, title, kind, language, genre, language_name, genre_name, cities, dates,
                     currency, from_price_minor, ends_at, soonest_s, unrated, unpopular, brief, doc, words)
SELECT event_id, title, kind, language, genre, language_name, genre_name, string_to_array(cities, ' '),
       string_to_array(dates, ' ')::date[], currency, from_price_minor, ends_at, soonest_s, unrated,
       unpopular, brief::tsvector, doc::tsvector, string_to_array(words, ' ')
  FROM jsonb_to_recordset($1::text::jsonb)
    AS a (event_id bigint, title text, kind text, language text, genre text, language_name text,
          genre_name text, cities text, dates text, currency text, from_price_minor bigint,
          ends_at timestamptz, soonest_s float8, unrated float8, unpopular float8, brief text,
          doc text, words text)
    ON CONFLICT (event_id) DO UPDATE
   SET title = excluded.title, kind = excluded.kind, language = excluded.language, genre = excluded.genre,
       language_name = excluded.language_name, genre_name = excluded.genre_name, cities = excluded.cities,
       dates = excluded.dates, currency = excluded.currency, from_price_minor = excluded.from_price_minor,
       ends_at = excluded.ends_at, soonest_s = excluded.soonest_s, unrated = excluded.unrated,
       unpopular = excluded.unpopular, brief = excluded.brief, doc = excluded.doc,
       words = excluded.words, written_at = now();

-- name: forget_listings
DELETE FROM listing WHERE event_id = ANY ($1::bigint[]);

-- name: forget_shows
-- Shows of these events that are not upcoming any more.
DELETE FROM listing_show WHERE event_id = ANY ($1::bigint[]) AND show_id <> ALL ($2::bigint[]);

-- name: write_shows
INSERT INTO listing_show (show_id, event_id, venue_id, city, local_date, starts_at, ends_at, opens_at,
                          closes_at, currency, from_price_minor, seats, taken, wanted, accessible)
SELECT *
  FROM jsonb_to_recordset($1::text::jsonb)
    AS a (show_id bigint, event_id bigint, venue_id bigint, city text, local_date date, starts_at timestamptz,
          ends_at timestamptz, opens_at timestamptz, closes_at timestamptz, currency text,
          from_price_minor bigint, seats int, taken int, wanted int, accessible boolean)
    ON CONFLICT (show_id) DO UPDATE
   SET event_id = excluded.event_id, venue_id = excluded.venue_id, city = excluded.city,
       local_date = excluded.local_date, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
       opens_at = excluded.opens_at, closes_at = excluded.closes_at, currency = excluded.currency,
       from_price_minor = excluded.from_price_minor, seats = excluded.seats, taken = excluded.taken,
       wanted = excluded.wanted, accessible = excluded.accessible;

-- name: count_known_words
-- Does not return unknown words.
   UPDATE listing_word
      SET uses = uses + more
     FROM unnest($1::text[], $2::int[]) AS a (known, more)
    WHERE word = known
RETURNING word;

-- name: add_words
INSERT INTO listing_word (word, uses, keys)
SELECT word, uses, string_to_array(keys, ' ')
  FROM unnest($1::text[], $2::int[], $3::text[]) AS a (word, uses, keys)
    ON CONFLICT (word) DO UPDATE SET uses = listing_word.uses + excluded.uses;

-- name: forget_words
DELETE FROM listing_word WHERE word = ANY ($1::text[]) AND uses <= 0;

-- name: write_counts
-- A show that is not listed any more changes nothing.
   UPDATE listing_show
      SET taken = a.taken, wanted = a.wanted, from_price_minor = a.price
     FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[]) AS a (show_id, taken, wanted, price)
    WHERE listing_show.show_id = a.show_id
      AND (listing_show.taken, listing_show.wanted, listing_show.from_price_minor)
          IS DISTINCT FROM (a.taken, a.wanted, a.price)
RETURNING listing_show.event_id;

-- name: write_totals
-- Popularity and lowest price of events, from their shows.
UPDATE listing
   SET (unpopular, from_price_minor) =
       (SELECT -coalesce(sum(wanted), 0),
               min(show.from_price_minor) FILTER (WHERE show.currency = listing.currency)
          FROM listing_show AS show
         WHERE show.event_id = listing.event_id)
 WHERE event_id = ANY ($1::bigint[]);

-- name: from_prices
SELECT show_id, from_price_minor
  FROM listing_show
 WHERE show_id = ANY ($1::bigint[]);

-- name: is_due
SELECT count(*) FROM (SELECT FROM listing_due WHERE due_at <= now() ORDER BY id LIMIT 1) AS due;
