-- 0014_refunds.sql: money goes back, and with it seats. Decided in one transaction, carried out afterwards.
--
-- Order of locks as in 0008_payments.sql; tickets come between payments and seats. Whoever lets somebody in
-- locks the ticket, too: a ticket is used or given back, never both.

-- A refund and as much of its payment as whoever carries it out must know.
CREATE VIEW refund_card AS
SELECT refund.*, payment.owner_id, payment.key, payment.gateway, payment.currency,
       payment.reference AS payment_reference
  FROM refund JOIN payment USING (show_id, number, attempt);

CREATE INDEX sales_cancelled ON sale (show_id) WHERE cancelled;

-- How an amount is taken from what is left of a payment: from each share its part, and to the last minor unit
-- no more than there is. With p_keep_fee our fee is touched last.
CREATE FUNCTION refund_split(
    p_amount bigint, p_left bigint, p_fee_left bigint, p_tax_left bigint, p_keep_fee boolean
) RETURNS TABLE (fee bigint, tax bigint) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_from      bigint := p_left - CASE WHEN p_keep_fee THEN p_fee_left ELSE 0 END;
    v_organiser bigint := p_left - p_fee_left - p_tax_left;
    v_fee       bigint := 0;
    v_tax       bigint := 0;
BEGIN
    IF p_amount >= v_from THEN
        v_tax := p_tax_left;
        v_fee := p_amount - v_tax - v_organiser;
    ELSIF v_from > 0 THEN
        v_fee := CASE WHEN p_keep_fee THEN 0 ELSE p_fee_left * p_amount / v_from END;
        v_tax := p_tax_left * p_amount / v_from;
        -- What rounding has left over, if the organiser has no more to give.
        v_tax := v_tax + least(p_tax_left - v_tax, greatest(0, p_amount - v_fee - v_tax - v_organiser));
        v_fee := v_fee + greatest(0, p_amount - v_fee - v_tax - v_organiser);
    END IF;
    RETURN QUERY SELECT v_fee, v_tax;
END $$;

-- The books and the row of one refund. p_due_ms: from when on a duty should ask the gateway.
CREATE FUNCTION ask_refund(p_payment payment, p_refund refund, p_keep_fee boolean, p_due_ms int)
RETURNS refund LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund := p_refund;
BEGIN
    SELECT coalesce(max(r.id), 0) + 1, split.fee, split.tax
      INTO v_refund.id, v_refund.fee_minor, v_refund.tax_minor
      FROM (SELECT p_payment.fee_minor - coalesce(sum(done.fee_minor), 0)::bigint AS fee,
                   p_payment.tax_minor - coalesce(sum(done.tax_minor), 0)::bigint AS tax
              FROM refund AS done
             WHERE done.show_id = p_payment.show_id AND done.number = p_payment.number
               AND done.attempt = p_payment.attempt) AS shares,
           refund_split(p_refund.amount_minor, p_payment.amount_minor - p_payment.refunds_minor,
                        shares.fee, shares.tax, p_keep_fee) AS split
      LEFT JOIN refund AS r ON r.show_id = p_payment.show_id AND r.number = p_payment.number
                           AND r.attempt = p_payment.attempt
     GROUP BY split.fee, split.tax;
    INSERT INTO refund (show_id, number, attempt, id, why, seats, seats_minor, amount_minor, fee_minor,
                        tax_minor, state, note, actor_id, due_at, done_at)
    VALUES (p_payment.show_id, p_payment.number, p_payment.attempt, v_refund.id, v_refund.why, v_refund.seats,
            v_refund.seats_minor, v_refund.amount_minor, v_refund.fee_minor, v_refund.tax_minor,
            CASE v_refund.amount_minor WHEN 0 THEN 'done' ELSE 'asked' END::refund_state,
            v_refund.note, v_refund.actor_id,
            CASE v_refund.amount_minor WHEN 0 THEN NULL ELSE now() + p_due_ms * interval '1 ms' END,
            CASE v_refund.amount_minor WHEN 0 THEN now() END)
 RETURNING * INTO v_refund;
    UPDATE payment SET refunds_minor = refunds_minor + v_refund.amount_minor
     WHERE show_id = p_payment.show_id AND number = p_payment.number AND attempt = p_payment.attempt;
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT v_refund.show_id, e.entry, l.account, l.amount, p_payment.currency, v_refund.number,
           v_refund.attempt, 'refund'
      FROM (SELECT nextval('ledger_number') AS entry) AS e,
           (VALUES ('organiser', v_refund.amount_minor - v_refund.fee_minor - v_refund.tax_minor),
                   ('fee', v_refund.fee_minor), ('tax', v_refund.tax_minor),
                   ('owed', -v_refund.amount_minor)) AS l (account, amount)
     WHERE l.amount <> 0;
    PERFORM tell_of_refund(v_refund, p_payment.currency);
    RETURN v_refund;
