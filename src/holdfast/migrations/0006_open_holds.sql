-- 0006_open_holds.sql: winners of the race in Redis become durable, many in one round trip.
--
-- Each booking gets every seat it asked for, or nothing of it is committed. Outcomes, one a request:
--   held, confirmed (nothing to pay)  · same (this request id was answered before)
--   taken (details: who has the seats) · limit · closed · stale (the catalogue has moved on) · unmarked
--
-- The common case is six short statements over arrays. What goes wrong for somebody is found by counting rows,
-- and only then looked into: who lost, to whom, and what can still be saved.
CREATE FUNCTION open_holds(
    p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[],
    p_left_ms int[], p_revision bigint[], p_currency text[], p_seats text[], p_prices text[], p_amount bigint[],
    p_count int[],                          -- seats of each
    p_ord int[], p_seat_show bigint[], p_seat int[],  -- one element a seat, in (show, seat) order
    p_by_ledger boolean
) RETURNS TABLE (outcomes text[], numbers bigint[], epochs bigint[], opened_at timestamptz, details jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_outcome text[];
    v_epoch   bigint[];
    v_max     int[];
    v_number  bigint[] := ARRAY(SELECT nextval('ledger_number') FROM generate_series(1, cardinality(p_show)));
    v_lapsed_show   bigint[];
    v_lapsed_number bigint[];
    v_details jsonb;
    v_asked   int;
    v_got     int;
    v_lost    int[];
BEGIN
    -- Shared with other holds, against whoever writes the map anew.
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;

    SELECT array_agg(CASE WHEN sale.show_id IS NULL OR cancelled
                            OR now() < opens_at - interval '500 ms' OR now() >= closes_at + interval '500 ms' THEN 'closed'
                          WHEN sale.revision <> asked.revision THEN 'stale'
                          WHEN p_by_ledger AND NOT map_stale THEN 'unmarked'
                          WHEN asked.amount = 0 THEN 'confirmed'
                          ELSE 'held' END ORDER BY asked.ord),
           array_agg(coalesce(sale.epoch, 0) ORDER BY asked.ord),
           array_agg(coalesce(sale.owner_seats_max, 0) ORDER BY asked.ord)
      INTO v_outcome, v_epoch, v_max
      FROM unnest(p_show, p_revision, p_amount) WITH ORDINALITY AS asked (show_id, revision, amount, ord)
      LEFT JOIN sale USING (show_id);

    -- The bookings. A request id that is known already inserts nothing, and is answered from its first booking.
    INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats, prices_minor,
                         amount_minor, currency, note, opened_at, expires_at, confirmed_at)
    SELECT show_id, number, owner_id, number, outcome::booking_state, request_id, body_hash, claim_id, seats::int[], prices::bigint[],
           amount, currency, note, now(), now() + left_ms * interval '1 ms', CASE amount WHEN 0 THEN now() END
      FROM unnest(p_show, v_number, p_owner, v_outcome, p_request, p_hash, p_claim, p_seats, p_prices, p_amount, p_currency, p_note, p_left_ms)
        AS a (show_id, number, owner_id, outcome, request_id, body_hash, claim_id, seats, prices, amount, currency, note, left_ms)
     WHERE outcome IN ('held', 'confirmed')
        ON CONFLICT (owner_id, show_id, request_id) DO NOTHING;
    GET DIAGNOSTICS v_got = ROW_COUNT;
    IF v_got < cardinality(p_show) THEN
        SELECT array_agg(CASE WHEN a.outcome NOT IN ('held', 'confirmed') OR booking.number IS NOT NULL THEN a.outcome
                              ELSE 'same' END ORDER BY ord),
               array_agg(booking.number ORDER BY ord)
          INTO v_outcome, v_number
          FROM unnest(p_show, v_number, v_outcome) WITH ORDINALITY AS a (show_id, number, outcome, ord)
          LEFT JOIN booking USING (show_id, number);
    END IF;

    -- The seats, in key order: two batches that want the same ones cannot wait for each other.
    SELECT count(*) INTO v_asked FROM unnest(p_ord) AS o WHERE v_number[o] IS NOT NULL;
    INSERT INTO taken_seat (show_id, seat, number)
    SELECT show_id, seat, v_number[ord]
      FROM unnest(p_seat_show, p_seat, p_ord) AS s (show_id, seat, ord)
     WHERE v_number[ord] IS NOT NULL
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_got = ROW_COUNT;
    IF v_got < v_asked THEN
        -- Somebody has a seat. Let go what has lapsed, take what came free, and see who still lacks one.
        SELECT array_agg(show_id), array_agg(number) INTO v_lapsed_show, v_lapsed_number
          FROM lapse_under(p_seat_show, p_seat, p_ord, v_number);
        SELECT l.lost, l.details INTO v_lost, v_details FROM losers(p_seat_show, p_seat, p_ord, v_number) AS l;
        IF v_lost IS NOT NULL THEN
            PERFORM forget_openings(p_show, v_number, v_lost);
            FOR i IN 1 .. cardinality(v_lost) LOOP
                v_outcome[v_lost[i]] := 'taken';
                v_number[v_lost[i]] := NULL;
            END LOOP;
        END IF;
    END IF;

    -- The limits: counters last of all locks, and in key order. What lapsed above is counted down first.
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM count_down(v_lapsed_show, v_lapsed_number);
        PERFORM record_moves(v_lapsed_show, v_lapsed_number, 'expire', NULL);
    END IF;
    v_lost := count_up(p_show, p_owner, v_number, p_count, v_max);
    IF v_lost IS NOT NULL THEN
        PERFORM forget_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. cardinality(v_lost) LOOP
            v_outcome[v_lost[i]] := 'limit';
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    -- Audit row and fact; a booking with nothing to pay makes two moves at once.
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
    SELECT show_id, number, 'hold', 'held', number, owner_id
      FROM unnest(p_show, v_number, p_owner) AS a (show_id, number, owner_id) WHERE number IS NOT NULL;
    INSERT INTO outbox (show_id, number, kind, ends_at)
    SELECT show_id, number, 'booking.held', now() + left_ms * interval '1 ms'
      FROM unnest(p_show, v_number, p_left_ms) AS a (show_id, number, left_ms) WHERE number IS NOT NULL;
    IF 'confirmed' = ANY (v_outcome) THEN
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, 'confirm', 'confirmed', number, owner_id
          FROM unnest(p_show, v_number, p_owner, v_outcome) AS a (show_id, number, owner_id, outcome) WHERE outcome = 'confirmed';
        INSERT INTO outbox (show_id, number, kind)
        SELECT show_id, number, 'booking.confirmed'
          FROM unnest(p_show, v_number, v_outcome) AS a (show_id, number, outcome) WHERE outcome = 'confirmed';
    END IF;

    RETURN QUERY SELECT v_outcome, v_number, v_epoch, now(), v_details;
