-- payments/functions.sql: the moves of payments, many at a time, each in one round trip.
-- needs: bookings, catalogue
--
-- Lock order as in bookings/functions.sql. Each function locks its bookings first: a booking and its payments
-- change under that one lock. SET enable_… = off: see there.

-- A payment with what its worker must know of the booking. Durations, because the reader has another clock.
-- Databases of the first programs have no looked_at here: this program does not read it.
-- keeps its columns: its rows are values in results, whose type clients have read before
CREATE OR REPLACE VIEW payment_detail AS
SELECT payment.show_id, payment.number, payment.attempt, payment.owner_id, payment.fence,
       payment.request_id, payment.body_hash, payment.key, payment.gateway, payment.method,
       payment.return_url, payment.step, payment.amount_minor, payment.fee_minor, payment.tax_minor,
       payment.currency, payment.refunds_minor, payment.reference, payment.card, payment.action_url,
       payment.client_secret, payment.reason, payment.code, payment.hold_ends_at, payment.deadline_at,
       payment.turn, payment.tries, payment.due_at, payment.requested_at, payment.ended_at,
       payment.looked_at,
       booking.state AS booking_state, booking.claim_id, booking.seats, booking.prices_minor,
       booking.revision,
       floor(extract(epoch FROM payment.deadline_at - clock_timestamp()) * 1000)::bigint AS left_ms,
       floor(extract(epoch FROM payment.hold_ends_at - clock_timestamp()) * 1000)::bigint AS hold_left_ms
  FROM payment JOIN payable_booking AS booking USING (show_id, number);

-- What refunds and invoices read of a payment.
CREATE OR REPLACE VIEW payment_for_refund AS
SELECT show_id, number, attempt, owner_id, fence, step, key, gateway, reference, card, currency,
       amount_minor, fee_minor, tax_minor, refunds_minor,
       EXISTS (SELECT 1 FROM chargeback AS c
                WHERE c.show_id = payment.show_id AND c.number = payment.number
                  AND c.attempt = payment.attempt AND c.state <> 'won') AS is_disputed
  FROM payment;

-- Whose money arrived, and when they began to pay.
CREATE OR REPLACE VIEW payer AS
SELECT owner_id, requested_at FROM payment WHERE step IN ('paid', 'late', 'returned');

-- An entry whose lines do not add up to zero, or mix currencies, is rejected.
CREATE OR REPLACE FUNCTION journal_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written GROUP BY show_id, entry
                HAVING sum(amount_minor) <> 0 OR count(DISTINCT currency) > 1) THEN
        RAISE EXCEPTION 'an entry of the journal does not balance' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER journal_balances AFTER INSERT ON journal REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION journal_balances();

-- Many payments in the order of the arguments. One look-up each: for a plain join the planner would start
-- with every payment there is.
CREATE OR REPLACE FUNCTION payment_details(p_show bigint[], p_number bigint[], p_attempt int[])
RETURNS SETOF payment_detail LANGUAGE sql AS $$
    SELECT detail.*
      FROM unnest(p_show, p_number, p_attempt) WITH ORDINALITY AS a (show_id, number, attempt, ord),
           LATERAL (SELECT * FROM payment_detail AS d
                     WHERE d.show_id = a.show_id AND d.number = a.number AND d.attempt = a.attempt
                     LIMIT 1) AS detail
  ORDER BY a.ord;
$$;

