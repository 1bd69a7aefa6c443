-- bookings/functions_blocks.sql: seats an organiser keeps back, and releases to the sale.

-- The blocks of all shows. A block is a row in `booking`; what else it has is in `seat_block`.
CREATE OR REPLACE VIEW seat_block_detail AS
SELECT booking.show_id, booking.number, booking.owner_id, booking.claim_id, booking.seats,
       booking.note AS name, booking.opened_at AS made_at, more.release_at, more.hours_before,
       coalesce(more.withdrawn, false) AS withdrawn
  FROM booking
  LEFT JOIN seat_block AS more ON more.show_id = booking.show_id AND more.number = booking.number
 WHERE booking.state = 'blocked';

-- Blocks seats under the same key as bookings. All of them, or none: then `taken` lists those in the way. A
-- race with a hold ends in a unique violation (23505), and the caller tries again.
CREATE OR REPLACE FUNCTION block_seats(p_show bigint, p_seats int[], p_note text, p_actor bigint)
RETURNS TABLE (number bigint, taken int[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_number bigint := new_number();
    v_taken  int[];
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    PERFORM expire_lapsed(array_agg(p_show), array_agg(t.number))
       FROM taken_seat t WHERE t.show_id = p_show AND t.seat = ANY (p_seats);
    SELECT array_agg(t.seat ORDER BY t.seat) INTO v_taken
      FROM taken_seat t WHERE t.show_id = p_show AND t.seat = ANY (p_seats);
    IF EXISTS (SELECT FROM sale WHERE show_id = p_show AND archived_at IS NOT NULL) THEN
        v_taken := p_seats;  -- which seats are free is no longer known
    END IF;
    IF v_taken IS NULL THEN
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT p_show, seat, v_number FROM unnest(p_seats) AS seat ORDER BY seat;
        INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id,
                             seats, prices_minor, amount_minor, currency,
                             note, counts, opened_at, expires_at)
        VALUES (p_show, v_number, p_actor, v_number, 'blocked', 'block:' || v_number, 0, 'block' || v_number,
                p_seats, array_fill(0::bigint, ARRAY[cardinality(p_seats)]), 0, 'XXX',
                p_note, false, now(), now() + interval '100 years');
        PERFORM record_moves(ARRAY[p_show], ARRAY[v_number], 'block', p_actor);
    END IF;
    RETURN QUERY SELECT CASE WHEN v_taken IS NULL THEN v_number END, v_taken;
END $$;

-- Releases seats of a block to the sale: some, or all where p_seats is NULL. No row: there is no such block,
-- or it was withdrawn. A seat that is not in the block changes nothing. The shared lock on the sale keeps a
-- rebuild of the seat map from reading the block half released.
CREATE OR REPLACE FUNCTION release_block(p_show bigint, p_number bigint, p_seats int[], p_actor bigint)
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

-- A block that was released meanwhile is left alone.
CREATE OR REPLACE FUNCTION rename_block(p_show bigint, p_number bigint, p_name text) RETURNS void
LANGUAGE sql AS $$
    UPDATE booking SET note = p_name WHERE show_id = p_show AND number = p_number AND state = 'blocked';
$$;

-- When a job releases the block; NULL: never.
CREATE OR REPLACE FUNCTION set_block_release(
    p_show bigint, p_number bigint, p_release_at timestamptz, p_hours_before int
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO seat_block (show_id, number, release_at, hours_before)
         VALUES (p_show, p_number, p_release_at, p_hours_before)
    ON CONFLICT (show_id, number) DO UPDATE
            SET release_at = excluded.release_at, hours_before = excluded.hours_before;
$$;

-- The seats of this block no longer exist in the hall: it is never released.
CREATE OR REPLACE FUNCTION withdraw_block(p_show bigint, p_number bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO seat_block (show_id, number, withdrawn) VALUES (p_show, p_number, true);
$$;

-- Releases that were set relative to the start of the show.
CREATE OR REPLACE FUNCTION move_block_releases(p_show bigint, p_starts_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE seat_block SET release_at = p_starts_at - hours_before * interval '1 h'
     WHERE show_id = p_show AND hours_before IS NOT NULL;
END $$;
