-- bookings/functions_opening.sql: claims won in Redis become durable holds, many in one round trip.
--
-- Each request gets all its seats, or nothing of it is committed. Outcomes, one per request:
--   held, confirmed (nothing to pay)  · same (this request id was answered before)
--   taken (details: who has the seats) · closed · stale (the show has a newer revision) · unmarked
--   limit (seats of the owner) · has_hold (a guest) · range_full · cooling (holds that ended unpaid)
--   locked (the sale is locked by a rebuild or a change of the show: nothing was written, send it again)
--
-- A batch is for many shows, and none of them waits for the lock of another: a locked sale is skipped.
-- Other waits (a seat or a counter of the show) are limited by the lock_timeout that the caller sets.
--
-- The common case is five short statements over arrays. Only when a key rejects the batch does the function
-- find out which request lost, to whom, and what can still be saved.

DROP FUNCTION IF EXISTS open_holds(
    bigint[], bigint[], text[], bigint[], text[], text[], int[], bigint[], text[], text[], text[], bigint[],
    boolean[], boolean);

CREATE OR REPLACE FUNCTION open_holds(
    p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[],
    p_left_ms int[], p_revision bigint[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[], p_confirms_free boolean[], p_by_ledger boolean,
    p_guest boolean[] DEFAULT NULL, p_limits hold_limits DEFAULT NULL
) RETURNS TABLE (outcomes text[], numbers bigint[], epochs bigint[], opened_at timestamptz, details jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_outcome text[];
    v_epoch   bigint[];
    v_max     int[];
    -- the booking opened for each request; NULL: none
    v_number  bigint[] := ARRAY(SELECT new_number() FROM unnest(p_show));
    v_lapsed_show   bigint[];
    v_lapsed_number bigint[];
    v_details jsonb;
    v_lost    int[];
    v_reason  text[];                -- of each of them
    v_easy    boolean;
BEGIN
    -- Shared between holds. A rebuild of the seat map takes it exclusively, so it never misses a hold that
    -- commits after it has read the bookings. Skipped if it is taken: waiting here would make the buyers of
    -- all other shows in the batch wait for this one.
    SELECT array_agg(sale_verdict(sale, requested.revision, requested.is_done, p_by_ledger)
                     ORDER BY requested.ord),
           array_agg(coalesce(sale.epoch, 0) ORDER BY requested.ord),
           array_agg(coalesce(sale.owner_seats_max, 0) ORDER BY requested.ord)
      INTO v_outcome, v_epoch, v_max
      FROM (SELECT show_id, revision, amount = 0 AND confirms_free AS is_done, ord
              FROM unnest(p_show, p_revision, p_amount, p_confirms_free) WITH ORDINALITY
                AS a (show_id, revision, amount, confirms_free, ord)) AS requested
      LEFT JOIN (SELECT * FROM sale WHERE show_id = ANY (p_show)
                 ORDER BY show_id FOR SHARE SKIP LOCKED) AS sale
     USING (show_id);
    IF 0 = ANY (v_epoch) THEN  -- no row was read: the sale is locked, or there is none
        FOR i IN 1 .. cardinality(p_show) LOOP
            IF v_epoch[i] = 0 AND EXISTS (SELECT FROM sale WHERE show_id = p_show[i]) THEN
                v_outcome[i] := 'locked';
                v_number[i] := NULL;
            END IF;
        END LOOP;
    END IF;

    -- The easy way: Redis has decided already, so nothing is in the way. Seats are inserted in key order, so
    -- that two batches that want the same ones cannot deadlock.
    v_easy := v_outcome <@ ARRAY['held', 'confirmed', 'locked'];
    IF v_easy THEN
        BEGIN
            INSERT INTO booking
            SELECT * FROM new_bookings(p_show, v_number, v_outcome, p_owner, p_request, p_hash, p_claim,
                                       p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount,
                                       p_revision);
            INSERT INTO taken_seat (show_id, seat, number)
            SELECT show_id, seat, number FROM requested_seats(p_show, p_seats, v_number)
          ORDER BY show_id, seat;
        EXCEPTION WHEN unique_violation THEN
            v_easy := false;
        END;
    END IF;

    IF NOT v_easy THEN
        -- The careful way. A known request id inserts nothing and is answered from its first booking.
        INSERT INTO booking
        SELECT * FROM new_bookings(p_show, v_number, v_outcome, p_owner, p_request, p_hash, p_claim,
                                   p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount, p_revision)
            ON CONFLICT (owner_id, show_id, request_id) DO NOTHING;
        SELECT array_agg(CASE WHEN booking.number IS NULL AND a.outcome IN ('held', 'confirmed') THEN 'same'
                              ELSE a.outcome END ORDER BY a.ord),
               array_agg(booking.number ORDER BY a.ord)
          INTO v_outcome, v_number
          FROM unnest(p_show, v_number, v_outcome) WITH ORDINALITY AS a (show_id, number, outcome, ord)
          LEFT JOIN booking USING (show_id, number);
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT show_id, seat, number FROM requested_seats(p_show, p_seats, v_number) ORDER BY show_id, seat
            ON CONFLICT DO NOTHING;
        -- Expire what has lapsed, take what became free, and find who still lacks a seat.
        SELECT array_agg(show_id), array_agg(number) INTO v_lapsed_show, v_lapsed_number
          FROM expire_under(p_show, p_seats, v_number);
        SELECT l.lost, l.details INTO v_lost, v_details FROM find_losers(p_show, p_seats, v_number) AS l;
        PERFORM delete_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. coalesce(cardinality(v_lost), 0) LOOP
            v_outcome[v_lost[i]] := 'taken';
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    -- The limits: counters are the last of all locks, those of owners before those of parties, in key order.
    -- What lapsed above is subtracted first.
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM count_owners_down(v_lapsed_show, v_lapsed_number, p_lapsed => true);
    END IF;
    SELECT array_agg(over.place), array_agg(over.reason) INTO v_lost, v_reason
      FROM count_owners_up(p_show, p_owner, v_number, p_claim, p_seats, v_max, p_guest, p_limits) AS over;
    IF v_lost IS NOT NULL THEN
        PERFORM delete_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. cardinality(v_lost) LOOP
            v_outcome[v_lost[i]] := v_reason[i];
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM record_moves(v_lapsed_show, v_lapsed_number, 'expire', NULL);
    END IF;
    IF array_to_string(p_claim, ' ') LIKE '%@%' THEN
        SELECT array_agg(over.place), array_agg(over.reason) INTO v_lost, v_reason
          FROM count_parties_up(p_show, v_number, p_claim, p_seats, p_limits) AS over;
        IF v_lost IS NOT NULL THEN
            PERFORM count_owners_down(array_agg(p_show[place]), array_agg(v_number[place]))
               FROM unnest(v_lost) AS place;
            PERFORM delete_openings(p_show, v_number, v_lost);
            FOR i IN 1 .. cardinality(v_lost) LOOP
                v_outcome[v_lost[i]] := v_reason[i];
                v_number[v_lost[i]] := NULL;
            END LOOP;
        END IF;
    END IF;

    -- Audit row and fact of each; a booking with nothing to pay makes a second move at once.
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
    SELECT show_id, number, 'hold', 'held', number, owner_id
      FROM unnest(p_show, v_number, p_owner) AS a (show_id, number, owner_id)
     WHERE number IS NOT NULL;
    PERFORM add_facts(array_agg(show_id), array_agg(number), array_agg('booking.held'::text),
                      array_agg(now() + left_ms * interval '1 ms'))
       FROM unnest(p_show, v_number, p_left_ms) AS a (show_id, number, left_ms)
      WHERE number IS NOT NULL;
    IF 'confirmed' = ANY (v_outcome) THEN
        PERFORM record_moves(array_agg(show_id), array_agg(number), 'confirm', NULL)
           FROM unnest(p_show, v_number, v_outcome) AS a (show_id, number, outcome)
          WHERE outcome = 'confirmed';
    END IF;

    RETURN QUERY SELECT v_outcome, v_number, v_epoch, now(), v_details;
END $$;

-- Whether a sale accepts a request, and whether nothing is left to do for it (p_is_done). Half a second of
-- grace at both ends: Redis decided by its own clock.
CREATE OR REPLACE FUNCTION sale_verdict(
    p_sale sale, p_revision bigint, p_is_done boolean, p_by_ledger boolean
) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN (p_sale).show_id IS NULL OR (p_sale).cancelled OR (p_sale).hidden
                  OR now() < (p_sale).opens_at - interval '500 ms'
                  OR now() >= (p_sale).closes_at + interval '500 ms' THEN 'closed'
                WHEN (p_sale).revision <> p_revision THEN 'stale'
                WHEN p_by_ledger AND NOT (p_sale).map_stale THEN 'unmarked'
                WHEN p_is_done THEN 'confirmed'
                ELSE 'held' END;
$$;

-- The rows of booking for requests that may be opened; one with nothing to do is confirmed from the start.
-- In the order of the table's columns: open_holds inserts them as they are.
CREATE OR REPLACE FUNCTION new_bookings(
    p_show bigint[], p_number bigint[], p_outcome text[], p_owner bigint[], p_request text[], p_hash bigint[],
    p_claim text[], p_note text[], p_left_ms int[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[], p_revision bigint[]
) RETURNS TABLE (
    show_id bigint, number bigint, owner_id bigint, fence bigint, state booking_state, request_id text,
    body_hash bigint, claim_id text, seats int[], prices_minor bigint[], amount_minor bigint, currency text,
    note text, counts boolean, opened_at timestamptz, expires_at timestamptz, confirmed_at timestamptz,
    revision bigint
) LANGUAGE sql STABLE AS $$
    SELECT show_id, number, owner_id, number AS fence, outcome::booking_state, request_id, body_hash,
           claim_id, seats::int[], prices::bigint[], amount, currency, note, true,
           now(), now() + left_ms * interval '1 ms', CASE outcome WHEN 'confirmed' THEN now() END, revision
      FROM unnest(p_show, p_number, p_outcome, p_owner, p_request, p_hash, p_claim,
                  p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount, p_revision)
        AS a (show_id, number, outcome, owner_id, request_id, body_hash, claim_id,
              note, left_ms, currency, seats, prices, amount, revision)
     WHERE outcome IN ('held', 'confirmed');
$$;

-- The requested seats of the bookings that have not lost yet, one row per seat.
CREATE OR REPLACE FUNCTION requested_seats(p_show bigint[], p_seats text[], p_number bigint[])
RETURNS TABLE (show_id bigint, seat int, number bigint, ord int) LANGUAGE sql STABLE AS $$
    SELECT a.show_id, seat, a.number, a.ord::int
      FROM unnest(p_show, p_seats, p_number) WITH ORDINALITY AS a (show_id, seats, number, ord),
           unnest(a.seats::int[]) AS seat
     WHERE a.number IS NOT NULL;
$$;

-- Expired holds on the requested seats become EXPIRED, and their seats go to the requests; with a waitlist
-- they are reserved instead. Rows that another transaction has locked are skipped: their seats are not taken
-- here, so no batch waits for another.
CREATE OR REPLACE FUNCTION expire_under(p_show bigint[], p_seats text[], p_number bigint[])
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
                     FROM requested_seats(p_show, p_seats, p_number) JOIN taken_seat USING (show_id, seat))
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
    PERFORM release_seats(v_show, v_number);
    INSERT INTO taken_seat (show_id, seat, number)
    SELECT freed.show_id, freed.seat, s.number
      FROM (SELECT show_id, unnest(seats) AS seat FROM booking
              JOIN unnest(v_show, v_number) AS l (show_id, number) USING (show_id, number)) AS freed
      JOIN requested_seats(p_show, p_seats, p_number) AS s USING (show_id, seat)
     ORDER BY freed.show_id, freed.seat, s.ord
        ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM unnest(v_show, v_number);
END $$;

-- Which requests lack a seat, and which booking has it: the caller puts these into the map in Redis, which
-- does not know them. A seat that is reserved for the waitlist looks like a block of its own.
CREATE OR REPLACE FUNCTION find_losers(p_show bigint[], p_seats text[], p_number bigint[])
RETURNS TABLE (lost int[], details jsonb) LANGUAGE sql AS $$
    WITH missing AS (
        SELECT s.ord, s.seat,
               CASE taken_seat.number WHEN 0 THEN 'waitlist' ELSE booking.claim_id END AS claim_id,
               CASE taken_seat.number WHEN 0 THEN 0 ELSE booking.owner_id END AS owner_id,
               CASE taken_seat.number WHEN 0 THEN ARRAY[s.seat] ELSE booking.seats END AS seats,
               CASE taken_seat.number WHEN 0 THEN 'blocked' ELSE booking.state END AS state,
               CASE taken_seat.number WHEN 0 THEN now() + interval '1 h' ELSE booking.expires_at END
                   AS expires_at
          FROM requested_seats(p_show, p_seats, p_number) AS s
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

-- Removes the booking and the seats of requests that lost.
CREATE OR REPLACE FUNCTION delete_openings(p_show bigint[], p_number bigint[], p_lost int[])
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
