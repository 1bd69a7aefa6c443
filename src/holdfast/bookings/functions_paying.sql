-- bookings/functions_paying.sql: the moves of bookings that payments and refunds ask for.
--
-- Callers lock first, then decide, then call one of these. Each moves only rows that are still in the state
-- and at the fence the caller saw; the others stay as they are and are missing from the result. A fence is
-- drawn for every payment attempt, so an answer to an old attempt cannot move a booking that is being paid
-- for again.

-- The first step of every transaction that changes bookings together with their payments or tickets.
CREATE OR REPLACE FUNCTION lock_bookings(p_show bigint[], p_number bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
END $$;

-- Before the bookings, where seats are taken or released: a rebuild of the seat map (exclusive lock) must not
-- read these bookings while they change.
CREATE OR REPLACE FUNCTION share_sales(p_show bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;
END $$;

-- HELD bookings of these owners become PAYING with a new fence, and their time is extended by the buffer, so
-- that a hold does not expire while the gateway works. Expired holds, bookings that cost nothing and bookings
-- of cancelled shows stay as they are. `place` is the position in the arrays.
CREATE OR REPLACE FUNCTION begin_paying(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_buffer_s int
) RETURNS TABLE (place int, show_id bigint, number bigint, fence bigint, amount_minor bigint, currency text,
                 hold_ends_at timestamptz, deadline_at timestamptz)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_place    int[];
    v_show     bigint[];
    v_number   bigint[];
    v_fence    bigint[];
    v_amount   bigint[];
    v_currency text[];
    v_ends     timestamptz[];
    v_deadline timestamptz[];
BEGIN
    WITH fit AS (
        SELECT booking.show_id, booking.number, booking.expires_at AS hold_ends_at, a.place
          FROM unnest(p_show, p_number, p_owner) WITH ORDINALITY AS a (show_id, number, owner_id, place)
         CROSS JOIN LATERAL booking_by_key(a.show_id, a.number) AS booking
         WHERE booking.owner_id = a.owner_id
           AND booking.state = 'held' AND booking.expires_at > now() AND booking.amount_minor > 0
           AND NOT EXISTS (SELECT 1 FROM sale WHERE sale.show_id = booking.show_id AND sale.cancelled)
    ), moved AS (
        UPDATE booking
           SET state = 'paying', fence = new_number(),
               expires_at = greatest(booking.expires_at, now()) + p_buffer_s * interval '1 s'
          FROM fit
         WHERE booking.show_id = fit.show_id AND booking.number = fit.number
     RETURNING fit.*, booking.fence, booking.amount_minor, booking.currency, booking.expires_at
    )
    SELECT array_agg(moved.place), array_agg(moved.show_id), array_agg(moved.number), array_agg(moved.fence),
           array_agg(moved.amount_minor), array_agg(moved.currency), array_agg(moved.hold_ends_at),
           array_agg(moved.expires_at)
      INTO v_place, v_show, v_number, v_fence, v_amount, v_currency, v_ends, v_deadline
      FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM record_moves(v_show, v_number, 'pay', 0);
    RETURN QUERY
    SELECT * FROM unnest(v_place, v_show, v_number, v_fence, v_amount, v_currency, v_ends, v_deadline);
END $$;

-- PAYING bookings at these fences become CONFIRMED. The compare-and-set on the fence is what keeps money of
-- an old attempt from confirming a booking whose seats may belong to another buyer by now.
CREATE OR REPLACE FUNCTION confirm_paying(p_show bigint[], p_number bigint[], p_fence bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'confirmed', confirmed_at = now()
          FROM unnest(p_show, p_number, p_fence) AS a (show_id, number, fence)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = a.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NOT NULL THEN
        PERFORM record_moves(v_show, v_number, 'confirm', NULL);
    END IF;
END $$;

-- A HELD booking that costs nothing becomes CONFIRMED, because its owner wants the tickets. None: its time is
-- up, its fence has moved on, or the show is cancelled. The sale is locked so that its cancellation waits.
CREATE OR REPLACE FUNCTION confirm_free(p_show bigint, p_number bigint, p_fence bigint) RETURNS SETOF booking
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM sale WHERE show_id = p_show AND NOT cancelled FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE booking SET state = 'confirmed', confirmed_at = now()
     WHERE show_id = p_show AND number = p_number AND fence = p_fence
       AND state = 'held' AND amount_minor = 0 AND expires_at > now();
    IF FOUND THEN
        PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'confirm', 0);
        RETURN QUERY SELECT * FROM booking WHERE show_id = p_show AND number = p_number;
    END IF;
END $$;

-- PAYING bookings at these fences become HELD again, until the time they had before the attempt. One without
-- any time left is expired by the next sweep.
CREATE OR REPLACE FUNCTION return_to_held(
    p_show bigint[], p_number bigint[], p_fence bigint[], p_ends_at timestamptz[]
) RETURNS TABLE (show_id bigint, number bigint, fence bigint, seats int)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'held', expires_at = a.ends_at
          FROM unnest(p_show, p_number, p_fence, p_ends_at) AS a (show_id, number, fence, ends_at)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = a.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(moved.show_id), array_agg(moved.number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM record_moves(v_show, v_number, 'decline', 0);
    RETURN QUERY
    SELECT b.show_id, b.number, b.fence, cardinality(b.seats)
      FROM unnest(v_show, v_number) AS a (show_id, number)
      JOIN booking AS b USING (show_id, number);
END $$;

-- PAYING bookings at these fences become EXPIRED, and their seats are free.
CREATE OR REPLACE FUNCTION expire_paying(p_show bigint[], p_number bigint[], p_fence bigint[])
RETURNS TABLE (show_id bigint, number bigint, fence bigint, seats int)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'expired'
          FROM unnest(p_show, p_number, p_fence) AS a (show_id, number, fence)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = a.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(moved.show_id), array_agg(moved.number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    PERFORM count_owners_down(v_show, v_number, p_lapsed => true);
    PERFORM record_moves(v_show, v_number, 'expire', NULL);
    RETURN QUERY
    SELECT b.show_id, b.number, b.fence, cardinality(b.seats)
      FROM unnest(v_show, v_number) AS a (show_id, number)
      JOIN booking AS b USING (show_id, number);
END $$;

-- Confirms a booking whose money arrived after it had stopped waiting, if that is still possible: it is HELD
-- again after a decline, or EXPIRED and every seat is free. Returns the new fence; NULL: not possible. The
-- caller holds the locks of the sale (shared), the booking and the payment.
CREATE OR REPLACE FUNCTION confirm_late(p_show bigint, p_number bigint, p_amount bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_booking booking;
BEGIN
    SELECT * INTO STRICT v_booking FROM booking WHERE show_id = p_show AND number = p_number;
    -- Another amount: some seats were given back meanwhile. A cancelled show sells nothing, and an archived
    -- one no longer knows which seats are free.
    IF v_booking.amount_minor <> p_amount
       OR NOT EXISTS (SELECT 1 FROM sale WHERE show_id = p_show AND NOT cancelled AND archived_at IS NULL)
       OR NOT (v_booking.state = 'held' OR (v_booking.state = 'expired' AND retake_seats(v_booking))) THEN
        RETURN NULL;
    END IF;
    UPDATE booking SET state = 'confirmed', confirmed_at = now(), fence = new_number()
     WHERE show_id = p_show AND number = p_number
 RETURNING * INTO v_booking;
    PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'confirm', NULL);
    RETURN v_booking.fence;
END $$;

-- Takes all seats of an expired booking again, or none of them; the owner's limit applies as for a new hold.
-- Expired holds on these seats are swept first. ON CONFLICT DO NOTHING waits for a concurrent hold on a seat
-- and then finds it taken.
CREATE OR REPLACE FUNCTION retake_seats(p_booking booking) RETURNS boolean LANGUAGE plpgsql AS $$
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
        UPDATE owner_count SET seats = seats + v_got, holds = holds + (p_booking.claim_id LIKE '%@%')::int
         WHERE show_id = p_booking.show_id AND owner_id = p_booking.owner_id
           AND seats + guest_seats + v_got <= seats_max;
        IF FOUND THEN
            PERFORM count_party_again(p_booking, v_got);
            RETURN true;
        END IF;
    END IF;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_booking.seats) AND number = p_booking.number;
    RETURN false;
END $$;

-- The money of an EXPIRED booking goes back: the booking is FAILED, which tells its owner. A booking in any
-- other state stays as it is.
CREATE OR REPLACE FUNCTION fail_expired(p_show bigint, p_number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE booking SET state = 'failed' WHERE show_id = p_show AND number = p_number AND state = 'expired';
    IF FOUND THEN
        PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'fail', NULL);
    END IF;
END $$;

-- Seats of a CONFIRMED booking go back: some of them, or all, and then it is REFUNDED. The caller has locked
-- the sale (shared), the booking and its tickets, and counts the owner down after the last booking.
CREATE OR REPLACE FUNCTION return_seats(p_show bigint, p_number bigint, p_seats int[], p_actor bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_booking booking;
BEGIN
    SELECT * INTO STRICT v_booking FROM booking WHERE show_id = p_show AND number = p_number;
    IF NOT p_seats @> v_booking.seats THEN
        PERFORM give_up_seats(v_booking, p_seats, p_actor);
        RETURN;
    END IF;
    UPDATE booking SET state = 'refunded' WHERE show_id = p_show AND number = p_number;
    PERFORM void_tickets(p_show, p_number, v_booking.seats);
    PERFORM release_some_seats(p_show, p_number, v_booking.seats);
    PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'refund', p_actor);
END $$;
