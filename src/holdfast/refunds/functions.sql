-- refunds/functions.sql: money goes back, and seats with it. Decided in one transaction, carried out later.
-- needs: payments, tickets
--
-- Lock order as in bookings/functions.sql: sales (shared), bookings, payments, tickets, seats, counters.
-- Admission locks the ticket too: a ticket is used or given back, never both.

DROP VIEW IF EXISTS refund_detail, decided_refund CASCADE;
DROP TYPE IF EXISTS refund_ask CASCADE;

-- A refund with what its worker must know of the payment.
CREATE VIEW refund_detail AS
SELECT refund.*, payment.owner_id, payment.key, payment.gateway, payment.currency,
       payment.reference AS payment_reference
  FROM refund JOIN payment_for_refund AS payment USING (show_id, number, attempt);

-- What reconciliation and invoices read of a refund.
CREATE VIEW decided_refund AS
SELECT show_id, number, attempt, id, seats, amount_minor, fee_minor, tax_minor, state,
       settled_note IS NOT NULL AS is_settled_by_hand
  FROM refund;

-- How an amount is taken from what is left of a payment: each share gives its part, and to the last minor
-- unit no more than it has. With p_keep_fee our fee is used last.
CREATE OR REPLACE FUNCTION refund_split(
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
        -- The remainder of the division, if the organiser's share has no more to give.
        v_tax := v_tax + least(p_tax_left - v_tax, greatest(0, p_amount - v_fee - v_tax - v_organiser));
        v_fee := v_fee + greatest(0, p_amount - v_fee - v_tax - v_organiser);
    END IF;
    RETURN QUERY SELECT v_fee, v_tax;
END $$;

-- Inserts a refund with its journal entry and fact. p_due_ms: when a worker asks the gateway at the latest.
CREATE OR REPLACE FUNCTION add_refund(
    p_payment payment_for_refund, p_refund refund, p_keep_fee boolean, p_due_ms int
) RETURNS refund LANGUAGE plpgsql AS $$
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
    PERFORM add_to_refunds(v_refund.show_id, v_refund.number, v_refund.attempt, v_refund.amount_minor);
    PERFORM add_journal_entry(
        v_refund.show_id, v_refund.number, v_refund.attempt, p_payment.currency, 'refund',
        ARRAY['organiser', 'fee', 'tax', 'owed'],
        ARRAY[v_refund.amount_minor - v_refund.fee_minor - v_refund.tax_minor, v_refund.fee_minor,
              v_refund.tax_minor, -v_refund.amount_minor]);
    PERFORM publish_refund(v_refund, p_payment.currency);
    RETURN v_refund;
END $$;

-- The refund of a payment that arrived late and could not be booked: all of it. The caller has counted it.
CREATE OR REPLACE FUNCTION add_late_refund(
    p_show bigint, p_number bigint, p_attempt int, p_amount bigint, p_currency text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund;
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_show, p_number, p_attempt, coalesce(max(id), 0) + 1, 'late', p_amount
      FROM refund
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt
 RETURNING * INTO v_refund;
    PERFORM publish_refund(v_refund, p_currency);
END $$;

-- A refund of nothing (seats that cost nothing) is not published.
CREATE OR REPLACE FUNCTION publish_refund(p_refund refund, p_currency text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_refund.amount_minor > 0 THEN
        PERFORM add_fact(p_refund.show_id, p_refund.number, 'refund.' || p_refund.state, jsonb_build_object(
            'attempt', p_refund.attempt, 'refund', p_refund.id, 'why', split_part(p_refund.why, ':', 1),
            'amount_minor', p_refund.amount_minor, 'currency', p_currency,
            'seats', p_refund.seats, 'reason', p_refund.reason));
    END IF;
END $$;

-- One request of decide_refunds.
CREATE TYPE refund_ask AS (
    show_id bigint, number bigint, why text,
    what text,              -- whole, seats, money
    seats int[],            -- of seats: which
    seen int[],             -- the seats the booking had when the amount was computed
    amount_minor bigint,    -- NULL: what those seats had cost
    keep_fee boolean, note text, actor_id bigint
);

-- Why a refund is rejected, or NULL; with the seats that are in the way. The caller has locked the booking
-- and its tickets.
CREATE OR REPLACE FUNCTION refund_refusal(
    p_ask refund_ask, p_booking payable_booking, p_payment payment_for_refund
) RETURNS TABLE (outcome text, seats int[]) LANGUAGE plpgsql AS $$
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
                         AND (ticket.owner_email IS NOT NULL OR ticket.owner_id <> p_booking.owner_id))
      INTO v_gone, v_used, v_given
      FROM ticket_for_refund AS ticket
     WHERE ticket.show_id = p_booking.show_id AND ticket.number = p_booking.number
       AND ticket.seat = ANY (v_seats);
    RETURN QUERY SELECT CASE
        WHEN p_booking.state IS NULL THEN 'none'
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

-- Decides one refund and stores it. `same`: this reason has had its refund.
CREATE OR REPLACE FUNCTION decide_refund(
    p_ask refund_ask, p_due_ms int,
    OUT outcome text, OUT refund refund, OUT seats int[], OUT payment payment_for_refund, OUT freed int[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_booking payable_booking;
    v_worth   bigint;
    v_open    bigint;
BEGIN
    SELECT * INTO v_booking FROM payable_booking AS b
     WHERE b.show_id = p_ask.show_id AND b.number = p_ask.number;
    SELECT * INTO payment FROM payment_for_refund AS p
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
        -- Money that went back alone was part of the price of the remaining seats.
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
        refund := add_refund(payment, refund, p_ask.keep_fee, p_due_ms);
    END IF;
    IF freed <> '{}' THEN
        PERFORM return_seats(p_ask.show_id, p_ask.number, freed, p_ask.actor_id);
    END IF;
END $$;

-- Many refunds, each decided for itself. Outcomes:
--   decided  · same (this reason has had its refund: here it is)  · gone (these seats were given back before)
--   none (no such booking)  · seats (it does not have them)  · changed (it has other seats than were seen)
--   used, given (tickets of `seats` were used, or transferred)  · much (more than is left)
--   or the state the booking is in, where that does not allow it
CREATE OR REPLACE FUNCTION decide_refunds(
    p_show bigint[], p_number bigint[], p_why text[], p_what text[], p_seats text[], p_seen text[],
    p_amount bigint[], p_keep_fee boolean[], p_note text[], p_actor bigint[], p_due_ms int
) RETURNS TABLE (outcome text, refund refund_detail, seats int[], left_minor bigint, booking payable_booking)
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
    PERFORM share_sales(p_show);
    PERFORM lock_bookings(p_show, p_number);
    PERFORM lock_payments(p_show, p_number);
    PERFORM lock_tickets(p_show, p_number);

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

    -- Counters are the last of all locks: two batches with the same owners cannot deadlock.
    PERFORM count_owners_down(p_show, p_number, v_freed);
    PERFORM count_cards_down(p_show, v_card, v_freed);
    RETURN QUERY
    SELECT a.outcome, c, a.seats::int[],
           (SELECT p.amount_minor - p.refunds_minor FROM payment_for_refund AS p
             WHERE p.show_id = a.show_id AND p.number = a.number AND p.step = 'paid'), b
      FROM unnest(p_show, p_number, v_outcome, v_attempt, v_id, v_seats) WITH ORDINALITY
           AS a (show_id, number, outcome, attempt, id, seats, ord)
      LEFT JOIN payable_booking AS b ON b.show_id = a.show_id AND b.number = a.number
      LEFT JOIN refund_detail AS c
             ON c.show_id = a.show_id AND c.number = a.number AND c.attempt = a.attempt AND c.id = a.id
  ORDER BY a.ord;
END $$;

-- The gateway's answer to a refund: done, or by_hand. With a note, a person has paid a by_hand refund outside
-- the gateway. A refund that is settled already stays as it is, so a repeated answer changes nothing.
CREATE OR REPLACE FUNCTION settle_refund(
    p_show bigint, p_number bigint, p_attempt int, p_id int, p_state refund_state,
    p_reference text, p_reason text, p_note text
) RETURNS SETOF refund_detail LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_refund  refund;
    v_payment payment_for_refund;
BEGIN
    UPDATE refund
       SET state = p_state, reference = coalesce(p_reference, reference), reason = coalesce(p_reason, reason),
           settled_note = p_note, due_at = NULL, done_at = CASE p_state WHEN 'done' THEN now() END
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id
       AND state = CASE WHEN p_note IS NULL THEN 'asked' ELSE 'by_hand' END::refund_state
 RETURNING * INTO v_refund;
    IF FOUND THEN
        SELECT * INTO STRICT v_payment FROM payment_for_refund
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
        IF p_state = 'done' THEN
            PERFORM add_journal_entry(
                p_show, p_number, p_attempt, v_payment.currency, 'refund done',
                ARRAY['owed', CASE WHEN p_note IS NULL THEN 'gateway:' || v_payment.gateway
                                   ELSE 'by_hand' END],
                ARRAY[v_refund.amount_minor, -v_refund.amount_minor]);
        END IF;
        PERFORM publish_refund(v_refund, v_payment.currency);
    END IF;
    RETURN QUERY
    SELECT * FROM refund_detail
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id;
END $$;
