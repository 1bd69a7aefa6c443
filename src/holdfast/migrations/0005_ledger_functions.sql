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
