-- payments/functions_earlier.sql: functions that programs of the first schema call (steps up to 0012).
--
-- While this release is rolled out beside such a program, or after the way back to it. Goes after 0.1.

-- Without p_card_max, which is read from the terms of the show, and with card_max in the result. A card that
-- is not known yet is not limited: confirm_payments returns what is over the limit.
CREATE OR REPLACE FUNCTION start_payments(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_key text[],
    p_method text[], p_return text[], p_card text[], p_card_max int[],
    p_gateway text, p_buffer_s int, p_lease_ms int
) RETURNS TABLE (outcome text, hash bigint, detail payment_detail) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT started.outcome, started.hash, started.detail
      FROM start_payments(p_show, p_number, p_owner, p_request, p_hash, p_key, p_method, p_return,
                          ARRAY(SELECT coalesce(card, '') FROM unnest(p_card) WITH ORDINALITY AS a (card, ord)
                              ORDER BY ord),
                          p_gateway, p_buffer_s, p_lease_ms) AS started;
END $$;

-- Without the amount and the currency that arrived: those of the payment.
CREATE OR REPLACE FUNCTION confirm_payments(
    p_show bigint[], p_number bigint[], p_attempt int[], p_reference text[], p_card text[],
    p_fee bigint[], p_tax bigint[]
) RETURNS SETOF payment_detail
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    v_amount   bigint[];
    v_currency text[];
BEGIN
    SELECT array_agg(payment.amount_minor ORDER BY a.ord), array_agg(payment.currency ORDER BY a.ord)
      INTO v_amount, v_currency
      FROM unnest(p_show, p_number, p_attempt) WITH ORDINALITY AS a (show_id, number, attempt, ord)
      LEFT JOIN payment ON payment.show_id = a.show_id AND payment.number = a.number
                       AND payment.attempt = a.attempt;
    RETURN QUERY
    SELECT * FROM confirm_payments(p_show, p_number, p_attempt, p_reference, p_card, v_amount, v_currency,
                                   p_fee, p_tax);
END $$;

-- What follows is for functions that are under way when they are replaced: their next statement finds these.

CREATE OR REPLACE FUNCTION start_outcomes(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_started int[], p_over int[]
) RETURNS TABLE (outcome text, hash bigint, detail payment_detail) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT started.outcome, started.hash, started.detail
      FROM start_outcomes(p_show, p_number, p_owner, p_request, p_started, NULL, p_over) AS started;
END $$;

-- Cards are counted from payments now.
CREATE OR REPLACE FUNCTION count_cards_up(
    p_show bigint[], p_number bigint[], p_owner bigint[], p_card text[], p_max int[]
) RETURNS int[] LANGUAGE sql AS $$ SELECT NULL::int[]; $$;

CREATE OR REPLACE FUNCTION count_cards_down(p_show bigint[], p_card text[], p_seats int[]) RETURNS void
LANGUAGE sql AS $$ SELECT; $$;
