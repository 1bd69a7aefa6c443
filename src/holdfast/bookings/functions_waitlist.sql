-- bookings/functions_waitlist.sql: seats that are reserved for a waitlist, and the offers made of them.
-- needs: outbox
--
--   a booking's seat ──freed──► reserved (number 0) ──open_offer──► a seat of the offer, a HELD booking
--                                    └──unreserve_seats──► free for everybody
--
-- The row in taken_seat is there from the booking to the offer: no other buyer can get the seat in between,
-- whichever engine is down. The caller of open_offer and unreserve_seats has locked the show's waitlist.

-- What the waitlist reads of bookings and of the sale.
CREATE OR REPLACE VIEW offer_booking AS
SELECT show_id, number, state, seats FROM booking WHERE state <> 'blocked';

CREATE OR REPLACE VIEW sale_for_waitlist AS
SELECT show_id, revision, has_waitlist, opens_at, closes_at,
       cancelled OR archived_at IS NOT NULL OR closes_at <= now() AS is_over,
       NOT cancelled AND NOT hidden AND opens_at <= now() AND closes_at > now() AS is_open
  FROM sale;

CREATE OR REPLACE VIEW seat_for_waitlist AS
SELECT show_id, seat, since FROM reserved_seat;

-- Seats of a booking that is being freed are reserved, if the show has a waitlist. Others are left alone, and
-- the caller deletes their rows.
CREATE OR REPLACE FUNCTION reserve_seats(p_show bigint, p_number bigint, p_seats int[]) RETURNS void
LANGUAGE sql AS $$
    WITH moved AS (
        UPDATE taken_seat SET number = 0
         WHERE show_id = p_show AND seat = ANY (p_seats) AND number = p_number
           AND EXISTS (SELECT FROM sale WHERE sale.show_id = p_show AND has_waitlist AND NOT cancelled)
     RETURNING show_id, seat
    )
    INSERT INTO reserved_seat (show_id, seat) SELECT show_id, seat FROM moved;
$$;

-- Seats that are reserved become free for everybody. A seat that is not reserved stays as it is.
CREATE OR REPLACE FUNCTION unreserve_seats(p_show bigint, p_seats int[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM reserved_seat WHERE show_id = p_show AND seat = ANY (p_seats);
    DELETE FROM taken_seat WHERE show_id = p_show AND seat = ANY (p_seats) AND number = 0;
$$;

-- Reserved seats become a HELD booking of this owner, with its audit row and its fact. No row: the owner
-- would be over a limit, and nothing was written. The caller has locked the sale (shared) and found it open.
-- The owner's counter is locked before the seats: no other transaction waits for reserved ones.
CREATE OR REPLACE FUNCTION open_offer(
    p_show bigint, p_owner bigint, p_seats int[], p_prices bigint[], p_currency text, p_note text,
    p_ttl_s int, p_limits hold_limits
) RETURNS SETOF booking LANGUAGE plpgsql AS $$
DECLARE
    v_number bigint := new_number();
    v_sale   sale;
    v_moved  int;
BEGIN
    SELECT * INTO STRICT v_sale FROM sale WHERE show_id = p_show;
    PERFORM FROM count_owners_up(ARRAY[p_show], ARRAY[p_owner], ARRAY[v_number], ARRAY['offer'],
                                 ARRAY[p_seats::text], ARRAY[v_sale.owner_seats_max], ARRAY[false], p_limits);
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                         prices_minor, amount_minor, currency, note, opened_at, expires_at, revision)
    VALUES (p_show, v_number, p_owner, v_number, 'held', 'offer:' || v_number, 0, 'offer' || v_number,
            p_seats, p_prices, (SELECT sum(price) FROM unnest(p_prices) AS price), p_currency, p_note, now(),
            now() + p_ttl_s * interval '1 s', v_sale.revision);
    UPDATE taken_seat SET number = v_number
     WHERE show_id = p_show AND seat = ANY (p_seats) AND number = 0;
    GET DIAGNOSTICS v_moved = ROW_COUNT;
    ASSERT v_moved = cardinality(p_seats), 'an offer of a seat that is not reserved';
    DELETE FROM reserved_seat WHERE show_id = p_show AND seat = ANY (p_seats);
    INSERT INTO booking_move (show_id, number, move, state, fence)
    VALUES (p_show, v_number, 'hold', 'held', v_number);
    PERFORM add_facts(ARRAY[p_show], ARRAY[v_number], ARRAY['booking.held'::text],
                      ARRAY[now() + p_ttl_s * interval '1 s']);
    RETURN QUERY SELECT * FROM booking WHERE show_id = p_show AND number = v_number;
END $$;

-- Freed seats are reserved from now on, or not any more. The map must know, so it is marked. A sale that has
-- the flag already stays as it is: false.
CREATE OR REPLACE FUNCTION set_waitlist(p_show bigint, p_has boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sale
       SET has_waitlist = p_has, epoch = epoch + 1, map_stale = true, marked_at = now()
     WHERE show_id = p_show AND has_waitlist <> p_has;
    RETURN FOUND;
END $$;
