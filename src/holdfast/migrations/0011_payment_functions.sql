-- 0011_payment_functions.sql: the moves of payments, many at a time, each in one round trip.
--
-- Every row is found by its key, whatever the statistics say: they know nothing of a sale that has just
-- opened, and a plan made then would read whole tables until the next ANALYZE.

-- A payment and as much of its booking as whoever carries it on must know. Durations, because the reader's
-- clock is another.
CREATE VIEW payment_card AS
SELECT payment.*, booking.state AS booking_state, booking.claim_id, booking.seats, booking.prices_minor,
       booking.revision,
       floor(extract(epoch FROM payment.deadline_at - clock_timestamp()) * 1000)::bigint AS left_ms,
       floor(extract(epoch FROM payment.hold_ends_at - clock_timestamp()) * 1000)::bigint AS hold_left_ms
  FROM payment JOIN booking USING (show_id, number);

-- Many of them, in order. One look-up each: as a plain join the planner begins with every payment there is.
CREATE FUNCTION payment_cards(p_show bigint[], p_number bigint[], p_attempt int[]) RETURNS SETOF payment_card
LANGUAGE sql AS $$
    SELECT card.*
      FROM unnest(p_show, p_number, p_attempt) WITH ORDINALITY AS a (show_id, number, attempt, ord),
           LATERAL (SELECT * FROM payment_card AS c
                     WHERE c.show_id = a.show_id AND c.number = a.number AND c.attempt = a.attempt
                     LIMIT 1) AS card
  ORDER BY a.ord;
$$;

-- Payments have the only way to confirm what costs something.
DROP FUNCTION confirm_bookings(bigint[], bigint[], bigint[], bigint[]);

-- Many HELD bookings become PAYING, each with a payment at its first step. Outcomes, one a request:
--   charge (it goes on)  · same (this request was answered before: here is its payment)
--   none (no such booking of this owner)  · card (this card has its seats already)
--   or the state the booking is in (held: it has lapsed), with its latest payment
CREATE FUNCTION start_payments(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_key text[],
    p_method text[], p_return text[], p_card text[], p_card_max int[],
    p_gateway text, p_buffer_s int, p_lease_ms int
) RETURNS TABLE (outcome text, hash bigint, card payment_card)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_started int[];
    v_over    int[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    IF p_card_max <> array_fill(0, ARRAY[cardinality(p_card_max)]) THEN
        v_over := count_cards_up(p_show, p_number, p_owner, p_card, p_card_max);
    END IF;

    WITH asked AS (
        SELECT *, row_number() OVER (PARTITION BY show_id, number ORDER BY ord) AS nth,
               row_number() OVER (PARTITION BY owner_id, show_id, request_id ORDER BY ord) AS nth_of_key
          FROM unnest(p_show, p_number, p_owner, p_request, p_hash, p_key, p_method, p_return, p_card)
               WITH ORDINALITY AS a (show_id, number, owner_id, request_id, body_hash, key, method,
                                     return_url, card, ord)
    ), fit AS (
        SELECT asked.*, booking.expires_at AS hold_ends_at
          FROM asked JOIN booking USING (show_id, number, owner_id)
         WHERE nth = 1 AND nth_of_key = 1
           AND state = 'held' AND expires_at > now() AND amount_minor > 0
           AND ord <> ALL (coalesce(v_over, '{}'))
           AND NOT EXISTS (SELECT 1 FROM sale WHERE sale.show_id = asked.show_id AND sale.cancelled)
           AND NOT EXISTS (SELECT 1 FROM payment
                            WHERE payment.owner_id = asked.owner_id AND payment.show_id = asked.show_id
                              AND payment.request_id = asked.request_id
                              AND payment.step NOT IN ('declined', 'called_off', 'expired'))
    ), moved AS (
        UPDATE booking
           SET state = 'paying', fence = nextval('ledger_number'),
               expires_at = greatest(booking.expires_at, now()) + p_buffer_s * interval '1 s'
          FROM fit
         WHERE booking.show_id = fit.show_id AND booking.number = fit.number
     RETURNING fit.*, booking.fence, booking.expires_at, booking.amount_minor, booking.currency
    ), started AS (
        INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway,
                             method, return_url, step, amount_minor, currency, card,
                             hold_ends_at, deadline_at, due_at)
        SELECT show_id, number, n.attempt, owner_id, fence, request_id, body_hash, key || '_' || n.attempt,
               p_gateway, method, return_url, 'charge', amount_minor, currency, nullif(card, ''),
               hold_ends_at, expires_at, now() + p_lease_ms * interval '1 ms'
          FROM moved,
               LATERAL (SELECT coalesce(max(p.attempt), 0) + 1 AS attempt FROM payment AS p
                         WHERE p.show_id = moved.show_id AND p.number = moved.number) AS n
    )
    SELECT array_agg(ord::int) INTO v_started FROM moved;
    IF v_started IS NOT NULL THEN
        PERFORM record_moves(array_agg(p_show[i]), array_agg(p_number[i]), 'pay', 0)
           FROM unnest(v_started) AS i;
    END IF;
    RETURN QUERY SELECT * FROM payments_asked(p_show, p_number, p_owner, p_request, v_started, v_over);
