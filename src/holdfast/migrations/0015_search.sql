-- 0015_search.sql: what can be searched for. A copy of the catalogue, made of words, kept by search alone.
--
-- Nothing here is the truth: `holdfast search reindex` writes it all anew. It needs no extension and no
-- locale: words are made in search/word.py and compared by code point ("C").

-- An event that can still be seen.
CREATE TABLE listing (
    event_id         bigint           PRIMARY KEY,
    title            text             NOT NULL,
    kind             text             NOT NULL,
    language         text             NOT NULL,             -- folded, as search/word.py does
    genre            text             NOT NULL,             -- folded
    language_name    text             NOT NULL,
    genre_name       text             NOT NULL,
    cities           text[]           NOT NULL,
    dates            date[]           NOT NULL,             -- local dates of its shows
    currency         text             NOT NULL,             -- of its next show
    from_price_minor bigint           NOT NULL,             -- of the cheapest show in that currency
    ends_at          timestamptz      NOT NULL,             -- of its last show
    -- What results are ordered by, as numbers that grow towards the end of the list.
    soonest_s        double precision NOT NULL,             -- start of its next show, in seconds since 1970
    unrated          double precision NOT NULL,             -- 10 - rating; 10 while nobody has rated it
    unpopular        double precision NOT NULL DEFAULT 0,   -- minus the seats taken in its shows to come
    brief            tsvector         NOT NULL,             -- A title, B people, C place and sort
    doc              tsvector         NOT NULL,             -- the same, and D description
    words            text[]           NOT NULL,             -- those of `brief`, for listing_word
    written_at       timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX listings_by_word ON listing USING gin (doc) WITH (fastupdate = off);
CREATE INDEX listings_by_brief_word ON listing USING gin (brief) WITH (fastupdate = off);
CREATE INDEX listings_by_time ON listing (soonest_s, event_id);
CREATE INDEX listings_by_rating ON listing (unrated, event_id);
CREATE INDEX listings_by_popularity ON listing (unpopular, event_id);
CREATE INDEX listings_by_end ON listing (ends_at);

-- A show of it.
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
    taken            int         NOT NULL,                  -- held, booked or blocked; some seconds old
    wanted           int         NOT NULL,                  -- held or booked
    accessible       boolean     NOT NULL                   -- its hall has spaces for wheelchairs
);
CREATE INDEX listed_shows_of_an_event ON listing_show (event_id, starts_at);
CREATE INDEX listed_shows_of_a_venue ON listing_show (venue_id, local_date);
CREATE INDEX listed_shows_of_a_city ON listing_show (city, local_date);
CREATE INDEX listed_shows_by_date ON listing_show (local_date);
CREATE INDEX listed_shows_by_end ON listing_show (ends_at);

-- Where it is.
CREATE TABLE listing_venue (
    venue_id    bigint           PRIMARY KEY,
    name        text             NOT NULL,
    city        text             NOT NULL,
    postal_code text             NOT NULL,                  -- folded, without spaces
    lat         double precision NOT NULL,
    lon         double precision NOT NULL,
    doc         tsvector         NOT NULL,                  -- words of its name and its city
    written_at  timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX listed_venues_by_latitude ON listing_venue (lat);
CREATE INDEX listed_venues_by_postal_code ON listing_venue (postal_code COLLATE "C");
CREATE INDEX listed_venues_by_word ON listing_venue USING gin (doc);

-- Every word of titles, people and places, and how many listings have it. `keys`: see search/spelling.py.
CREATE TABLE listing_word (
    word text   COLLATE "C" PRIMARY KEY,
    uses int    NOT NULL,
    keys text[] COLLATE "C" NOT NULL
);
CREATE INDEX words_by_key ON listing_word USING gin (keys) WITH (fastupdate = off);

-- What has changed and is to be written anew: an event as a whole, or only the counts of a show.
CREATE TABLE listing_due (
    what    text        NOT NULL,
    id      bigint      NOT NULL,
    due_at  timestamptz NOT NULL,
    version bigint      NOT NULL DEFAULT 1,                  -- raised whenever it changes while it is due
    PRIMARY KEY (what, id),
    CONSTRAINT an_event_or_the_counts_of_a_show CHECK (what IN ('event', 'counts'))
);

-- Listings with these words and of this sort that can still be seen; NULL: any. `p_where` the words are: all
-- in `brief`, not all of them there (`rest`), or anywhere (`doc`). Short enough to be planned as a part of
-- the query that asks, like a view with parameters.
CREATE FUNCTION listings_asked(p_words tsquery, p_where text, p_kind text, p_language text, p_genre text)
RETURNS SETOF listing LANGUAGE sql STABLE AS $$
    SELECT *
      FROM listing
     WHERE (p_words IS NULL OR CASE p_where WHEN 'brief' THEN brief @@ p_words
                                            WHEN 'rest' THEN doc @@ p_words AND NOT brief @@ p_words
                                            ELSE doc @@ p_words END)
       AND (p_kind IS NULL OR kind = p_kind)
       AND (p_language IS NULL OR language = p_language)
       AND (p_genre IS NULL OR genre = p_genre)
       AND ends_at > now();
$$;

-- Shows to come at these places, on these local dates, from these prices on; NULL: any. The same for shows.
CREATE FUNCTION listed_shows_asked(
    p_city text, p_venues bigint[], p_date_from date, p_date_to date, p_currency text,
    p_price_min bigint, p_price_max bigint, p_available boolean, p_accessible boolean
) RETURNS SETOF listing_show LANGUAGE sql STABLE AS $$
    SELECT *
      FROM listing_show
     WHERE (p_city IS NULL OR city = p_city)
       AND (p_venues IS NULL OR venue_id = ANY (p_venues))
       AND (p_date_from IS NULL OR local_date >= p_date_from)
       AND (p_date_to IS NULL OR local_date <= p_date_to)
       AND (p_currency IS NULL OR currency = p_currency)
       AND (p_price_min IS NULL OR from_price_minor >= p_price_min)
       AND (p_price_max IS NULL OR from_price_minor <= p_price_max)
       AND (NOT p_available OR (taken < seats AND opens_at <= now() AND closes_at > now()))
       AND (NOT p_accessible OR accessible)
       AND ends_at > now();
$$;

-- What was there before search is written by the first worker that looks.
INSERT INTO listing_due (what, id, due_at) SELECT 'event', id, now() FROM event;

-- What changes in a listing without a change of its show is told, too: no way of changing it goes round this.
CREATE FUNCTION tell_of_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    VALUES (0, TG_TABLE_NAME || '.changed', jsonb_build_object(TG_TABLE_NAME || '_id', NEW.id));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_changed_event AFTER UPDATE ON event
    FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION tell_of_change();
CREATE TRIGGER tell_of_changed_venue AFTER UPDATE ON venue
    FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION tell_of_change();
CREATE TRIGGER tell_of_changed_city AFTER UPDATE ON city
    FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION tell_of_change();
