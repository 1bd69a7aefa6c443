-- 0024_blocks_and_layouts.sql: what is known of seats kept back, and giving some of them to the sale.

-- What a block's row in `booking` does not tell. Its name is the booking's note: only organisers see it.
CREATE TABLE seat_block (
    show_id      bigint      NOT NULL,
    number       bigint      NOT NULL,
    release_at   timestamptz,                        -- then a duty gives the seats to the sale
    hours_before int,                                -- said as hours before the start: it moves with the show
    withdrawn    boolean     NOT NULL DEFAULT false, -- for ever: there is no such seat in the hall any more
    PRIMARY KEY (show_id, number),
    CONSTRAINT hours_before_have_an_instant CHECK (hours_before IS NULL OR release_at IS NOT NULL),
    CONSTRAINT what_is_withdrawn_stays_so CHECK (NOT withdrawn OR release_at IS NULL)
);
CREATE INDEX blocks_to_release ON seat_block (release_at) WHERE release_at IS NOT NULL;

-- Give seats of a block to the sale, some ($3) or all (NULL). No row: there is no such block, or it was
-- withdrawn; a seat that is not in it changes nothing. The sale is locked against whoever writes the map.
CREATE FUNCTION release_block(p_show bigint, p_number bigint, p_seats int[], p_actor bigint)
RETURNS TABLE (was int[], released int[]) LANGUAGE plpgsql AS $$
DECLARE
    v_block booking;
    v_gone  int[];
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    SELECT * INTO v_block FROM booking
     WHERE show_id = p_show AND number = p_number AND state = 'blocked' FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT FROM seat_block AS s
                             WHERE s.show_id = p_show AND s.number = p_number AND s.withdrawn) THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(seat ORDER BY seat), '{}') INTO v_gone
      FROM unnest(v_block.seats) AS seat WHERE p_seats IS NULL OR seat = ANY (p_seats);
    IF cardinality(v_gone) = cardinality(v_block.seats) THEN
        PERFORM cancel_holds(ARRAY[p_show], ARRAY[p_number], ARRAY[v_block.fence], 'blocked', p_actor);
        DELETE FROM seat_block AS s WHERE s.show_id = p_show AND s.number = p_number;
    ELSIF cardinality(v_gone) > 0 THEN
        PERFORM give_up_seats(v_block, v_gone, p_actor);
    END IF;
    RETURN QUERY SELECT v_block.seats, v_gone;
END $$;