-- Many HELD bookings become PAYING, each with a payment at its first step. Outcomes, one per request:
--   charge (the gateway may be called)  · same (this request was answered before: here is its payment)
--   none (this owner has no such booking)  · card (this card has all its seats already)
--   which_card (cards are limited: find out which one the method is, then call again with p_card)
--   or the state the booking is in (held: it has expired), with its latest payment
CREATE OR REPLACE FUNCTION start_payments(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_key text[],
    p_method text[], p_return text[], p_card text[], p_gateway text, p_buffer_s int, p_lease_ms int
) RETURNS TABLE (outcome text, hash bigint, card_max int, detail payment_detail)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_fit     int[];
    v_ask     int[];
    v_over    int[];
    v_started int[];
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    -- Two requests for one booking, or two with one request id, in the same batch: the first one wins.
    SELECT array_agg(ord) INTO v_fit
      FROM (SELECT *, row_number() OVER (PARTITION BY show_id, number ORDER BY ord) AS nth,
                   row_number() OVER (PARTITION BY owner_id, show_id, request_id ORDER BY ord) AS nth_of_key
              FROM unnest(p_show, p_number, p_owner, p_request) WITH ORDINALITY
                   AS a (show_id, number, owner_id, request_id, ord)) AS requested
     WHERE nth = 1 AND nth_of_key = 1
       AND NOT EXISTS (SELECT 1 FROM payment
                        WHERE payment.owner_id = requested.owner_id AND payment.show_id = requested.show_id
                          AND payment.request_id = requested.request_id
                          AND payment.step NOT IN ('declined', 'called_off', 'expired'));
    SELECT array_agg(i) FILTER (WHERE p_method[i] <> '' AND p_card[i] IS NULL) INTO v_ask
      FROM unnest(v_fit) AS i
     CROSS JOIN LATERAL booking_by_key(p_show[i], p_number[i]) AS b
      JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
     WHERE b.owner_id = p_owner[i] AND b.state = 'held' AND b.expires_at > now();
    v_over := cards_over(p_show, p_number, p_owner, p_card, v_fit);
    v_fit := ARRAY(SELECT i FROM unnest(v_fit) AS i
                    WHERE i <> ALL (coalesce(v_ask, '{}')) AND i <> ALL (coalesce(v_over, '{}')));

    -- MATERIALIZED: the bookings move once, whatever the plan.
    WITH begun AS MATERIALIZED (
        SELECT *
          FROM begin_paying(ARRAY(SELECT p_show[i] FROM unnest(v_fit) AS i),
                            ARRAY(SELECT p_number[i] FROM unnest(v_fit) AS i),
                            ARRAY(SELECT p_owner[i] FROM unnest(v_fit) AS i), p_buffer_s)
    ), moved AS (
        SELECT begun.*, v_fit[begun.place] AS i FROM begun
    ), started AS (
        INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway,
                             method, return_url, step, amount_minor, currency, card,
                             hold_ends_at, deadline_at, due_at)
        SELECT show_id, number, n.attempt, p_owner[i], fence, p_request[i], p_hash[i],
               p_key[i] || '_' || n.attempt, p_gateway, p_method[i], p_return[i], 'charge', amount_minor,
               currency, nullif(p_card[i], ''), hold_ends_at, deadline_at,
               now() + p_lease_ms * interval '1 ms'
          FROM moved,
               LATERAL (SELECT coalesce(max(p.attempt), 0) + 1 AS attempt FROM payment AS p
                         WHERE p.show_id = moved.show_id AND p.number = moved.number) AS n
    )
    SELECT array_agg(i) INTO v_started FROM moved;
    RETURN QUERY
    SELECT * FROM start_outcomes(p_show, p_number, p_owner, p_request, v_started, v_ask, v_over);
END $$;

-- The answer to each request of start_payments.
CREATE OR REPLACE FUNCTION start_outcomes(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_started int[], p_ask int[],
    p_over int[]
) RETURNS TABLE (outcome text, hash bigint, card_max int, detail payment_detail) LANGUAGE sql AS $$
    SELECT CASE WHEN a.ord = ANY (p_started) THEN 'charge'
                WHEN a.ord = ANY (p_ask) THEN 'which_card'
                WHEN a.ord = ANY (p_over) THEN 'card'
                WHEN same.attempt IS NOT NULL THEN 'same'
                WHEN booking.owner_id IS DISTINCT FROM a.owner_id THEN 'none'
                -- Refused above was another request for it: this one is not decided yet.
                WHEN booking.state = 'held' AND booking.expires_at > now()
                     AND count(*) OVER (PARTITION BY a.show_id, a.number) > 1 THEN 'paying'
                ELSE booking.state::text END,
           same.body_hash, card_limit.card_seats_max, latest.detail
      FROM unnest(p_show, p_number, p_owner, p_request) WITH ORDINALITY
           AS a (show_id, number, owner_id, request_id, ord)
      LEFT JOIN payable_booking AS booking ON booking.show_id = a.show_id AND booking.number = a.number
      LEFT JOIN card_limit ON card_limit.show_id = a.show_id AND card_limit.revision = booking.revision
      LEFT JOIN LATERAL (SELECT payment.number, payment.attempt, payment.body_hash FROM payment
                          WHERE payment.owner_id = a.owner_id AND payment.show_id = a.show_id
                            AND payment.request_id = a.request_id
                            AND payment.step NOT IN ('declined', 'called_off', 'expired')
                          LIMIT 1) AS same ON true
      LEFT JOIN LATERAL (SELECT d AS detail FROM payment_detail AS d
                          WHERE d.show_id = a.show_id AND d.number = coalesce(same.number, a.number)
                            AND d.attempt = coalesce(same.attempt, d.attempt)
                       ORDER BY d.attempt DESC LIMIT 1) AS latest ON true
  ORDER BY a.ord;