END $$;

-- What the askers are told.
CREATE FUNCTION payments_asked(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_started int[], p_over int[]
) RETURNS TABLE (outcome text, hash bigint, card payment_card) LANGUAGE sql AS $$
    SELECT CASE WHEN a.ord = ANY (p_started) THEN 'charge'
                WHEN a.ord = ANY (p_over) THEN 'card'
                WHEN same.attempt IS NOT NULL THEN 'same'
                WHEN booking.owner_id IS DISTINCT FROM a.owner_id OR booking.state = 'blocked' THEN 'none'
                ELSE booking.state::text END,
           same.body_hash, latest.card
      FROM unnest(p_show, p_number, p_owner, p_request) WITH ORDINALITY
           AS a (show_id, number, owner_id, request_id, ord)
      LEFT JOIN booking ON booking.show_id = a.show_id AND booking.number = a.number
      LEFT JOIN LATERAL (SELECT payment.number, payment.attempt, payment.body_hash FROM payment
                          WHERE payment.owner_id = a.owner_id AND payment.show_id = a.show_id
                            AND payment.request_id = a.request_id
                            AND payment.step NOT IN ('declined', 'called_off', 'expired')
                          LIMIT 1) AS same ON true
      LEFT JOIN LATERAL (SELECT c AS card FROM payment_card AS c
                          WHERE c.show_id = a.show_id AND c.number = coalesce(same.number, a.number)
                            AND c.attempt = coalesce(same.attempt, c.attempt)
                       ORDER BY c.attempt DESC LIMIT 1) AS latest ON true
  ORDER BY a.ord;
$$;

