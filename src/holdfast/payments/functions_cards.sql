-- payments/functions_cards.sql: how many seats of a show one payment card may buy.
--
-- The limit is that of the terms under which the seats were held. There is no counter: the seats of a card
-- are those of its payments, counted under a lock per card, so that nothing can leak and a refund needs no
-- step of its own. Cards are locked after bookings and payments.

-- In key order; the locks end with the transaction.
CREATE OR REPLACE FUNCTION lock_cards(p_show bigint[], p_card text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('holdfast card ' || show_id || ' ' || card, 0))
       FROM (SELECT DISTINCT show_id, card FROM unnest(p_show, p_card) AS a (show_id, card)
              WHERE card <> '' ORDER BY show_id, card) AS cards;
END $$;

-- Seats that this card has bought in a show or is paying for; not those of p_number, which is being decided.
CREATE OR REPLACE FUNCTION seats_of_card(p_show bigint, p_card text, p_number bigint) RETURNS int
LANGUAGE sql AS $$
    SELECT coalesce(sum(cardinality(booking.seats)), 0)::int
      FROM payment JOIN payable_booking AS booking USING (show_id, number)
     WHERE payment.show_id = p_show AND payment.card = p_card AND payment.number <> p_number
       AND ((booking.state = 'confirmed' AND payment.step = 'paid')
            OR (booking.state = 'paying' AND payment.fence = booking.fence
                AND payment.step IN ('charge', 'look_up', 'call_off')));
$$;

-- Of the requests at p_places to pay for a booking: those whose card would have more seats than it may.
CREATE OR REPLACE FUNCTION cards_over(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_card text[], p_places int[]
) RETURNS int[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_over int[];
    v_one  record;
    v_card text := '';
    v_show bigint := 0;
    v_has  int := 0;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM unnest(p_card) AS card WHERE card <> '') THEN
        RETURN NULL;
    END IF;
    PERFORM lock_cards(p_show, p_card);
    FOR v_one IN
        SELECT place, b.show_id, b.number, p_card[place] AS card, cardinality(b.seats) AS seats,
               card_limit.card_seats_max
          FROM unnest(p_places) AS place
          JOIN payable_booking AS b
            ON b.show_id = p_show[place] AND b.number = p_number[place] AND b.owner_id = p_owner[place]
          JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
         WHERE p_card[place] <> '' AND b.state IN ('held', 'paying')
      ORDER BY b.show_id, p_card[place], place
    LOOP
        IF (v_one.show_id, v_one.card) <> (v_show, v_card) THEN
            v_show := v_one.show_id;
            v_card := v_one.card;
            v_has := seats_of_card(v_one.show_id, v_one.card, v_one.number);
        END IF;
        IF v_has + v_one.seats > v_one.card_seats_max THEN
            v_over := v_over || v_one.place;
        ELSE
            v_has := v_has + v_one.seats;  -- requests of the same batch share the limit
        END IF;
    END LOOP;
    RETURN v_over;
END $$;

-- Captured money whose card became known only now, on the gateway's page, and which is beyond the limit: the
-- booking is HELD again and may be paid with another card. The payment stays for confirm_payments, which
-- finds no booking waiting for it: it is late, and settle_late_payment refunds it because of its code.
CREATE OR REPLACE FUNCTION return_cards_over(
    p_show bigint[], p_number bigint[], p_attempt int[], p_card text[]
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_new  int[];
    v_over int[];
BEGIN
    SELECT array_agg(ord ORDER BY ord) INTO v_new
      FROM unnest(p_show, p_number, p_attempt, p_card) WITH ORDINALITY
           AS a (show_id, number, attempt, card, ord)
      JOIN payment AS p USING (show_id, number, attempt)
      JOIN payable_booking AS b USING (show_id, number)
      JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
     WHERE a.card <> '' AND p.card IS NULL AND b.state = 'paying' AND b.fence = p.fence;
    IF v_new IS NULL THEN
        RETURN;
    END IF;
    v_over := cards_over(p_show, p_number,
                         ARRAY(SELECT (SELECT owner_id FROM payable_booking AS b
                                        WHERE b.show_id = a.show_id AND b.number = a.number)
                                 FROM unnest(p_show, p_number) WITH ORDINALITY AS a (show_id, number, ord)
                             ORDER BY ord), p_card, v_new);
    IF v_over IS NOT NULL THEN
        UPDATE payment AS p SET code = 'card_limit', reason = card_limit_reason()
          FROM unnest(v_over) AS i
         WHERE p.show_id = p_show[i] AND p.number = p_number[i] AND p.attempt = p_attempt[i];
        PERFORM return_to_held(array_agg(p.show_id), array_agg(p.number), array_agg(p.fence),
                               array_agg(p.hold_ends_at))
           FROM unnest(v_over) AS i
           JOIN payment AS p ON p.show_id = p_show[i] AND p.number = p_number[i] AND p.attempt = p_attempt[i];
    END IF;
END $$;

CREATE OR REPLACE FUNCTION card_limit_reason() RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'This card has reached the limit of seats per card for this show. The money goes back to it.';
$$;

-- Whether late money is beyond the limit of its card, now that its booking might be confirmed after all.
CREATE OR REPLACE FUNCTION is_card_over(p_payment payment) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_cards(ARRAY[p_payment.show_id], ARRAY[p_payment.card]);
    RETURN EXISTS (
        SELECT 1
          FROM payable_booking AS b
          JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
         WHERE b.show_id = p_payment.show_id AND b.number = p_payment.number
           AND seats_of_card(b.show_id, p_payment.card, b.number) + cardinality(b.seats)
               > card_limit.card_seats_max);
END $$;