$$;

-- The money has arrived. Bookings that still wait for it are confirmed, with their tickets, audit row, fact
-- and journal entry; a payment whose booking no longer waits is late. A second call changes nothing. Nor does
-- money of another amount or currency than the payment's: whatever path led here, a booking is never
-- confirmed for it, and reconciliation reports it to an operator.
CREATE OR REPLACE FUNCTION confirm_payments(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reference text[], p_card text[],
    p_amount bigint[], p_currency text[], p_fee bigint[], p_tax bigint[]
) RETURNS SETOF payment_detail
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    PERFORM return_cards_over(p_show, p_number, p_attempt, p_card);
    PERFORM confirm_paying(array_agg(show_id), array_agg(number), array_agg(payment.fence))
       FROM unnest(p_show, p_number, p_attempt, p_amount, p_currency)
            AS a (show_id, number, attempt, amount_minor, currency)
       JOIN payment USING (show_id, number, attempt, amount_minor, currency);

    WITH changed AS (
        UPDATE payment
           SET step = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                           THEN 'paid' ELSE 'late' END::payment_step,
               reference = coalesce(a.reference, payment.reference), card = coalesce(payment.card, a.card),
               fee_minor = a.fee, tax_minor = a.tax, method = '', client_secret = NULL, tries = 0,
               -- A failed attempt frees its request id, and another payment may use it by now.
               request_id = CASE WHEN payment.ended_at IS NULL THEN payment.request_id
                                 ELSE '~' || payment.key END,
               due_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                             THEN NULL ELSE now() END,
               ended_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                               THEN now() END
          FROM unnest(p_show, p_number, p_attempt, p_reference, p_card, p_amount, p_currency, p_fee, p_tax)
               AS a (show_id, number, attempt, reference, card, amount, currency, fee, tax)
          JOIN payable_booking AS booking USING (show_id, number)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.amount_minor = a.amount AND payment.currency = a.currency
           AND payment.step NOT IN ('paid', 'late', 'returned')
     RETURNING payment.*
    ), entries AS MATERIALIZED (
        SELECT *, new_number() AS entry FROM changed
    )
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT show_id, entry, account, amount, currency, number, attempt,
           CASE step WHEN 'paid' THEN 'charge' ELSE 'late charge' END
      FROM entries,
           LATERAL (SELECT * FROM split_payment(gateway, amount_minor, fee_minor, tax_minor)
                     WHERE step = 'paid'
                     UNION ALL
                    VALUES ('gateway:' || gateway, CASE step WHEN 'late' THEN amount_minor END),
                           ('owed', CASE step WHEN 'late' THEN -amount_minor END)) AS l (account, amount)
     WHERE amount <> 0;
    RETURN QUERY SELECT * FROM payment_details(p_show, p_number, p_attempt);
END $$;

-- The journal lines of an amount that is paid: money at the gateway, shared by organiser, fee and tax.
CREATE OR REPLACE FUNCTION split_payment(p_gateway text, p_amount bigint, p_fee bigint, p_tax bigint)
RETURNS TABLE (account text, amount bigint) LANGUAGE sql IMMUTABLE AS $$
    VALUES ('gateway:' || p_gateway, p_amount), ('organiser', -(p_amount - p_fee - p_tax)),
           ('fee', -p_fee), ('tax', -p_tax);
$$;
