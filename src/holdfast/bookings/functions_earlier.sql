-- bookings/functions_earlier.sql: functions that programs of the first schema call (steps up to 0012).
--
-- While this release is rolled out beside such a program, or after the way back to it. Goes after 0.1.

-- Without p_confirms_free (nothing to pay is always confirmed) and without limits. A program that calls this
-- waits for a locked sale, and does not know the outcome 'locked': with the lock in hand there is none.
CREATE OR REPLACE FUNCTION open_holds(
    p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[],
    p_left_ms int[], p_revision bigint[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[], p_by_ledger boolean
) RETURNS TABLE (outcomes text[], numbers bigint[], epochs bigint[], opened_at timestamptz, details jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;
    RETURN QUERY
    SELECT opened.outcomes, opened.numbers, opened.epochs, opened.opened_at, opened.details
      FROM open_holds(p_show, p_owner, p_request, p_hash, p_claim, p_note, p_left_ms, p_revision, p_currency,
                      p_seats, p_prices, p_amount, array_fill(true, ARRAY[cardinality(p_show)]),
                      p_by_ledger) AS opened;
END $$;

-- Their job looks here for shows to refund.
CREATE OR REPLACE VIEW cancelled_sale AS
SELECT show_id FROM sale WHERE cancelled;

-- What follows is for an open_holds that is under way when it is replaced: its next statement finds these.

CREATE OR REPLACE FUNCTION sale_verdict(p_sale sale, p_revision bigint, p_amount bigint, p_by_ledger boolean)
RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN sale_verdict(p_sale, p_revision, p_amount = 0, p_by_ledger);
END $$;

CREATE OR REPLACE FUNCTION booking_rows(
    p_show bigint[], p_number bigint[], p_outcome text[], p_owner bigint[], p_request text[], p_hash bigint[],
    p_claim text[], p_note text[], p_left_ms int[], p_currency text[], p_seats text[], p_prices text[],
    p_amount bigint[], p_revision bigint[]
) RETURNS SETOF booking LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT (jsonb_populate_record(NULL::booking, to_jsonb(new))).*
      FROM new_bookings(p_show, p_number, p_outcome, p_owner, p_request, p_hash, p_claim, p_note, p_left_ms,
                        p_currency, p_seats, p_prices, p_amount, p_revision) AS new;
END $$;

CREATE OR REPLACE FUNCTION count_owners_up(
    p_show bigint[], p_owner bigint[], p_number bigint[], p_seats text[], p_max int[]
) RETURNS int[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT array_agg(place)
              FROM count_owners_up(p_show, p_owner, p_number,
                                   array_fill(''::text, ARRAY[cardinality(p_show)]), p_seats, p_max, NULL,
                                   NULL));
END $$;
