-- 0010_search.sql: the search index, a copy of the catalogue made of words.
--
-- Nothing here is the source of truth: `holdfast search reindex` rebuilds all of it. It needs no extension
-- and no locale: words are normalised in Python (search) and compared by code point ("C").

-- An event with at least one show to come.
-- owner: search
CREATE TABLE listing (
    event_id         bigint           PRIMARY KEY,
    title            text             NOT NULL,
    kind             text             NOT NULL,
    language         text             NOT NULL,             -- normalised
    genre            text             NOT NULL,             -- normalised
    language_name    text             NOT NULL,
    genre_name       text             NOT NULL,
    cities           text[]           NOT NULL,
    dates            date[]           NOT NULL,             -- local dates of its shows
    currency         text             NOT NULL,             -- of its next show
    from_price_minor bigint           NOT NULL,             -- of the cheapest show in that currency
    ends_at          timestamptz      NOT NULL,             -- of its last show
    -- Sort keys: numbers that grow towards the end of the list.
    soonest_s        double precision NOT NULL,             -- start of its next show, in seconds since 1970
    unrated          double precision NOT NULL,             -- 10 - rating; 10: not rated yet
    unpopular        double precision NOT NULL DEFAULT 0,   -- minus the seats taken in its shows to come
    brief            tsvector         NOT NULL,             -- A title, B people, C place and kind
    doc              tsvector         NOT NULL,             -- the same and D description
    words            text[]           NOT NULL,             -- those of `brief`, for listing_word
    written_at       timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX listings_by_word ON listing USING gin (doc) WITH (fastupdate = off);
CREATE INDEX listings_by_brief_word ON listing USING gin (brief) WITH (fastupdate = off);
CREATE INDEX listings_by_time ON listing (soonest_s, event_id);
CREATE INDEX listings_by_rating ON listing (unrated, event_id);
CREATE INDEX listings_by_popularity ON listing (unpopular, event_id);
CREATE INDEX listings_by_end ON listing (ends_at);
-- Cheapest first without sorting all rows. The key is a float8, because pages are cut at one.
CREATE INDEX listings_by_price ON listing ((from_price_minor::float8), event_id);

-- A show of a listed event.
-- owner: search
CREATE TABLE listing_show (
    show_id          bigint      PRIMARY KEY,
    event_id         bigint      NOT NULL REFERENCES listing ON DELETE CASCADE,
    venue_id         bigint      NOT NULL,
    city             text        NOT NULL,
    local_date       date        NOT NULL,
    starts_at        timestamptz NOT NULL,
    ends_at          timestamptz NOT NULL,
    opens_at         timestamptz NOT NULL,
    closes_at        timestamptz NOT NULL,
    currency         text        NOT NULL,
    from_price_minor bigint      NOT NULL,                  -- all-in
    seats            int         NOT NULL,
    taken            int         NOT NULL,                  -- held, booked or blocked; seconds old
    wanted           int         NOT NULL,                  -- held or booked
    accessible       boolean     NOT NULL                   -- its hall has wheelchair spaces
);
CREATE INDEX listed_shows_of_an_event ON listing_show (event_id, starts_at);
CREATE INDEX listed_shows_of_a_venue ON listing_show (venue_id, local_date);
CREATE INDEX listed_shows_of_a_city ON listing_show (city, local_date);
CREATE INDEX listed_shows_by_date ON listing_show (local_date);
CREATE INDEX listed_shows_by_end ON listing_show (ends_at);
-- The soonest shows anywhere, without reading all of them.
CREATE INDEX listed_shows_by_start ON listing_show (starts_at);

-- The venues of listed shows.
-- owner: search
CREATE TABLE listing_venue (
    venue_id    bigint           PRIMARY KEY,
    name        text             NOT NULL,
    city        text             NOT NULL,
    postal_code text             NOT NULL,                  -- normalised, without spaces
    lat         double precision NOT NULL,
    lon         double precision NOT NULL,
    doc         tsvector         NOT NULL,                  -- words of its name and city
    written_at  timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX listed_venues_by_latitude ON listing_venue (lat);
CREATE INDEX listed_venues_by_postal_code ON listing_venue (postal_code COLLATE "C");
CREATE INDEX listed_venues_by_word ON listing_venue USING gin (doc);

-- Every word of titles, people and places, and how many listings have it. `keys`: deletion keys for typos.
-- owner: search
CREATE TABLE listing_word (
    word text   COLLATE "C" PRIMARY KEY,
    uses int    NOT NULL,
    keys text[] COLLATE "C" NOT NULL
);
CREATE INDEX words_by_key ON listing_word USING gin (keys) WITH (fastupdate = off);

-- What has changed and must be indexed again: a whole event, or only the counts of a show.
-- owner: search
CREATE TABLE listing_due (
    what    text        NOT NULL,
    id      bigint      NOT NULL,
    due_at  timestamptz NOT NULL,
    version bigint      NOT NULL DEFAULT 1,                  -- raised when it changes again while it is due
    PRIMARY KEY (what, id),
    CONSTRAINT an_event_or_the_counts_of_a_show CHECK (what IN ('event', 'counts'))
);

-- Facet counts of a search without words, per kind of event. Counted by a job, so that a request reads a row.
-- owner: search
CREATE TABLE listing_tally (
    kind       text        PRIMARY KEY,                     -- '': of any kind
    tally      text        NOT NULL,                        -- JSON
    counted_at timestamptz NOT NULL DEFAULT now()
);
