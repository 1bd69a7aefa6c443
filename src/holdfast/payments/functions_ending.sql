-- payments/functions_ending.sql: payments that fail, expire, arrive late or go back.

-- The gateway declined, or cancelled on request: the bookings are HELD again with the time they had left. A
-- payment that has ended, or whose money has arrived, stays as it is; so does a booking that another attempt
-- is paying for.
CREATE OR REPLACE FUNCTION decline_payments(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reason text[], p_code text[], p_step payment_step
) RETURNS SETOF payment_detail
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
    v_fence  bigint[];
    v_ends   timestamptz[];
    v_body   jsonb[];
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    WITH ended AS (
        UPDATE payment
           SET step = p_step, reason = a.reason, code = a.code, method = '', client_secret = NULL,
               due_at = NULL, ended_at = now()
          FROM unnest(p_show, p_number, p_attempt, p_reason, p_code)
               AS a (show_id, number, attempt, reason, code)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    )
    SELECT array_agg(show_id), array_agg(number), array_agg(fence), array_agg(hold_ends_at),
           array_agg(jsonb_build_object('attempt', attempt, 'reason', reason, 'code', code,
                                        'amount_minor', amount_minor, 'currency', currency))
      INTO v_show, v_number, v_fence, v_ends, v_body
      FROM ended;
    IF v_show IS NOT NULL THEN
        PERFORM add_facts(v_show, v_number,
                          array_fill('payment.' || p_step::text, ARRAY[cardinality(v_show)]), NULL, v_body);
        PERFORM return_to_held(v_show, v_number, v_fence, v_ends);
    END IF;
    RETURN QUERY SELECT * FROM payment_details(p_show, p_number, p_attempt);
END $$;

-- The time is up, and the gateway got a cancel request or does not answer: the seats are released.
-- `expired`: no money will arrive; `watch`: it may still, and the gateway is queried again after p_due_ms.
CREATE OR REPLACE FUNCTION expire_payments(
    p_show bigint[], p_number bigint[], p_attempt int[], p_step payment_step, p_due_ms int
) RETURNS SETOF payment_detail
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
    v_fence  bigint[];
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    WITH ended AS (
        UPDATE payment
           SET step = p_step, method = '', client_secret = NULL, tries = 0,
               due_at = CASE p_step WHEN 'watch' THEN now() + p_due_ms * interval '1 ms' END,
               ended_at = CASE p_step WHEN 'watch' THEN NULL ELSE now() END
          FROM unnest(p_show, p_number, p_attempt) AS a (show_id, number, attempt)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    )
    SELECT array_agg(show_id), array_agg(number), array_agg(fence)
      INTO v_show, v_number, v_fence
      FROM ended;
    IF v_show IS NOT NULL THEN
        PERFORM expire_paying(v_show, v_number, v_fence);
    END IF;
    RETURN QUERY SELECT * FROM payment_details(p_show, p_number, p_attempt);
END $$;

-- Money that arrived after its booking had stopped waiting: the booking is confirmed after all if every seat
-- is still free, else all of it goes back, as does money beyond the limit of its card. Exactly one of these,
-- decided once: a second call finds the step changed under the lock of the payment and changes nothing.
CREATE OR REPLACE FUNCTION settle_late_payment(
    p_show bigint, p_number bigint, p_attempt int, p_may_book boolean
) RETURNS SETOF payment_detail LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_payment payment;
    v_fence   bigint;
    v_is_over boolean;
BEGIN
    PERFORM share_sales(ARRAY[p_show]);
    PERFORM lock_bookings(ARRAY[p_show], ARRAY[p_number]);
    SELECT * INTO STRICT v_payment FROM payment
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt FOR UPDATE;
    IF v_payment.step = 'late' THEN
        v_is_over := coalesce(v_payment.code = 'card_limit', false) OR is_card_over(v_payment);
        IF p_may_book AND NOT v_is_over THEN
            v_fence := confirm_late(p_show, p_number, v_payment.amount_minor);
        END IF;
        UPDATE payment SET step = CASE WHEN v_fence IS NULL THEN 'returned' ELSE 'paid' END::payment_step,
                           code = CASE WHEN v_is_over THEN 'card_limit' ELSE code END,
                           reason = CASE WHEN v_is_over THEN card_limit_reason() ELSE reason END,
                           fence = coalesce(v_fence, fence),
                           refunds_minor = CASE WHEN v_fence IS NULL THEN amount_minor ELSE 0 END,
                           due_at = NULL, ended_at = now()
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt
     RETURNING * INTO v_payment;
        IF v_fence IS NOT NULL THEN
            PERFORM add_journal_entry(
                p_show, p_number, p_attempt, v_payment.currency, 'late booking',
                array_agg(CASE WHEN l.amount > 0 THEN 'owed' ELSE l.account END), array_agg(l.amount))
               FROM split_payment('', v_payment.amount_minor, v_payment.fee_minor, v_payment.tax_minor) AS l;
        ELSE
            PERFORM return_payment(p_show, p_number, p_attempt,
                                   CASE WHEN v_is_over THEN 'card' ELSE 'late' END,
                                   v_payment.amount_minor, v_payment.currency);
            PERFORM fail_expired(p_show, p_number);
        END IF;
        PERFORM publish_late_payment(v_payment, v_fence IS NOT NULL, v_is_over);
    END IF;
    RETURN QUERY
    SELECT * FROM payment_detail WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
END $$;

-- Money beyond the limit of its card is a declined payment to its owner, with the reason.
CREATE OR REPLACE FUNCTION publish_late_payment(p_payment payment, p_is_booked boolean, p_is_over boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_body jsonb := jsonb_build_object('attempt', p_payment.attempt, 'amount_minor', p_payment.amount_minor,
                                       'currency', p_payment.currency);
BEGIN
    IF p_is_over THEN
        PERFORM add_fact(p_payment.show_id, p_payment.number, 'payment.declined',
                         v_body || jsonb_build_object('reason', p_payment.reason, 'code', p_payment.code));
    ELSE
        PERFORM add_fact(p_payment.show_id, p_payment.number, 'payment.late',
                         v_body || jsonb_build_object('booked', p_is_booked));
    END IF;
END $$;

-- One entry of the journal for a payment; lines of nothing are left out.
CREATE OR REPLACE FUNCTION add_journal_entry(
    p_show bigint, p_number bigint, p_attempt int, p_currency text, p_kind text,
    p_accounts text[], p_amounts bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_entry bigint := new_number();
BEGIN
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT p_show, v_entry, account, amount, p_currency, p_number, p_attempt, p_kind
      FROM unnest(p_accounts, p_amounts) AS l (account, amount)
     WHERE amount <> 0;
END $$;

-- All payments of these bookings, in key order, after the bookings themselves.
CREATE OR REPLACE FUNCTION lock_payments(p_show bigint[], p_number bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM payment AS p JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY p.show_id, p.number, p.attempt FOR UPDATE OF p;
END $$;

-- Counts a refund that was decided. The table rejects more than the payment's amount.
CREATE OR REPLACE FUNCTION add_to_refunds(p_show bigint, p_number bigint, p_attempt int, p_amount bigint)
RETURNS void LANGUAGE sql AS $$
    UPDATE payment SET refunds_minor = refunds_minor + p_amount
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
$$;
