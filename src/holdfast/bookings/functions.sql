-- bookings/functions.sql: the moves of bookings, many at a time, each in one round trip.
-- needs: outbox
--
-- Lock order in all functions that touch a sale, so that two batches cannot deadlock: sale (shared),
-- bookings, payments, tickets, seats, counters of owners, counters of parties; each in key order. Expiry
-- skips bookings that another transaction has locked and never waits for them.
--
-- SET enable_… = off: rows are found by key whatever the statistics say. The planner knows nothing of a sale
-- that has just opened, and a plan made then would read whole tables until the next ANALYZE.

-- The next number of a booking, a fence, a ticket or a journal entry: sixteenths of a second since 2020, then
-- 13 bits of the sequence. A database that is put back to an earlier instant gets its old sequence back, but
-- not the old time: no number is issued twice, whether or not the restore is noticed. 131 072 a second are
-- different from each other; 48 bits last until 2088 and fit a public id and a number of JavaScript.
CREATE OR REPLACE FUNCTION new_number() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (((date_part('epoch', clock_timestamp()) - 1577836800) * 16)::bigint << 13)
           | (nextval('ledger_number') & 8191);
$$;

-- What other folders read of a booking. A block is not among them: no buyer pays for it.
CREATE OR REPLACE VIEW payable_booking AS
SELECT show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats, prices_minor,
       amount_minor, currency, note, counts, opened_at, expires_at, confirmed_at, revision
  FROM booking
 WHERE state <> 'blocked';

-- What the relay adds to a fact; blocks included.
CREATE OR REPLACE VIEW booking_for_fact AS
SELECT show_id, number, owner_id, seats, prices_minor, amount_minor, currency, note, expires_at,
       NOT counts AS is_block
  FROM booking;

-- The audit trail, for reports and the progress of a cancellation.
CREATE OR REPLACE VIEW booking_history AS
SELECT show_id, number, id, move, state, actor_id, at FROM booking_move;

-- The same with seats, blocks included, for the replay of a sale: those of the booking now, and those that
-- the move brought or took. Each booking by its key, whatever the statistics say.
CREATE OR REPLACE VIEW seat_history AS
SELECT show_id, number, id, move, state, at, seats AS moved_seats,
       (SELECT booking.seats FROM booking
         WHERE booking.show_id = booking_move.show_id AND booking.number = booking_move.number) AS seats
  FROM booking_move;

-- Every seat that a buyer has now; blocks are not buyers. Each booking by its key: in a join, with statistics
-- that are older than the sale, all seats of a show may be read for each of its bookings.
CREATE OR REPLACE VIEW seat_holder AS
SELECT show_id, seat, number
  FROM taken_seat
 WHERE (SELECT state FROM booking
         WHERE booking.show_id = taken_seat.show_id AND booking.number = taken_seat.number) <> 'blocked';

-- One booking, for joins with a batch. OFFSET 0: by its key, whatever the statistics say. In a sale that has
-- just opened they know of few holds, and a join would read all of them for each batch.
CREATE OR REPLACE FUNCTION booking_by_key(p_show bigint, p_number bigint) RETURNS SETOF payable_booking
LANGUAGE sql STABLE AS $$
    SELECT * FROM payable_booking WHERE show_id = p_show AND number = p_number OFFSET 0;
$$;

-- Bookings that have seats in a show now. The array makes it two index scans whatever the statistics say, and
-- ended bookings cost nothing.
CREATE OR REPLACE FUNCTION bookings_with_seats(p_show bigint) RETURNS SETOF payable_booking
LANGUAGE sql STABLE AS $$
    SELECT *
      FROM payable_booking
     WHERE show_id = p_show
       AND number = ANY (ARRAY(SELECT DISTINCT number FROM taken_seat WHERE show_id = p_show));
$$;

-- Cancelled shows with buyers who still have seats. A show without any is marked and never looked at again: a
-- cancelled show sells nothing, so no buyer can appear in it later. Blocked seats stay.
CREATE OR REPLACE FUNCTION cancelled_shows_with_buyers(p_max int) RETURNS SETOF bigint
LANGUAGE sql SET enable_seqscan = off AS $$
    WITH cancelled AS (
          SELECT show_id,
                 EXISTS (SELECT FROM seat_holder WHERE seat_holder.show_id = sale.show_id) AS has_buyers
            FROM sale
           WHERE sale.cancelled AND sale.emptied_at IS NULL
        ORDER BY show_id
           LIMIT p_max
    ), emptied AS (
        UPDATE sale SET emptied_at = now()
         WHERE show_id = ANY (ARRAY(SELECT show_id FROM cancelled WHERE NOT has_buyers)) AND cancelled
    )
    SELECT show_id FROM cancelled WHERE has_buyers;
