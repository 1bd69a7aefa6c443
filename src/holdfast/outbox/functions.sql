-- outbox/functions.sql: how other folders add facts. None of them writes the outbox table itself.

-- Many facts in one statement, in the order given. Call it in the transaction that makes them true.
CREATE OR REPLACE FUNCTION add_facts(
    p_show bigint[], p_number bigint[], p_kind text[],
    p_ends_at timestamptz[] DEFAULT NULL, p_body jsonb[] DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, number, kind, ends_at, body)
    SELECT show_id, number, kind, ends_at, body
      FROM unnest(p_show, p_number, p_kind, p_ends_at, p_body) WITH ORDINALITY
        AS a (show_id, number, kind, ends_at, body, ord)
  ORDER BY ord;
END $$;

CREATE OR REPLACE FUNCTION add_fact(p_show bigint, p_number bigint, p_kind text, p_body jsonb) RETURNS bigint
LANGUAGE sql AS $$
    INSERT INTO outbox (show_id, number, kind, body) VALUES (p_show, p_number, p_kind, p_body) RETURNING id;
$$;

-- The relay reads a booking's seats and prices when it publishes a fact. Before a booking changes them, facts
-- that are not published yet get a copy of the old values; a fact that has one already keeps it.
CREATE OR REPLACE FUNCTION freeze_booking_facts(p_show bigint, p_number bigint, p_body jsonb) RETURNS void
LANGUAGE sql AS $$
    UPDATE outbox
       SET body = coalesce(body, '{}') || p_body
     WHERE show_id = p_show AND number = p_number AND kind LIKE 'booking.%'
       AND NOT coalesce(body, '{}') ? 'seats';
$$;

-- Whether consumers may still read facts of a booking: until then it must not be deleted.
CREATE OR REPLACE FUNCTION has_facts(p_show bigint, p_number bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM outbox WHERE show_id = p_show AND number = p_number);
$$;

-- The trace of the request that wrote a fact; NULL: it was not sampled, or the fact is purged.
CREATE OR REPLACE FUNCTION trace_of_fact(p_fact bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT trace FROM outbox WHERE id = p_fact;
$$;

-- After a restore: what the bus received after the backup did not happen, so facts continue in a new log.
CREATE OR REPLACE FUNCTION rename_fact_log() RETURNS void LANGUAGE sql AS $$
    UPDATE fact_log SET name = 'facts-' || left(replace(gen_random_uuid()::text, '-', ''), 12);
$$;
