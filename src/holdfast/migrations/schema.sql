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

-- 0007_terms.sql: on what terms a show is sold, for ever known to who has held a seat under them.
--
-- A price is all-in: what is seen first is what is paid. Its lines (base, fee, tax) follow from it and from
-- the terms, by catalogue/pricing.py; they are stored nowhere, so they cannot contradict each other.

-- What comes back to who cancels, for shows made from now on; as RefundPolicy in catalogue/policy.py.
ALTER TABLE event ADD COLUMN refund_policy jsonb NOT NULL
    DEFAULT '{"steps": [{"hours_before": 24, "percent": 100}], "keep_fee": false}';

-- One row for every revision of a show, written in the transaction that makes the revision.
CREATE TABLE show_terms (
    show_id        bigint NOT NULL REFERENCES show,
    revision       bigint NOT NULL,
    fee_minor      bigint NOT NULL,                      -- service fee of a seat: a fixed part
    fee_bp         int    NOT NULL,                      -- and a share of its base, in 1/10 000
    tax_bp         int    NOT NULL,                      -- tax on base and fee, in 1/10 000; in the price
    refund_policy  jsonb  NOT NULL,
    card_seats_max int,                                  -- seats that one card may buy; null: no limit
    PRIMARY KEY (show_id, revision),
    CONSTRAINT a_fee_is_not_negative CHECK (fee_minor BETWEEN 0 AND 1000000000),
    CONSTRAINT a_fee_is_at_most_its_base CHECK (fee_bp BETWEEN 0 AND 10000),
    CONSTRAINT a_tax_is_at_most_what_it_taxes CHECK (tax_bp BETWEEN 0 AND 10000),
    CONSTRAINT a_card_may_buy_a_seat CHECK (card_seats_max BETWEEN 1 AND 1000),
    CONSTRAINT a_policy_has_steps CHECK (jsonb_typeof(refund_policy -> 'steps') = 'array')
);

INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy)
SELECT show.id, show.revision, 0, 0, 0, event.refund_policy
  FROM show
  JOIN event ON event.id = show.event_id;

CREATE FUNCTION terms_are_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'terms of show % at revision % are what somebody was promised', OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER terms_are_never_changed BEFORE UPDATE OR DELETE ON show_terms
    FOR EACH ROW EXECUTE FUNCTION terms_are_never_changed();

-- A show as listings tell it, now with its terms. LEFT, though every show has them: a query that does not ask
-- for them is then planned without them.
CREATE OR REPLACE VIEW show_card AS
SELECT show.id AS show_id, show.event_id, show.hall_id, hall.venue_id, venue.city_id,
       event.organiser_id, event.kind, event.title,
       hall.name AS hall, venue.name AS venue, city.slug AS city, city.timezone,
       show.starts_at, show.ends_at, show.opens_at, show.closes_at,
       (show.starts_at AT TIME ZONE city.timezone)::date AS local_date,
       show.currency, show.cancelled, show.layout_hash, layout.seats,
       show.hold_ttl_s, show.owner_seats_max, show.order_seats_max, show.orphan_rule, show.revision,
       (SELECT min(price.price_minor) FROM price WHERE price.show_id = show.id) AS from_price_minor,
       terms.fee_minor, terms.fee_bp, terms.tax_bp, terms.refund_policy, terms.card_seats_max
  FROM show
  JOIN event ON event.id = show.event_id
  JOIN hall ON hall.id = show.hall_id
  JOIN venue ON venue.id = hall.venue_id
  JOIN city ON city.id = venue.city_id
  JOIN layout ON layout.hash = show.layout_hash
  LEFT JOIN show_terms AS terms ON terms.show_id = show.id AND terms.revision = show.revision;

-- The revision of the show under which the seats were held; 0: a block, or a booking older than this column.
-- Last, because booking_rows gives its rows in the order of the table.
ALTER TABLE booking ADD COLUMN revision bigint NOT NULL DEFAULT 0;

DROP FUNCTION booking_rows(
    bigint[], bigint[], text[], bigint[], text[], bigint[], text[], text[], int[], text[], text[], text[],
    bigint[]
);

-- The rows of booking for those that may be opened; one with nothing to pay is confirmed from the start.
CREATE FUNCTION booking_rows(
    p_show bigint[], p_number bigint[], p_outcome text[], p_owner bigint[], p_request text[], p_hash bigint[],
    p_claim text[], p_note text[], p_left_ms int[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[], p_revision bigint[]
) RETURNS SETOF booking LANGUAGE sql STABLE AS $$
    SELECT show_id, number, owner_id, number AS fence, outcome::booking_state, request_id, body_hash,
           claim_id, seats::int[], prices::bigint[], amount, currency, note, true,
           now(), now() + left_ms * interval '1 ms', CASE amount WHEN 0 THEN now() END, revision
      FROM unnest(p_show, p_number, p_outcome, p_owner, p_request, p_hash, p_claim,
                  p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount, p_revision)
        AS a (show_id, number, outcome, owner_id, request_id, body_hash, claim_id,
              note, left_ms, currency, seats, prices, amount, revision)
     WHERE outcome IN ('held', 'confirmed');
$$;

-- As in 0006_open_holds.sql, where it is explained; the rows now say under which revision they were opened.
CREATE OR REPLACE FUNCTION open_holds(
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
                                       p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount,
                                       p_revision);
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
                                   p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount, p_revision)
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

-- 0008_payments.sql: money for bookings. Every step is written before it is tried; what happens to a booking
-- and what happens to its payment are one transaction.
--
-- show_id is in every key here too. Order of locks: sale (shared) → bookings → payments → seats → counters.

CREATE TYPE payment_step AS ENUM (
    'charge',      -- the gateway is being asked for the money
    'look_up',     -- it was asked and has not said, or waits for the payer
    'call_off',    -- it is being asked to forget it
    'watch',       -- the seats are gone, the gateway is silent: is the money?
    'late',        -- the money came, and its booking was not waiting any more
    'paid', 'declined', 'called_off', 'expired', 'returned'  -- ends; returned: see refund
);

CREATE TYPE refund_state AS ENUM (
    'asked',       -- decided; the gateway is being asked
    'done',        -- it goes back
    'by_hand'      -- the gateway will not: a person must look
);

CREATE TABLE payment (
    show_id       bigint       NOT NULL,
    number        bigint       NOT NULL,                  -- of the booking
    attempt       int          NOT NULL,                -- 1, 2, …: each has its own key at the gateway
    owner_id      bigint       NOT NULL,
    fence         bigint       NOT NULL,                  -- the booking's, as of this attempt
    request_id    text         NOT NULL,                  -- the asker's Idempotency-Key
    body_hash     bigint       NOT NULL,
    key           text         NOT NULL,                  -- the idempotency key at the gateway, our reference
    gateway       text         NOT NULL,
    method        text         NOT NULL,                  -- a token; empty: the payer confirms at the gateway
    return_url    text         NOT NULL DEFAULT '',
    step          payment_step NOT NULL,
    amount_minor  bigint       NOT NULL,
    fee_minor     bigint       NOT NULL DEFAULT 0,        -- of the amount: ours; known when it is paid
    tax_minor     bigint       NOT NULL DEFAULT 0,                 -- of the amount: the state's
    currency      text         NOT NULL,
    refunds_minor bigint       NOT NULL DEFAULT 0,        -- asked for or done
    reference     text,                                   -- the gateway's own id
    card          text,                                   -- a fingerprint
    action_url    text,                                   -- where the payer has to go
    client_secret text,
    reason        text,                                   -- why not, for the payer
    code          text,
    hold_ends_at  timestamptz  NOT NULL,                  -- what a decline gives back
    deadline_at   timestamptz  NOT NULL,
    turn          int          NOT NULL DEFAULT 0,        -- whose turn it is to carry it on: grows
    tries         int          NOT NULL DEFAULT 0,        -- since the step was written
    due_at        timestamptz,                            -- when somebody should look; NULL: it has ended
    asked_at      timestamptz  NOT NULL DEFAULT now(),
    ended_at      timestamptz,
    PRIMARY KEY (show_id, number, attempt),
    CONSTRAINT nobody_pays_nothing CHECK (amount_minor > 0),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                                 AND fee_minor + tax_minor <= amount_minor),
    CONSTRAINT no_more_goes_back_than_came CHECK (refunds_minor BETWEEN 0 AND amount_minor),
    CONSTRAINT ended_or_due CHECK ((due_at IS NULL) = (ended_at IS NOT NULL))
);

-- A key that failed may be used again; any other gives the first answer.
CREATE UNIQUE INDEX one_payment_a_request ON payment (owner_id, show_id, request_id)
    WHERE step NOT IN ('declined', 'called_off', 'expired');
CREATE INDEX payments_due ON payment (due_at) WHERE due_at IS NOT NULL;

-- Money on its way back. The key at the gateway is made of the row's own, so asking twice is asking once.
CREATE TABLE refund (
    show_id      bigint       NOT NULL,
    number       bigint       NOT NULL,
    attempt      int          NOT NULL,
    id           int          NOT NULL,                   -- 1, 2, … of this payment
    why          text         NOT NULL,                   -- late, owner, show, admin:<request>: once each
    seats        int[]        NOT NULL DEFAULT '{}',      -- given back with it; empty: money alone
    seats_minor  bigint       NOT NULL DEFAULT 0,         -- what those seats had cost
    amount_minor bigint       NOT NULL,
    fee_minor    bigint       NOT NULL DEFAULT 0,
    tax_minor    bigint       NOT NULL DEFAULT 0,
    state        refund_state NOT NULL DEFAULT 'asked',
    note         text         NOT NULL DEFAULT '',        -- what whoever decided it said
    reference    text,                                    -- the gateway's
    reason       text,                                    -- why it would not
    settled_note text,                                    -- how a person paid it: not through the gateway
    actor_id     bigint,                                  -- NULL: a rule did it
    round        int          NOT NULL DEFAULT 1,         -- of asking: after a no, a person may have it asked
    tries        int          NOT NULL DEFAULT 0,         --   anew, under another key
    due_at       timestamptz  DEFAULT now(),              -- when somebody should ask; NULL: nobody has to
    asked_at     timestamptz  NOT NULL DEFAULT now(),
    done_at      timestamptz,
    PRIMARY KEY (show_id, number, attempt, id),
    CONSTRAINT one_refund_a_reason UNIQUE (show_id, number, attempt, why),
    CONSTRAINT a_refund_is_of_something CHECK (amount_minor > 0 OR (amount_minor = 0 AND seats <> '{}')),
    CONSTRAINT asked_is_due CHECK ((state = 'asked') = (due_at IS NOT NULL)),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                                 AND fee_minor + tax_minor <= amount_minor)
);

CREATE INDEX refunds_due ON refund (due_at) WHERE state = 'asked';
CREATE INDEX refunds_by_hand ON refund (asked_at) WHERE state = 'by_hand';

-- The books. Lines of an entry add up to nothing: what one account gets, others give.
--   gateway:<name>  what lies at the gateway for us     organiser  what we owe to the organiser
--   fee             what is ours                        tax        what is the state's
--   owed            what we owe to fans: money that came for nothing, refunds on their way
--   by_hand         what a person paid back by another way than the gateway
CREATE TABLE journal (
    show_id      bigint      NOT NULL,
    entry        bigint      NOT NULL,                    -- from ledger_number
    account      text        NOT NULL,
    amount_minor bigint      NOT NULL,
    currency     text        NOT NULL,
    number       bigint      NOT NULL,
    attempt      int         NOT NULL,
    kind         text        NOT NULL,                    -- charge, late charge, late booking, refund, …
    at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, entry, account),
    CONSTRAINT no_empty_lines CHECK (amount_minor <> 0)
);

CREATE INDEX journal_of_a_booking ON journal (show_id, number);

CREATE FUNCTION journal_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written GROUP BY show_id, entry
                HAVING sum(amount_minor) <> 0 OR count(DISTINCT currency) > 1) THEN
        RAISE EXCEPTION 'an entry of the journal does not balance' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER journal_balances AFTER INSERT ON journal REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION journal_balances();

-- One for each seat of a confirmed booking, from the transaction that confirmed it.
CREATE TABLE ticket (
    show_id   bigint      NOT NULL,
    number    bigint      NOT NULL,
    seat      int         NOT NULL,
    serial    bigint      NOT NULL DEFAULT nextval('ledger_number'),
    issued_at timestamptz NOT NULL DEFAULT now(),
    voided_at timestamptz,                                -- given back
    used_at   timestamptz,                                -- let in: never given back after that
    PRIMARY KEY (show_id, number, seat),
    CONSTRAINT a_voided_ticket_lets_nobody_in CHECK (voided_at IS NULL OR used_at IS NULL)
);

CREATE UNIQUE INDEX one_ticket_a_serial ON ticket (show_id, serial);

-- Seats one card has in a show, where the show limits them.
CREATE TABLE card_count (
    show_id   bigint NOT NULL,
    card      text   NOT NULL,
    seats     int    NOT NULL,
    seats_max int    NOT NULL,
    PRIMARY KEY (show_id, card),
    CONSTRAINT no_card_has_more_seats_than_allowed CHECK (seats BETWEEN 0 AND seats_max)
);

-- Webhooks, as they came, stored before they are answered.
CREATE TABLE webhook (
    gateway   text        NOT NULL,
    event_id  text        NOT NULL,                       -- the gateway's: copies share it
    kind      text        NOT NULL,                       -- the gateway's word
    show_id   bigint      NOT NULL,                       -- of the payment it is about
    number    bigint      NOT NULL,
    attempt   int         NOT NULL,
    reference text,                                       -- the gateway's id of it, where it says
    body      bytea       NOT NULL,
    copies    int         NOT NULL DEFAULT 1,
    tries     int         NOT NULL DEFAULT 0,
    due_at    timestamptz,                                -- when somebody should look; NULL: done, or dead
    dead      boolean     NOT NULL DEFAULT false,         -- tried often enough: a person may replay it
    reason    text,                                       -- why it could not be settled
    came_at   timestamptz NOT NULL DEFAULT now(),
    done_at   timestamptz,
    PRIMARY KEY (gateway, event_id),
    CONSTRAINT due_done_or_dead CHECK (num_nonnulls(due_at, done_at) + dead::int = 1)
);

