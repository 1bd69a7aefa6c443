-- refunds/functions.sql: what a refund writes. The decision itself is in refunds/decision.py.
-- needs: organisers, payments, tickets

DROP FUNCTION IF EXISTS add_late_refund(bigint, bigint, int, bigint, text);  -- of an earlier release

-- A refund with what its worker must know of the payment.
CREATE OR REPLACE VIEW refund_detail AS
SELECT refund.show_id, refund.number, refund.attempt, refund.id, refund.why, refund.seats,
       refund.seats_minor, refund.amount_minor, refund.fee_minor, refund.tax_minor, refund.state,
       refund.note, refund.reference, refund.reason, refund.settled_note, refund.actor_id, refund.round,
       refund.tries, refund.due_at, refund.requested_at, refund.done_at, refund.organiser_id,
       payment.owner_id, payment.key, payment.gateway, payment.currency,
       payment.reference AS payment_reference
  FROM refund JOIN payment_for_refund AS payment USING (show_id, number, attempt);

-- What reconciliation and invoices read of a refund.
CREATE OR REPLACE VIEW decided_refund AS
SELECT show_id, number, attempt, id, seats, amount_minor, fee_minor, tax_minor, state,
       settled_note IS NOT NULL AS is_settled_by_hand
  FROM refund;

-- However a refund is written, it is in the list of its organiser. A show never changes hands.
CREATE OR REPLACE FUNCTION set_refund_organiser() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.organiser_id := (SELECT organiser_id FROM show_organiser WHERE show_id = NEW.show_id);
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER set_refund_organiser BEFORE INSERT ON refund
    FOR EACH ROW EXECUTE FUNCTION set_refund_organiser();

-- The locks of a decision, in the order of bookings/functions.sql. Admission locks the ticket too: a ticket
-- is used or given back, never both.
CREATE OR REPLACE FUNCTION lock_for_refunds(p_show bigint[], p_number bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM share_sales(p_show);
    PERFORM lock_bookings(p_show, p_number);
    PERFORM lock_payments(p_show, p_number);
    PERFORM lock_tickets(p_show, p_number);
END $$;

-- Writes what refunds/decision.py decided: the refund with its journal entry and fact, then the seats that
-- are given back. p_attempt NULL: the booking cost nothing, and only its seats go. p_due_ms: when a worker
-- calls the gateway at the latest. The caller counts owners and cards down after the last refund of the
-- batch.
CREATE OR REPLACE FUNCTION record_refund(
    p_show bigint, p_number bigint, p_attempt int, p_id int, p_why text, p_seats int[], p_seats_minor bigint,
    p_amount bigint, p_fee bigint, p_tax bigint, p_currency text, p_note text, p_actor bigint, p_due_ms int
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund;
BEGIN
    IF p_attempt IS NOT NULL THEN
        INSERT INTO refund (show_id, number, attempt, id, why, seats, seats_minor, amount_minor, fee_minor,
                            tax_minor, state, note, actor_id, due_at, done_at)
        VALUES (p_show, p_number, p_attempt, p_id, p_why, p_seats, p_seats_minor, p_amount, p_fee, p_tax,
                CASE p_amount WHEN 0 THEN 'done' ELSE 'requested' END::refund_state, p_note, p_actor,
                CASE p_amount WHEN 0 THEN NULL ELSE now() + p_due_ms * interval '1 ms' END,
                CASE p_amount WHEN 0 THEN now() END)
     RETURNING * INTO v_refund;
        PERFORM add_to_refunds(p_show, p_number, p_attempt, p_amount);
        PERFORM add_journal_entry(p_show, p_number, p_attempt, p_currency, 'refund',
                                  ARRAY['organiser', 'fee', 'tax', 'owed'],
                                  ARRAY[p_amount - p_fee - p_tax, p_fee, p_tax, -p_amount]);
        PERFORM publish_refund(v_refund, p_currency);
    END IF;
    IF p_seats <> '{}' THEN
        PERFORM return_seats(p_show, p_number, p_seats, p_actor);
    END IF;
END $$;

-- The refund of a payment that could not be booked, all of it: it was late, or its card had reached the
-- limit. The caller has counted it.
CREATE OR REPLACE FUNCTION return_payment(
    p_show bigint, p_number bigint, p_attempt int, p_why text, p_amount bigint, p_currency text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_refund refund;
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_show, p_number, p_attempt, coalesce(max(id), 0) + 1, p_why, p_amount
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
       AND state = CASE WHEN p_note IS NULL THEN 'requested' ELSE 'by_hand' END::refund_state
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

-- A refund that was done and that the bank returned later: the money is at the gateway again and is still
-- owed. A person decides, as about one that was refused. One that a person has paid stays as it is.
CREATE OR REPLACE FUNCTION reopen_refund(
    p_show bigint, p_number bigint, p_attempt int, p_id int, p_reason text
) RETURNS SETOF refund_detail LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_refund  refund;
    v_payment payment_for_refund;
BEGIN
    UPDATE refund SET state = 'by_hand', reason = p_reason, done_at = NULL
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id
       AND state = 'done' AND settled_note IS NULL AND amount_minor > 0
 RETURNING * INTO v_refund;
    IF FOUND THEN
        SELECT * INTO STRICT v_payment FROM payment_for_refund
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
        PERFORM add_journal_entry(p_show, p_number, p_attempt, v_payment.currency, 'refund failed',
                                  ARRAY['owed', 'gateway:' || v_payment.gateway],
                                  ARRAY[-v_refund.amount_minor, v_refund.amount_minor]);
        PERFORM publish_refund(v_refund, v_payment.currency);
    END IF;
    RETURN QUERY
    SELECT * FROM refund_detail
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id;
END $$;