-- Seats of limited cards, counted before their bookings move. Returns the places of those over their limit.
CREATE FUNCTION count_cards_up(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_card text[], p_max int[]
) RETURNS int[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_over int[];
    v_ask  record;
BEGIN
    FOR v_ask IN
        SELECT a.ord, a.show_id, a.card, a.seats_max, cardinality(booking.seats) AS seats
          FROM unnest(p_show, p_number, p_owner, p_card, p_max) WITH ORDINALITY
               AS a (show_id, number, owner_id, card, seats_max, ord)
          JOIN booking USING (show_id, number, owner_id)
         WHERE a.seats_max > 0 AND a.card <> '' AND booking.state = 'held' AND booking.expires_at > now()
      ORDER BY a.show_id, a.card, a.ord
    LOOP
        INSERT INTO card_count (show_id, card, seats, seats_max)
        SELECT v_ask.show_id, v_ask.card, v_ask.seats, v_ask.seats_max WHERE v_ask.seats <= v_ask.seats_max
            ON CONFLICT (show_id, card) DO UPDATE
           SET seats = card_count.seats + excluded.seats, seats_max = excluded.seats_max
         WHERE card_count.seats + excluded.seats <= excluded.seats_max;
        IF NOT FOUND THEN
            v_over := v_over || v_ask.ord::int;
        END IF;
    END LOOP;
    RETURN v_over;
END $$;

-- Seats of cards whose payment came to nothing, or went back. Cards nobody counts have no row.
CREATE FUNCTION count_cards_down(p_show bigint[], p_card text[], p_seats int[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE card_count SET seats = greatest(0, card_count.seats - gone.seats)
      FROM (SELECT show_id, card, sum(seats)::int AS seats
              FROM unnest(p_show, p_card, p_seats) AS a (show_id, card, seats)
             WHERE card IS NOT NULL GROUP BY 1, 2) AS gone
     WHERE card_count.show_id = gone.show_id AND card_count.card = gone.card;
$$;

-- The money has come. Bookings that still wait for it are confirmed, with their tickets, their audit row,
-- their fact and the books; a payment whose booking waits no more is late. Said twice, it changes nothing.
CREATE FUNCTION confirm_payments(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reference text[], p_card text[],
    p_fee bigint[], p_tax bigint[]
) RETURNS SETOF payment_card
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    WITH moved AS (
        UPDATE booking SET state = 'confirmed', confirmed_at = now()
          FROM unnest(p_show, p_number, p_attempt) AS a (show_id, number, attempt)
          JOIN payment USING (show_id, number, attempt)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = payment.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;

    WITH changed AS (
        UPDATE payment
           SET step = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                           THEN 'paid' ELSE 'late' END::payment_step,
               reference = coalesce(a.reference, payment.reference), card = coalesce(payment.card, a.card),
               fee_minor = a.fee, tax_minor = a.tax, method = '', client_secret = NULL, tries = 0,
               -- Of one that had failed: its asker's key may have been used again since.
               request_id = CASE WHEN payment.ended_at IS NULL THEN payment.request_id
                                 ELSE '~' || payment.key END,
               due_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                             THEN NULL ELSE now() END,
               ended_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                               THEN now() END
          FROM unnest(p_show, p_number, p_attempt, p_reference, p_card, p_fee, p_tax)
               AS a (show_id, number, attempt, reference, card, fee, tax)
          JOIN booking USING (show_id, number)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step NOT IN ('paid', 'late', 'returned')
     RETURNING payment.*
    ), entries AS MATERIALIZED (
        SELECT *, nextval('ledger_number') AS entry FROM changed
    )
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT show_id, entry, account, amount, currency, number, attempt,
           CASE step WHEN 'paid' THEN 'charge' ELSE 'late charge' END
      FROM entries,
           LATERAL (SELECT * FROM parts_of(gateway, amount_minor, fee_minor, tax_minor) WHERE step = 'paid'
                     UNION ALL
                    VALUES ('gateway:' || gateway, CASE step WHEN 'late' THEN amount_minor END),
                           ('owed', CASE step WHEN 'late' THEN -amount_minor END)) AS l (account, amount)
     WHERE amount <> 0;

    IF v_show IS NOT NULL THEN
        PERFORM record_moves(v_show, v_number, 'confirm', NULL);
    END IF;
    RETURN QUERY SELECT * FROM payment_cards(p_show, p_number, p_attempt);
END $$;

-- Who gets what of an amount that lies at the gateway.
CREATE FUNCTION parts_of(p_gateway text, p_amount bigint, p_fee bigint, p_tax bigint)
RETURNS TABLE (account text, amount bigint) LANGUAGE sql IMMUTABLE AS $$
    VALUES ('gateway:' || p_gateway, p_amount), ('organiser', -(p_amount - p_fee - p_tax)),
           ('fee', -p_fee), ('tax', -p_tax);
$$;

-- The gateway said no, or was told to forget it: the bookings are HELD again with the time they had left, or
-- without any, and then the sweep has them. A payment that has ended, or whose money has come, stays as is.
CREATE FUNCTION give_payments_back(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reason text[], p_code text[], p_step payment_step
) RETURNS SETOF payment_card
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    WITH ended AS (
        UPDATE payment
           SET step = p_step, reason = a.reason, code = a.code, method = '', client_secret = NULL,
               due_at = NULL, ended_at = now()
          FROM unnest(p_show, p_number, p_attempt, p_reason, p_code)
               AS a (show_id, number, attempt, reason, code)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    ), facts AS (
        INSERT INTO outbox (show_id, number, kind, body)
        SELECT show_id, number, 'payment.' || p_step,
               jsonb_build_object('attempt', attempt, 'reason', reason, 'code', code,
                                  'amount_minor', amount_minor, 'currency', currency)
          FROM ended
    ), moved AS (
        UPDATE booking SET state = 'held', expires_at = ended.hold_ends_at
          FROM ended
         WHERE booking.show_id = ended.show_id AND booking.number = ended.number
           AND booking.state = 'paying' AND booking.fence = ended.fence
     RETURNING booking.show_id, booking.number, booking.seats, ended.card
    ), counted AS (
        SELECT count_cards_down(array_agg(show_id), array_agg(card), array_agg(cardinality(seats)))
          FROM moved
        HAVING count(card) > 0
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number
      FROM moved LEFT JOIN counted ON true;
    IF v_show IS NOT NULL THEN
        PERFORM record_moves(v_show, v_number, 'decline', 0);
    END IF;
    RETURN QUERY SELECT * FROM payment_cards(p_show, p_number, p_attempt);
END $$;

-- The time is up and the gateway has been told, or is silent: the seats go. `expired`: no money will come;
-- `watch`: it may still, and is asked after.
CREATE FUNCTION let_payments_go(
    p_show bigint[], p_number bigint[], p_attempt int[], p_step payment_step, p_due_ms int
) RETURNS SETOF payment_card
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
    WITH ended AS (
        UPDATE payment
           SET step = p_step, method = '', client_secret = NULL, tries = 0,
               due_at = CASE p_step WHEN 'watch' THEN now() + p_due_ms * interval '1 ms' END,
               ended_at = CASE p_step WHEN 'watch' THEN NULL ELSE now() END
          FROM unnest(p_show, p_number, p_attempt) AS a (show_id, number, attempt)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    ), moved AS (
        UPDATE booking SET state = 'expired'
          FROM ended
         WHERE booking.show_id = ended.show_id AND booking.number = ended.number
           AND booking.state = 'paying' AND booking.fence = ended.fence
     RETURNING booking.show_id, booking.number, booking.seats, ended.card
    ), counted AS (
        SELECT count_cards_down(array_agg(show_id), array_agg(card), array_agg(cardinality(seats)))
          FROM moved
        HAVING count(card) > 0
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number
      FROM moved LEFT JOIN counted ON true;
    IF v_show IS NOT NULL THEN
        PERFORM let_seats_go(v_show, v_number);
        PERFORM count_down(v_show, v_number);
        PERFORM record_moves(v_show, v_number, 'expire', NULL);
    END IF;
    RETURN QUERY SELECT * FROM payment_cards(p_show, p_number, p_attempt);
END $$;