CREATE INDEX webhooks_due ON webhook (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhooks_dead ON webhook (came_at) WHERE dead;
CREATE INDEX webhooks_by_age ON webhook (came_at);

-- The drawing in ledger/booking.py: a booking fails when its money came after it had expired.
CREATE OR REPLACE FUNCTION booking_moves_as_drawn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'),
        ('expired', 'confirmed'), ('expired', 'failed'), ('confirmed', 'refunded'), ('blocked', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a booking does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

-- Audit row and fact of many bookings that have just moved; of a confirmed one also its tickets. An actor
-- of 0 is the owner of each.
CREATE OR REPLACE FUNCTION record_moves(p_show bigint[], p_number bigint[], p_move text, p_actor bigint)
RETURNS void LANGUAGE sql AS $$
    WITH moved AS (
        SELECT booking.*
          FROM unnest(p_show, p_number) WITH ORDINALITY AS asked (show_id, number, ord)
          JOIN booking USING (show_id, number)
      ORDER BY ord
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, p_move, state, fence, CASE p_actor WHEN 0 THEN owner_id ELSE p_actor END
          FROM moved
    ), tickets AS (
        INSERT INTO ticket (show_id, number, seat)
        SELECT show_id, number, unnest(seats) FROM moved WHERE p_move = 'confirm'
    )
    INSERT INTO outbox (show_id, number, kind) SELECT show_id, number, 'booking.' || state FROM moved;
$$;

-- 0009_outbox.sql: who has heard which facts. Nothing is added to outbox itself: its writers are in a hurry.

-- One row. How far the outbox is settled: every fact up to there is written for good, and nothing can still
-- appear among them. Ids are handed out before a commit, so "the highest id there is" would be no such place.
CREATE TABLE fact_log (
    is_only      boolean     PRIMARY KEY DEFAULT true,
    -- Names the log on the bus: one that another database has left there is none of ours.
    name         text        NOT NULL DEFAULT 'facts-' || left(replace(gen_random_uuid()::text, '-', ''), 12),
    settled_id   bigint      NOT NULL DEFAULT 0,
    purged_until timestamptz NOT NULL DEFAULT '-infinity',  -- facts from before then may be gone
    CONSTRAINT there_is_one_log CHECK (is_only)
);

INSERT INTO fact_log DEFAULT VALUES;

-- Everybody who hears facts, the relay to the bus among them. A fact stays until all have passed it.
CREATE TABLE consumer_group (
    name       text        PRIMARY KEY,
    checkpoint bigint      NOT NULL,                        -- done with every fact up to this one
    reader     text        NOT NULL DEFAULT '',             -- the process whose turn it is
    turn_until timestamptz NOT NULL DEFAULT '-infinity',    -- after that it may be another's
    moved_at   timestamptz NOT NULL DEFAULT now()
);

-- Facts that a group could not deal with yet. Later ones with the same key wait behind; the rest goes on.
CREATE TABLE parked_fact (
    group_name text        NOT NULL REFERENCES consumer_group (name) ON DELETE CASCADE,
    fact_id    bigint      NOT NULL,
    key        text        NOT NULL,
    fact       bytea       NOT NULL,                        -- whole: it outlives its outbox row
    tries      int         NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT now(),
    reason     text        NOT NULL DEFAULT '',             -- why not, the last time
    dead_at    timestamptz,                                 -- tried often enough: a person must look
    PRIMARY KEY (group_name, fact_id)
);

CREATE INDEX parked_in_order ON parked_fact (group_name, key, fact_id) WHERE dead_at IS NULL;

-- What a group has done, written in the transaction that did it: the same fact again does nothing.
CREATE TABLE consumed_fact (
    group_name text        NOT NULL,
    fact_id    bigint      NOT NULL,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_name, fact_id)
);

-- What the programme says of a show is told where it is decided: no way of changing a show goes round it.
CREATE FUNCTION tell_of_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    VALUES (NEW.show_id, CASE TG_OP WHEN 'INSERT' THEN 'show.on_sale' ELSE 'show.changed' END,
            jsonb_build_object('opens_at', NEW.opens_at, 'closes_at', NEW.closes_at,
                               'revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_new_show AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION tell_of_show();
CREATE TRIGGER tell_of_changed_show AFTER UPDATE OF revision ON sale
    FOR EACH ROW WHEN (NEW.revision <> OLD.revision AND NOT NEW.cancelled) EXECUTE FUNCTION tell_of_show();

-- 0010_door.sql: what becomes of a ticket after it was issued, and who may ask for it at the door.
--
-- One row decides: whoever lets somebody in, gives a ticket back or gives it away locks its row in `ticket`
-- first. show_id is in every key here too.

-- Keys that sign tickets. They stay: a ticket bought a year ahead must still be good.
CREATE TABLE ticket_key (
    id         smallint    PRIMARY KEY,                   -- a byte of every code
    private    bytea       NOT NULL,                      -- Ed25519
    secret     bytea       NOT NULL,                      -- where live codes come from
    signs_from timestamptz NOT NULL,
    CONSTRAINT a_key_id_is_a_byte CHECK (id BETWEEN 1 AND 255)
);

-- How a show's tickets are checked; no row: as the defaults say.
CREATE TABLE door (
    show_id bigint  PRIMARY KEY,
    codes   text    NOT NULL DEFAULT 'fixed',
    reentry boolean NOT NULL DEFAULT true,                -- who was scanned out may come in again
    CONSTRAINT codes_are_fixed_or_live CHECK (codes IN ('fixed', 'live', 'live_or_paper'))
);

-- A ticket after it was issued; no row: nothing has happened to it.
CREATE TABLE ticket_life (
    show_id     bigint  NOT NULL,
    serial      bigint  NOT NULL,
    edition     int     NOT NULL DEFAULT 1,               -- raised when it changes hands
    owner_id    bigint,                                   -- whose it is now; NULL: see owner_email, booking
    owner_email text,                                     -- given to somebody without an account yet
    phone       bytea,                                    -- hash of the name the phone goes by
    binding     int     NOT NULL DEFAULT 0,               -- which phone that is: live codes are for it alone
    is_inside   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (show_id, serial),
    CONSTRAINT a_ticket_has_one_owner CHECK (owner_id IS NULL OR owner_email IS NULL)
);
CREATE INDEX tickets_given_to ON ticket_life (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX tickets_waiting_for ON ticket_life (owner_email) WHERE owner_email IS NOT NULL;

-- A ticket with all that is known of it.
CREATE VIEW issued_ticket AS
SELECT ticket.show_id, ticket.number, ticket.seat, ticket.serial,
       coalesce(ticket_life.edition, 1) AS edition, coalesce(ticket_life.binding, 0) AS binding,
       coalesce(door.codes, 'fixed') AS codes,
       booking.owner_id AS booked_by, ticket_life.owner_id, ticket_life.owner_email,
       ticket.issued_at, ticket.voided_at, ticket.used_at,
       coalesce(ticket_life.is_inside, false) AS is_inside
  FROM ticket
  JOIN booking USING (show_id, number)
  LEFT JOIN ticket_life USING (show_id, serial)
  LEFT JOIN door USING (show_id);

-- Every time a ticket was given away.
CREATE TABLE ticket_transfer (
    show_id    bigint      NOT NULL,
    serial     bigint      NOT NULL,
    edition    int         NOT NULL,                      -- the one it began
    from_id    bigint      NOT NULL,
    to_id      bigint,                                    -- NULL: nobody with this address has an account
    email      text        NOT NULL,
    taken_back boolean     NOT NULL DEFAULT false,        -- from nobody: back to who gave it
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, serial, edition)
);

-- How often the tickets of a booking were sent again.
CREATE TABLE ticket_resend (
    show_id bigint      NOT NULL,
    number  bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (show_id, number, at)
);

-- What lets a device ask at the door: of some shows, at one gate, for a day. Made and ended by the organiser.
CREATE TABLE gate_pass (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   bigint      NOT NULL,                    -- who the device signs in as: of role gate
    organiser_id bigint,                                  -- NULL: made by an admin
    gate         text        NOT NULL,
    name         text        NOT NULL,                    -- of the device or the person
    code_hash    bytea,                                   -- signs it in; NULL: a password does
    device_key   bytea,                                   -- X25519, the first to come: packs are for it
    starts_at    timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    revoked_at   timestamptz,
    made_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_pass_ends_after_it_starts CHECK (starts_at < ends_at),
    CONSTRAINT a_gate_has_a_name CHECK (char_length(gate) BETWEEN 1 AND 60)
);
CREATE INDEX passes_of_an_account ON gate_pass (account_id);
CREATE UNIQUE INDEX one_pass_a_code ON gate_pass (code_hash) WHERE code_hash IS NOT NULL;

CREATE TABLE gate_pass_show (
    show_id bigint NOT NULL,
    pass_id bigint NOT NULL REFERENCES gate_pass,
    PRIMARY KEY (show_id, pass_id)
);
CREATE INDEX shows_of_a_pass ON gate_pass_show (pass_id);

-- Every scan, for ever: rows are added and never changed.
CREATE TABLE check_in (
    show_id    bigint      NOT NULL,                      -- of the pass where the code is nobody's
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    pass_id    bigint      NOT NULL,
    scan_id    text        NOT NULL,                      -- the device's: the same id is the same scan
    gate       text        NOT NULL,
    way        text        NOT NULL,
    verdict    text        NOT NULL,
    serial     bigint,                                    -- NULL: no ticket of ours
    edition    int,
    undoes     bigint,                                    -- the id of the check-in that this one takes back
    by_hand    boolean     NOT NULL DEFAULT false,        -- found by name or reference, not scanned
    offline    boolean     NOT NULL DEFAULT false,        -- decided by the device, told later
    scanned_at timestamptz NOT NULL,                      -- offline: by the device's clock
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (show_id, id),
    CONSTRAINT one_row_a_scan UNIQUE (show_id, pass_id, scan_id),
    CONSTRAINT ways_at_a_door CHECK (way IN ('entry', 'exit', 'undo')),
    CONSTRAINT verdicts_at_a_door CHECK (verdict IN
        ('admitted', 'left', 'undone', 'unknown', 'wrong_show', 'void', 'transferred', 'used', 'stale_code',
         'live_code_needed', 'not_inside'))
);
CREATE INDEX check_ins_of_a_ticket ON check_in (show_id, serial, id) WHERE serial IS NOT NULL;

CREATE FUNCTION check_ins_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a check-in is never changed' USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER check_ins_stay BEFORE UPDATE OR DELETE ON check_in
    FOR EACH STATEMENT EXECUTE FUNCTION check_ins_stay();

-- Two let in with one ticket, or one with a ticket that was worth nothing: found when a device without a
-- network told of its scans. Both check-ins stay as they were.
CREATE TABLE door_conflict (
    show_id   bigint      NOT NULL,
    id        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    serial    bigint      NOT NULL,
    why       text        NOT NULL,
    first_id  bigint,                                     -- by the devices' clocks; NULL: there is none
    second_id bigint      NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, id),
    CONSTRAINT one_conflict_a_check_in UNIQUE (show_id, second_id),
    CONSTRAINT conflicts_at_a_door CHECK (why IN ('used', 'void', 'transferred', 'unknown'))
);

-- Who looked people up, and when: the limit is counted here.
CREATE TABLE gate_search (
    pass_id bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pass_id, at)
);

-- The pass that lets this account ask about a show now: one that covers the show, else any; none: no row.
CREATE FUNCTION pass_now(p_account bigint, p_show bigint, p_grace interval DEFAULT '0')
RETURNS TABLE (pass_id bigint, gate text, covers boolean, any_show bigint, starts_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT gate_pass.id, gate_pass.gate, covered.show_id IS NOT NULL,
           (SELECT min(s.show_id) FROM gate_pass_show AS s WHERE s.pass_id = gate_pass.id),
           gate_pass.starts_at
      FROM gate_pass
      LEFT JOIN gate_pass_show AS covered ON covered.pass_id = gate_pass.id AND covered.show_id = p_show
     WHERE gate_pass.account_id = p_account
       AND gate_pass.revoked_at IS NULL
       AND gate_pass.starts_at <= now()
       AND gate_pass.ends_at + p_grace > now()
  ORDER BY covered.show_id IS NULL, gate_pass.id DESC
     LIMIT 1;
$$;

-- What the door says to a ticket whose row is locked: everything but whether the code itself is good.
CREATE FUNCTION door_verdict(
    p_ticket ticket, p_life ticket_life, p_door door, p_way text, p_edition int, p_binding int
) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN (p_ticket).serial IS NULL THEN 'unknown'
                WHEN (p_ticket).voided_at IS NOT NULL THEN 'void'
                WHEN p_edition < coalesce((p_life).edition, 1) THEN 'transferred'
                WHEN p_edition > coalesce((p_life).edition, 1) THEN 'unknown'
                WHEN p_edition IS NOT NULL AND p_binding IS NULL AND (p_door).codes = 'live'
                     THEN 'live_code_needed'
                WHEN p_binding <> coalesce((p_life).binding, 0) THEN 'stale_code'
                WHEN p_way = 'exit' THEN CASE WHEN (p_life).is_inside THEN 'left' ELSE 'not_inside' END
                WHEN (p_ticket).used_at IS NULL THEN 'admitted'
                WHEN (p_life).is_inside OR NOT coalesce((p_door).reentry, true) THEN 'used'
                ELSE 'admitted' END;
$$;

-- What a verdict does to a ticket. One that refuses does nothing.
CREATE FUNCTION move_through_door(p_show bigint, p_serial bigint, p_verdict text, p_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_verdict NOT IN ('admitted', 'left') THEN
        RETURN;
    END IF;
    INSERT INTO ticket_life (show_id, serial, is_inside) VALUES (p_show, p_serial, p_verdict = 'admitted')
        ON CONFLICT (show_id, serial) DO UPDATE SET is_inside = excluded.is_inside;
    IF p_verdict = 'admitted' THEN
        UPDATE ticket SET used_at = coalesce(used_at, p_at) WHERE show_id = p_show AND serial = p_serial;
    END IF;
END $$;

-- A fact about a ticket, for whoever wants to hear it. No names in it.
CREATE FUNCTION tell_of_ticket(p_show bigint, p_number bigint, p_kind text, p_body jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO outbox (show_id, number, kind, body) VALUES (p_show, p_number, p_kind, p_body);
$$;

-- One scan at a gate with a network. p_serial NULL: the code is none of ours. p_edition NULL: found by hand.
-- No row: no pass. The same scan again gets the first answer again.
CREATE FUNCTION check_in_now(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int, p_binding int
) RETURNS TABLE (check_in_id bigint, show_id bigint, verdict text, gate text, scanned_at timestamptz,
                 seat int, number bigint, first_at timestamptz, first_gate text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass    record;
    v_ticket  ticket;
    v_life    ticket_life;
    v_door    door;
    v_show    bigint;
    v_row     check_in;
    v_verdict text;
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_show := CASE WHEN v_pass.covers THEN p_show ELSE v_pass.any_show END;
    IF v_pass.covers THEN
        SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
        SELECT * INTO v_life FROM ticket_life WHERE show_id = p_show AND serial = p_serial;
        SELECT * INTO v_door FROM door WHERE show_id = p_show;
    END IF;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
    IF NOT FOUND THEN
        v_verdict := CASE WHEN p_serial IS NULL THEN 'unknown'
                          WHEN NOT v_pass.covers THEN 'wrong_show'
                          ELSE door_verdict(v_ticket, v_life, v_door, p_way, p_edition, p_binding) END;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, by_hand,
                              scanned_at)
        VALUES (v_show, v_pass.pass_id, p_scan, v_pass.gate, p_way, v_verdict,
                CASE WHEN v_pass.covers THEN p_serial END,
                coalesce(p_edition, (v_life).edition, 1), p_serial IS NOT NULL AND p_edition IS NULL,
                clock_timestamp())
            ON CONFLICT (show_id, pass_id, scan_id) DO NOTHING
        RETURNING * INTO v_row;
        IF v_row.id IS NULL THEN  -- a twin of this request, at the same moment: both asked about nothing
            SELECT * INTO v_row FROM check_in
             WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
        ELSIF v_pass.covers THEN
            PERFORM move_through_door(p_show, p_serial, v_verdict, v_row.scanned_at);
            IF v_verdict IN ('admitted', 'left') THEN
                PERFORM tell_of_ticket(p_show, v_ticket.number,
                    CASE v_verdict WHEN 'admitted' THEN 'ticket.checked_in' ELSE 'ticket.checked_out' END,
                    jsonb_build_object('serial', p_serial, 'seat', v_ticket.seat, 'gate', v_pass.gate,
                                       'scanned_at', v_row.scanned_at));
            END IF;
        END IF;
    END IF;
    RETURN QUERY
    SELECT v_row.id, v_show, v_row.verdict, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number,
           earlier.scanned_at, earlier.gate
      FROM (SELECT 1) AS one
      LEFT JOIN LATERAL (
               SELECT c.scanned_at, c.gate FROM check_in AS c
                WHERE v_row.verdict = 'used' AND c.show_id = p_show AND c.serial = p_serial
                  AND c.id < v_row.id AND c.verdict = 'admitted'
             ORDER BY c.id DESC LIMIT 1) AS earlier ON true;
END $$;

-- Take an admission back: the last thing that happened with the ticket, in this show, a short while ago.
-- No row: there is no such check-in, or it is not the last one, or it is too old.
CREATE FUNCTION undo_check_in(p_account bigint, p_show bigint, p_id bigint, p_scan text, p_within interval)
RETURNS TABLE (check_in_id bigint, gate text, scanned_at timestamptz, seat int, number bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass   record;
    v_ticket ticket;
    v_done   check_in;
    v_row    check_in;
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show);
    SELECT * INTO v_done FROM check_in WHERE show_id = p_show AND id = p_id AND verdict = 'admitted';
    IF v_pass.covers IS NOT TRUE OR v_done.id IS NULL OR v_done.at < now() - p_within THEN
        RETURN;
    END IF;
    SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = v_done.serial FOR UPDATE;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = p_scan AND undoes = p_id;
    IF NOT FOUND THEN
        IF EXISTS (SELECT 1 FROM check_in AS c WHERE c.show_id = p_show AND c.serial = v_done.serial
                      AND c.id > p_id AND c.verdict IN ('admitted', 'left', 'undone')) THEN
            RETURN;
        END IF;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, undoes,
                              scanned_at)
        VALUES (p_show, v_pass.pass_id, p_scan, v_pass.gate, 'undo', 'undone', v_done.serial, v_done.edition,
                p_id, clock_timestamp())
        RETURNING * INTO v_row;
        UPDATE ticket_life SET is_inside = false WHERE show_id = p_show AND serial = v_done.serial;
        -- Unless somebody was inside with it before, it is as if it had never been used.
        UPDATE ticket SET used_at = NULL
         WHERE show_id = p_show AND serial = v_done.serial
           AND NOT EXISTS (SELECT 1 FROM check_in AS c
                            WHERE c.show_id = p_show AND c.serial = v_done.serial AND c.verdict = 'admitted'
                              AND NOT EXISTS (SELECT 1 FROM check_in AS u
                                               WHERE u.show_id = p_show AND u.undoes = c.id));
        PERFORM tell_of_ticket(p_show, v_ticket.number, 'ticket.check_in_undone',
                               jsonb_build_object('serial', v_done.serial, 'gate', v_pass.gate));
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number;
END $$;

-- One scan that a device decided without a network. It has happened: it is recorded as it was told, and what
-- it contradicts is raised. Of two admissions the earlier by the devices' clocks is the first.
CREATE FUNCTION check_in_later(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int,
    p_verdict text, p_scanned_at timestamptz, p_grace interval
) RETURNS TABLE (check_in_id bigint, verdict text, why text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass   record;
    v_ticket ticket;
    v_life   ticket_life;
    v_row    check_in;
    v_rival  check_in;
    v_why    text;
    v_scan   text := p_scan;
    -- A clock that is ahead of ours, or far behind, is put where it can have been.
    v_at     timestamptz := least(p_scanned_at, clock_timestamp());
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show, p_grace);
    IF v_pass.covers IS NOT TRUE THEN
        RETURN;
    END IF;
    v_at := greatest(v_at, v_pass.starts_at);
    SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
    SELECT * INTO v_life FROM ticket_life WHERE show_id = p_show AND serial = p_serial;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    -- We had answered, the answer was lost, and the device decided otherwise: that happened, too.
    IF FOUND AND v_row.verdict <> p_verdict THEN
        v_scan := p_scan || '~';
        SELECT * INTO v_row FROM check_in
         WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    END IF;
    IF FOUND THEN
        RETURN QUERY SELECT v_row.id, v_row.verdict,
            (SELECT min(d.why) FROM door_conflict AS d
              WHERE d.show_id = p_show AND v_row.id IN (d.first_id, d.second_id));
        RETURN;
    END IF;
    INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, offline, scanned_at)
    VALUES (p_show, v_pass.pass_id, v_scan, v_pass.gate, p_way, p_verdict, p_serial, p_edition, true, v_at)
    RETURNING * INTO v_row;
    IF p_verdict = 'admitted' THEN
        -- Somebody else inside with it at that time: let in, and not scanned out or taken back in between.
        SELECT c.* INTO v_rival FROM check_in AS c
         WHERE c.show_id = p_show AND c.serial = p_serial AND c.id <> v_row.id AND c.verdict = 'admitted'
           AND NOT EXISTS (SELECT 1 FROM check_in AS u WHERE u.show_id = p_show AND u.undoes = c.id)
           AND NOT EXISTS (SELECT 1 FROM check_in AS o
                            WHERE o.show_id = p_show AND o.serial = p_serial AND o.verdict = 'left'
                              AND o.scanned_at > least(c.scanned_at, v_at)
                              AND o.scanned_at <= greatest(c.scanned_at, v_at))
      ORDER BY abs(extract(epoch FROM c.scanned_at - v_at)) LIMIT 1;
        v_why := CASE WHEN v_ticket.serial IS NULL THEN 'unknown'
                      WHEN v_ticket.voided_at IS NOT NULL THEN 'void'
                      WHEN v_rival.id IS NOT NULL THEN 'used'
                      WHEN p_edition <> coalesce((v_life).edition, 1) THEN 'transferred' END;
    END IF;
    IF v_why IS NOT NULL THEN
        INSERT INTO door_conflict (show_id, serial, why, first_id, second_id)
        SELECT p_show, p_serial, v_why,
               CASE WHEN v_why = 'used' AND v_rival.scanned_at > v_at THEN v_row.id ELSE v_rival.id END,
               CASE WHEN v_why = 'used' AND v_rival.scanned_at > v_at THEN v_rival.id ELSE v_row.id END
            ON CONFLICT (show_id, second_id) DO NOTHING;
        PERFORM tell_of_ticket(p_show, v_ticket.number, 'door.conflict_raised',
                               jsonb_build_object('serial', p_serial, 'why', v_why));
    END IF;
    IF v_ticket.voided_at IS NULL AND v_ticket.serial IS NOT NULL THEN
        -- Who came in before somebody went out elsewhere is not inside any more.
        IF NOT EXISTS (SELECT 1 FROM check_in AS c
                        WHERE c.show_id = p_show AND c.serial = p_serial AND c.id <> v_row.id
                          AND c.verdict IN ('admitted', 'left') AND c.scanned_at > v_at) THEN
            PERFORM move_through_door(p_show, p_serial, p_verdict, v_at);
        ELSIF p_verdict = 'admitted' THEN
            UPDATE ticket SET used_at = coalesce(used_at, v_at) WHERE show_id = p_show AND serial = p_serial;
        END IF;
        IF p_verdict = 'admitted' AND v_why IS NULL THEN
            PERFORM tell_of_ticket(p_show, v_ticket.number, 'ticket.checked_in',
                jsonb_build_object('serial', p_serial, 'seat', v_ticket.seat, 'gate', v_pass.gate,
                                   'scanned_at', v_at));
        END IF;
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.verdict, v_why;
END $$;

-- 0011_payment_functions.sql: the moves of payments, many at a time, each in one round trip.
--
-- Every row is found by its key, whatever the statistics say: they know nothing of a sale that has just
-- opened, and a plan made then would read whole tables until the next ANALYZE.

-- A payment and as much of its booking as whoever carries it on must know. Durations, because the reader's
-- clock is another.
CREATE VIEW payment_card AS
SELECT payment.*, booking.state AS booking_state, booking.claim_id, booking.seats, booking.prices_minor,
       booking.revision,
       floor(extract(epoch FROM payment.deadline_at - clock_timestamp()) * 1000)::bigint AS left_ms,
       floor(extract(epoch FROM payment.hold_ends_at - clock_timestamp()) * 1000)::bigint AS hold_left_ms
  FROM payment JOIN booking USING (show_id, number);

-- Many of them, in order. One look-up each: as a plain join the planner begins with every payment there is.
CREATE FUNCTION payment_cards(p_show bigint[], p_number bigint[], p_attempt int[]) RETURNS SETOF payment_card
LANGUAGE sql AS $$
    SELECT card.*
      FROM unnest(p_show, p_number, p_attempt) WITH ORDINALITY AS a (show_id, number, attempt, ord),
           LATERAL (SELECT * FROM payment_card AS c
                     WHERE c.show_id = a.show_id AND c.number = a.number AND c.attempt = a.attempt
                     LIMIT 1) AS card
  ORDER BY a.ord;
$$;

-- Payments have the only way to confirm what costs something.
DROP FUNCTION confirm_bookings(bigint[], bigint[], bigint[], bigint[]);

-- Many HELD bookings become PAYING, each with a payment at its first step. Outcomes, one a request:
--   charge (it goes on)  · same (this request was answered before: here is its payment)
--   none (no such booking of this owner)  · card (this card has its seats already)
--   or the state the booking is in (held: it has lapsed), with its latest payment
CREATE FUNCTION start_payments(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_key text[],
    p_method text[], p_return text[], p_card text[], p_card_max int[],
    p_gateway text, p_buffer_s int, p_lease_ms int
) RETURNS TABLE (outcome text, hash bigint, card payment_card)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_started int[];
    v_over    int[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    IF p_card_max <> array_fill(0, ARRAY[cardinality(p_card_max)]) THEN
        v_over := count_cards_up(p_show, p_number, p_owner, p_card, p_card_max);
    END IF;

    WITH asked AS (
        SELECT *, row_number() OVER (PARTITION BY show_id, number ORDER BY ord) AS nth,
               row_number() OVER (PARTITION BY owner_id, show_id, request_id ORDER BY ord) AS nth_of_key
          FROM unnest(p_show, p_number, p_owner, p_request, p_hash, p_key, p_method, p_return, p_card)
               WITH ORDINALITY AS a (show_id, number, owner_id, request_id, body_hash, key, method,
                                     return_url, card, ord)
    ), fit AS (
        SELECT asked.*, booking.expires_at AS hold_ends_at
          FROM asked JOIN booking USING (show_id, number, owner_id)
         WHERE nth = 1 AND nth_of_key = 1
           AND state = 'held' AND expires_at > now() AND amount_minor > 0
           AND ord <> ALL (coalesce(v_over, '{}'))
           AND NOT EXISTS (SELECT 1 FROM sale WHERE sale.show_id = asked.show_id AND sale.cancelled)
           AND NOT EXISTS (SELECT 1 FROM payment
                            WHERE payment.owner_id = asked.owner_id AND payment.show_id = asked.show_id
                              AND payment.request_id = asked.request_id
                              AND payment.step NOT IN ('declined', 'called_off', 'expired'))
    ), moved AS (
        UPDATE booking
           SET state = 'paying', fence = nextval('ledger_number'),
               expires_at = greatest(booking.expires_at, now()) + p_buffer_s * interval '1 s'
          FROM fit
         WHERE booking.show_id = fit.show_id AND booking.number = fit.number
     RETURNING fit.*, booking.fence, booking.expires_at, booking.amount_minor, booking.currency
    ), started AS (
        INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway,
                             method, return_url, step, amount_minor, currency, card,
                             hold_ends_at, deadline_at, due_at)
        SELECT show_id, number, n.attempt, owner_id, fence, request_id, body_hash, key || '_' || n.attempt,
               p_gateway, method, return_url, 'charge', amount_minor, currency, nullif(card, ''),
               hold_ends_at, expires_at, now() + p_lease_ms * interval '1 ms'
          FROM moved,
               LATERAL (SELECT coalesce(max(p.attempt), 0) + 1 AS attempt FROM payment AS p
                         WHERE p.show_id = moved.show_id AND p.number = moved.number) AS n
    )
    SELECT array_agg(ord::int) INTO v_started FROM moved;
    IF v_started IS NOT NULL THEN
        PERFORM record_moves(array_agg(p_show[i]), array_agg(p_number[i]), 'pay', 0)
           FROM unnest(v_started) AS i;
    END IF;
    RETURN QUERY SELECT * FROM payments_asked(p_show, p_number, p_owner, p_request, v_started, v_over);
END $$;

-- What the askers are told.
CREATE FUNCTION payments_asked(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_started int[], p_over int[]
) RETURNS TABLE (outcome text, hash bigint, card payment_card) LANGUAGE sql AS $$
    SELECT CASE WHEN a.ord = ANY (p_started) THEN 'charge'
                WHEN a.ord = ANY (p_over) THEN 'card'
                WHEN same.attempt IS NOT NULL THEN 'same'
                WHEN booking.owner_id IS DISTINCT FROM a.owner_id OR booking.state = 'blocked' THEN 'none'
                ELSE booking.state::text END,
           same.body_hash, latest.card
      FROM unnest(p_show, p_number, p_owner, p_request) WITH ORDINALITY
           AS a (show_id, number, owner_id, request_id, ord)
      LEFT JOIN booking ON booking.show_id = a.show_id AND booking.number = a.number
      LEFT JOIN LATERAL (SELECT payment.number, payment.attempt, payment.body_hash FROM payment
                          WHERE payment.owner_id = a.owner_id AND payment.show_id = a.show_id
                            AND payment.request_id = a.request_id
                            AND payment.step NOT IN ('declined', 'called_off', 'expired')
                          LIMIT 1) AS same ON true
      LEFT JOIN LATERAL (SELECT c AS card FROM payment_card AS c
                          WHERE c.show_id = a.show_id AND c.number = coalesce(same.number, a.number)
                            AND c.attempt = coalesce(same.attempt, c.attempt)
                       ORDER BY c.attempt DESC LIMIT 1) AS latest ON true
  ORDER BY a.ord;
$$;

-- Seats of limited cards, counted before their bookings move. Returns the places of those over their limit.
CREATE FUNCTION count_cards_up(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_card text[], p_max int[]
) RETURNS int[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_over int[];
    v_ask  record;
BEGIN
    FOR v_ask IN
        SELECT a.ord, a.show_id, a.card, a.seats_max, cardinality(booking.seats) AS seats
          FROM unnest(p_show, p_number, p_owner, p_card, p_max) WITH ORDINALITY
               AS a (show_id, number, owner_id, card, seats_max, ord)
          JOIN booking USING (show_id, number, owner_id)
         WHERE a.seats_max > 0 AND a.card <> '' AND booking.state = 'held' AND booking.expires_at > now()
      ORDER BY a.show_id, a.card, a.ord
    LOOP
        INSERT INTO card_count (show_id, card, seats, seats_max)
        SELECT v_ask.show_id, v_ask.card, v_ask.seats, v_ask.seats_max WHERE v_ask.seats <= v_ask.seats_max
            ON CONFLICT (show_id, card) DO UPDATE
           SET seats = card_count.seats + excluded.seats, seats_max = excluded.seats_max
         WHERE card_count.seats + excluded.seats <= excluded.seats_max;
        IF NOT FOUND THEN
            v_over := v_over || v_ask.ord::int;
        END IF;
    END LOOP;
    RETURN v_over;
END $$;

-- Seats of cards whose payment came to nothing, or went back. Cards nobody counts have no row.
CREATE FUNCTION count_cards_down(p_show bigint[], p_card text[], p_seats int[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE card_count SET seats = greatest(0, card_count.seats - gone.seats)
      FROM (SELECT show_id, card, sum(seats)::int AS seats
              FROM unnest(p_show, p_card, p_seats) AS a (show_id, card, seats)
             WHERE card IS NOT NULL GROUP BY 1, 2) AS gone
     WHERE card_count.show_id = gone.show_id AND card_count.card = gone.card;
$$;

-- The money has come. Bookings that still wait for it are confirmed, with their tickets, their audit row,
-- their fact and the books; a payment whose booking waits no more is late. Said twice, it changes nothing.
CREATE FUNCTION confirm_payments(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reference text[], p_card text[],
    p_fee bigint[], p_tax bigint[]
) RETURNS SETOF payment_card
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    WITH moved AS (
        UPDATE booking SET state = 'confirmed', confirmed_at = now()
          FROM unnest(p_show, p_number, p_attempt) AS a (show_id, number, attempt)
          JOIN payment USING (show_id, number, attempt)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = payment.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;

    WITH changed AS (
        UPDATE payment
           SET step = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                           THEN 'paid' ELSE 'late' END::payment_step,
               reference = coalesce(a.reference, payment.reference), card = coalesce(payment.card, a.card),
               fee_minor = a.fee, tax_minor = a.tax, method = '', client_secret = NULL, tries = 0,
               -- Of one that had failed: its asker's key may have been used again since.
               request_id = CASE WHEN payment.ended_at IS NULL THEN payment.request_id
                                 ELSE '~' || payment.key END,
               due_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                             THEN NULL ELSE now() END,
               ended_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                               THEN now() END
          FROM unnest(p_show, p_number, p_attempt, p_reference, p_card, p_fee, p_tax)
               AS a (show_id, number, attempt, reference, card, fee, tax)
          JOIN booking USING (show_id, number)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step NOT IN ('paid', 'late', 'returned')
     RETURNING payment.*
    ), entries AS MATERIALIZED (
        SELECT *, nextval('ledger_number') AS entry FROM changed
    )
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT show_id, entry, account, amount, currency, number, attempt,
           CASE step WHEN 'paid' THEN 'charge' ELSE 'late charge' END
      FROM entries,
           LATERAL (SELECT * FROM parts_of(gateway, amount_minor, fee_minor, tax_minor) WHERE step = 'paid'
                     UNION ALL
                    VALUES ('gateway:' || gateway, CASE step WHEN 'late' THEN amount_minor END),
                           ('owed', CASE step WHEN 'late' THEN -amount_minor END)) AS l (account, amount)
     WHERE amount <> 0;

    IF v_show IS NOT NULL THEN
        PERFORM record_moves(v_show, v_number, 'confirm', NULL);
    END IF;
    RETURN QUERY SELECT * FROM payment_cards(p_show, p_number, p_attempt);
END $$;

-- Who gets what of an amount that lies at the gateway.
CREATE FUNCTION parts_of(p_gateway text, p_amount bigint, p_fee bigint, p_tax bigint)
RETURNS TABLE (account text, amount bigint) LANGUAGE sql IMMUTABLE AS $$
    VALUES ('gateway:' || p_gateway, p_amount), ('organiser', -(p_amount - p_fee - p_tax)),
           ('fee', -p_fee), ('tax', -p_tax);
$$;

-- The gateway said no, or was told to forget it: the bookings are HELD again with the time they had left, or
-- without any, and then the sweep has them. A payment that has ended, or whose money has come, stays as is.
CREATE FUNCTION give_payments_back(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reason text[], p_code text[], p_step payment_step
) RETURNS SETOF payment_card
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    WITH ended AS (
        UPDATE payment
           SET step = p_step, reason = a.reason, code = a.code, method = '', client_secret = NULL,
               due_at = NULL, ended_at = now()
          FROM unnest(p_show, p_number, p_attempt, p_reason, p_code)
               AS a (show_id, number, attempt, reason, code)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    ), facts AS (
        INSERT INTO outbox (show_id, number, kind, body)
        SELECT show_id, number, 'payment.' || p_step,
               jsonb_build_object('attempt', attempt, 'reason', reason, 'code', code,
                                  'amount_minor', amount_minor, 'currency', currency)
          FROM ended
    ), moved AS (
        UPDATE booking SET state = 'held', expires_at = ended.hold_ends_at
          FROM ended
         WHERE booking.show_id = ended.show_id AND booking.number = ended.number
           AND booking.state = 'paying' AND booking.fence = ended.fence
     RETURNING booking.show_id, booking.number, booking.seats, ended.card
    ), counted AS (
        SELECT count_cards_down(array_agg(show_id), array_agg(card), array_agg(cardinality(seats)))
          FROM moved
        HAVING count(card) > 0
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number
      FROM moved LEFT JOIN counted ON true;
    IF v_show IS NOT NULL THEN
        PERFORM record_moves(v_show, v_number, 'decline', 0);
    END IF;
    RETURN QUERY SELECT * FROM payment_cards(p_show, p_number, p_attempt);
END $$;

-- The time is up and the gateway has been told, or is silent: the seats go. `expired`: no money will come;
-- `watch`: it may still, and is asked after.
CREATE FUNCTION let_payments_go(
    p_show bigint[], p_number bigint[], p_attempt int[], p_step payment_step, p_due_ms int
) RETURNS SETOF payment_card
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    WITH ended AS (
        UPDATE payment
           SET step = p_step, method = '', client_secret = NULL, tries = 0,
               due_at = CASE p_step WHEN 'watch' THEN now() + p_due_ms * interval '1 ms' END,
               ended_at = CASE p_step WHEN 'watch' THEN NULL ELSE now() END
          FROM unnest(p_show, p_number, p_attempt) AS a (show_id, number, attempt)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    ), moved AS (
        UPDATE booking SET state = 'expired'
          FROM ended
         WHERE booking.show_id = ended.show_id AND booking.number = ended.number
           AND booking.state = 'paying' AND booking.fence = ended.fence
     RETURNING booking.show_id, booking.number, booking.seats, ended.card
    ), counted AS (
        SELECT count_cards_down(array_agg(show_id), array_agg(card), array_agg(cardinality(seats)))
          FROM moved
        HAVING count(card) > 0
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number
      FROM moved LEFT JOIN counted ON true;
    IF v_show IS NOT NULL THEN
        PERFORM let_seats_go(v_show, v_number);
        PERFORM count_down(v_show, v_number);
        PERFORM record_moves(v_show, v_number, 'expire', NULL);
    END IF;
    RETURN QUERY SELECT * FROM payment_cards(p_show, p_number, p_attempt);
END $$;

-- 0012_late_payments.sql: money that comes when its booking does not wait for it any more.

-- Book it if every seat is still free, else send all of it back: exactly one of the two, decided here once.
-- Its seats may be its own still (HELD again after a decline, or lapsed and not swept yet).
CREATE FUNCTION book_late(p_show bigint, p_number bigint, p_attempt int, p_may_book boolean)
RETURNS SETOF payment_card LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_booking booking;
    v_payment payment;
    v_booked  boolean := false;
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    SELECT * INTO STRICT v_booking FROM booking WHERE show_id = p_show AND number = p_number FOR UPDATE;
    SELECT * INTO STRICT v_payment FROM payment
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt FOR UPDATE;
    IF v_payment.step = 'late' THEN
        IF p_may_book AND v_payment.amount_minor = v_booking.amount_minor
           AND EXISTS (SELECT 1 FROM sale WHERE show_id = p_show AND NOT cancelled) THEN
            v_booked := v_booking.state = 'held' OR (v_booking.state = 'expired' AND take_again(v_booking));
        END IF;
        UPDATE payment SET step = CASE WHEN v_booked THEN 'paid' ELSE 'returned' END::payment_step,
                           fence = CASE WHEN v_booked THEN nextval('ledger_number') ELSE fence END,
                           refunds_minor = CASE WHEN v_booked THEN 0 ELSE amount_minor END,
                           due_at = NULL, ended_at = now()
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt
     RETURNING * INTO v_payment;
        IF v_booked THEN
            PERFORM book_it(v_payment);
        ELSE
            PERFORM send_it_back(v_payment, v_booking.state);
        END IF;
        INSERT INTO outbox (show_id, number, kind, body)
        VALUES (p_show, p_number, 'payment.late',
                jsonb_build_object('attempt', p_attempt, 'booked', v_booked,
                                   'amount_minor', v_payment.amount_minor, 'currency', v_payment.currency));
    END IF;
    RETURN QUERY
    SELECT * FROM payment_card WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
END $$;

-- All seats of an expired booking, or none of them; the limits hold for it as for everybody.
CREATE FUNCTION take_again(p_booking booking) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_got int;
BEGIN
    PERFORM expire_lapsed(array_agg(t.show_id), array_agg(t.number))
       FROM taken_seat AS t WHERE t.show_id = p_booking.show_id AND t.seat = ANY (p_booking.seats);
    WITH got AS (
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT p_booking.show_id, seat, p_booking.number FROM unnest(p_booking.seats) AS seat ORDER BY seat
            ON CONFLICT DO NOTHING
     RETURNING 1
    )
    SELECT count(*) INTO v_got FROM got;
    IF v_got = cardinality(p_booking.seats) THEN
        UPDATE owner_count SET seats = seats + v_got
         WHERE show_id = p_booking.show_id AND owner_id = p_booking.owner_id AND seats + v_got <= seats_max;
        IF FOUND THEN
            RETURN true;
        END IF;
    END IF;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_booking.seats) AND number = p_booking.number;
    RETURN false;
END $$;

CREATE FUNCTION book_it(p_payment payment) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE booking SET state = 'confirmed', confirmed_at = now(), fence = p_payment.fence
     WHERE show_id = p_payment.show_id AND number = p_payment.number;
    PERFORM record_moves(ARRAY[p_payment.show_id], ARRAY[p_payment.number], 'confirm', NULL);
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT p_payment.show_id, e.entry, CASE WHEN l.amount > 0 THEN 'owed' ELSE l.account END, l.amount,
           p_payment.currency, p_payment.number, p_payment.attempt, 'late booking'
      FROM (SELECT nextval('ledger_number') AS entry) AS e,
           parts_of('', p_payment.amount_minor, p_payment.fee_minor, p_payment.tax_minor) AS l
     WHERE l.amount <> 0;
END $$;

-- The fan is told by the state of the booking, and by the fact.
CREATE FUNCTION send_it_back(p_payment payment, p_state booking_state) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_payment.show_id, p_payment.number, p_payment.attempt, coalesce(max(id), 0) + 1, 'late',
           p_payment.amount_minor
      FROM refund
     WHERE show_id = p_payment.show_id AND number = p_payment.number AND attempt = p_payment.attempt;
    IF p_state = 'expired' THEN
        UPDATE booking SET state = 'failed'
         WHERE show_id = p_payment.show_id AND number = p_payment.number;
        PERFORM record_moves(ARRAY[p_payment.show_id], ARRAY[p_payment.number], 'fail', NULL);
    END IF;
END $$;

-- 0013_books.sql: the gateway's books held against ours, and what a webhook finds its payment by.

-- Webhooks about refunds, and some gateways' about payments, name the gateway's id and not our key.
CREATE INDEX payments_by_reference ON payment (reference) WHERE reference IS NOT NULL;
-- Read by time once a minute, written with every payment: the cheapest kind there is.
CREATE INDEX payments_by_time ON payment USING brin (asked_at);

-- How far the comparison is, one row a gateway.
CREATE TABLE books_compared (
    gateway  text        PRIMARY KEY,
    since_at timestamptz NOT NULL,                        -- payments since then were compared
    began_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    seen     bigint      NOT NULL,                        -- payments of ours the gateway has
    settled  bigint      NOT NULL                         -- differences that are none any more
);

-- What the latest comparison could not settle. Each stays until a later one finds nothing.
CREATE TABLE payment_difference (
    gateway   text        NOT NULL,
    key       text        NOT NULL,                       -- our reference at the gateway
    kind      text        NOT NULL,
    reference text        NOT NULL,                       -- the gateway's own id; empty: it has none
    ours      text        NOT NULL,
    theirs    text        NOT NULL,
    found_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (gateway, key, kind)
);

-- 0014_refunds.sql: money goes back, and with it seats. Decided in one transaction, carried out afterwards.
--
-- Order of locks as in 0008_payments.sql; tickets come between payments and seats. Whoever lets somebody in
-- locks the ticket, too: a ticket is used or given back, never both.

-- A refund and as much of its payment as whoever carries it out must know.
CREATE VIEW refund_card AS
SELECT refund.*, payment.owner_id, payment.key, payment.gateway, payment.currency,
       payment.reference AS payment_reference
  FROM refund JOIN payment USING (show_id, number, attempt);

CREATE INDEX sales_cancelled ON sale (show_id) WHERE cancelled;

-- How an amount is taken from what is left of a payment: from each share its part, and to the last minor unit
-- no more than there is. With p_keep_fee our fee is touched last.
CREATE FUNCTION refund_split(
    p_amount bigint, p_left bigint, p_fee_left bigint, p_tax_left bigint, p_keep_fee boolean
) RETURNS TABLE (fee bigint, tax bigint) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_from      bigint := p_left - CASE WHEN p_keep_fee THEN p_fee_left ELSE 0 END;
    v_organiser bigint := p_left - p_fee_left - p_tax_left;
    v_fee       bigint := 0;
    v_tax       bigint := 0;
BEGIN
    IF p_amount >= v_from THEN
        v_tax := p_tax_left;
        v_fee := p_amount - v_tax - v_organiser;
    ELSIF v_from > 0 THEN
        v_fee := CASE WHEN p_keep_fee THEN 0 ELSE p_fee_left * p_amount / v_from END;
        v_tax := p_tax_left * p_amount / v_from;
        -- What rounding has left over, if the organiser has no more to give.
        v_tax := v_tax + least(p_tax_left - v_tax, greatest(0, p_amount - v_fee - v_tax - v_organiser));
        v_fee := v_fee + greatest(0, p_amount - v_fee - v_tax - v_organiser);
    END IF;
    RETURN QUERY SELECT v_fee, v_tax;
END $$;

-- The books and the row of one refund. p_due_ms: from when on a duty should ask the gateway.
CREATE FUNCTION ask_refund(p_payment payment, p_refund refund, p_keep_fee boolean, p_due_ms int)
RETURNS refund LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund := p_refund;
BEGIN
    SELECT coalesce(max(r.id), 0) + 1, split.fee, split.tax
      INTO v_refund.id, v_refund.fee_minor, v_refund.tax_minor
      FROM (SELECT p_payment.fee_minor - coalesce(sum(done.fee_minor), 0)::bigint AS fee,
                   p_payment.tax_minor - coalesce(sum(done.tax_minor), 0)::bigint AS tax
              FROM refund AS done
             WHERE done.show_id = p_payment.show_id AND done.number = p_payment.number
               AND done.attempt = p_payment.attempt) AS shares,
           refund_split(p_refund.amount_minor, p_payment.amount_minor - p_payment.refunds_minor,
                        shares.fee, shares.tax, p_keep_fee) AS split
      LEFT JOIN refund AS r ON r.show_id = p_payment.show_id AND r.number = p_payment.number
                           AND r.attempt = p_payment.attempt
     GROUP BY split.fee, split.tax;
    INSERT INTO refund (show_id, number, attempt, id, why, seats, seats_minor, amount_minor, fee_minor,
                        tax_minor, state, note, actor_id, due_at, done_at)
    VALUES (p_payment.show_id, p_payment.number, p_payment.attempt, v_refund.id, v_refund.why, v_refund.seats,
            v_refund.seats_minor, v_refund.amount_minor, v_refund.fee_minor, v_refund.tax_minor,
            CASE v_refund.amount_minor WHEN 0 THEN 'done' ELSE 'asked' END::refund_state,
            v_refund.note, v_refund.actor_id,
            CASE v_refund.amount_minor WHEN 0 THEN NULL ELSE now() + p_due_ms * interval '1 ms' END,
            CASE v_refund.amount_minor WHEN 0 THEN now() END)
 RETURNING * INTO v_refund;
    UPDATE payment SET refunds_minor = refunds_minor + v_refund.amount_minor
     WHERE show_id = p_payment.show_id AND number = p_payment.number AND attempt = p_payment.attempt;
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT v_refund.show_id, e.entry, l.account, l.amount, p_payment.currency, v_refund.number,
           v_refund.attempt, 'refund'
      FROM (SELECT nextval('ledger_number') AS entry) AS e,
           (VALUES ('organiser', v_refund.amount_minor - v_refund.fee_minor - v_refund.tax_minor),
                   ('fee', v_refund.fee_minor), ('tax', v_refund.tax_minor),
                   ('owed', -v_refund.amount_minor)) AS l (account, amount)
     WHERE l.amount <> 0;
    PERFORM tell_of_refund(v_refund, p_payment.currency);
    RETURN v_refund;
END $$;

CREATE FUNCTION tell_of_refund(p_refund refund, p_currency text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO outbox (show_id, number, kind, body)
    SELECT p_refund.show_id, p_refund.number, 'refund.' || p_refund.state,
           jsonb_build_object('attempt', p_refund.attempt, 'refund', p_refund.id,
                              'why', split_part(p_refund.why, ':', 1),
                              'amount_minor', p_refund.amount_minor, 'currency', p_currency,
                              'seats', p_refund.seats, 'reason', p_refund.reason)
     WHERE p_refund.amount_minor > 0;
$$;

-- A confirmed booking gives up all its seats and is REFUNDED. The ticket of who was let in stays as it was.
CREATE FUNCTION give_up_booking(p_booking booking, p_actor bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE booking SET state = 'refunded' WHERE show_id = p_booking.show_id AND number = p_booking.number;
    UPDATE ticket SET voided_at = now()
     WHERE show_id = p_booking.show_id AND number = p_booking.number
       AND voided_at IS NULL AND used_at IS NULL;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_booking.seats) AND number = p_booking.number;
    PERFORM record_moves(ARRAY[p_booking.show_id], ARRAY[p_booking.number], 'refund', p_actor);
END $$;

-- A confirmed booking gives up some of its seats, and keeps the others.
CREATE FUNCTION give_up_seats(p_booking booking, p_seats int[], p_actor bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_after booking;
BEGIN
    -- Facts that nobody has read yet speak of the booking as it was.
    UPDATE outbox
       SET body = coalesce(body, '{}') || jsonb_build_object(
               'seats', p_booking.seats, 'prices_minor', p_booking.prices_minor,
               'amount_minor', p_booking.amount_minor)
     WHERE show_id = p_booking.show_id AND number = p_booking.number AND kind LIKE 'booking.%'
       AND NOT coalesce(body, '{}') ? 'seats';
    UPDATE booking
       SET seats = kept.seats, prices_minor = kept.prices, amount_minor = kept.amount
      FROM (SELECT array_agg(seat ORDER BY ord) AS seats, array_agg(price ORDER BY ord) AS prices,
                   sum(price)::bigint AS amount
              FROM unnest(p_booking.seats, p_booking.prices_minor) WITH ORDINALITY AS a (seat, price, ord)
             WHERE seat <> ALL (p_seats)) AS kept
     WHERE show_id = p_booking.show_id AND number = p_booking.number
 RETURNING booking.* INTO v_after;
    UPDATE ticket SET voided_at = now()
     WHERE show_id = p_booking.show_id AND number = p_booking.number AND seat = ANY (p_seats)
       AND voided_at IS NULL AND used_at IS NULL;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_seats) AND number = p_booking.number;
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
    VALUES (v_after.show_id, v_after.number, 'reduce', v_after.state, v_after.fence, p_actor);
    INSERT INTO outbox (show_id, number, kind, body)
    VALUES (v_after.show_id, v_after.number, 'booking.reduced', jsonb_build_object(
               'seats', v_after.seats, 'prices_minor', v_after.prices_minor,
               'amount_minor', v_after.amount_minor, 'given_back', p_seats));
END $$;

-- What is asked of decide_refunds, for one booking.
CREATE TYPE refund_ask AS (
    show_id bigint, number bigint, why text,
    what text,              -- whole, seats, money
    seats int[],            -- of seats: which
    seen int[],             -- the seats it had when the amount was worked out
    amount_minor bigint,    -- NULL: what those seats had cost
    keep_fee boolean, note text, actor_id bigint
);

-- Why not, or NULL; with the seats that are in the way. The caller has locked the booking and its tickets.
CREATE FUNCTION refund_refusal(p_ask refund_ask, p_booking booking, p_payment payment)
RETURNS TABLE (outcome text, seats int[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_seats int[] := CASE p_ask.what WHEN 'whole' THEN p_booking.seats WHEN 'seats' THEN p_ask.seats
                                     ELSE '{}' END;
    v_gone  int[];
    v_used  int[];
    v_given int[];
BEGIN
    SELECT coalesce(array_agg(ticket.seat) FILTER (WHERE ticket.voided_at IS NOT NULL), '{}'),
           array_agg(ticket.seat ORDER BY ticket.seat)
               FILTER (WHERE ticket.used_at IS NOT NULL AND p_ask.why <> 'show'),
           array_agg(ticket.seat ORDER BY ticket.seat)
               FILTER (WHERE p_ask.why LIKE 'owner%' AND ticket.voided_at IS NULL
                         AND (life.owner_email IS NOT NULL OR life.owner_id <> p_booking.owner_id))
      INTO v_gone, v_used, v_given
      FROM ticket
      LEFT JOIN ticket_life AS life ON life.show_id = ticket.show_id AND life.serial = ticket.serial
     WHERE ticket.show_id = p_booking.show_id AND ticket.number = p_booking.number
       AND ticket.seat = ANY (v_seats);
    RETURN QUERY SELECT CASE
        WHEN p_booking.state IS NULL OR p_booking.state = 'blocked' THEN 'none'
        WHEN p_ask.what = 'seats' AND p_ask.seats <@ v_gone THEN 'gone'
        WHEN p_ask.what = 'money' AND p_booking.state NOT IN ('confirmed', 'refunded')
          OR p_ask.what <> 'money' AND p_booking.state <> 'confirmed' THEN p_booking.state::text
        WHEN p_ask.what <> 'money' AND p_ask.seen <> p_booking.seats THEN 'changed'
        WHEN NOT v_seats <@ p_booking.seats THEN 'seats'
        WHEN v_used IS NOT NULL THEN 'used'
        WHEN v_given IS NOT NULL THEN 'given'
        WHEN p_ask.what = 'money'
         AND p_ask.amount_minor > coalesce(p_payment.amount_minor - p_payment.refunds_minor, 0) THEN 'much'
    END, coalesce(v_used, v_given);
END $$;

-- One refund, decided and written. `same`: this reason has had its refund.
CREATE FUNCTION decide_refund(
    p_ask refund_ask, p_due_ms int,
    OUT outcome text, OUT refund refund, OUT seats int[], OUT payment payment, OUT freed int[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_booking booking;
    v_worth   bigint;
    v_open    bigint;
BEGIN
    SELECT * INTO v_booking FROM booking AS b WHERE b.show_id = p_ask.show_id AND b.number = p_ask.number;
    SELECT * INTO payment FROM payment AS p
     WHERE p.show_id = p_ask.show_id AND p.number = p_ask.number AND p.step = 'paid';
    SELECT * INTO refund FROM refund AS r
     WHERE r.show_id = p_ask.show_id AND r.number = p_ask.number AND r.attempt = payment.attempt
       AND r.why = p_ask.why;
    IF FOUND THEN
        outcome := 'same';
        RETURN;
    END IF;
    SELECT r.outcome, r.seats INTO outcome, seats FROM refund_refusal(p_ask, v_booking, payment) AS r;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;

    outcome := 'decided';
    freed := CASE p_ask.what WHEN 'whole' THEN v_booking.seats WHEN 'seats' THEN p_ask.seats ELSE '{}' END;
    IF payment.attempt IS NOT NULL THEN
        SELECT coalesce(sum(price), 0)::bigint INTO v_worth
          FROM unnest(v_booking.seats, v_booking.prices_minor) AS a (seat, price)
         WHERE seat = ANY (freed);
        -- Money that went back alone was part of the price of the seats that are left.
        SELECT least(payment.amount_minor - payment.refunds_minor,
                     greatest(0, v_booking.amount_minor - coalesce(sum(r.amount_minor), 0)))
          INTO v_open
          FROM refund AS r
         WHERE r.show_id = payment.show_id AND r.number = payment.number AND r.attempt = payment.attempt
           AND r.seats = '{}';
        refund.why := p_ask.why;
        refund.seats := freed;
        refund.seats_minor := v_worth;
        refund.amount_minor := CASE p_ask.what WHEN 'money' THEN p_ask.amount_minor
                                    ELSE least(coalesce(p_ask.amount_minor, v_worth), v_open) END;
        refund.note := p_ask.note;
        refund.actor_id := p_ask.actor_id;
        refund := ask_refund(payment, refund, p_ask.keep_fee, p_due_ms);
    END IF;
    IF freed <> '{}' AND freed @> v_booking.seats THEN
        PERFORM give_up_booking(v_booking, p_ask.actor_id);
    ELSIF freed <> '{}' THEN
        PERFORM give_up_seats(v_booking, freed, p_ask.actor_id);
    END IF;
END $$;

-- Many refunds, each decided for itself. Outcomes:
--   decided  · same (this reason has had its refund: here it is)  · gone (these seats have been given back)
--   none (no such booking)  · seats (it has not got them)  · changed (it has other seats than were seen)
--   used, given (tickets of `seats` let somebody in, or are another's)  · much (more than is left)
--   or the state the booking is in, where that does not allow it
CREATE FUNCTION decide_refunds(
    p_show bigint[], p_number bigint[], p_why text[], p_what text[], p_seats text[], p_seen text[],
    p_amount bigint[], p_keep_fee boolean[], p_note text[], p_actor bigint[], p_due_ms int
) RETURNS TABLE (outcome text, refund refund_card, seats int[], left_minor bigint, booking booking)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_ask     record;
    v_done    record;
    v_outcome text[] := array_fill(NULL::text, ARRAY[cardinality(p_show)]);
    v_attempt int[] := array_fill(NULL::int, ARRAY[cardinality(p_show)]);
    v_id      int[] := array_fill(NULL::int, ARRAY[cardinality(p_show)]);
    v_seats   text[] := array_fill(NULL::text, ARRAY[cardinality(p_show)]);
    v_freed   int[] := array_fill(0, ARRAY[cardinality(p_show)]);
    v_card    text[] := array_fill(NULL::text, ARRAY[cardinality(p_show)]);
BEGIN
    -- Shared, against whoever writes the map anew: what they read of these bookings must still be so.
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;
    PERFORM 1 FROM booking AS b JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY b.show_id, b.number FOR UPDATE OF b;
    PERFORM 1 FROM payment AS p JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY p.show_id, p.number, p.attempt FOR UPDATE OF p;
    PERFORM 1 FROM ticket AS t JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY t.show_id, t.number, t.seat FOR UPDATE OF t;

    FOR v_ask IN
        SELECT ord, ROW(a.show_id, a.number, a.why, a.what, a.seats::int[], a.seen::int[], a.amount,
                        a.keep_fee, a.note, a.actor_id)::refund_ask AS one
          FROM unnest(p_show, p_number, p_why, p_what, p_seats, p_seen, p_amount, p_keep_fee, p_note, p_actor)
               WITH ORDINALITY AS a (show_id, number, why, what, seats, seen, amount, keep_fee, note,
                                     actor_id, ord)
      ORDER BY a.show_id, a.number, a.ord
    LOOP
        SELECT * INTO v_done FROM decide_refund(v_ask.one, p_due_ms);
        v_outcome[v_ask.ord] := v_done.outcome;
        v_attempt[v_ask.ord] := (v_done.payment).attempt;
        v_id[v_ask.ord] := (v_done.refund).id;
        v_seats[v_ask.ord] := v_done.seats::text;
        IF v_done.outcome = 'decided' THEN
            v_freed[v_ask.ord] := cardinality(v_done.freed);
            v_card[v_ask.ord] := (v_done.payment).card;
        END IF;
    END LOOP;

    -- Counters last of all locks, and in key order.
    PERFORM count_owners_down(p_show, p_number, v_freed);
    PERFORM count_cards_down(p_show, v_card, v_freed);
    RETURN QUERY
    SELECT a.outcome, c, a.seats::int[],
           (SELECT p.amount_minor - p.refunds_minor FROM payment AS p
             WHERE p.show_id = a.show_id AND p.number = a.number AND p.step = 'paid'), b
      FROM unnest(p_show, p_number, v_outcome, v_attempt, v_id, v_seats) WITH ORDINALITY
           AS a (show_id, number, outcome, attempt, id, seats, ord)
      LEFT JOIN booking AS b ON b.show_id = a.show_id AND b.number = a.number
      LEFT JOIN refund_card AS c
             ON c.show_id = a.show_id AND c.number = a.number AND c.attempt = a.attempt AND c.id = a.id
  ORDER BY a.ord;
END $$;

-- Seats that owners have less, by their bookings.
CREATE FUNCTION count_owners_down(p_show bigint[], p_number bigint[], p_seats int[]) RETURNS void
LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, sum(a.seats)::int AS seats
          FROM unnest(p_show, p_number, p_seats) AS a (show_id, number, seats)
          JOIN booking USING (show_id, number)
         WHERE booking.counts AND a.seats > 0
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

-- What the gateway said to a refund that was asked for: done, or by_hand. Said twice, it changes nothing.
-- With a note a person has paid one that is by_hand, by another way.
CREATE FUNCTION settle_refund(
    p_show bigint, p_number bigint, p_attempt int, p_id int, p_state refund_state,
    p_reference text, p_reason text, p_note text
) RETURNS SETOF refund_card LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_refund  refund;
    v_payment payment;
BEGIN
    UPDATE refund
       SET state = p_state, reference = coalesce(p_reference, reference), reason = coalesce(p_reason, reason),
           settled_note = p_note, due_at = NULL, done_at = CASE p_state WHEN 'done' THEN now() END
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id
       AND state = CASE WHEN p_note IS NULL THEN 'asked' ELSE 'by_hand' END::refund_state
 RETURNING * INTO v_refund;
    IF FOUND THEN
        SELECT * INTO STRICT v_payment FROM payment
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
        INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
        SELECT p_show, e.entry, l.account, l.amount, v_payment.currency, p_number, p_attempt, 'refund done'
          FROM (SELECT nextval('ledger_number') AS entry) AS e,
               (VALUES ('owed', v_refund.amount_minor),
                       (CASE WHEN p_note IS NULL THEN 'gateway:' || v_payment.gateway ELSE 'by_hand' END,
                        -v_refund.amount_minor)) AS l (account, amount)
         WHERE p_state = 'done';
        PERFORM tell_of_refund(v_refund, v_payment.currency);
    END IF;
    RETURN QUERY
    SELECT * FROM refund_card
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id;
END $$;

-- As in 0012_late_payments.sql; it is told, too.
CREATE OR REPLACE FUNCTION send_it_back(p_payment payment, p_state booking_state) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund;
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_payment.show_id, p_payment.number, p_payment.attempt, coalesce(max(id), 0) + 1, 'late',
           p_payment.amount_minor
      FROM refund
     WHERE show_id = p_payment.show_id AND number = p_payment.number AND attempt = p_payment.attempt
 RETURNING * INTO v_refund;
    PERFORM tell_of_refund(v_refund, p_payment.currency);
    IF p_state = 'expired' THEN
        UPDATE booking SET state = 'failed'
         WHERE show_id = p_payment.show_id AND number = p_payment.number;
        PERFORM record_moves(ARRAY[p_payment.show_id], ARRAY[p_payment.number], 'fail', NULL);
    END IF;
END $$;

-- A show that will not take place is told of once, in the transaction that decides it.
CREATE FUNCTION tell_of_cancelled_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    VALUES (NEW.show_id, 'show.cancelled', jsonb_build_object('revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_cancelled_show AFTER UPDATE OF cancelled ON sale
    FOR EACH ROW WHEN (NEW.cancelled AND NOT OLD.cancelled) EXECUTE FUNCTION tell_of_cancelled_show();

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

-- 0016_notices.sql: what people are sent, from the moment a fact says so until it is sent or given up.

-- The language somebody reads; notices are written in it.
ALTER TABLE account ADD COLUMN locale text NOT NULL DEFAULT 'en'
    CONSTRAINT a_locale_is_a_short_name CHECK (locale ~ '^[a-z]{2,3}$');

CREATE TYPE notice_state AS ENUM (
    'queued',      -- to be sent when it is due
    'sent',        -- the other side has it
    'kept',        -- nobody sends mail here: its letter is kept for the demo's mail page
    'unsent',      -- nobody sends mail here, and nobody keeps it
    'moot',        -- when its turn came it was not true any more
    'dead'         -- refused, or tried often enough: a person must look
);

CREATE TABLE notice (
    id         bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fact_id    bigint,                                   -- NULL: no fact, a duty saw it coming
    kind       text         NOT NULL,                    -- Kind in notices/notice.py
    channel    text         NOT NULL,                    -- mail, sms, push
    account_id bigint,                                   -- NULL: nobody has signed up by this address
    address    text         NOT NULL,
    name       text         NOT NULL,
    locale     text         NOT NULL,
    show_id    bigint       NOT NULL,
    number     bigint,                                   -- of the booking
    body       jsonb        NOT NULL DEFAULT '{}',       -- what is not read when it is written out
    state      notice_state NOT NULL DEFAULT 'queued',
    round      int          NOT NULL DEFAULT 1,          -- of sending; a person may have it sent anew
    tries      int          NOT NULL DEFAULT 0,          -- in this round
    turn       int          NOT NULL DEFAULT 0,          -- whose turn it is to send it: grows
    due_at     timestamptz  DEFAULT now(),               -- when somebody should; NULL: nobody has to
    reason     text,                                     -- why not, the last time
    written_at timestamptz  NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    CONSTRAINT one_notice_a_fact_and_person UNIQUE (fact_id, kind, channel, address),
    CONSTRAINT queued_is_due CHECK ((state = 'queued') = (due_at IS NOT NULL)),
    CONSTRAINT queued_or_ended CHECK ((state = 'queued') = (ended_at IS NULL)),
    CONSTRAINT ways_to_somebody CHECK (channel IN ('mail', 'sms', 'push'))
);

-- However often the duty looks: a person is warned once of a hold that is about to lapse.
CREATE UNIQUE INDEX one_warning_a_booking ON notice (show_id, number, channel) WHERE kind = 'hold_lapsing';
CREATE INDEX notices_due ON notice (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notices_dead ON notice (id) WHERE state = 'dead';
CREATE INDEX notices_by_end ON notice (ended_at) WHERE ended_at IS NOT NULL;

-- Whole letters, where nobody sends them: they have codes of tickets in them and are soon forgotten.
CREATE TABLE kept_letter (
    notice_id bigint      PRIMARY KEY REFERENCES notice ON DELETE CASCADE,
    subject   text        NOT NULL,
    letter    bytea       NOT NULL,                      -- as it would have gone to the mail server
    kept_at   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX kept_letters_by_age ON kept_letter (kept_at);

-- Under which name an organiser's letters go out, and where answers to them go.
CREATE TABLE organiser_sender (
    organiser_id bigint PRIMARY KEY,
    from_name    text   NOT NULL,
    reply_to     text   NOT NULL DEFAULT '',             -- empty: to us
    CONSTRAINT a_sender_has_a_short_name CHECK (char_length(from_name) BETWEEN 1 AND 80)
);

-- A show that begins at another time: who has tickets must be told, and from when to when. Other changes of a
-- show (prices, limits) are nothing to them, and show.changed does not say which it was.
CREATE TABLE show_move (
    show_id       bigint      NOT NULL,
    revision      bigint      NOT NULL,                  -- of the show, that began with it
    starts_before timestamptz NOT NULL,
    starts_at     timestamptz NOT NULL,
    PRIMARY KEY (show_id, revision)
);

CREATE FUNCTION note_moved_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_move (show_id, revision, starts_before, starts_at)
    VALUES (NEW.id, NEW.revision, OLD.starts_at, NEW.starts_at);
    RETURN NULL;
END $$;

CREATE TRIGGER note_moved_show AFTER UPDATE OF starts_at ON show
    FOR EACH ROW WHEN (NEW.starts_at <> OLD.starts_at AND NEW.revision <> OLD.revision AND NOT NEW.cancelled)
    EXECUTE FUNCTION note_moved_show();

-- 0017_organiser_webhooks.sql: where organisers want to be told facts of their own events, and what was told.

CREATE TYPE delivery_state AS ENUM (
    'queued',      -- to be sent when it is due
    'done',        -- the other side said 2xx
    'dead',        -- tried often enough; it may be replayed
    'missed'       -- its endpoint was switched off; it may be replayed
);

CREATE TABLE webhook_endpoint (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organiser_id  bigint      NOT NULL,                  -- hears of events of this account, and of no others
    url           text        NOT NULL,
    kinds         text[]      NOT NULL,                  -- of facts; empty: all there are
    active        boolean     NOT NULL DEFAULT true,
    off_reason    text,                                  -- why we switched it off; NULL: we did not
    secret        bytea       NOT NULL,                  -- signs; as it is, because we sign with it
    old_secret    bytea,                                 -- signs too, for a while after a change
    old_until     timestamptz,
    failing_since timestamptz,                           -- the first no after the last yes
    made_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_url_fits_a_line CHECK (char_length(url) BETWEEN 1 AND 2000),
    CONSTRAINT an_old_secret_has_an_end CHECK ((old_secret IS NULL) = (old_until IS NULL)),
    CONSTRAINT off_has_a_reason_only_when_off CHECK (off_reason IS NULL OR NOT active)
);
CREATE INDEX endpoints_of_an_organiser ON webhook_endpoint (organiser_id);

-- One fact for one endpoint. Written in the transaction that consumes the fact.
CREATE TABLE webhook_delivery (
    endpoint_id bigint         NOT NULL REFERENCES webhook_endpoint ON DELETE CASCADE,
    fact_id     bigint         NOT NULL,
    kind        text           NOT NULL,
    at          timestamptz    NOT NULL,                 -- when the fact became true
    payload     bytea          NOT NULL,                 -- as it is sent: what is signed are these bytes
    state       delivery_state NOT NULL,
    tries       int            NOT NULL DEFAULT 0,       -- since it was queued last
    turn        int            NOT NULL DEFAULT 0,       -- whose turn it is to send it: grows for ever
    due_at      timestamptz,
    written_at  timestamptz    NOT NULL DEFAULT now(),
    CONSTRAINT one_delivery_a_fact_and_endpoint PRIMARY KEY (endpoint_id, fact_id),
    CONSTRAINT queued_is_due CHECK ((state = 'queued') = (due_at IS NOT NULL))
);
CREATE INDEX deliveries_due ON webhook_delivery (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_by_age ON webhook_delivery (written_at);

-- Every try, for whoever wonders what became of it.
CREATE TABLE webhook_try (
    endpoint_id bigint      NOT NULL,
    fact_id     bigint      NOT NULL,
    turn        int         NOT NULL,
    status      int,                                     -- of HTTP; NULL: it did not come to an answer
    took_ms     int         NOT NULL,
    reason      text,                                    -- why that is no yes
    said        text        NOT NULL,                    -- the first letters of the answer
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (endpoint_id, fact_id, turn),
    CONSTRAINT a_try_is_of_a_delivery FOREIGN KEY (endpoint_id, fact_id) REFERENCES webhook_delivery
        ON DELETE CASCADE
);

-- 0018_figures.sql: what organisers want to know of their sales, kept by a consumer of facts.
--
-- A copy: `holdfast figures rebuild` writes it anew from the ledger. A row says what happened to one thing,
-- so that the same fact twice changes nothing; sums are made when somebody asks.

-- A seat that was sold. Its money is that of seats sold now: nothing once it was given back.
CREATE TABLE figure_seat (
    show_id     bigint      NOT NULL,
    number      bigint      NOT NULL,                    -- of the booking
    seat        int         NOT NULL,
    category    text        NOT NULL,
    currency    text        NOT NULL,
    price_minor bigint      NOT NULL,
    base_minor  bigint      NOT NULL,
    fee_minor   bigint      NOT NULL,
    tax_minor   bigint      NOT NULL,
    sold_at     timestamptz NOT NULL,
    returned_at timestamptz,                             -- given back
    PRIMARY KEY (show_id, number, seat),
    CONSTRAINT lines_sum_to_the_price CHECK (base_minor + fee_minor + tax_minor = price_minor),
    CONSTRAINT what_was_given_back_is_worth_nothing CHECK (returned_at IS NULL OR price_minor = 0)
);

-- Which states a booking has been in, and since when; blocks are nobody's bookings.
CREATE TABLE figure_stage (
    show_id bigint        NOT NULL,
    number  bigint        NOT NULL,
    stage   booking_state NOT NULL,
    at      timestamptz   NOT NULL,                      -- the first time
    PRIMARY KEY (show_id, number, stage)
);

CREATE TABLE figure_refund (
    show_id      bigint       NOT NULL,
    number       bigint       NOT NULL,
    attempt      int          NOT NULL,
    refund       int          NOT NULL,
    amount_minor bigint       NOT NULL,
    currency     text         NOT NULL,
    state        refund_state NOT NULL,
    fact_id      bigint       NOT NULL,                  -- that said so; an older one says nothing any more
    PRIMARY KEY (show_id, number, attempt, refund)
);

-- 0019_invoices.sql: invoices and credit notes, numbered without gaps for each organiser.
--
-- A number is drawn from a row, not from a sequence: what is undone leaves no gap. Who draws one has the row
-- to the end of the transaction, so that numbers follow time.

-- Who sells, as it is printed; without a row the organiser's account has its name there.
CREATE TABLE invoice_seller (
    organiser_id bigint PRIMARY KEY,
    name         text   NOT NULL,
    address      text   NOT NULL DEFAULT '',             -- several lines
    tax_number   text   NOT NULL DEFAULT '',
    CONSTRAINT a_seller_has_a_name CHECK (char_length(name) BETWEEN 1 AND 200)
);

CREATE TABLE invoice_count (
    organiser_id bigint PRIMARY KEY,
    last_number  bigint NOT NULL DEFAULT 0
);

-- Never changed: what was sold, or given back, by whom, as of then.
CREATE TABLE invoice (
    organiser_id   bigint      NOT NULL,
    serial         bigint      NOT NULL,                 -- 1, 2, … of the organiser
    show_id        bigint      NOT NULL,
    number         bigint      NOT NULL,                 -- of the booking
    attempt        int         NOT NULL,                 -- the payment it is for
    refund_id      int         NOT NULL DEFAULT 0,       -- 0: the invoice; else what a credit note is for
    credits        bigint,                               -- of a credit note: the serial of its invoice
    seats          int[]       NOT NULL,                 -- sold, or given back; empty: money alone
    amount_minor   bigint      NOT NULL,
    fee_minor      bigint      NOT NULL,
    tax_minor      bigint      NOT NULL,
    currency       text        NOT NULL,
    seller_name    text        NOT NULL,
    seller_address text        NOT NULL,
    seller_tax     text        NOT NULL,
    issued_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organiser_id, serial),
    CONSTRAINT one_paper_a_payment_and_refund UNIQUE (show_id, number, attempt, refund_id),
    CONSTRAINT a_credit_note_names_its_invoice CHECK ((refund_id = 0) = (credits IS NULL)),
    CONSTRAINT lines_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                           AND fee_minor + tax_minor <= amount_minor)
);

CREATE FUNCTION invoices_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an invoice is never changed: a credit note takes it back';
END $$;

CREATE TRIGGER invoices_stay BEFORE UPDATE OR DELETE ON invoice
    FOR EACH ROW EXECUTE FUNCTION invoices_stay();

-- What a booking that was paid for has no paper for yet: its invoice, and a credit note for every refund that
-- has been made. All papers of the booking; none when it was not confirmed, or nothing was to pay.
CREATE FUNCTION issue_invoices(p_show bigint, p_number bigint) RETURNS SETOF invoice LANGUAGE plpgsql AS $$
DECLARE
    v_seller  record;
    v_last    bigint;
    v_payment payment;
    v_paper   record;
BEGIN
    SELECT payment.* INTO v_payment
      FROM payment
      JOIN booking USING (show_id, number)
     WHERE show_id = p_show AND number = p_number AND step = 'paid' AND confirmed_at IS NOT NULL
     ORDER BY attempt DESC
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT event.organiser_id, coalesce(seller.name, account.name, 'The organiser') AS name,
           coalesce(seller.address, '') AS address, coalesce(seller.tax_number, '') AS tax_number
      INTO STRICT v_seller
      FROM show
      JOIN event ON event.id = show.event_id
      LEFT JOIN invoice_seller seller ON seller.organiser_id = event.organiser_id
      LEFT JOIN account ON account.id = event.organiser_id
     WHERE show.id = p_show;

    INSERT INTO invoice_count AS counted (organiser_id) VALUES (v_seller.organiser_id)
        ON CONFLICT (organiser_id) DO UPDATE SET last_number = counted.last_number
        RETURNING last_number INTO v_last;
    FOR v_paper IN
        SELECT 0 AS refund_id, v_payment.amount_minor, v_payment.fee_minor, v_payment.tax_minor,
               ARRAY(SELECT unnest(seats) FROM booking WHERE show_id = p_show AND number = p_number
                      UNION
                     SELECT unnest(seats) FROM refund
                      WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
                      ORDER BY 1) AS seats
         UNION ALL
        SELECT id, amount_minor, fee_minor, tax_minor, seats
          FROM refund
         WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
           AND state = 'done' AND amount_minor > 0
         ORDER BY refund_id
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM invoice
             WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
               AND refund_id = v_paper.refund_id
        );
        v_last := v_last + 1;
        INSERT INTO invoice (organiser_id, serial, show_id, number, attempt, refund_id, credits, seats,
                             amount_minor, fee_minor, tax_minor, currency,
                             seller_name, seller_address, seller_tax)
        VALUES (v_seller.organiser_id, v_last, p_show, p_number, v_payment.attempt, v_paper.refund_id,
                (SELECT serial FROM invoice
                  WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
                    AND refund_id = 0 AND v_paper.refund_id <> 0),
                v_paper.seats, v_paper.amount_minor, v_paper.fee_minor, v_paper.tax_minor, v_payment.currency,
                v_seller.name, v_seller.address, v_seller.tax_number);
    END LOOP;
    UPDATE invoice_count SET last_number = v_last WHERE organiser_id = v_seller.organiser_id;
    RETURN QUERY SELECT * FROM invoice WHERE show_id = p_show AND number = p_number ORDER BY serial;
END $$;

-- 0020_outbox_indexes.sql: two questions that read whole tables. Measured with a million rows in each.

-- A booking that gives some seats back writes into its own facts how it was before (give_up_seats), and
-- holds its locks meanwhile: 360 ms before, 0.2 ms now. Adding a fact costs what it did, within noise.
CREATE INDEX facts_of_a_booking ON outbox (show_id, number) WHERE number IS NOT NULL;

-- Which shows something happened in lately (shows_with_moves): asked every few seconds by every worker, 470
-- ms before. Rows are only ever added, in the order of their times: a range of pages has an entry, not a row.
CREATE INDEX moves_by_time ON booking_move USING brin (at) WITH (autosummarize = on);

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

-- 0022_visits.sql: people who come by browser: a cookie for a session; guests, who buy without a password.

-- Where letters to a guest go. Its `email` is made up, because one address may have bought as a guest often
-- and have an account besides; nobody has shown that the address is theirs.
ALTER TABLE account ADD COLUMN contact_email text
    CONSTRAINT a_contact_is_short CHECK (char_length(contact_email) BETWEEN 3 AND 254);

-- A guest who then logged in: what it has held and bought is shown to that account.
ALTER TABLE account ADD COLUMN guest_of bigint REFERENCES account ON DELETE CASCADE;
CREATE INDEX guests_of_an_account ON account (guest_of) WHERE guest_of IS NOT NULL;

-- The cookie itself is known to the browser alone. It ends with its session.
CREATE TABLE session_cookie (
    hash       bytea  PRIMARY KEY,  -- SHA-256
    session_id bigint NOT NULL REFERENCES session ON DELETE CASCADE
);
CREATE INDEX cookies_of_a_session ON session_cookie (session_id);

-- 0023_price_rules.sql: prices that move by rules, with time and with what is sold.
--
-- What a seat costs is in `price`, as ever: rules never price a hold, they move that row. A duty looks, works
-- out what the rules say, and writes prices, revision, terms and audit rows in one transaction. So a price is
-- at every instant one number that everybody is shown and charged, and each change of it is a row here.

-- The rules of a show as they are now; as PriceRules in catalogue/price_rules.py.
CREATE TABLE price_plan (
    show_id bigint      PRIMARY KEY REFERENCES show,
    rules   jsonb       NOT NULL,
    coming  jsonb       NOT NULL DEFAULT '{}',           -- what is told of the next step by time, by category
    due_at  timestamptz NOT NULL,                        -- when to look again: a step by time, or sales
    CONSTRAINT a_plan_has_rules CHECK (jsonb_typeof(rules -> 'rules') = 'array')
);
CREATE INDEX price_plans_due ON price_plan (due_at);

-- Everything that ever was a show's rules, and who said so. NULL: they were taken away.
CREATE TABLE price_rules (
    show_id  bigint      NOT NULL REFERENCES show,
    id       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    rules    jsonb,
    actor_id bigint      NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, id)
);

-- Every change of a price, for ever.
CREATE TABLE price_change (
    show_id     bigint      NOT NULL REFERENCES show,
    revision    bigint      NOT NULL,                    -- from this one on
    category    text        NOT NULL,
    was_minor   bigint,                                  -- NULL: the category is new
    price_minor bigint      NOT NULL,
    why         text        NOT NULL,
    sold        int,                                     -- seats of the category sold when it was decided
    seats       int,                                     -- of so many that were for sale
    actor_id    bigint,                                  -- NULL: the rules did it
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, revision, category),
    CONSTRAINT a_change_has_a_known_reason CHECK (why IN ('organiser', 'rules', 'step')),
    CONSTRAINT a_price_is_not_negative CHECK (price_minor BETWEEN 0 AND 1000000000)
);

CREATE FUNCTION price_changes_are_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what show % cost at revision % is history', OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER price_changes_are_never_changed BEFORE UPDATE OR DELETE ON price_change
    FOR EACH ROW EXECUTE FUNCTION price_changes_are_never_changed();

-- Told where it is written: no way of changing a price goes round it. One fact a show and revision.
CREATE FUNCTION tell_of_prices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    SELECT show_id, 'show.prices_changed', jsonb_build_object(
               'revision', revision, 'why', min(why),
               'prices', jsonb_agg(jsonb_build_object('category', category, 'was_minor', was_minor,
                                                      'price_minor', price_minor) ORDER BY category))
      FROM changed
  GROUP BY show_id, revision;
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_prices AFTER INSERT ON price_change REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_prices();

-- 0024_blocks_and_layouts.sql: what is known of seats kept back, and giving some of them to the sale.

-- What a block's row in `booking` does not tell. Its name is the booking's note: only organisers see it.
CREATE TABLE seat_block (
    show_id      bigint      NOT NULL,
    number       bigint      NOT NULL,
    release_at   timestamptz,                        -- then a duty gives the seats to the sale
    hours_before int,                                -- said as hours before the start: it moves with the show
    withdrawn    boolean     NOT NULL DEFAULT false, -- for ever: there is no such seat in the hall any more
    PRIMARY KEY (show_id, number),
    CONSTRAINT hours_before_have_an_instant CHECK (hours_before IS NULL OR release_at IS NOT NULL),
    CONSTRAINT what_is_withdrawn_stays_so CHECK (NOT withdrawn OR release_at IS NULL)
);
CREATE INDEX blocks_to_release ON seat_block (release_at) WHERE release_at IS NOT NULL;

-- Give seats of a block to the sale, some ($3) or all (NULL). No row: there is no such block, or it was
-- withdrawn; a seat that is not in it changes nothing. The sale is locked against whoever writes the map.
CREATE FUNCTION release_block(p_show bigint, p_number bigint, p_seats int[], p_actor bigint)
RETURNS TABLE (was int[], released int[]) LANGUAGE plpgsql AS $$
DECLARE
    v_block booking;
    v_gone  int[];
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    SELECT * INTO v_block FROM booking
     WHERE show_id = p_show AND number = p_number AND state = 'blocked' FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT FROM seat_block AS s
                             WHERE s.show_id = p_show AND s.number = p_number AND s.withdrawn) THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(seat ORDER BY seat), '{}') INTO v_gone
      FROM unnest(v_block.seats) AS seat WHERE p_seats IS NULL OR seat = ANY (p_seats);
    IF cardinality(v_gone) = cardinality(v_block.seats) THEN
        PERFORM cancel_holds(ARRAY[p_show], ARRAY[p_number], ARRAY[v_block.fence], 'blocked', p_actor);
        DELETE FROM seat_block AS s WHERE s.show_id = p_show AND s.number = p_number;
    ELSIF cardinality(v_gone) > 0 THEN
        PERFORM give_up_seats(v_block, v_gone, p_actor);
    END IF;
    RETURN QUERY SELECT v_block.seats, v_gone;
END $$;

-- 0025_scans_told_apart.sql: the same scan is the same ticket; of three let in with one, two are raised.
--
-- check_in_now, undo_check_in, check_in_later of 0010_door.sql, written anew.

-- One scan at a gate with a network. p_serial NULL: the code is none of ours. p_edition NULL: found by hand.
-- No row: no pass. The same scan again gets the first answer again; a row without an id: the device has used
-- this id for another ticket, and nobody is let in by the answer that one got.
CREATE OR REPLACE FUNCTION check_in_now(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int, p_binding int
) RETURNS TABLE (check_in_id bigint, show_id bigint, verdict text, gate text, scanned_at timestamptz,
                 seat int, number bigint, first_at timestamptz, first_gate text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass    record;
    v_ticket  ticket;
    v_life    ticket_life;
    v_door    door;
    v_show    bigint;
    v_row     check_in;
    v_verdict text;
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_show := CASE WHEN v_pass.covers THEN p_show ELSE v_pass.any_show END;
    IF v_pass.covers THEN
        SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
        SELECT * INTO v_life FROM ticket_life WHERE show_id = p_show AND serial = p_serial;
        SELECT * INTO v_door FROM door WHERE show_id = p_show;
    END IF;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
    IF NOT FOUND THEN
        v_verdict := CASE WHEN p_serial IS NULL THEN 'unknown'
                          WHEN NOT v_pass.covers THEN 'wrong_show'
                          ELSE door_verdict(v_ticket, v_life, v_door, p_way, p_edition, p_binding) END;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, by_hand,
                              scanned_at)
        VALUES (v_show, v_pass.pass_id, p_scan, v_pass.gate, p_way, v_verdict,
                CASE WHEN v_pass.covers THEN p_serial END,
                coalesce(p_edition, (v_life).edition, 1), p_serial IS NOT NULL AND p_edition IS NULL,
                clock_timestamp())
            ON CONFLICT (show_id, pass_id, scan_id) DO NOTHING
        RETURNING * INTO v_row;
        IF v_row.id IS NULL THEN  -- a twin of this request, at the same moment: both asked about nothing
            SELECT * INTO v_row FROM check_in
             WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
        ELSIF v_pass.covers THEN
            PERFORM move_through_door(p_show, p_serial, v_verdict, v_row.scanned_at);
            IF v_verdict IN ('admitted', 'left') THEN
                PERFORM tell_of_ticket(p_show, v_ticket.number,
                    CASE v_verdict WHEN 'admitted' THEN 'ticket.checked_in' ELSE 'ticket.checked_out' END,
                    jsonb_build_object('serial', p_serial, 'seat', v_ticket.seat, 'gate', v_pass.gate,
                                       'scanned_at', v_row.scanned_at));
            END IF;
        END IF;
    END IF;
    IF v_row.undoes IS NOT NULL
       OR v_row.way <> p_way OR v_row.edition <> coalesce(p_edition, v_row.edition)
       OR v_row.serial IS DISTINCT FROM (CASE WHEN v_pass.covers THEN p_serial END) THEN
        RETURN QUERY SELECT NULL::bigint, v_show, v_row.verdict, v_row.gate, v_row.scanned_at,
                            NULL::int, NULL::bigint, NULL::timestamptz, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT v_row.id, v_show, v_row.verdict, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number,
           earlier.scanned_at, earlier.gate
      FROM (SELECT 1) AS one
      LEFT JOIN LATERAL (
               SELECT c.scanned_at, c.gate FROM check_in AS c
                WHERE v_row.verdict = 'used' AND c.show_id = p_show AND c.serial = p_serial
                  AND c.id < v_row.id AND c.verdict = 'admitted'
             ORDER BY c.id DESC LIMIT 1) AS earlier ON true;
END $$;

-- Take an admission back: the last thing that happened with the ticket, in this show, a short while ago.
-- No row: there is no such check-in, or it is not the last one, or it is too old. A row without an id: the
-- device has used this id for something else.
CREATE OR REPLACE FUNCTION undo_check_in(
    p_account bigint, p_show bigint, p_id bigint, p_scan text, p_within interval
) RETURNS TABLE (check_in_id bigint, gate text, scanned_at timestamptz, seat int, number bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass   record;
    v_ticket ticket;
    v_done   check_in;
    v_row    check_in;
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show);
    SELECT * INTO v_done FROM check_in WHERE show_id = p_show AND id = p_id AND verdict = 'admitted';
    IF v_pass.covers IS NOT TRUE OR v_done.id IS NULL OR v_done.at < now() - p_within THEN
        RETURN;
    END IF;
    SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = v_done.serial FOR UPDATE;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = p_scan AND undoes = p_id;
    IF NOT FOUND THEN
        IF EXISTS (SELECT 1 FROM check_in AS c WHERE c.show_id = p_show AND c.serial = v_done.serial
                      AND c.id > p_id AND c.verdict IN ('admitted', 'left', 'undone')) THEN
            RETURN;
        END IF;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, undoes,
                              scanned_at)
        VALUES (p_show, v_pass.pass_id, p_scan, v_pass.gate, 'undo', 'undone', v_done.serial, v_done.edition,
                p_id, clock_timestamp())
            ON CONFLICT (show_id, pass_id, scan_id) DO NOTHING
        RETURNING * INTO v_row;
        IF v_row.id IS NULL THEN
            RETURN QUERY SELECT NULL::bigint, v_pass.gate, now(), NULL::int, NULL::bigint;
            RETURN;
        END IF;
        -- Nobody is inside any more, unless a gate without a network had let somebody else in, too.
        UPDATE ticket_life
           SET is_inside = EXISTS (SELECT 1 FROM check_in AS c
                                    WHERE c.show_id = p_show AND c.serial = v_done.serial
                                      AND c.id <> p_id AND c.verdict = 'admitted'
                                      AND NOT EXISTS (SELECT 1 FROM check_in AS u
                                                       WHERE u.show_id = p_show AND u.undoes = c.id)
                                      AND NOT EXISTS (SELECT 1 FROM check_in AS o
                                                       WHERE o.show_id = p_show AND o.serial = v_done.serial
                                                         AND o.verdict = 'left'
                                                         AND o.scanned_at >= c.scanned_at))
         WHERE show_id = p_show AND serial = v_done.serial;
        -- Unless somebody was inside with it before, it is as if it had never been used.
        UPDATE ticket SET used_at = NULL
         WHERE show_id = p_show AND serial = v_done.serial
           AND NOT EXISTS (SELECT 1 FROM check_in AS c
                            WHERE c.show_id = p_show AND c.serial = v_done.serial AND c.verdict = 'admitted'
                              AND NOT EXISTS (SELECT 1 FROM check_in AS u
                                               WHERE u.show_id = p_show AND u.undoes = c.id));
        PERFORM tell_of_ticket(p_show, v_ticket.number, 'ticket.check_in_undone',
                               jsonb_build_object('serial', v_done.serial, 'gate', v_pass.gate));
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number;
END $$;

-- One scan that a device decided without a network. It has happened: it is recorded as it was told, and what
-- it contradicts is raised. Of two admissions the earlier by the devices' clocks is the first. Of three the
-- second and the third are raised, in whatever order they are told: so an earlier one is looked for first.
CREATE OR REPLACE FUNCTION check_in_later(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int,
    p_verdict text, p_scanned_at timestamptz, p_grace interval
) RETURNS TABLE (check_in_id bigint, verdict text, why text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass   record;
    v_ticket ticket;
    v_life   ticket_life;
    v_row    check_in;
    v_rival  check_in;
    v_why    text;
    v_scan   text := p_scan;
    -- A clock that is ahead of ours, or far behind, is put where it can have been.
    v_at     timestamptz := least(p_scanned_at, clock_timestamp());
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show, p_grace);
    IF v_pass.covers IS NOT TRUE THEN
        RETURN;
    END IF;
    v_at := greatest(v_at, v_pass.starts_at);
    SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
    SELECT * INTO v_life FROM ticket_life WHERE show_id = p_show AND serial = p_serial;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    -- A device that counts its scans from the beginning again: this is another one, and it happened.
    IF FOUND AND v_row.serial IS DISTINCT FROM p_serial THEN
        v_scan := p_scan || '~' || p_serial;
        SELECT * INTO v_row FROM check_in
         WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    END IF;
    -- We had answered, the answer was lost, and the device decided otherwise: that happened, too.
    IF FOUND AND v_row.verdict <> p_verdict THEN
        v_scan := v_scan || '~';
        SELECT * INTO v_row FROM check_in
         WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    END IF;
    IF FOUND THEN
        RETURN QUERY SELECT v_row.id, v_row.verdict,
            (SELECT min(d.why) FROM door_conflict AS d
              WHERE d.show_id = p_show AND v_row.id IN (d.first_id, d.second_id));
        RETURN;
    END IF;
    INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, offline, scanned_at)
    VALUES (p_show, v_pass.pass_id, v_scan, v_pass.gate, p_way, p_verdict, p_serial, p_edition, true, v_at)
    RETURNING * INTO v_row;
    IF p_verdict = 'admitted' THEN
        -- Somebody else inside with it at that time: let in, and not scanned out or taken back in between.
        SELECT c.* INTO v_rival FROM check_in AS c
         WHERE c.show_id = p_show AND c.serial = p_serial AND c.id <> v_row.id AND c.verdict = 'admitted'
           AND NOT EXISTS (SELECT 1 FROM check_in AS u WHERE u.show_id = p_show AND u.undoes = c.id)
           AND NOT EXISTS (SELECT 1 FROM check_in AS o
                            WHERE o.show_id = p_show AND o.serial = p_serial AND o.verdict = 'left'
                              AND o.scanned_at > least(c.scanned_at, v_at)
                              AND o.scanned_at <= greatest(c.scanned_at, v_at))
      ORDER BY c.scanned_at > v_at, abs(extract(epoch FROM c.scanned_at - v_at)) LIMIT 1;
        v_why := CASE WHEN v_ticket.serial IS NULL THEN 'unknown'
                      WHEN v_ticket.voided_at IS NOT NULL THEN 'void'
                      WHEN v_rival.id IS NOT NULL THEN 'used'
                      WHEN p_edition <> coalesce((v_life).edition, 1) THEN 'transferred' END;
    END IF;
    IF v_why IS NOT NULL THEN
        INSERT INTO door_conflict (show_id, serial, why, first_id, second_id)
        SELECT p_show, p_serial, v_why,
               CASE WHEN v_why = 'used' AND v_rival.scanned_at > v_at THEN v_row.id ELSE v_rival.id END,
               CASE WHEN v_why = 'used' AND v_rival.scanned_at > v_at THEN v_rival.id ELSE v_row.id END
            ON CONFLICT (show_id, second_id) DO NOTHING;
        PERFORM tell_of_ticket(p_show, v_ticket.number, 'door.conflict_raised',
                               jsonb_build_object('serial', p_serial, 'why', v_why));
    END IF;
    IF v_ticket.voided_at IS NULL AND v_ticket.serial IS NOT NULL THEN
        -- Who came in before somebody went out elsewhere is not inside any more.
        IF NOT EXISTS (SELECT 1 FROM check_in AS c
                        WHERE c.show_id = p_show AND c.serial = p_serial AND c.id <> v_row.id
                          AND c.verdict IN ('admitted', 'left') AND c.scanned_at > v_at) THEN
            PERFORM move_through_door(p_show, p_serial, p_verdict, v_at);
        ELSIF p_verdict = 'admitted' THEN
            UPDATE ticket SET used_at = coalesce(used_at, v_at) WHERE show_id = p_show AND serial = p_serial;
        END IF;
        IF p_verdict = 'admitted' AND v_why IS NULL THEN
            PERFORM tell_of_ticket(p_show, v_ticket.number, 'ticket.checked_in',
                jsonb_build_object('serial', p_serial, 'seat', v_ticket.seat, 'gate', v_pass.gate,
                                   'scanned_at', v_at));
        END IF;
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.verdict, v_why;
END $$;