END $$;

CREATE FUNCTION tell_of_refund(p_refund refund, p_currency text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO outbox (show_id, number, kind, body)
    SELECT p_refund.show_id, p_refund.number, 'refund.' || p_refund.state,
           jsonb_build_object('attempt', p_refund.attempt, 'refund', p_refund.id,
                              'why', split_part(p_refund.why, ':', 1),
                              'amount_minor', p_refund.amount_minor, 'currency', p_currency,
                              'seats', p_refund.seats, 'reason', p_refund.reason)
     WHERE p_refund.amount_minor > 0;
$$;

-- A confirmed booking gives up all its seats and is REFUNDED. The ticket of who was let in stays as it was.
CREATE FUNCTION give_up_booking(p_booking booking, p_actor bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE booking SET state = 'refunded' WHERE show_id = p_booking.show_id AND number = p_booking.number;
    UPDATE ticket SET voided_at = now()
     WHERE show_id = p_booking.show_id AND number = p_booking.number
       AND voided_at IS NULL AND used_at IS NULL;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_booking.seats) AND number = p_booking.number;
    PERFORM record_moves(ARRAY[p_booking.show_id], ARRAY[p_booking.number], 'refund', p_actor);
END $$;

-- A confirmed booking gives up some of its seats, and keeps the others.
CREATE FUNCTION give_up_seats(p_booking booking, p_seats int[], p_actor bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_after booking;
BEGIN
    -- Facts that nobody has read yet speak of the booking as it was.
    UPDATE outbox
       SET body = coalesce(body, '{}') || jsonb_build_object(
               'seats', p_booking.seats, 'prices_minor', p_booking.prices_minor,
               'amount_minor', p_booking.amount_minor)
     WHERE show_id = p_booking.show_id AND number = p_booking.number AND kind LIKE 'booking.%'
       AND NOT coalesce(body, '{}') ? 'seats';
    UPDATE booking
       SET seats = kept.seats, prices_minor = kept.prices, amount_minor = kept.amount
      FROM (SELECT array_agg(seat ORDER BY ord) AS seats, array_agg(price ORDER BY ord) AS prices,
                   sum(price)::bigint AS amount
              FROM unnest(p_booking.seats, p_booking.prices_minor) WITH ORDINALITY AS a (seat, price, ord)
             WHERE seat <> ALL (p_seats)) AS kept
     WHERE show_id = p_booking.show_id AND number = p_booking.number
 RETURNING booking.* INTO v_after;
    UPDATE ticket SET voided_at = now()
     WHERE show_id = p_booking.show_id AND number = p_booking.number AND seat = ANY (p_seats)
       AND voided_at IS NULL AND used_at IS NULL;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_seats) AND number = p_booking.number;
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
    VALUES (v_after.show_id, v_after.number, 'reduce', v_after.state, v_after.fence, p_actor);
    INSERT INTO outbox (show_id, number, kind, body)
    VALUES (v_after.show_id, v_after.number, 'booking.reduced', jsonb_build_object(
               'seats', v_after.seats, 'prices_minor', v_after.prices_minor,
               'amount_minor', v_after.amount_minor, 'given_back', p_seats));
END $$;

-- What is asked of decide_refunds, for one booking.
CREATE TYPE refund_ask AS (
    show_id bigint, number bigint, why text,
    what text,              -- whole, seats, money
    seats int[],            -- of seats: which
    seen int[],             -- the seats it had when the amount was worked out
    amount_minor bigint,    -- NULL: what those seats had cost
    keep_fee boolean, note text, actor_id bigint
);

-- Why not, or NULL; with the seats that are in the way. The caller has locked the booking and its tickets.
CREATE FUNCTION refund_refusal(p_ask refund_ask, p_booking booking, p_payment payment)
RETURNS TABLE (outcome text, seats int[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_seats int[] := CASE p_ask.what WHEN 'whole' THEN p_booking.seats WHEN 'seats' THEN p_ask.seats
                                     ELSE '{}' END;
    v_gone  int[];
    v_used  int[];
    v_given int[];
BEGIN
    SELECT coalesce(array_agg(ticket.seat) FILTER (WHERE ticket.voided_at IS NOT NULL), '{}'),
           array_agg(ticket.seat ORDER BY ticket.seat)
               FILTER (WHERE ticket.used_at IS NOT NULL AND p_ask.why <> 'show'),
           array_agg(ticket.seat ORDER BY ticket.seat)
               FILTER (WHERE p_ask.why LIKE 'owner%' AND ticket.voided_at IS NULL
                         AND (life.owner_email IS NOT NULL OR life.owner_id <> p_booking.owner_id))
      INTO v_gone, v_used, v_given
      FROM ticket
      LEFT JOIN ticket_life AS life ON life.show_id = ticket.show_id AND life.serial = ticket.serial
     WHERE ticket.show_id = p_booking.show_id AND ticket.number = p_booking.number
       AND ticket.seat = ANY (v_seats);
    RETURN QUERY SELECT CASE
        WHEN p_booking.state IS NULL OR p_booking.state = 'blocked' THEN 'none'
        WHEN p_ask.what = 'seats' AND p_ask.seats <@ v_gone THEN 'gone'
        WHEN p_ask.what = 'money' AND p_booking.state NOT IN ('confirmed', 'refunded')
          OR p_ask.what <> 'money' AND p_booking.state <> 'confirmed' THEN p_booking.state::text
        WHEN p_ask.what <> 'money' AND p_ask.seen <> p_booking.seats THEN 'changed'
        WHEN NOT v_seats <@ p_booking.seats THEN 'seats'
        WHEN v_used IS NOT NULL THEN 'used'
        WHEN v_given IS NOT NULL THEN 'given'
        WHEN p_ask.what = 'money'
         AND p_ask.amount_minor > coalesce(p_payment.amount_minor - p_payment.refunds_minor, 0) THEN 'much'
    END, coalesce(v_used, v_given);
END $$;

-- One refund, decided and written. `same`: this reason has had its refund.
CREATE FUNCTION decide_refund(
    p_ask refund_ask, p_due_ms int,
    OUT outcome text, OUT refund refund, OUT seats int[], OUT payment payment, OUT freed int[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_booking booking;
    v_worth   bigint;
    v_open    bigint;
BEGIN
    SELECT * INTO v_booking FROM booking AS b WHERE b.show_id = p_ask.show_id AND b.number = p_ask.number;
    SELECT * INTO payment FROM payment AS p
     WHERE p.show_id = p_ask.show_id AND p.number = p_ask.number AND p.step = 'paid';
    SELECT * INTO refund FROM refund AS r
     WHERE r.show_id = p_ask.show_id AND r.number = p_ask.number AND r.attempt = payment.attempt
       AND r.why = p_ask.why;
    IF FOUND THEN
        outcome := 'same';
        RETURN;
    END IF;
    SELECT r.outcome, r.seats INTO outcome, seats FROM refund_refusal(p_ask, v_booking, payment) AS r;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;

    outcome := 'decided';
    freed := CASE p_ask.what WHEN 'whole' THEN v_booking.seats WHEN 'seats' THEN p_ask.seats ELSE '{}' END;
    IF payment.attempt IS NOT NULL THEN
        SELECT coalesce(sum(price), 0)::bigint INTO v_worth
          FROM unnest(v_booking.seats, v_booking.prices_minor) AS a (seat, price)
         WHERE seat = ANY (freed);
        -- Money that went back alone was part of the price of the seats that are left.
        SELECT least(payment.amount_minor - payment.refunds_minor,
                     greatest(0, v_booking.amount_minor - coalesce(sum(r.amount_minor), 0)))
          INTO v_open
          FROM refund AS r
         WHERE r.show_id = payment.show_id AND r.number = payment.number AND r.attempt = payment.attempt
           AND r.seats = '{}';
        refund.why := p_ask.why;
        refund.seats := freed;
        refund.seats_minor := v_worth;
        refund.amount_minor := CASE p_ask.what WHEN 'money' THEN p_ask.amount_minor
                                    ELSE least(coalesce(p_ask.amount_minor, v_worth), v_open) END;
        refund.note := p_ask.note;
        refund.actor_id := p_ask.actor_id;
        refund := ask_refund(payment, refund, p_ask.keep_fee, p_due_ms);
    END IF;
    IF freed <> '{}' AND freed @> v_booking.seats THEN
        PERFORM give_up_booking(v_booking, p_ask.actor_id);
    ELSIF freed <> '{}' THEN
        PERFORM give_up_seats(v_booking, freed, p_ask.actor_id);
    END IF;
END $$;

-- Many refunds, each decided for itself. Outcomes:
--   decided  · same (this reason has had its refund: here it is)  · gone (these seats have been given back)
--   none (no such booking)  · seats (it has not got them)  · changed (it has other seats than were seen)
--   used, given (tickets of `seats` let somebody in, or are another's)  · much (more than is left)
--   or the state the booking is in, where that does not allow it
CREATE FUNCTION decide_refunds(
    p_show bigint[], p_number bigint[], p_why text[], p_what text[], p_seats text[], p_seen text[],
    p_amount bigint[], p_keep_fee boolean[], p_note text[], p_actor bigint[], p_due_ms int
) RETURNS TABLE (outcome text, refund refund_card, seats int[], left_minor bigint, booking booking)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_ask     record;
    v_done    record;
    v_outcome text[] := array_fill(NULL::text, ARRAY[cardinality(p_show)]);
    v_attempt int[] := array_fill(NULL::int, ARRAY[cardinality(p_show)]);
    v_id      int[] := array_fill(NULL::int, ARRAY[cardinality(p_show)]);
    v_seats   text[] := array_fill(NULL::text, ARRAY[cardinality(p_show)]);
    v_freed   int[] := array_fill(0, ARRAY[cardinality(p_show)]);
    v_card    text[] := array_fill(NULL::text, ARRAY[cardinality(p_show)]);
BEGIN
    -- Shared, against whoever writes the map anew: what they read of these bookings must still be so.
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;
    PERFORM 1 FROM booking AS b JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY b.show_id, b.number FOR UPDATE OF b;
    PERFORM 1 FROM payment AS p JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY p.show_id, p.number, p.attempt FOR UPDATE OF p;
    PERFORM 1 FROM ticket AS t JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY t.show_id, t.number, t.seat FOR UPDATE OF t;

    FOR v_ask IN
        SELECT ord, ROW(a.show_id, a.number, a.why, a.what, a.seats::int[], a.seen::int[], a.amount,
                        a.keep_fee, a.note, a.actor_id)::refund_ask AS one
          FROM unnest(p_show, p_number, p_why, p_what, p_seats, p_seen, p_amount, p_keep_fee, p_note, p_actor)
               WITH ORDINALITY AS a (show_id, number, why, what, seats, seen, amount, keep_fee, note,
                                     actor_id, ord)
      ORDER BY a.show_id, a.number, a.ord
    LOOP
        SELECT * INTO v_done FROM decide_refund(v_ask.one, p_due_ms);
        v_outcome[v_ask.ord] := v_done.outcome;
        v_attempt[v_ask.ord] := (v_done.payment).attempt;
        v_id[v_ask.ord] := (v_done.refund).id;
        v_seats[v_ask.ord] := v_done.seats::text;
        IF v_done.outcome = 'decided' THEN
            v_freed[v_ask.ord] := cardinality(v_done.freed);
            v_card[v_ask.ord] := (v_done.payment).card;
        END IF;
    END LOOP;

    -- Counters last of all locks, and in key order.
    PERFORM count_owners_down(p_show, p_number, v_freed);
    PERFORM count_cards_down(p_show, v_card, v_freed);
    RETURN QUERY
    SELECT a.outcome, c, a.seats::int[],
           (SELECT p.amount_minor - p.refunds_minor FROM payment AS p
             WHERE p.show_id = a.show_id AND p.number = a.number AND p.step = 'paid'), b
      FROM unnest(p_show, p_number, v_outcome, v_attempt, v_id, v_seats) WITH ORDINALITY
           AS a (show_id, number, outcome, attempt, id, seats, ord)
      LEFT JOIN booking AS b ON b.show_id = a.show_id AND b.number = a.number
      LEFT JOIN refund_card AS c
             ON c.show_id = a.show_id AND c.number = a.number AND c.attempt = a.attempt AND c.id = a.id
  ORDER BY a.ord;
END $$;

-- Seats that owners have less, by their bookings.
CREATE FUNCTION count_owners_down(p_show bigint[], p_number bigint[], p_seats int[]) RETURNS void
LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, sum(a.seats)::int AS seats
          FROM unnest(p_show, p_number, p_seats) AS a (show_id, number, seats)
          JOIN booking USING (show_id, number)
         WHERE booking.counts AND a.seats > 0
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

-- What the gateway said to a refund that was asked for: done, or by_hand. Said twice, it changes nothing.
-- With a note a person has paid one that is by_hand, by another way.
CREATE FUNCTION settle_refund(
    p_show bigint, p_number bigint, p_attempt int, p_id int, p_state refund_state,
    p_reference text, p_reason text, p_note text
) RETURNS SETOF refund_card LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_refund  refund;
    v_payment payment;
BEGIN
    UPDATE refund
       SET state = p_state, reference = coalesce(p_reference, reference), reason = coalesce(p_reason, reason),
           settled_note = p_note, due_at = NULL, done_at = CASE p_state WHEN 'done' THEN now() END
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id
       AND state = CASE WHEN p_note IS NULL THEN 'asked' ELSE 'by_hand' END::refund_state
 RETURNING * INTO v_refund;
    IF FOUND THEN
        SELECT * INTO STRICT v_payment FROM payment
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
        INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
        SELECT p_show, e.entry, l.account, l.amount, v_payment.currency, p_number, p_attempt, 'refund done'
          FROM (SELECT nextval('ledger_number') AS entry) AS e,
               (VALUES ('owed', v_refund.amount_minor),
                       (CASE WHEN p_note IS NULL THEN 'gateway:' || v_payment.gateway ELSE 'by_hand' END,
                        -v_refund.amount_minor)) AS l (account, amount)
         WHERE p_state = 'done';
        PERFORM tell_of_refund(v_refund, v_payment.currency);
    END IF;
    RETURN QUERY
    SELECT * FROM refund_card
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id;
END $$;

-- As in 0012_late_payments.sql; it is told, too.
CREATE OR REPLACE FUNCTION send_it_back(p_payment payment, p_state booking_state) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund;
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_payment.show_id, p_payment.number, p_payment.attempt, coalesce(max(id), 0) + 1, 'late',
           p_payment.amount_minor
      FROM refund
     WHERE show_id = p_payment.show_id AND number = p_payment.number AND attempt = p_payment.attempt
 RETURNING * INTO v_refund;
    PERFORM tell_of_refund(v_refund, p_payment.currency);
    IF p_state = 'expired' THEN
        UPDATE booking SET state = 'failed'
         WHERE show_id = p_payment.show_id AND number = p_payment.number;
        PERFORM record_moves(ARRAY[p_payment.show_id], ARRAY[p_payment.number], 'fail', NULL);
    END IF;
END $$;

-- A show that will not take place is told of once, in the transaction that decides it.
CREATE FUNCTION tell_of_cancelled_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    VALUES (NEW.show_id, 'show.cancelled', jsonb_build_object('revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_cancelled_show AFTER UPDATE OF cancelled ON sale
    FOR EACH ROW WHEN (NEW.cancelled AND NOT OLD.cancelled) EXECUTE FUNCTION tell_of_cancelled_show();
