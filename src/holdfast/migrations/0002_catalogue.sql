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
