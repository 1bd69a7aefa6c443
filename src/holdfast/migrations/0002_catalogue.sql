-- 0002_catalogue.sql: cities, venues, halls with their layouts, events and shows.
--
-- Lengths and ranges repeat those of the forms in Python: the form rejects first, the table is the guarantee.

-- owner: organisers
CREATE TABLE city (
    id         bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug       text             NOT NULL,
    name       text             NOT NULL,
    country    text             NOT NULL,                -- ISO 3166 alpha-2
    timezone   text             NOT NULL,                -- IANA name: dates in listings are local dates here
    lat        double precision NOT NULL,
    lon        double precision NOT NULL,
    updated_at timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT no_two_cities_share_a_slug UNIQUE (slug),
    CONSTRAINT a_city_has_a_short_slug CHECK (char_length(slug) BETWEEN 1 AND 60),
    CONSTRAINT a_city_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT a_country_is_two_letters CHECK (country ~ '^[A-Z]{2}$'),
    CONSTRAINT a_city_is_on_earth CHECK (lat >= -90 AND lat <= 90 AND lon >= -180 AND lon <= 180)
);

-- owner: organisers
CREATE TABLE venue (
    id           bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    city_id      bigint           NOT NULL REFERENCES city,
    organiser_id bigint,                                 -- NULL: shared, every organiser may use it
    name         text             NOT NULL,
    address      text             NOT NULL,
    postal_code  text             NOT NULL,
    lat          double precision NOT NULL,
    lon          double precision NOT NULL,
    updated_at   timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT a_venue_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT an_address_fits_an_envelope CHECK (char_length(address) <= 300),
    CONSTRAINT a_postal_code_is_short CHECK (char_length(postal_code) <= 16),
    CONSTRAINT a_venue_is_on_earth CHECK (lat >= -90 AND lat <= 90 AND lon >= -180 AND lon <= 180)
);
CREATE INDEX venues_of_a_city ON venue (city_id);

-- A layout is identified by its content: halls and shows with the same seats share one row.
-- owner: catalogue
CREATE TABLE layout (
    hash       text        PRIMARY KEY,
    name       text        NOT NULL,
    body       jsonb       NOT NULL,
    seats      int         NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_layout_has_seats CHECK (seats > 0)
);

-- Which organisers have imported a layout: they see these, and those of shared halls.
-- owner: organisers
CREATE TABLE layout_organiser (
    hash         text   NOT NULL REFERENCES layout,
    organiser_id bigint NOT NULL,
    PRIMARY KEY (hash, organiser_id)
);

-- owner: organisers
CREATE TABLE hall (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    venue_id    bigint      NOT NULL REFERENCES venue,
    name        text        NOT NULL,
    layout_hash text        NOT NULL REFERENCES layout,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_hall_has_a_name CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT no_two_halls_of_a_venue_share_a_name UNIQUE (venue_id, name)
);

-- owner: organisers
CREATE TABLE event (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organiser_id  bigint      NOT NULL,
    kind          text        NOT NULL,
    title         text        NOT NULL,
    description   text        NOT NULL DEFAULT '',
    language      text        NOT NULL DEFAULT '',
    genre         text        NOT NULL DEFAULT '',
    rating        numeric(3, 1),                         -- out of ten; NULL: not rated yet
    duration_min  int         NOT NULL,
    poster        text        NOT NULL DEFAULT '',       -- a URL; empty: the generated poster
    people        text[]      NOT NULL DEFAULT '{}',
    featured      boolean     NOT NULL DEFAULT false,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    -- For shows created from now on; its form is RefundPolicy in Python.
    refund_policy jsonb       NOT NULL
        DEFAULT '{"steps": [{"hours_before": 24, "percent": 100}], "keep_fee": false}',
    CONSTRAINT an_event_is_a_film_a_concert_or_a_match CHECK (kind IN ('film', 'concert', 'match')),
    CONSTRAINT an_event_has_a_title CHECK (char_length(title) BETWEEN 1 AND 160),
    CONSTRAINT a_description_is_read_in_minutes CHECK (char_length(description) <= 4000),
    CONSTRAINT an_event_lasts_a_day_at_most CHECK (duration_min BETWEEN 1 AND 1440),
    CONSTRAINT a_rating_is_out_of_ten CHECK (rating BETWEEN 0 AND 10)
);
CREATE INDEX events_of_an_organiser ON event (organiser_id);
CREATE INDEX featured_events ON event (id) WHERE featured;

-- owner: organisers
CREATE TABLE show (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        bigint      NOT NULL REFERENCES event,
    hall_id         bigint      NOT NULL REFERENCES hall,
    layout_hash     text        NOT NULL REFERENCES layout,   -- the hall's when the show was created
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

-- A show that was moved to another time. Ticket holders are notified of these changes and of no others.
-- owner: organisers
CREATE TABLE show_time_change (
    show_id       bigint      NOT NULL,
    revision      bigint      NOT NULL,                  -- the revision that moved it
    starts_before timestamptz NOT NULL,
    starts_at     timestamptz NOT NULL,
    PRIMARY KEY (show_id, revision)
);
