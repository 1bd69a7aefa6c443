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
