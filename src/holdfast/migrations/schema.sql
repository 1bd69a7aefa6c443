-- The whole picture: every step, in order. Written by `make docs`; change the steps.

-- 0001_people.sql: accounts, the sessions they opened, and the keys that sign for them.
CREATE TYPE account_role AS ENUM ('fan', 'organiser', 'gate', 'admin');

CREATE TABLE account (
    id            bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text         NOT NULL,
    name          text         NOT NULL,
    password_hash text,                             -- null: a guest; nobody can log in
    role          account_role NOT NULL DEFAULT 'fan',
    version       int          NOT NULL DEFAULT 1,  -- tokens of an older version are refused
    changed_at    timestamptz  NOT NULL DEFAULT now(),  -- when the version was raised
    created_at    timestamptz  NOT NULL DEFAULT now(),
    CONSTRAINT no_two_accounts_share_an_email UNIQUE (email),
    CONSTRAINT an_email_has_one_spelling CHECK (email = lower(email)),
    CONSTRAINT an_email_is_short CHECK (char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT an_account_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120)
);
-- Raised versions of the last minutes; every web process reads them every few seconds.
CREATE INDEX raised_versions ON account (changed_at) WHERE version > 1;

-- One login and all the refresh tokens that followed from it.
CREATE TABLE session (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES account ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz,
    ended_by   text,
    CONSTRAINT an_end_has_a_reason CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CONSTRAINT the_reasons_to_end CHECK (ended_by IN ('logout', 'password', 'reuse', 'surplus'))
);
CREATE INDEX open_sessions_of_an_account ON session (account_id, id) WHERE ended_at IS NULL;
CREATE INDEX ended_sessions ON session (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX expiring_sessions ON session (expires_at);

-- A refresh token is used once. The used ones stay, because one that comes back was stolen.
CREATE TABLE refresh_token (
    hash       bytea       PRIMARY KEY,             -- SHA-256; the token itself is known to its holder alone
    session_id bigint      NOT NULL REFERENCES session ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX refresh_tokens_of_a_session ON refresh_token (session_id);
CREATE INDEX expiring_refresh_tokens ON refresh_token (expires_at);

-- Private keys (JWK). Every process signs with the youngest whose time has come and accepts all of them.
CREATE TABLE signing_key (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    jwk        text        NOT NULL,
    signs_from timestamptz NOT NULL
);

-- 0002_catalogue.sql: what can be seen, where, when and for how much.
-- Lengths and ranges are the same as in catalogue/event.py and catalogue/show.py: the forms refuse first,
-- these are the last word.

CREATE TABLE city (
    id         bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug       text             NOT NULL,
    name       text             NOT NULL,
    country    text             NOT NULL,          -- ISO 3166 alpha-2
    timezone   text             NOT NULL,          -- IANA name: a date in a listing is a date here
    lat        double precision NOT NULL,
    lon        double precision NOT NULL,
    updated_at timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT no_two_cities_share_a_slug UNIQUE (slug),
    CONSTRAINT a_city_has_a_short_slug CHECK (char_length(slug) BETWEEN 1 AND 60),
    CONSTRAINT a_city_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT a_country_is_two_letters CHECK (country ~ '^[A-Z]{2}$'),
    CONSTRAINT a_city_is_on_earth CHECK (lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 180)
);

CREATE TABLE venue (
    id           bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    city_id      bigint           NOT NULL REFERENCES city,
    organiser_id bigint,                            -- null: the house's, which every organiser may use
    name         text             NOT NULL,
    address      text             NOT NULL,
    postal_code  text             NOT NULL,
    lat          double precision NOT NULL,
    lon          double precision NOT NULL,
    updated_at   timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT a_venue_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT an_address_fits_an_envelope CHECK (char_length(address) <= 300),
    CONSTRAINT a_postal_code_is_short CHECK (char_length(postal_code) <= 16),
    CONSTRAINT a_venue_is_on_earth CHECK (lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 180)
);
CREATE INDEX venues_of_a_city ON venue (city_id);

-- A layout is its content: the same drawing is one row, however many halls and shows use it.
CREATE TABLE layout (
    hash       text        PRIMARY KEY,
    name       text        NOT NULL,
    body       jsonb       NOT NULL,
    seats      int         NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_layout_has_seats CHECK (seats > 0)
);

-- Who has brought a layout in: an organiser sees these, and those of the house's halls.
CREATE TABLE layout_keeper (
    hash         text   NOT NULL REFERENCES layout,
    organiser_id bigint NOT NULL,
    PRIMARY KEY (hash, organiser_id)
);

CREATE TABLE hall (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    venue_id    bigint      NOT NULL REFERENCES venue,
    name        text        NOT NULL,
    layout_hash text        NOT NULL REFERENCES layout,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_hall_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT no_two_halls_of_a_venue_share_a_name UNIQUE (venue_id, name)
);

CREATE TABLE event (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organiser_id bigint      NOT NULL,
    kind         text        NOT NULL,
    title        text        NOT NULL,
    description  text        NOT NULL DEFAULT '',
    language     text        NOT NULL DEFAULT '',
    genre        text        NOT NULL DEFAULT '',
    rating       numeric(3, 1),                     -- out of ten; null while nobody has rated it
    duration_min int         NOT NULL,
    poster       text        NOT NULL DEFAULT '',   -- a URL; empty: the one we draw
    people       text[]      NOT NULL DEFAULT '{}',
    featured     boolean     NOT NULL DEFAULT false,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT an_event_is_a_film_a_concert_or_a_match CHECK (kind IN ('film', 'concert', 'match')),
    CONSTRAINT an_event_has_a_title CHECK (char_length(title) BETWEEN 1 AND 160),
    CONSTRAINT a_description_is_read_in_minutes CHECK (char_length(description) <= 4000),
    CONSTRAINT an_event_lasts_a_day_at_most CHECK (duration_min BETWEEN 1 AND 1440),
    CONSTRAINT a_rating_is_out_of_ten CHECK (rating BETWEEN 0 AND 10)
);
CREATE INDEX events_of_an_organiser ON event (organiser_id);
CREATE INDEX featured_events ON event (id) WHERE featured;

CREATE TABLE show (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        bigint      NOT NULL REFERENCES event,
    hall_id         bigint      NOT NULL REFERENCES hall,
    layout_hash     text        NOT NULL REFERENCES layout,   -- the hall's of that time; it only grows
    starts_at       timestamptz NOT NULL,
    ends_at         timestamptz NOT NULL,
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    currency        text        NOT NULL,
    hold_ttl_s      int         NOT NULL,
    owner_seats_max int         NOT NULL,
    order_seats_max int         NOT NULL,
    orphan_rule     text        NOT NULL,
    cancelled       boolean     NOT NULL DEFAULT false,
    revision        bigint      NOT NULL DEFAULT 1,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_show_ends_after_it_starts CHECK (starts_at < ends_at),
    CONSTRAINT a_sale_closes_after_it_opens CHECK (opens_at < closes_at),
    CONSTRAINT a_sale_closes_before_the_show_ends CHECK (closes_at <= ends_at),
    CONSTRAINT a_currency_is_three_letters CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT a_hold_lasts_seconds_to_an_hour CHECK (hold_ttl_s BETWEEN 1 AND 3600),
    CONSTRAINT an_owner_may_have_a_seat CHECK (owner_seats_max BETWEEN 1 AND 1000),
    CONSTRAINT an_order_has_one_to_ten_seats CHECK (order_seats_max BETWEEN 1 AND 10),
    CONSTRAINT an_orphan_rule_is_known CHECK (orphan_rule IN ('off', 'warn', 'refuse'))
);
CREATE INDEX shows_by_time ON show (starts_at);
CREATE INDEX shows_of_an_event ON show (event_id, starts_at);
CREATE INDEX shows_of_a_hall ON show (hall_id, starts_at);

CREATE TABLE price (
    show_id     bigint NOT NULL REFERENCES show,
    category    text   NOT NULL,
    price_minor bigint NOT NULL,
    PRIMARY KEY (show_id, category),
    CONSTRAINT a_price_is_not_negative CHECK (price_minor BETWEEN 0 AND 1000000000)
);

-- A show as listings tell it. The price and the local date are computed only where a query asks for them.
CREATE VIEW show_card AS
SELECT show.id AS show_id, show.event_id, show.hall_id, hall.venue_id, venue.city_id,
       event.organiser_id, event.kind, event.title,
       hall.name AS hall, venue.name AS venue, city.slug AS city, city.timezone,
       show.starts_at, show.ends_at, show.opens_at, show.closes_at,
       (show.starts_at AT TIME ZONE city.timezone)::date AS local_date,
       show.currency, show.cancelled, show.layout_hash, layout.seats,
       show.hold_ttl_s, show.owner_seats_max, show.order_seats_max, show.orphan_rule, show.revision,
       (SELECT min(price.price_minor) FROM price WHERE price.show_id = show.id) AS from_price_minor
  FROM show
  JOIN event ON event.id = show.event_id
  JOIN hall ON hall.id = show.hall_id
  JOIN venue ON venue.id = hall.venue_id
  JOIN city ON city.id = venue.city_id
  JOIN layout ON layout.hash = show.layout_hash;

-- 0003_ledger.sql: bookings, and the key no double booking gets past.
--
-- show_id is in every key, so that the same tables run on one server, on shards chosen by show, and on Citus.

CREATE TYPE booking_state AS ENUM
    ('held', 'paying', 'confirmed', 'expired', 'cancelled', 'failed', 'refunded', 'blocked');

-- Numbers of bookings and fences: one sequence, so that a fence always grows. Never from Redis: a counter
-- there goes back when a fail-over loses writes.
CREATE SEQUENCE ledger_number;

-- What a show's sale needs to know at the moment of a hold. Its row is the lock between holds (shared)
-- and whoever writes the map anew (exclusive).
CREATE TABLE sale (
    show_id         bigint      PRIMARY KEY,
    epoch           bigint      NOT NULL DEFAULT 1,      -- which writing of the map is the current one
    map_stale       boolean     NOT NULL DEFAULT true,   -- Redis must not sell from its map before a rebuild
    marked_at       timestamptz NOT NULL DEFAULT now(),  -- when the epoch was raised last
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    cancelled       boolean     NOT NULL DEFAULT false,
    owner_seats_max int         NOT NULL,
    revision        bigint      NOT NULL,                -- the catalogue's: prices and layout as of then
    CONSTRAINT a_sale_closes_after_it_opens CHECK (closes_at > opens_at)
);

CREATE TABLE booking (
    show_id      bigint        NOT NULL,
    number       bigint        NOT NULL,
    owner_id     bigint        NOT NULL,
    fence        bigint        NOT NULL,                 -- changes at open and at every attempt to pay
    state        booking_state NOT NULL,
    request_id   text          NOT NULL,                 -- the same id gives the same booking
    body_hash    bigint        NOT NULL,
    claim_id     text          NOT NULL,                 -- names the claim in Redis
    seats        int[]         NOT NULL,
    prices_minor bigint[]      NOT NULL,                 -- of each seat, frozen at hold
    amount_minor bigint        NOT NULL,
    currency     text          NOT NULL,
    note         text          NOT NULL DEFAULT '',      -- why these seats; of a block: its name
    counts       boolean       NOT NULL DEFAULT true,    -- towards the owner's limit; a block does not
    opened_at    timestamptz   NOT NULL,
    expires_at   timestamptz   NOT NULL,
    confirmed_at timestamptz,
    PRIMARY KEY (show_id, number),
    CONSTRAINT one_booking_a_request UNIQUE (owner_id, show_id, request_id),
    CONSTRAINT a_price_for_every_seat CHECK (cardinality(seats) = cardinality(prices_minor)),
    CONSTRAINT no_negative_amount CHECK (amount_minor >= 0),
    CONSTRAINT confirmed_has_a_time CHECK ((confirmed_at IS NULL) = (state NOT IN ('confirmed', 'refunded')))
);

CREATE INDEX lapsing ON booking (expires_at) WHERE state = 'held';

-- The last word. Redis decides quickly; this key decides for good. A row exists while its booking is HELD,
-- PAYING, CONFIRMED or BLOCKED, as TAKES_SEATS in ledger/booking.py says too, and is deleted when it lets go.
CREATE TABLE taken_seat (
    show_id bigint NOT NULL,
    seat    int    NOT NULL,
    number  bigint NOT NULL,
    CONSTRAINT one_live_booking_a_seat PRIMARY KEY (show_id, seat)
);

-- Seats a person has in a show: the limit holds even when Redis has forgotten everything.
CREATE TABLE owner_count (
    show_id   bigint NOT NULL,
    owner_id  bigint NOT NULL,
    seats     int    NOT NULL,
    seats_max int    NOT NULL,
    PRIMARY KEY (show_id, owner_id),
    CONSTRAINT nobody_has_more_seats_than_allowed CHECK (seats BETWEEN 0 AND seats_max)
);

-- Every move of every booking, for ever.
CREATE TABLE booking_move (
    show_id  bigint        NOT NULL,
    number   bigint        NOT NULL,
    id       bigint        NOT NULL GENERATED ALWAYS AS IDENTITY,
    move     text          NOT NULL,
    state    booking_state NOT NULL,                     -- the state after the move
    fence    bigint        NOT NULL,
    actor_id bigint,                                     -- NULL: time did it
    at       timestamptz   NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, number, id)
);

-- Facts to be told, written in the transaction that made them true. A row stays until everyone has heard it.
-- What never changes of a booking (owner, seats, prices) is not repeated here: the relay reads it there.
CREATE TABLE outbox (
    id      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    show_id bigint      NOT NULL,
    number  bigint,
    kind    text        NOT NULL,
    ends_at timestamptz,                                 -- of booking.held: until when
    body    jsonb,                                       -- of facts that say more
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, show_id)
);

