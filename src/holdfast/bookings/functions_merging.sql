-- bookings/functions_merging.sql: two holds of one buyer become one, with one payment.
-- needs: outbox

-- The seats of a second hold (p_from) move to the first (p_to), which keeps its number, claim id and fence.
-- The sale is shared, as in cancel_holds. Both are locked in key order and compared by fence and state: a
-- payment that has begun, an expiry or a release leaves both as they are, and no row is returned. The seats
-- keep their rows in taken_seat, so no other buyer can take one in between; the owner's count is the same.
-- Prices are those of each hold: both must have been made under the same terms (revision).
CREATE OR REPLACE FUNCTION merge_holds(
    p_show bigint, p_to bigint, p_to_fence bigint, p_from bigint, p_from_fence bigint, p_life_max_s int
) RETURNS SETOF booking LANGUAGE plpgsql AS $$
DECLARE
    v_to   booking;
    v_from booking;
BEGIN
    PERFORM share_sales(ARRAY[p_show]);
    PERFORM FROM booking
      WHERE show_id = p_show AND number IN (p_to, p_from)
      ORDER BY number
        FOR UPDATE;
    SELECT * INTO v_to FROM booking
     WHERE show_id = p_show AND number = p_to AND fence = p_to_fence
       AND state = 'held' AND expires_at > now();
    SELECT * INTO v_from FROM booking
     WHERE show_id = p_show AND number = p_from AND fence = p_from_fence
       AND state = 'held' AND expires_at > now();
    IF v_to.number IS NULL OR v_from.number IS NULL OR v_to.owner_id <> v_from.owner_id
       OR v_to.revision <> v_from.revision THEN
        RETURN;
    END IF;
    -- Facts that no consumer has read yet are about the seats of that moment.
    PERFORM freeze_booking_facts(p_show, p_to, jsonb_build_object(
        'seats', v_to.seats, 'prices_minor', v_to.prices_minor, 'amount_minor', v_to.amount_minor));
    UPDATE booking SET state = 'cancelled' WHERE show_id = p_show AND number = p_from;
    PERFORM count_holds_down(ARRAY[p_show], ARRAY[p_from]);
    PERFORM record_moves(ARRAY[p_show], ARRAY[p_from], 'cancel', 0);
    UPDATE taken_seat SET number = p_to
     WHERE show_id = p_show AND seat = ANY (v_from.seats) AND number = p_from;
    UPDATE booking
       SET seats = joined.seats, prices_minor = joined.prices,
           amount_minor = v_to.amount_minor + v_from.amount_minor,
           expires_at = greatest(expires_at, least(v_from.expires_at,
                                                   opened_at + p_life_max_s * interval '1 s'))
      FROM (SELECT array_agg(seat ORDER BY seat) AS seats, array_agg(price ORDER BY seat) AS prices
              FROM unnest(v_to.seats || v_from.seats, v_to.prices_minor || v_from.prices_minor)
                AS a (seat, price)) AS joined
     WHERE show_id = p_show AND number = p_to;
    PERFORM count_party_again(v_to, cardinality(v_from.seats));
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id, seats)
    VALUES (p_show, p_to, 'merge', v_to.state, v_to.fence, v_to.owner_id, v_from.seats);
    -- After the other one's booking.cancelled: a consumer that follows seats has them taken at the end.
    PERFORM add_fact(p_show, p_to, 'booking.merged', jsonb_build_object(
        'seats', seats, 'prices_minor', prices_minor, 'amount_minor', amount_minor,
        'added', v_from.seats, 'from_number', p_from))
       FROM booking WHERE show_id = p_show AND number = p_to;
    RETURN QUERY SELECT * FROM booking WHERE show_id = p_show AND number = p_to;
END $$;
