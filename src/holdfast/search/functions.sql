-- search/functions.sql: the conditions that every search shares.
--
-- Short SQL functions, so that the planner inlines them into the query that calls them, like views with
-- parameters.

-- Listings with these words and of this kind that have a show to come; NULL: any. p_where says where the
-- words are: all in `brief`, not all of them there (`rest`), or anywhere (`doc`).
CREATE OR REPLACE FUNCTION matching_listings(
    p_words tsquery, p_where text, p_kind text, p_language text, p_genre text
) RETURNS SETOF listing LANGUAGE sql STABLE AS $$
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

-- Future shows at these places, on these local dates, in this price range; NULL: any.
CREATE OR REPLACE FUNCTION matching_shows(
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