-- The drawing in ledger/booking.py, where nobody can go round it.
CREATE FUNCTION booking_moves_as_drawn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'), ('paying', 'failed'),
        ('expired', 'confirmed'), ('confirmed', 'refunded'), ('blocked', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a booking does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER booking_moves_as_drawn BEFORE UPDATE OF state ON booking
    FOR EACH ROW EXECUTE FUNCTION booking_moves_as_drawn();

-- 0004_web.sql: answers kept under an Idempotency-Key, so that a retried request has one effect.
CREATE SEQUENCE kept_answer_attempt;

CREATE TABLE kept_answer (
    caller     text        NOT NULL,  -- "account 7", or "address 192.0.2.1" for somebody not signed in
    route      text        NOT NULL,
    key_hash   bytea       NOT NULL,  -- the key itself is not stored: it salts body_hash and seals answer
    body_hash  bytea       NOT NULL,
    attempt    bigint      NOT NULL DEFAULT nextval('kept_answer_attempt'),  -- who has it writes the answer
    started_at timestamptz NOT NULL DEFAULT now(),
    answer     bytea,                 -- NULL: the attempt has not finished
    PRIMARY KEY (caller, route, key_hash)
);

CREATE INDEX kept_answer_by_age ON kept_answer (started_at);

-- 0005_ledger_functions.sql: the moves of bookings, many at a time, each in one round trip.
--
-- Order of locks in all of them, so that no batches deadlock: sale (shared) → bookings → seats → counters,
-- each in key order. A booking that somebody else is closing is skipped, never waited for.

-- Audit row and fact of many bookings that have just moved.
CREATE FUNCTION record_moves(p_show bigint[], p_number bigint[], p_move text, p_actor bigint) RETURNS void
LANGUAGE sql AS $$
    WITH moved AS (
        SELECT booking.*
          FROM unnest(p_show, p_number) WITH ORDINALITY AS asked (show_id, number, ord)
          JOIN booking USING (show_id, number)
      ORDER BY ord
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, p_move, state, fence, p_actor FROM moved
    )
    INSERT INTO outbox (show_id, number, kind) SELECT show_id, number, 'booking.' || state FROM moved;
$$;

-- Seats of bookings that take seats no more. The caller has locked and moved the rows.
CREATE FUNCTION let_seats_go(p_show bigint[], p_number bigint[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM taken_seat
     USING (SELECT booking.show_id, booking.number, unnest(booking.seats) AS seat
              FROM booking
              JOIN unnest(p_show, p_number) AS asked (show_id, number) USING (show_id, number)) AS gone
     WHERE taken_seat.show_id = gone.show_id
       AND taken_seat.seat = gone.seat
       AND taken_seat.number = gone.number;
$$;

-- Their owners' counters. Last of all locks, and in key order.
CREATE FUNCTION count_down(p_show bigint[], p_number bigint[]) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, sum(cardinality(booking.seats))::int AS seats
          FROM booking JOIN unnest(p_show, p_number) AS asked (show_id, number) USING (show_id, number)
         WHERE booking.counts
         GROUP BY 1, 2
    ), locked AS (
        SELECT owner_count.show_id, owner_count.owner_id, gone.seats
          FROM owner_count JOIN gone USING (show_id, owner_id)
      ORDER BY owner_count.show_id, owner_count.owner_id
           FOR UPDATE OF owner_count
    )
    UPDATE owner_count SET seats = owner_count.seats - locked.seats
      FROM locked
     WHERE owner_count.show_id = locked.show_id AND owner_count.owner_id = locked.owner_id;
$$;

-- Lapsed HELD bookings among these become EXPIRED. Rows somebody else has in hand are skipped.
CREATE FUNCTION expire_lapsed(p_show bigint[], p_number bigint[]) RETURNS SETOF booking LANGUAGE plpgsql AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH lapsed AS (
        SELECT booking.show_id, booking.number
          FROM unnest(p_show, p_number) AS asked (show_id, number)
          JOIN booking USING (show_id, number)
         WHERE booking.state = 'held' AND booking.expires_at <= now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking SKIP LOCKED
    ), moved AS (
        UPDATE booking SET state = 'expired'
          FROM lapsed
         WHERE booking.show_id = lapsed.show_id AND booking.number = lapsed.number
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM let_seats_go(v_show, v_number);
    PERFORM count_down(v_show, v_number);
    PERFORM record_moves(v_show, v_number, 'expire', NULL);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

-- Owners cancel what they hold. A row that is not HELD any more, or whose fence has moved on, is left alone
-- and is missing from the answer.
CREATE FUNCTION cancel_holds(
    p_show bigint[], p_number bigint[], p_fence bigint[], p_from booking_state, p_actor bigint
) RETURNS SETOF booking LANGUAGE plpgsql AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH locked AS (
        SELECT booking.show_id, booking.number
          FROM unnest(p_show, p_number, p_fence) AS asked (show_id, number, fence)
          JOIN booking USING (show_id, number)
         WHERE booking.fence = asked.fence AND booking.state = p_from
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking
    ), moved AS (
        UPDATE booking SET state = 'cancelled'
          FROM locked
         WHERE booking.show_id = locked.show_id AND booking.number = locked.number AND booking.state = p_from
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM let_seats_go(v_show, v_number);
    PERFORM count_down(v_show, v_number);
    PERFORM record_moves(v_show, v_number,
                         CASE p_from WHEN 'blocked' THEN 'unblock' ELSE 'cancel' END, p_actor);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

-- Confirm many. A row that is not PAYING (or HELD with nothing to pay and time left), or whose owner or fence
-- differs, is left alone and is missing from the answer.
CREATE FUNCTION confirm_bookings(p_show bigint[], p_number bigint[], p_owner bigint[], p_fence bigint[])
RETURNS SETOF booking LANGUAGE plpgsql AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'confirmed', confirmed_at = now()
          FROM unnest(p_show, p_number, p_owner, p_fence) AS asked (show_id, number, owner_id, fence)
         WHERE booking.show_id = asked.show_id
           AND booking.number = asked.number
           AND booking.owner_id = asked.owner_id
           AND booking.fence = asked.fence
           AND (booking.state = 'paying'
                OR (booking.state = 'held' AND booking.amount_minor = 0 AND booking.expires_at > now()))
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM record_moves(v_show, v_number, 'confirm', NULL);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

-- Keep seats back under the same key as bookings. All of them, or none: who has one of them is in the answer.
CREATE FUNCTION block_seats(p_show bigint, p_seats int[], p_note text, p_actor bigint)
RETURNS TABLE (number bigint, taken int[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_number bigint := nextval('ledger_number');
    v_taken  int[];
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    PERFORM expire_lapsed(array_agg(p_show), array_agg(t.number))
       FROM taken_seat t WHERE t.show_id = p_show AND t.seat = ANY (p_seats);
    SELECT array_agg(t.seat ORDER BY t.seat) INTO v_taken
      FROM taken_seat t WHERE t.show_id = p_show AND t.seat = ANY (p_seats);
    IF v_taken IS NULL THEN
        INSERT INTO taken_seat (show_id, seat, number)  -- a race here is a 23505, asked again
        SELECT p_show, seat, v_number FROM unnest(p_seats) AS seat ORDER BY seat;
        INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id,
                             seats, prices_minor, amount_minor, currency,
                             note, counts, opened_at, expires_at)
        VALUES (p_show, v_number, p_actor, v_number, 'blocked', 'block:' || v_number, 0, 'block' || v_number,
                p_seats, array_fill(0::bigint, ARRAY[cardinality(p_seats)]), 0, 'XXX',
                p_note, false, now(), now() + interval '100 years');
        PERFORM record_moves(ARRAY[p_show], ARRAY[v_number], 'block', p_actor);
    END IF;
    RETURN QUERY SELECT CASE WHEN v_taken IS NULL THEN v_number END, v_taken;
END $$;

-- 0006_open_holds.sql: winners of the race in Redis become durable, many in one round trip.
--
-- Each booking gets every seat it asked for, or nothing of it is committed. Outcomes, one a request:
--   held, confirmed (nothing to pay)  · same (this request id was answered before)
--   taken (details: who has the seats) · limit · closed · stale (the catalogue has moved on) · unmarked
--
-- The common case is five short statements over arrays. Only when a key says no is it looked into: who lost,
-- to whom, and what can still be saved.
CREATE FUNCTION open_holds(
    p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[],
    p_left_ms int[], p_revision bigint[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[], p_by_ledger boolean
) RETURNS TABLE (outcomes text[], numbers bigint[], epochs bigint[], opened_at timestamptz, details jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_outcome text[];
    v_epoch   bigint[];
    v_max     int[];
    -- of the booking opened for each request, NULL where there is none
    v_number  bigint[] := ARRAY(SELECT nextval('ledger_number') FROM generate_series(1, cardinality(p_show)));
    v_lapsed_show   bigint[];
    v_lapsed_number bigint[];
    v_details jsonb;
    v_lost    int[];
    v_easy    boolean;
BEGIN
    -- Shared with other holds, against whoever writes the map anew.
    SELECT array_agg(sale_verdict(sale, asked.revision, asked.amount, p_by_ledger) ORDER BY asked.ord),
           array_agg(coalesce(sale.epoch, 0) ORDER BY asked.ord),
           array_agg(coalesce(sale.owner_seats_max, 0) ORDER BY asked.ord)
      INTO v_outcome, v_epoch, v_max
      FROM unnest(p_show, p_revision, p_amount) WITH ORDINALITY AS asked (show_id, revision, amount, ord)
      LEFT JOIN (SELECT * FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE) AS sale
     USING (show_id);

    -- The easy way: nobody is in the way, as Redis has seen to. Seats in key order, so that two batches that
    -- want the same ones cannot wait for each other.
    v_easy := v_outcome <@ ARRAY['held', 'confirmed'];
    IF v_easy THEN
        BEGIN
            INSERT INTO booking
            SELECT * FROM booking_rows(p_show, v_number, v_outcome, p_owner, p_request, p_hash, p_claim,
                                       p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount);
            INSERT INTO taken_seat (show_id, seat, number)
            SELECT show_id, seat, number FROM seats_asked(p_show, p_seats, v_number) ORDER BY show_id, seat;
        EXCEPTION WHEN unique_violation THEN
            v_easy := false;
        END;
    END IF;

    IF NOT v_easy THEN
        -- The careful way. A known request id inserts nothing, and is answered from its first booking.
        INSERT INTO booking
        SELECT * FROM booking_rows(p_show, v_number, v_outcome, p_owner, p_request, p_hash, p_claim,
                                   p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount)
            ON CONFLICT (owner_id, show_id, request_id) DO NOTHING;
        SELECT array_agg(CASE WHEN booking.number IS NULL AND a.outcome IN ('held', 'confirmed') THEN 'same'
                              ELSE a.outcome END ORDER BY a.ord),
               array_agg(booking.number ORDER BY a.ord)
          INTO v_outcome, v_number
          FROM unnest(p_show, v_number, v_outcome) WITH ORDINALITY AS a (show_id, number, outcome, ord)
          LEFT JOIN booking USING (show_id, number);
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT show_id, seat, number FROM seats_asked(p_show, p_seats, v_number) ORDER BY show_id, seat
            ON CONFLICT DO NOTHING;
        -- Let go what has lapsed, take what came free, and see who still lacks a seat.
        SELECT array_agg(show_id), array_agg(number) INTO v_lapsed_show, v_lapsed_number
          FROM lapse_under(p_show, p_seats, v_number);
        SELECT l.lost, l.details INTO v_lost, v_details FROM losers(p_show, p_seats, v_number) AS l;
        PERFORM forget_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. coalesce(cardinality(v_lost), 0) LOOP
            v_outcome[v_lost[i]] := 'taken';
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    -- The limits: counters last of all locks, and in key order. What lapsed above is counted down first.
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM count_down(v_lapsed_show, v_lapsed_number);
        PERFORM record_moves(v_lapsed_show, v_lapsed_number, 'expire', NULL);
    END IF;
    v_lost := count_up(p_show, p_owner, v_number, p_seats, v_max);
    IF v_lost IS NOT NULL THEN
        PERFORM forget_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. cardinality(v_lost) LOOP
            v_outcome[v_lost[i]] := 'limit';
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    -- Audit row and fact of each; a booking with nothing to pay makes a second move at once.
    WITH opened AS (
        SELECT * FROM unnest(p_show, v_number, p_owner, p_left_ms) AS a (show_id, number, owner_id, left_ms)
         WHERE number IS NOT NULL
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, 'hold', 'held', number, owner_id FROM opened
    )
    INSERT INTO outbox (show_id, number, kind, ends_at)
    SELECT show_id, number, 'booking.held', now() + left_ms * interval '1 ms' FROM opened;
    IF 'confirmed' = ANY (v_outcome) THEN
        PERFORM record_moves(array_agg(show_id), array_agg(number), 'confirm', NULL)
           FROM unnest(p_show, v_number, v_outcome) AS a (show_id, number, outcome)
          WHERE outcome = 'confirmed';
    END IF;

    RETURN QUERY SELECT v_outcome, v_number, v_epoch, now(), v_details;
END $$;

-- Half a second of grace at both ends of the window: Redis decided by its own clock.
CREATE FUNCTION sale_verdict(p_sale sale, p_revision bigint, p_amount bigint, p_by_ledger boolean)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN (p_sale).show_id IS NULL OR (p_sale).cancelled
                  OR now() < (p_sale).opens_at - interval '500 ms'
                  OR now() >= (p_sale).closes_at + interval '500 ms' THEN 'closed'
                WHEN (p_sale).revision <> p_revision THEN 'stale'
                WHEN p_by_ledger AND NOT (p_sale).map_stale THEN 'unmarked'
                WHEN p_amount = 0 THEN 'confirmed'
                ELSE 'held' END;
$$;

-- The rows of booking for those that may be opened; one with nothing to pay is confirmed from the start.
CREATE FUNCTION booking_rows(
    p_show bigint[], p_number bigint[], p_outcome text[], p_owner bigint[], p_request text[], p_hash bigint[],
    p_claim text[], p_note text[], p_left_ms int[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[]
) RETURNS SETOF booking LANGUAGE sql STABLE AS $$
    SELECT show_id, number, owner_id, number AS fence, outcome::booking_state, request_id, body_hash,
           claim_id, seats::int[], prices::bigint[], amount, currency, note, true,
           now(), now() + left_ms * interval '1 ms', CASE amount WHEN 0 THEN now() END
      FROM unnest(p_show, p_number, p_outcome, p_owner, p_request, p_hash, p_claim,
                  p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount)
        AS a (show_id, number, outcome, owner_id, request_id, body_hash, claim_id,
              note, left_ms, currency, seats, prices, amount)
     WHERE outcome IN ('held', 'confirmed');
$$;

-- The asked seats of those bookings that are still in the race, one row a seat.
CREATE FUNCTION seats_asked(p_show bigint[], p_seats text[], p_number bigint[])
RETURNS TABLE (show_id bigint, seat int, number bigint, ord int) LANGUAGE sql STABLE AS $$
    SELECT a.show_id, seat, a.number, a.ord::int
      FROM unnest(p_show, p_seats, p_number) WITH ORDINALITY AS a (show_id, seats, number, ord),
           unnest(a.seats::int[]) AS seat
     WHERE a.number IS NOT NULL;
$$;

-- Lapsed bookings that stand on the asked seats become EXPIRED, and their seats go to who asked. Rows that
-- somebody else is closing are skipped: their seats are not taken here, so nobody waits for anybody.
CREATE FUNCTION lapse_under(p_show bigint[], p_seats text[], p_number bigint[])
RETURNS TABLE (show_id bigint, number bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH lapsed AS (
        SELECT booking.show_id, booking.number
          FROM booking
         WHERE (booking.show_id, booking.number) IN (
                   SELECT taken_seat.show_id, taken_seat.number
                     FROM seats_asked(p_show, p_seats, p_number) JOIN taken_seat USING (show_id, seat))
           AND booking.state = 'held' AND booking.expires_at <= now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE booking SET state = 'expired' FROM lapsed
         WHERE booking.show_id = lapsed.show_id AND booking.number = lapsed.number
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(moved.show_id), array_agg(moved.number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM let_seats_go(v_show, v_number);
    INSERT INTO taken_seat (show_id, seat, number)
    SELECT freed.show_id, freed.seat, s.number
      FROM (SELECT show_id, unnest(seats) AS seat FROM booking
              JOIN unnest(v_show, v_number) AS l (show_id, number) USING (show_id, number)) AS freed
      JOIN seats_asked(p_show, p_seats, p_number) AS s USING (show_id, seat)
     ORDER BY freed.show_id, freed.seat, s.ord
        ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM unnest(v_show, v_number);
END $$;

-- Who lacks a seat, and who has it: the map in Redis does not know of them, and is told.
CREATE FUNCTION losers(p_show bigint[], p_seats text[], p_number bigint[])
RETURNS TABLE (lost int[], details jsonb) LANGUAGE sql AS $$
    WITH missing AS (
        SELECT s.ord, s.seat,
               booking.claim_id, booking.owner_id, booking.seats, booking.state, booking.expires_at
          FROM seats_asked(p_show, p_seats, p_number) AS s
          LEFT JOIN taken_seat USING (show_id, seat)
          LEFT JOIN booking ON booking.show_id = taken_seat.show_id AND booking.number = taken_seat.number
         WHERE taken_seat.number IS DISTINCT FROM s.number
    )
    SELECT array_agg(DISTINCT ord),
           jsonb_agg(jsonb_build_object(
               'ord', ord, 'seat', seat,
               'claim_id', claim_id, 'owner_id', owner_id, 'seats', seats, 'state', state,
               'left_ms', ceil(extract(epoch FROM expires_at - now()) * 1000)::bigint))
      FROM missing;
$$;

-- Of a loser nothing is committed: no booking, no seat.
CREATE FUNCTION forget_openings(p_show bigint[], p_number bigint[], p_lost int[])
RETURNS void LANGUAGE sql AS $$
    WITH lost AS (
        SELECT p_show[i] AS show_id, p_number[i] AS number
          FROM unnest(p_lost) AS i
         WHERE p_number[i] IS NOT NULL
    ), gone AS (
        DELETE FROM taken_seat
         USING (SELECT booking.show_id, booking.number, unnest(booking.seats) AS seat
                  FROM booking JOIN lost USING (show_id, number)) AS had
         WHERE taken_seat.show_id = had.show_id
           AND taken_seat.seat = had.seat
           AND taken_seat.number = had.number
    )
    DELETE FROM booking USING lost WHERE booking.show_id = lost.show_id AND booking.number = lost.number;
$$;

-- Count the new seats of each owner. Returns the places of those over their limit: of an owner with several
-- bookings in the batch the first ones that fit are kept.
CREATE FUNCTION count_up(p_show bigint[], p_owner bigint[], p_number bigint[], p_seats text[], p_max int[])
RETURNS int[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_count int[] := ARRAY(SELECT cardinality(seats::int[]) FROM unnest(p_seats) AS seats);
    v_over  int[];
    v_lost  int[];
BEGIN
    WITH counted AS (
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
        SELECT show_id, owner_id, sum(seats)::int, max(seats_max)
          FROM unnest(p_show, p_owner, p_number, v_count, p_max)
            AS a (show_id, owner_id, number, seats, seats_max)
         WHERE number IS NOT NULL
      GROUP BY show_id, owner_id
        HAVING sum(seats) <= max(seats_max)
      ORDER BY show_id, owner_id
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max
         WHERE owner_count.seats + excluded.seats <= excluded.seats_max
     RETURNING show_id, owner_id
    )
    SELECT array_agg(ord ORDER BY show_id, owner_id, ord) INTO v_over
      FROM unnest(p_show, p_owner, p_number) WITH ORDINALITY AS a (show_id, owner_id, number, ord)
     WHERE number IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM counted
                        WHERE counted.show_id = a.show_id AND counted.owner_id = a.owner_id);

    FOR i IN 1 .. coalesce(cardinality(v_over), 0) LOOP  -- together they do not fit: one by one
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
        SELECT p_show[v_over[i]], p_owner[v_over[i]], v_count[v_over[i]], p_max[v_over[i]]
         WHERE v_count[v_over[i]] <= p_max[v_over[i]]
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max
         WHERE owner_count.seats + excluded.seats <= excluded.seats_max;
        IF NOT FOUND THEN
            v_lost := v_lost || v_over[i];
        END IF;
    END LOOP;
    RETURN v_lost;
END $$;