END $$;

-- Lapsed bookings that stand on the asked seats become EXPIRED, and their seats go to who asked. Rows somebody
-- else is closing are skipped: their seats are not taken here, so nobody waits for anybody.
CREATE FUNCTION lapse_under(p_seat_show bigint[], p_seat int[], p_ord int[], p_number bigint[])
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
                     FROM unnest(p_seat_show, p_seat, p_ord) AS s (show_id, seat, ord)
                     JOIN taken_seat USING (show_id, seat)
                    WHERE p_number[s.ord] IS NOT NULL)
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
    SELECT freed.show_id, freed.seat, p_number[s.ord]
      FROM (SELECT show_id, unnest(seats) AS seat FROM booking
              JOIN unnest(v_show, v_number) AS l (show_id, number) USING (show_id, number)) AS freed
      JOIN unnest(p_seat_show, p_seat, p_ord) AS s (show_id, seat, ord) USING (show_id, seat)
     WHERE p_number[s.ord] IS NOT NULL
     ORDER BY freed.show_id, freed.seat, s.ord
        ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM unnest(v_show, v_number);
END $$;

-- Who lacks a seat, and who has it: the map in Redis does not know of them, and is told.
CREATE FUNCTION losers(p_seat_show bigint[], p_seat int[], p_ord int[], p_number bigint[])
RETURNS TABLE (lost int[], details jsonb) LANGUAGE sql AS $$
    WITH missing AS (
        SELECT s.ord, s.seat, booking.claim_id, booking.owner_id, booking.seats, booking.state, booking.expires_at
          FROM unnest(p_seat_show, p_seat, p_ord) AS s (show_id, seat, ord)
          LEFT JOIN taken_seat USING (show_id, seat)
          LEFT JOIN booking ON booking.show_id = taken_seat.show_id AND booking.number = taken_seat.number
         WHERE p_number[s.ord] IS NOT NULL AND taken_seat.number IS DISTINCT FROM p_number[s.ord]
    )
    SELECT array_agg(DISTINCT ord),
           jsonb_agg(jsonb_build_object(
               'ord', ord, 'seat', seat, 'claim_id', claim_id, 'owner_id', owner_id, 'seats', seats, 'state', state,
               'left_ms', ceil(extract(epoch FROM expires_at - now()) * 1000)::bigint))
      FROM missing;
$$;

-- Of a loser nothing is committed: no booking, no seat.
CREATE FUNCTION forget_openings(p_show bigint[], p_number bigint[], p_lost int[]) RETURNS void LANGUAGE sql AS $$
    WITH lost AS (
        SELECT p_show[i] AS show_id, p_number[i] AS number FROM unnest(p_lost) AS i WHERE p_number[i] IS NOT NULL
    ), gone AS (
        DELETE FROM taken_seat
         USING (SELECT booking.show_id, booking.number, unnest(booking.seats) AS seat
                  FROM booking JOIN lost USING (show_id, number)) AS had
         WHERE taken_seat.show_id = had.show_id AND taken_seat.seat = had.seat AND taken_seat.number = had.number
    )
    DELETE FROM booking USING lost WHERE booking.show_id = lost.show_id AND booking.number = lost.number;
$$;

-- Count the new seats of each owner. Returns the places of those over their limit: of an owner with several
-- bookings in the batch the first ones that fit are kept.
CREATE FUNCTION count_up(p_show bigint[], p_owner bigint[], p_number bigint[], p_count int[], p_max int[])
RETURNS int[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_over int[];
    v_lost int[];
BEGIN
    WITH counted AS (
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
        SELECT show_id, owner_id, sum(seats)::int, max(seats_max)
          FROM unnest(p_show, p_owner, p_number, p_count, p_max) AS a (show_id, owner_id, number, seats, seats_max)
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
       AND NOT EXISTS (SELECT 1 FROM counted WHERE counted.show_id = a.show_id AND counted.owner_id = a.owner_id);

    FOR i IN 1 .. coalesce(cardinality(v_over), 0) LOOP  -- together they do not fit: one by one
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
        SELECT p_show[v_over[i]], p_owner[v_over[i]], p_count[v_over[i]], p_max[v_over[i]]
         WHERE p_count[v_over[i]] <= p_max[v_over[i]]
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max
         WHERE owner_count.seats + excluded.seats <= excluded.seats_max;
        IF NOT FOUND THEN
            v_lost := v_lost || v_over[i];
        END IF;
    END LOOP;
    RETURN v_lost;
END $$;
