-- bookings/functions_retention.sql: sales that were over long ago.

-- For the rules of other folders: shows whose rows may be deleted.
CREATE OR REPLACE VIEW archived_sale AS
SELECT show_id, archived_at FROM sale WHERE archived_at IS NOT NULL;

-- Deletes at most p_max seats and counters of sales that closed p_days ago, the oldest first. The bookings
-- stay: they say what was sold. `reached` is 1 while there are more, NULL at the end. A sale that is locked
-- is skipped: an organiser is changing it.
CREATE OR REPLACE FUNCTION archive_past_sales(p_days int, p_max int)
RETURNS TABLE (reached bigint, deleted bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_show  bigint;
    v_count bigint;
    v_left  bigint := p_max;
BEGIN
    FOR v_show IN
          SELECT show_id FROM sale
           WHERE purged_at IS NULL AND closes_at < now() - p_days * interval '1 day'
        ORDER BY closes_at
           LIMIT 50
             FOR UPDATE SKIP LOCKED
    LOOP
        DELETE FROM taken_seat
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM taken_seat WHERE show_id = v_show LIMIT v_left));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
        DELETE FROM owner_count
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM owner_count WHERE show_id = v_show LIMIT v_left));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
        DELETE FROM party_count
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM party_count WHERE show_id = v_show LIMIT v_left));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
        DELETE FROM reserved_seat WHERE show_id = v_show AND show_is_here(v_show);
        UPDATE sale
           SET archived_at = coalesce(archived_at, clock_timestamp()),
               purged_at = CASE WHEN v_left > 0 THEN now() END
         WHERE show_id = v_show;
        EXIT WHEN v_left <= 0;
    END LOOP;
    RETURN QUERY SELECT CASE WHEN v_show IS NOT NULL THEN 1::bigint END, p_max - v_left;
END $$;

-- A sale that is opened again gets its rows back before anything is sold: without them a seat could be sold
-- twice.
CREATE OR REPLACE FUNCTION return_archived_rows(p_sale sale) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO taken_seat (show_id, seat, number)
    SELECT show_id, unnest(seats), number FROM booking
     WHERE show_id = p_sale.show_id AND state IN ('held', 'paying', 'confirmed', 'blocked')
        ON CONFLICT DO NOTHING;
    INSERT INTO owner_count (show_id, owner_id, seats, seats_max, holds)
    SELECT show_id, owner_id, sum(cardinality(seats)),
           greatest(sum(cardinality(seats)), p_sale.owner_seats_max),
           count(*) FILTER (WHERE state IN ('held', 'paying') AND claim_id LIKE '%@%')
      FROM booking
     WHERE show_id = p_sale.show_id AND state IN ('held', 'paying', 'confirmed') AND counts
  GROUP BY show_id, owner_id
        ON CONFLICT (show_id, owner_id) DO UPDATE
       SET seats = excluded.seats, seats_max = excluded.seats_max, holds = excluded.holds;
    INSERT INTO party_count (show_id, party, seats)
    SELECT show_id, split_part(claim_id, '@', 2), sum(cardinality(seats))
      FROM booking
     WHERE show_id = p_sale.show_id AND claim_id LIKE '%@%'
       AND (state IN ('held', 'paying') OR state = 'confirmed' AND was_free(booking))
  GROUP BY 1, 2
        ON CONFLICT (show_id, party) DO UPDATE SET seats = excluded.seats;
END $$;

CREATE OR REPLACE FUNCTION restore_archived_sale() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM return_archived_rows(NEW);
    NEW.archived_at := NULL;
    NEW.purged_at := NULL;
    RETURN NEW;
END $$;

-- For a pod that receives all sales again: those that were opened again meanwhile did not pass the trigger.
-- p_closes_at: as the pod had it before.
CREATE OR REPLACE FUNCTION restore_missed_sales(p_show bigint[], p_closes_at timestamptz[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_sale sale;
BEGIN
    FOR v_sale IN
        SELECT sale.* FROM sale JOIN unnest(p_show, p_closes_at) AS old (show_id, closes_at) USING (show_id)
         WHERE sale.archived_at IS NOT NULL AND sale.closes_at <> old.closes_at
    LOOP
        PERFORM return_archived_rows(v_sale);
        UPDATE sale SET archived_at = NULL, purged_at = NULL WHERE show_id = v_sale.show_id;
    END LOOP;
END $$;

-- `holdfast archive` has the rows of this sale in files, whose manifest has this sum.
CREATE OR REPLACE FUNCTION file_sale(p_show bigint, p_manifest text) RETURNS void LANGUAGE sql AS $$
    UPDATE sale SET filed_at = clock_timestamp(), filed_as = p_manifest WHERE show_id = p_show;
$$;

CREATE OR REPLACE FUNCTION unfile_sale(p_show bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE sale SET filed_at = NULL, filed_as = NULL WHERE show_id = p_show;
$$;

-- A sale whose bookings are in files cannot be opened again: its seats would all be free.
CREATE OR REPLACE FUNCTION refuse_filed_sale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the sale of show % is in the archive', NEW.show_id
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;

CREATE OR REPLACE TRIGGER refuse_filed_sale BEFORE UPDATE OF opens_at, closes_at ON sale
    FOR EACH ROW WHEN (OLD.filed_at IS NOT NULL
                       AND (NEW.closes_at, NEW.opens_at) <> (OLD.closes_at, OLD.opens_at))
    EXECUTE FUNCTION refuse_filed_sale();

CREATE OR REPLACE TRIGGER restore_archived_sale BEFORE UPDATE OF closes_at ON sale
    FOR EACH ROW WHEN (OLD.archived_at IS NOT NULL AND NEW.closes_at <> OLD.closes_at)
    EXECUTE FUNCTION restore_archived_sale();
ALTER TABLE sale ENABLE ALWAYS TRIGGER restore_archived_sale;  -- as those in functions.sql
