-- 0006_open_holds.sql: winners of the race in Redis become durable, many in one round trip.
--
-- Each booking gets every seat it asked for, or nothing of it is committed. Outcomes, one a request:
--   held, confirmed (nothing to pay)  · same (this request id was answered before)
--   taken (details: who has the seats) · limit · closed · stale (the catalogue has moved on) · unmarked
CREATE FUNCTION open_holds(
    p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[],
    p_left_ms int[], p_revision bigint[], p_currency text[], p_by_ledger boolean,
    p_ord int[], p_seat int[], p_price bigint[]  -- one row a seat, in (show, seat) order
) RETURNS TABLE (ord int, outcome text, number bigint, epoch bigint, opened_at timestamptz,
                 expires_at timestamptz, details jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_count      int := cardinality(p_show);
    v_outcome    text[];
    v_epoch      bigint[];
    v_max        int[];
    v_number     bigint[];                      -- of the booking opened for each request, NULL where none
    v_details    jsonb[] := array_fill(NULL::jsonb, ARRAY[cardinality(p_show)]);
    v_lapsed_show   bigint[];
    v_lapsed_number bigint[];
    v_got        int;
    v_lost       int[];
BEGIN
    -- Shared with other holds, against whoever writes the map anew.
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;

    SELECT array_agg(CASE WHEN sale.show_id IS NULL OR cancelled
                            OR now() < opens_at - interval '500 ms' OR now() >= closes_at + interval '500 ms' THEN 'closed'
                          WHEN sale.revision <> asked.revision THEN 'stale'
                          WHEN p_by_ledger AND NOT map_stale THEN 'unmarked'
                          ELSE 'held' END ORDER BY asked.ord),
           array_agg(coalesce(sale.epoch, 0) ORDER BY asked.ord),
           array_agg(coalesce(sale.owner_seats_max, 0) ORDER BY asked.ord)
      INTO v_outcome, v_epoch, v_max
      FROM unnest(p_show, p_revision) WITH ORDINALITY AS asked (show_id, revision, ord)
      LEFT JOIN sale USING (show_id);

    -- The bookings. A request id that is known already inserts nothing here and is answered from its first booking.
    WITH asked AS (
        SELECT * FROM unnest(p_show, p_owner, p_request, p_hash, p_claim, p_note, p_left_ms, p_currency, v_outcome)
                      WITH ORDINALITY AS a (show_id, owner_id, request_id, body_hash, claim_id, note, left_ms, currency, outcome, ord)
         WHERE outcome = 'held'
    ), seats AS (
        SELECT s.ord, array_agg(seat) AS seats, array_agg(price) AS prices, sum(price)::bigint AS amount
          FROM unnest(p_ord, p_seat, p_price) AS s (ord, seat, price)
         GROUP BY s.ord
    ), opened AS (
        INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats, prices_minor,
                             amount_minor, currency, note, opened_at, expires_at, confirmed_at)
        SELECT show_id, n.number, owner_id, n.number, CASE amount WHEN 0 THEN 'confirmed' ELSE 'held' END::booking_state,
               request_id, body_hash, claim_id, seats.seats, prices, amount, currency, note, now(),
               now() + left_ms * interval '1 ms', CASE amount WHEN 0 THEN now() END
          FROM asked JOIN seats USING (ord), LATERAL (SELECT nextval('ledger_number') + 0 * ord AS number) AS n
         ORDER BY ord
            ON CONFLICT (owner_id, show_id, request_id) DO NOTHING
     RETURNING booking.show_id, booking.number, booking.owner_id, booking.request_id
    )
    SELECT array_agg(CASE WHEN asked.first = 1 THEN opened.number END ORDER BY asked.ord), count(opened.number)
      INTO v_number, v_got
      FROM (SELECT a.*, row_number() OVER (PARTITION BY a.owner_id, a.show_id, a.request_id ORDER BY a.outcome <> 'held', a.ord) AS first
              FROM unnest(p_show, p_owner, p_request, v_outcome) WITH ORDINALITY AS a (show_id, owner_id, request_id, outcome, ord)) AS asked
      LEFT JOIN opened ON asked.outcome = 'held' AND opened.owner_id = asked.owner_id
                      AND opened.show_id = asked.show_id AND opened.request_id = asked.request_id;

    -- The seats, in key order: two batches that want the same ones cannot wait for each other.
    WITH wanted AS (
        SELECT p_show[s.ord] AS show_id, s.seat, v_number[s.ord] AS number
          FROM unnest(p_ord, p_seat) AS s (ord, seat)
         WHERE v_number[s.ord] IS NOT NULL
         ORDER BY 1, 2
    ), got AS (
        INSERT INTO taken_seat (show_id, seat, number) SELECT * FROM wanted ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT (SELECT count(*) FROM wanted) - (SELECT count(*) FROM got) INTO v_got;

    IF v_got > 0 THEN
        -- Somebody has a seat. Let go what has lapsed, and take what came free; then say who lost to whom.
        WITH lapsed AS (
            SELECT booking.show_id, booking.number
              FROM booking
             WHERE (booking.show_id, booking.number) IN (
                       SELECT taken_seat.show_id, taken_seat.number
                         FROM unnest(p_ord, p_seat) AS s (ord, seat)
                         JOIN taken_seat ON taken_seat.show_id = p_show[s.ord] AND taken_seat.seat = s.seat
                        WHERE v_number[s.ord] IS NOT NULL)
               AND booking.state = 'held' AND booking.expires_at <= now()
          ORDER BY booking.show_id, booking.number
               FOR UPDATE SKIP LOCKED
        ), moved AS (
            UPDATE booking SET state = 'expired' FROM lapsed
             WHERE booking.show_id = lapsed.show_id AND booking.number = lapsed.number
         RETURNING booking.show_id, booking.number
        )
        SELECT array_agg(show_id), array_agg(number) INTO v_lapsed_show, v_lapsed_number FROM moved;

        IF v_lapsed_show IS NOT NULL THEN
            PERFORM let_seats_go(v_lapsed_show, v_lapsed_number);
            INSERT INTO taken_seat (show_id, seat, number)
            SELECT freed.show_id, freed.seat, v_number[s.ord]
              FROM (SELECT show_id, unnest(seats) AS seat FROM booking
                      JOIN unnest(v_lapsed_show, v_lapsed_number) AS l (show_id, number) USING (show_id, number)) AS freed
              JOIN unnest(p_ord, p_seat) AS s (ord, seat) ON s.seat = freed.seat AND p_show[s.ord] = freed.show_id
             WHERE v_number[s.ord] IS NOT NULL
             ORDER BY 1, 2, s.ord
                ON CONFLICT DO NOTHING;
        END IF;

        SELECT array_agg(lost.ord) INTO v_lost FROM (
            SELECT DISTINCT s.ord FROM unnest(p_ord, p_seat) AS s (ord, seat)
              LEFT JOIN taken_seat ON taken_seat.show_id = p_show[s.ord] AND taken_seat.seat = s.seat
             WHERE v_number[s.ord] IS NOT NULL AND taken_seat.number IS DISTINCT FROM v_number[s.ord]) AS lost;

        FOR i IN 1 .. coalesce(cardinality(v_lost), 0) LOOP
            v_outcome[v_lost[i]] := 'taken';
            v_details[v_lost[i]] := (
                SELECT jsonb_agg(jsonb_build_object(
                           'seat', s.seat, 'claim_id', b.claim_id, 'owner_id', b.owner_id, 'seats', b.seats, 'state', b.state,
                           'left_ms', ceil(extract(epoch FROM b.expires_at - now()) * 1000)::bigint))
                  FROM unnest(p_ord, p_seat) AS s (ord, seat)
                  JOIN taken_seat t ON t.show_id = p_show[s.ord] AND t.seat = s.seat
                  LEFT JOIN booking b ON b.show_id = t.show_id AND b.number = t.number
                 WHERE s.ord = v_lost[i] AND t.number <> v_number[s.ord]);
        END LOOP;
        PERFORM forget_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. coalesce(cardinality(v_lost), 0) LOOP
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    -- The limits, counters in key order. What lapsed above is counted down first.
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM count_down(v_lapsed_show, v_lapsed_number);
        PERFORM record_moves(v_lapsed_show, v_lapsed_number, 'expire', NULL);
    END IF;
    v_lost := count_up(p_show, p_owner, v_number, v_max);
    IF v_lost IS NOT NULL THEN
        PERFORM forget_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. cardinality(v_lost) LOOP
            v_outcome[v_lost[i]] := 'limit';
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    PERFORM record_openings(p_show, v_number);

    RETURN QUERY
    SELECT a.ord::int,
           CASE WHEN a.outcome <> 'held' THEN a.outcome WHEN a.number IS NULL THEN 'same' ELSE b.state::text END,
           a.number, a.epoch, b.opened_at, b.expires_at, a.details
      FROM unnest(v_outcome, v_number, v_epoch, v_details, p_show) WITH ORDINALITY AS a (outcome, number, epoch, details, show_id, ord)
      LEFT JOIN booking b ON b.show_id = a.show_id AND b.number = a.number
     ORDER BY a.ord;
END $$;

-- Of a loser nothing is committed: no booking, no seat.
CREATE FUNCTION forget_openings(p_show bigint[], p_number bigint[], p_lost int[]) RETURNS void LANGUAGE sql AS $$
    WITH lost AS (
        SELECT p_show[i] AS show_id, p_number[i] AS number FROM unnest(p_lost) AS i WHERE p_number[i] IS NOT NULL
    ), seats AS (
        DELETE FROM taken_seat USING lost
         WHERE taken_seat.show_id = lost.show_id AND taken_seat.number = lost.number
           AND taken_seat.seat IN (SELECT unnest(booking.seats) FROM booking
                                    WHERE booking.show_id = lost.show_id AND booking.number = lost.number)
    )
    DELETE FROM booking USING lost WHERE booking.show_id = lost.show_id AND booking.number = lost.number;
$$;

-- Count the new seats of each owner. Returns the places of those that would be over their limit: the first
-- bookings of an owner that fit are kept, the rest are lost.
CREATE FUNCTION count_up(p_show bigint[], p_owner bigint[], p_number bigint[], p_max int[]) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    v_lost int[];
BEGIN
    INSERT INTO owner_count (show_id, owner_id, seats, seats_max)
    SELECT DISTINCT a.show_id, a.owner_id, 0, a.seats_max
      FROM unnest(p_show, p_owner, p_number, p_max) AS a (show_id, owner_id, number, seats_max)
     WHERE a.number IS NOT NULL
     ORDER BY 1, 2
        ON CONFLICT (show_id, owner_id) DO NOTHING;

    PERFORM 1 FROM owner_count
      WHERE (show_id, owner_id) IN (SELECT * FROM unnest(p_show, p_owner))
      ORDER BY show_id, owner_id FOR UPDATE;

    WITH asked AS (
        SELECT a.ord, a.show_id, a.owner_id, a.seats_max,
               sum(cardinality(booking.seats)) OVER (PARTITION BY a.show_id, a.owner_id ORDER BY a.ord) AS running,
               cardinality(booking.seats) AS seats
          FROM unnest(p_show, p_owner, p_number, p_max) WITH ORDINALITY AS a (show_id, owner_id, number, seats_max, ord)
          JOIN booking ON booking.show_id = a.show_id AND booking.number = a.number
    ), judged AS (
        SELECT asked.*, owner_count.seats + asked.running <= asked.seats_max AS fits
          FROM asked JOIN owner_count USING (show_id, owner_id)
    ), counted AS (
        UPDATE owner_count
           SET seats = owner_count.seats + fitting.seats, seats_max = fitting.seats_max
          FROM (SELECT show_id, owner_id, sum(seats)::int AS seats, max(seats_max) AS seats_max
                  FROM judged WHERE fits GROUP BY 1, 2) AS fitting
         WHERE owner_count.show_id = fitting.show_id AND owner_count.owner_id = fitting.owner_id
    )
    SELECT array_agg(ord) INTO v_lost FROM judged WHERE NOT fits;
    RETURN v_lost;
END $$;

-- Audit rows and facts of what has just been opened; a booking with nothing to pay makes two moves at once.
CREATE FUNCTION record_openings(p_show bigint[], p_number bigint[]) RETURNS void LANGUAGE sql AS $$
    WITH opened AS (
        SELECT booking.*, ord
          FROM unnest(p_show, p_number) WITH ORDINALITY AS a (show_id, number, ord)
          JOIN booking USING (show_id, number)
    ), moves AS (
        SELECT opened.*, 'hold' AS move, 'held'::booking_state AS then_state, 'booking.held' AS kind FROM opened
         UNION ALL
        SELECT opened.*, 'confirm', 'confirmed', 'booking.confirmed' FROM opened WHERE state = 'confirmed'
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, move, then_state, fence, owner_id FROM moves ORDER BY ord, then_state
    )
    INSERT INTO outbox (show_id, number, kind, body)
    SELECT show_id, number, kind,
           jsonb_build_object('owner_id', owner_id, 'seats', seats, 'amount_minor', amount_minor,
                              'currency', currency, 'fence', fence, 'expires_at', expires_at)
      FROM moves ORDER BY ord, then_state;
$$;
