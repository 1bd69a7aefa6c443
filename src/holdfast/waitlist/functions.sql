-- waitlist/functions.sql: what one person waited for.

CREATE OR REPLACE VIEW waitlist_of_person AS
SELECT owner_id, show_id, number, seats, categories, price_minor_max, together, until, joined_at, state,
       ended_at
  FROM waitlist_entry;

-- These people are gone: they wait no longer. An open offer lapses by itself.
CREATE OR REPLACE FUNCTION end_waits_of(p_owners bigint[]) RETURNS void LANGUAGE sql AS $$
    UPDATE waitlist_entry SET state = 'left', ended_at = now()
     WHERE owner_id = ANY (p_owners) AND state = 'waiting';
$$;
