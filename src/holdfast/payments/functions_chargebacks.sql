-- payments/functions_chargebacks.sql: what a payer's dispute does to the journal and to the tickets.

-- Where the money of a chargeback is: taken from us at the gateway while it is open, and the organiser's loss
-- when it is lost. A chargeback that was won leaves nothing.
CREATE OR REPLACE FUNCTION chargeback_lines(p_state chargeback_state, p_gateway text, p_amount bigint)
RETURNS TABLE (account text, amount bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT * FROM (VALUES ('gateway:' || p_gateway, -p_amount),
                          (CASE p_state WHEN 'open' THEN 'disputed' ELSE 'organiser' END, p_amount)) AS l
     WHERE p_state IN ('open', 'lost');
$$;

-- Stores what the gateway reports of a dispute: the journal moves from the last known state to this one, the
-- tickets of the booking are suspended or good again, and the fact is published. The same report again
-- changes nothing. p_suspends: the policy of the house.
CREATE OR REPLACE FUNCTION record_chargeback(
    p_show bigint, p_number bigint, p_attempt int, p_reference text, p_state chargeback_state,
    p_amount bigint, p_reason text, p_suspends boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_payment payment;
    v_before  chargeback;
    v_amount  bigint;
BEGIN
    PERFORM lock_bookings(ARRAY[p_show], ARRAY[p_number]);
    PERFORM lock_payments(ARRAY[p_show], ARRAY[p_number]);
    SELECT * INTO STRICT v_payment FROM payment
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
    SELECT * INTO v_before FROM chargeback
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND reference = p_reference;
    IF v_before.state IS NOT DISTINCT FROM p_state OR v_payment.step NOT IN ('paid', 'returned') THEN
        RETURN false;
    END IF;
    v_amount := coalesce(v_before.amount_minor, least(p_amount, v_payment.amount_minor));
    INSERT INTO chargeback (show_id, number, attempt, reference, state, amount_minor, currency, reason)
    VALUES (p_show, p_number, p_attempt, p_reference, p_state, v_amount, v_payment.currency, p_reason)
        ON CONFLICT (show_id, number, attempt, reference) DO UPDATE
       SET state = excluded.state, reason = excluded.reason, changed_at = now();
    PERFORM add_journal_entry(p_show, p_number, p_attempt, v_payment.currency, 'chargeback ' || p_state,
                              array_agg(account), array_agg(amount))
       FROM (SELECT account, sum(amount)::bigint AS amount
               FROM (SELECT * FROM chargeback_lines(p_state, v_payment.gateway, v_amount)
                      UNION ALL
                     SELECT account, -amount
                       FROM chargeback_lines(v_before.state, v_payment.gateway, v_amount)) AS l
              GROUP BY account) AS moved;
    IF p_suspends THEN
        PERFORM suspend_tickets(p_show, p_number, p_state <> 'won');
    END IF;
    PERFORM add_fact(p_show, p_number, 'payment.disputed', jsonb_build_object(
        'attempt', p_attempt, 'state', p_state, 'reason', p_reason, 'amount_minor', v_amount,
        'currency', v_payment.currency, 'tickets_suspended', p_suspends AND p_state <> 'won'));
    RETURN true;
END $$;
