-- 0021_search_speed.sql: counts by facet that nobody waits for.

-- How many events there are in all, and of each kind, by facet: what a search without words is answered with.
-- Counted by a duty; whoever asks reads a row.
CREATE TABLE listing_tally (
    kind       text        PRIMARY KEY,                     -- '': of any kind
    tally      text        NOT NULL,                        -- JSON, as search/pages.py has it
    counted_at timestamptz NOT NULL DEFAULT now()
);

-- The cheapest first, without sorting all there are. The key is a number that pages are cut at: a float8.
CREATE INDEX listings_by_price ON listing ((from_price_minor::float8), event_id);

-- The soonest of shows anywhere, without looking at all of them.
CREATE INDEX listed_shows_by_start ON listing_show (starts_at);
