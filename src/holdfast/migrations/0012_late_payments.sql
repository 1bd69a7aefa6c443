-- 0012_late_payments.sql: money that comes when its booking does not wait for it any more.

-- Book it if every seat is still free, else send all of it back: exactly one of the two, decided here once.
-- Its seats may be its own still (HELD again after a decline, or lapsed and not swept yet).
CREATE FUNCTION book_late(p_show bigint, p_number bigint, p_attempt int, p_may_book boolean)
RETURNS SETOF payment_card LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_booking booking;
    v_payment payment;
    v_booked  boolean := false;
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    SELECT * INTO STRICT v_booking FROM booking WHERE show_id = p_show AND number = p_number FOR UPDATE;
    SELECT * INTO STRICT v_payment FROM payment
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt FOR UPDATE;
    IF v_payment.step = 'late' THEN
        IF p_may_book AND v_payment.amount_minor = v_booking.amount_minor
           AND EXISTS (SELECT 1 FROM sale WHERE show_id = p_show AND NOT cancelled) THEN
            v_booked := v_booking.state = 'held' OR (v_booking.state = 'expired' AND take_again(v_booking));
        END IF;
        UPDATE payment SET step = CASE WHEN v_booked THEN 'paid' ELSE 'returned' END::payment_step,
                           fence = CASE WHEN v_booked THEN nextval('ledger_number') ELSE fence END,
                           refunds_minor = CASE WHEN v_booked THEN 0 ELSE amount_minor END,
                           due_at = NULL, ended_at = now()
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt
     RETURNING * INTO v_payment;
        IF v_booked THEN
            PERFORM book_it(v_payment);
        ELSE
            PERFORM send_it_back(v_payment, v_booking.state);
        END IF;
        INSERT INTO outbox (show_id, number, kind, body)
        VALUES (p_show, p_number, 'payment.late',
                jsonb_build_object('attempt', p_attempt, 'booked', v_booked,
                                   'amount_minor', v_payment.amount_minor, 'currency', v_payment.currency));
    END IF;
    RETURN QUERY
    SELECT * FROM payment_card WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
END $$;

-- All seats of an expired booking, or none of them; the limits hold for it as for everybody.
CREATE FUNCTION take_again(p_booking booking) RETURNS boolean LANGUAGE plpgsql AS $$
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
        UPDATE owner_count SET seats = seats + v_got
         WHERE show_id = p_booking.show_id AND owner_id = p_booking.owner_id AND seats + v_got <= seats_max;
        IF FOUND THEN
            RETURN true;
        END IF;
    END IF;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_booking.seats) AND number = p_booking.number;
    RETURN false;
END $$;

CREATE FUNCTION book_it(p_payment payment) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE booking SET state = 'confirmed', confirmed_at = now(), fence = p_payment.fence
     WHERE show_id = p_payment.show_id AND number = p_payment.number;
    PERFORM record_moves(ARRAY[p_payment.show_id], ARRAY[p_payment.number], 'confirm', NULL);
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT p_payment.show_id, e.entry, CASE WHEN l.amount > 0 THEN 'owed' ELSE l.account END, l.amount,
           p_payment.currency, p_payment.number, p_payment.attempt, 'late booking'
      FROM (SELECT nextval('ledger_number') AS entry) AS e,
           parts_of('', p_payment.amount_minor, p_payment.fee_minor, p_payment.tax_minor) AS l
     WHERE l.amount <> 0;
END $$;

-- The fan is told by the state of the booking, and by the fact.
CREATE FUNCTION send_it_back(p_payment payment, p_state booking_state) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_payment.show_id, p_payment.number, p_payment.attempt, coalesce(max(id), 0) + 1, 'late',
           p_payment.amount_minor
      FROM refund
     WHERE show_id = p_payment.show_id AND number = p_payment.number AND attempt = p_payment.attempt;
    IF p_state = 'expired' THEN
        UPDATE booking SET state = 'failed'
         WHERE show_id = p_payment.show_id AND number = p_payment.number;
        PERFORM record_moves(ARRAY[p_payment.show_id], ARRAY[p_payment.number], 'fail', NULL);
    END IF;
END $$;