$$;

-- The same moves as MOVES in booking.py; a test compares the two.
CREATE OR REPLACE FUNCTION booking_moves_as_drawn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'),
        ('expired', 'confirmed'), ('expired', 'failed'), ('confirmed', 'refunded'), ('blocked', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a booking does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER booking_moves_as_drawn BEFORE UPDATE OF state ON booking
    FOR EACH ROW EXECUTE FUNCTION booking_moves_as_drawn();

-- Facts about a sale are added by triggers, so that no way of changing a sale can miss them.
-- In a pod these two run where replication applies a change, which has no search path of its own.
CREATE OR REPLACE FUNCTION publish_sale() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM add_fact(NEW.show_id, NULL, CASE TG_OP WHEN 'INSERT' THEN 'show.on_sale' ELSE 'show.changed' END,
                     jsonb_build_object('opens_at', NEW.opens_at, 'closes_at', NEW.closes_at,
                                        'revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publish_new_sale AFTER INSERT ON sale
    FOR EACH ROW EXECUTE FUNCTION publish_sale();
CREATE OR REPLACE TRIGGER publish_changed_sale AFTER UPDATE OF revision ON sale
    FOR EACH ROW WHEN (NEW.revision <> OLD.revision AND NOT NEW.cancelled) EXECUTE FUNCTION publish_sale();

CREATE OR REPLACE FUNCTION publish_cancelled_sale() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM add_fact(NEW.show_id, NULL, 'show.cancelled', jsonb_build_object('revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publish_cancelled_sale AFTER UPDATE OF cancelled ON sale
    FOR EACH ROW WHEN (NEW.cancelled AND NOT OLD.cancelled) EXECUTE FUNCTION publish_cancelled_sale();

-- Also for changes that a pod receives from the home database. Here, because replacing a trigger switches
-- that off again.
ALTER TABLE sale ENABLE ALWAYS TRIGGER publish_changed_sale;
ALTER TABLE sale ENABLE ALWAYS TRIGGER publish_cancelled_sale;

-- Changes that came without these triggers, with a copy of all sales: their facts, by the revision and state
-- of before. All maps of these shows are rebuilt.
CREATE OR REPLACE FUNCTION publish_missed_changes(
    p_show bigint[], p_revision bigint[], p_cancelled boolean[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_fact(sale.show_id, NULL,
                     CASE WHEN sale.cancelled THEN 'show.cancelled' ELSE 'show.changed' END,
                     CASE WHEN sale.cancelled THEN jsonb_build_object('revision', sale.revision)
                          ELSE jsonb_build_object('opens_at', sale.opens_at, 'closes_at', sale.closes_at,
                                                  'revision', sale.revision) END)
       FROM sale JOIN unnest(p_show, p_revision, p_cancelled) AS old (show_id, revision, cancelled)
      USING (show_id)
      WHERE sale.revision <> old.revision AND NOT (sale.cancelled AND old.cancelled);
    UPDATE sale SET map_stale = true, epoch = epoch + 1, marked_at = now() WHERE show_id = ANY (p_show);
END $$;

-- Audit row and fact of many bookings that have just moved; of confirmed ones also their tickets. An actor of
-- 0 stands for the owner of each booking.
CREATE OR REPLACE FUNCTION record_moves(p_show bigint[], p_number bigint[], p_move text, p_actor bigint)
RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
    v_kind   text[];
    v_has_parties boolean;
BEGIN
    WITH moved AS (
        SELECT show_id, number, booking.state, booking.fence, booking.owner_id, ord,
               booking.claim_id LIKE '%@%' AS has_party
          FROM unnest(p_show, p_number) WITH ORDINALITY AS a (show_id, number, ord)
          JOIN booking USING (show_id, number)
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, p_move, state, fence, CASE p_actor WHEN 0 THEN owner_id ELSE p_actor END
          FROM moved
      ORDER BY ord
    )
    SELECT array_agg(show_id ORDER BY ord), array_agg(number ORDER BY ord),
           array_agg('booking.' || state ORDER BY ord), bool_or(has_party)
      INTO v_show, v_number, v_kind, v_has_parties
      FROM moved;
    PERFORM add_facts(v_show, v_number, v_kind);
    IF p_move = 'confirm' THEN
        PERFORM issue_tickets(array_agg(show_id ORDER BY ord, place), array_agg(number ORDER BY ord, place),
                              array_agg(seat ORDER BY ord, place))
           FROM unnest(v_show, v_number) WITH ORDINALITY AS a (show_id, number, ord)
           JOIN booking USING (show_id, number),
                unnest(booking.seats) WITH ORDINALITY AS s (seat, place);
    END IF;
    -- The last locks of all; here, so that no move can miss it.
    IF v_has_parties AND p_move IN ('confirm', 'expire', 'cancel') THEN
        IF p_move = 'confirm' THEN  -- the other moves have counted their owners down
            PERFORM count_holds_down(v_show, v_number);
        END IF;
        PERFORM count_parties_down(v_show, v_number, p_move = 'expire');
    END IF;
END $$;

-- Frees the seats of bookings that no longer take seats. The caller has locked and moved the bookings. Seats
-- of a show with a waitlist are not free for the public: they are reserved, in this same transaction.
CREATE OR REPLACE FUNCTION release_seats(p_show bigint[], p_number bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM sale WHERE show_id = ANY (p_show) AND has_waitlist) THEN
        PERFORM reserve_seats(booking.show_id, booking.number, booking.seats)
           FROM booking
           JOIN unnest(p_show, p_number) AS requested (show_id, number) USING (show_id, number);
    END IF;
    DELETE FROM taken_seat
     USING (SELECT booking.show_id, booking.number, unnest(booking.seats) AS seat
              FROM booking
              JOIN unnest(p_show, p_number) AS requested (show_id, number) USING (show_id, number)) AS gone
     WHERE taken_seat.show_id = gone.show_id
       AND taken_seat.seat = gone.seat
       AND taken_seat.number = gone.number;
END $$;

-- The same for some seats of one booking.
CREATE OR REPLACE FUNCTION release_some_seats(p_show bigint, p_number bigint, p_seats int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM reserve_seats(p_show, p_number, p_seats);
    DELETE FROM taken_seat WHERE show_id = p_show AND seat = ANY (p_seats) AND number = p_number;
END $$;

-- Expired HELD bookings among these become EXPIRED. Rows that another transaction has locked are skipped:
-- their owner is extending, cancelling or paying, and the next sweep looks at them again.
CREATE OR REPLACE FUNCTION expire_lapsed(p_show bigint[], p_number bigint[]) RETURNS SETOF booking
LANGUAGE plpgsql AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH lapsed AS (
        SELECT booking.show_id, booking.number
          FROM unnest(p_show, p_number) AS requested (show_id, number)
          JOIN booking USING (show_id, number)
         WHERE booking.state = 'held' AND booking.expires_at <= now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking SKIP LOCKED
    ), moved AS (
        UPDATE booking SET state = 'expired'
          FROM lapsed
         WHERE booking.show_id = lapsed.show_id AND booking.number = lapsed.number
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    PERFORM count_owners_down(v_show, v_number, p_lapsed => true);
    PERFORM record_moves(v_show, v_number, 'expire', NULL);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

-- Cancels holds, or blocks (p_from). A row that is in another state, or whose fence has moved on, is left
-- alone and is missing from the result. The sale is shared, as in all moves that the seat map follows: a
-- rebuild that has read the row publishes its map before the caller can release the claim.
CREATE OR REPLACE FUNCTION cancel_holds(
    p_show bigint[], p_number bigint[], p_fence bigint[], p_from booking_state, p_actor bigint
) RETURNS SETOF booking LANGUAGE plpgsql AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM share_sales(p_show);
    WITH locked AS (
        SELECT booking.show_id, booking.number
          FROM unnest(p_show, p_number, p_fence) AS requested (show_id, number, fence)
          JOIN booking USING (show_id, number)
         WHERE booking.fence = requested.fence AND booking.state = p_from
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking
    ), moved AS (
        UPDATE booking SET state = 'cancelled'
          FROM locked
         WHERE booking.show_id = locked.show_id AND booking.number = locked.number AND booking.state = p_from
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    PERFORM count_owners_down(v_show, v_number);
    PERFORM record_moves(v_show, v_number,
                         CASE p_from WHEN 'blocked' THEN 'unblock' ELSE 'cancel' END, p_actor);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

-- Gives holds more time: p_ttl_s from now, but never less than they have and not beyond p_life_max_s. A row
-- that has expired, moved on or has another fence is left alone and is missing from the result. The sale is
-- shared, as in cancel_holds: a rebuild either reads the new end, or has published the old one before the
-- caller tells the map.
CREATE OR REPLACE FUNCTION extend_holds(
    p_show bigint[], p_number bigint[], p_fence bigint[], p_ttl_s int[], p_life_max_s int
) RETURNS SETOF booking LANGUAGE plpgsql AS $$
BEGIN
    PERFORM share_sales(p_show);
    RETURN QUERY
    WITH locked AS (
        SELECT booking.show_id, booking.number, requested.ttl_s
          FROM unnest(p_show, p_number, p_fence, p_ttl_s) AS requested (show_id, number, fence, ttl_s)
          JOIN booking USING (show_id, number)
         WHERE booking.fence = requested.fence AND booking.state = 'held' AND booking.expires_at > now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking
    )
    UPDATE booking
       SET expires_at = greatest(expires_at, least(now() + locked.ttl_s * interval '1 s',
                                                   opened_at + p_life_max_s * interval '1 s'))
      FROM locked
     WHERE booking.show_id = locked.show_id AND booking.number = locked.number
       AND booking.state = 'held' AND booking.expires_at > now()
 RETURNING booking.*;
END $$;

-- A confirmed booking, or a block, gives up some of its seats and keeps the others. The caller has locked the
-- booking and, of a confirmed one, its tickets. An admitted visitor's ticket stays as it is.
CREATE OR REPLACE FUNCTION give_up_seats(p_booking booking, p_seats int[], p_actor bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_after booking;
BEGIN
    PERFORM freeze_booking_facts(p_booking.show_id, p_booking.number, jsonb_build_object(
        'seats', p_booking.seats, 'prices_minor', p_booking.prices_minor,
        'amount_minor', p_booking.amount_minor));
    UPDATE booking
       SET seats = rest.seats, prices_minor = rest.prices, amount_minor = rest.amount
      FROM (SELECT array_agg(seat ORDER BY ord) AS seats, array_agg(price ORDER BY ord) AS prices,
                   sum(price)::bigint AS amount
              FROM unnest(p_booking.seats, p_booking.prices_minor) WITH ORDINALITY AS a (seat, price, ord)
             WHERE seat <> ALL (p_seats)) AS rest
     WHERE show_id = p_booking.show_id AND number = p_booking.number
 RETURNING booking.* INTO v_after;
    PERFORM void_tickets(p_booking.show_id, p_booking.number, p_seats);
    PERFORM release_some_seats(p_booking.show_id, p_booking.number, p_seats);
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id, seats)
    VALUES (v_after.show_id, v_after.number, 'reduce', v_after.state, v_after.fence, p_actor, p_seats);
    PERFORM add_fact(v_after.show_id, v_after.number, 'booking.reduced', jsonb_build_object(
        'seats', v_after.seats, 'prices_minor', v_after.prices_minor,
        'amount_minor', v_after.amount_minor, 'given_back', p_seats));
END $$;

-- After a restore: the seat maps in Redis belong to another state of the ledger. The epoch jumps ahead of
-- every map version that clients may have seen after the backup.
CREATE OR REPLACE FUNCTION mark_every_map_stale() RETURNS void LANGUAGE sql AS $$
    UPDATE sale SET map_stale = true, epoch = epoch + 1000, marked_at = now();
$$;

-- Closes the sales of shows that are not public any more, or opens them to their windows again. Maps must be
-- rebuilt before Redis sells from them.
CREATE OR REPLACE FUNCTION hide_sales(p_show bigint[], p_hidden boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR UPDATE;
    UPDATE sale
       SET hidden = wanted.hidden, epoch = sale.epoch + 1, map_stale = true, marked_at = now()
      FROM unnest(p_show, p_hidden) AS wanted (show_id, hidden)
     WHERE sale.show_id = wanted.show_id;
    PERFORM add_fact(show_id, NULL, 'show.changed',
                     jsonb_build_object('opens_at', opens_at, 'closes_at', closes_at, 'revision', revision))
       FROM sale WHERE show_id = ANY (p_show);
END $$;
