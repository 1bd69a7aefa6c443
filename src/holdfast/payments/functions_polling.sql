-- payments/functions_polling.sql: which payments a worker looks up now, within the budget of the gateway.

-- Takes up to p_wanted look-ups from the budget and returns how many there were: p_per_s at once, refilled
-- steadily. One number per gateway, the time at which the bucket would be full again (GCRA).
CREATE OR REPLACE FUNCTION take_gateway_looks(p_gateway text, p_wanted int, p_per_s int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_full_at timestamptz;
    v_granted int;
BEGIN
    INSERT INTO gateway_budget (gateway, full_at) VALUES (p_gateway, now()) ON CONFLICT DO NOTHING;
    SELECT greatest(full_at, now()) INTO v_full_at FROM gateway_budget WHERE gateway = p_gateway FOR UPDATE;
    v_granted := greatest(0, least(p_wanted, floor(
        round(extract(epoch FROM now() + interval '1 s' - v_full_at) * p_per_s, 6))::int));
    IF v_granted > 0 THEN
        UPDATE gateway_budget SET full_at = v_full_at + v_granted * (interval '1 s' / p_per_s)
         WHERE gateway = p_gateway;
    END IF;
    RETURN v_granted;
END $$;

-- Due payments, oldest first, now leased to the caller; rows that another worker is taking are skipped. Polls
-- of payments that still have time are limited by the budget and stay due beyond it; a deadline, a lease that
-- ended and late money are not: each comes once, and seats wait for it. Those of a show that is being moved
-- are left out: the guard would refuse them, and all others with them.
CREATE OR REPLACE FUNCTION take_due_payments(p_gateway text, p_limit int, p_lease_ms int, p_per_s int)
RETURNS TABLE (show_id bigint, number bigint, attempt int) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_polls int;
BEGIN
    SELECT count(*) INTO v_polls
      FROM (SELECT 1 FROM payment
             WHERE due_at <= now() AND (step = 'watch' OR (step = 'look_up' AND deadline_at > now()))
               AND show_is_here(show_id)
             LIMIT p_limit) AS due;
    IF v_polls > 0 THEN
        v_polls := take_gateway_looks(p_gateway, v_polls, p_per_s);
    END IF;
    RETURN QUERY
    WITH urgent AS (
          SELECT show_id, number, attempt
            FROM payment
           WHERE due_at <= now() AND NOT (step = 'watch' OR (step = 'look_up' AND deadline_at > now()))
             AND show_is_here(show_id)
        ORDER BY due_at
           LIMIT p_limit
             FOR UPDATE SKIP LOCKED
    ), polls AS (
          SELECT show_id, number, attempt
            FROM payment
           WHERE due_at <= now() AND (step = 'watch' OR (step = 'look_up' AND deadline_at > now()))
             AND show_is_here(show_id)
        ORDER BY due_at
           LIMIT v_polls
             FOR UPDATE SKIP LOCKED
    ), due AS (
        SELECT * FROM urgent UNION ALL SELECT * FROM polls LIMIT p_limit
    )
       UPDATE payment
          SET turn = turn + 1, tries = tries + 1, due_at = now() + p_lease_ms * interval '1 ms'
         FROM due
        WHERE payment.show_id = due.show_id AND payment.number = due.number
          AND payment.attempt = due.attempt
    RETURNING payment.show_id, payment.number, payment.attempt;
END $$;
