-- waitingroom/functions.sql: joining, leaving and redeeming, each in one round trip.
-- needs: accounts, catalogue
--
-- A room that has just opened has no statistics, and a plan made then could read the whole queue for each
-- batch: seqscans are off, and the place of a person is found by `current_place`, a look-up by its key.
--
-- The times when people begin and cease to count as inside are clock_timestamp(), taken under the lock of the
-- queue: now() is the beginning of the transaction, maybe before the end of the one that had the lock.
--
-- Lock order: the row of the queue, then places, then turns. Joins of a show and the admission wait for each
-- other at the queue's row; redeeming and leaving change rows of one person and never wait for it.

-- The queue of each room, with its settings. A draw without a time of its own is when the sale opens.
CREATE OR REPLACE VIEW current_queue AS
SELECT room.show_id, room.opens_at, coalesce(room.draw_at, show_detail.opens_at) AS draw_at, room.inside_max,
       room.per_minute_max, room.turn_s, room.window_s, room.opens_above_holds_per_second,
       room.opens_above_viewers,
       show_detail.seats, show_detail.cancelled OR show_detail.closes_at <= now() AS is_over,
       queue.opening, queue.state, queue.opened_by, queue.commitment, queue.beacon, queue.beacon_value,
       queue.beacon_until,
       queue.key, queue.entrants, queue.joined, queue.serving, queue.rate, queue.opened_at, queue.drawn_at,
       queue.called_at, queue.ended_at
  FROM waiting_room AS room
  JOIN queue ON queue.show_id = room.show_id AND queue.opening = room.opening
  JOIN show_detail ON show_detail.show_id = room.show_id;

-- Rooms that open by themselves, and whose show has more holds per second or more viewers than they allow:
-- over all web processes that have reported in the last seconds.
CREATE OR REPLACE VIEW room_in_demand AS
SELECT room.show_id
  FROM waiting_room AS room
  JOIN (SELECT demand.show_id, sum(demand.holds) AS holds, sum(demand.viewers) AS viewers
          FROM web_load
         CROSS JOIN LATERAL unnest(shows, show_holds, show_viewers) AS demand (show_id, holds, viewers)
         WHERE web_load.at > now() - interval '4 s'
      GROUP BY demand.show_id) AS demand USING (show_id)
 WHERE room.opens_above_holds_per_second BETWEEN 1 AND demand.holds - 1
    OR room.opens_above_viewers BETWEEN 1 AND demand.viewers - 1;

-- People whose turn it is now, and who have not come in yet.
CREATE OR REPLACE VIEW called_person AS
SELECT turn.show_id, turn.opening, place.account_id, turn.called_at, turn.ends_at
  FROM queue_turn AS turn
  JOIN queue_place AS place USING (show_id, opening, number)
 WHERE turn.state = 'called' AND turn.freed_at IS NULL AND turn.ends_at > now() AND place.state = 0;

-- The place of a person in a queue, live or ended; for joins with a batch. OFFSET 0: once for each person. IS
-- NOT DISTINCT FROM: no index does that, so the planner cannot take the key of numbers, by show, instead.
CREATE OR REPLACE FUNCTION current_place(p_show bigint, p_opening int, p_account bigint)
RETURNS TABLE (number int, state smallint, joined_s int) LANGUAGE sql STABLE AS $$
    SELECT place.number, place.state, place.joined_s
      FROM queue_place AS place
     WHERE place.account_id = p_account
       AND place.rejoined = 0
       AND place.show_id IS NOT DISTINCT FROM p_show
       AND place.opening IS NOT DISTINCT FROM p_opening
    OFFSET 0;
$$;

-- Places of guests become places of the accounts that they have logged in to, unless the account has one. Of
-- several guests, the one who joined first. The caller has locked the queue, or names one account.
CREATE OR REPLACE FUNCTION adopt_places(p_show bigint, p_opening int, p_accounts bigint[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off AS $$
    UPDATE queue_place
       SET account_id = found.account_id
      FROM (SELECT guest.account_id, min(place.number) AS number
              FROM guests_of_accounts(p_accounts) AS guest
             CROSS JOIN LATERAL current_place(p_show, p_opening, guest.guest_id) AS place
             WHERE place.state = 0
               AND NOT EXISTS (SELECT FROM current_place(p_show, p_opening, guest.account_id))
          GROUP BY guest.account_id) AS found
     WHERE queue_place.show_id = p_show AND queue_place.opening = p_opening
       AND queue_place.number = found.number;
$$;

-- Joins many people, each at the end of the queue of a show; a person with a live place stays there. A row
-- for each of them, in any order; none if the room takes no one in its present state.
CREATE OR REPLACE FUNCTION join_queues(p_show bigint[], p_account bigint[])
RETURNS TABLE (ord bigint, number int, joined_s int, is_new boolean)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_show     bigint;
    v_queue    queue;
    v_accounts bigint[];
    v_new      bigint[];
    v_ended    int[];
BEGIN
    FOR v_show IN SELECT DISTINCT s FROM unnest(p_show) AS s ORDER BY s LOOP
        SELECT queue.* INTO v_queue
          FROM queue
         WHERE queue.show_id = v_show
           AND queue.opening = (SELECT room.opening FROM waiting_room AS room WHERE room.show_id = v_show)
           FOR UPDATE;
        CONTINUE WHEN v_queue.state IS NULL OR v_queue.state NOT IN ('open', 'admitting', 'overridden');
        SELECT array_agg(a.account_id ORDER BY a.first) INTO v_accounts
          FROM (SELECT given.account_id, min(given.ord) AS first
                  FROM unnest(p_show, p_account) WITH ORDINALITY AS given (show_id, account_id, ord)
                 WHERE given.show_id = v_show
                 GROUP BY given.account_id) AS a;
        PERFORM adopt_places(v_show, v_queue.opening, v_accounts);
        SELECT array_agg(a.account_id ORDER BY a.ord), array_agg(place.number) FILTER (WHERE place.state <> 0)
          INTO v_new, v_ended
          FROM unnest(v_accounts) WITH ORDINALITY AS a (account_id, ord)
          LEFT JOIN LATERAL current_place(v_show, v_queue.opening, a.account_id) AS place ON true
         WHERE place.number IS NULL OR place.state <> 0;
        IF v_ended IS NOT NULL THEN
            -- An ended place stays for its number, as an earlier one.
            UPDATE queue_place AS place
               SET rejoined = 1 + (SELECT max(earlier.rejoined) FROM queue_place AS earlier
                                    WHERE earlier.account_id = place.account_id
                                      AND earlier.show_id IS NOT DISTINCT FROM v_show
                                      AND earlier.opening IS NOT DISTINCT FROM v_queue.opening)
             WHERE place.show_id = v_show AND place.opening = v_queue.opening
               AND place.number = ANY (v_ended);
        END IF;
        IF v_new IS NOT NULL THEN
            INSERT INTO queue_place (show_id, opening, account_id, number, joined_s)
            SELECT v_show, v_queue.opening, a.account_id, v_queue.joined + a.ord - 1,
                   extract(epoch FROM clock_timestamp() - v_queue.opened_at)
              FROM unnest(v_new) WITH ORDINALITY AS a (account_id, ord);
            UPDATE queue SET joined = queue.joined + cardinality(v_new)
             WHERE queue.show_id = v_show AND queue.opening = v_queue.opening;
        END IF;
        RETURN QUERY
        SELECT given.ord, place.number, place.joined_s, place.number >= v_queue.joined
          FROM unnest(p_show, p_account) WITH ORDINALITY AS given (show_id, account_id, ord)
         CROSS JOIN LATERAL current_place(v_show, v_queue.opening, given.account_id) AS place
         WHERE given.show_id = v_show;
    END LOOP;
END $$;

-- Ends visits early: `p_state` is why (1 left, 3 bought). They count as inside for p_grace_s longer, until
-- every process refuses the pass. A turn that was called and not redeemed has no pass: it ends at once.
CREATE OR REPLACE FUNCTION end_visits(
    p_show bigint, p_opening int, p_numbers int[], p_state int, p_grace_s int
) RETURNS void LANGUAGE sql AS $$
    UPDATE queue_place SET state = p_state
     WHERE show_id = p_show AND opening = p_opening AND number = ANY (p_numbers) AND state = 0;
    UPDATE queue_turn
       SET state = CASE state WHEN 'inside' THEN 'ending' ELSE 'over' END,
           ended_at = CASE state WHEN 'inside' THEN clock_timestamp() END,
           ends_at = CASE state WHEN 'inside'
                                THEN least(ends_at, clock_timestamp() + p_grace_s * interval '1 s')
                                ELSE ends_at END,
           freed_at = CASE state WHEN 'called' THEN clock_timestamp() WHEN 'missed' THEN freed_at END
     WHERE show_id = p_show AND opening = p_opening AND number = ANY (p_numbers)
       AND state IN ('called', 'inside', 'missed');
$$;

-- Ends turns and windows whose time is over. A first turn that was missed is called again later, when the
-- queue has moved on by as many people as may be inside; a second one ends the place. How many ended.
CREATE OR REPLACE FUNCTION end_due_turns(p_show bigint, p_opening int, p_recall_at int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_freed int;
BEGIN
    WITH due AS (
        UPDATE queue_turn
           SET state = CASE WHEN state = 'called' AND call = 1 THEN 'missed' ELSE 'over' END,
               recall_at = CASE WHEN state = 'called' AND call = 1 THEN p_recall_at END,
               freed_at = clock_timestamp()
         WHERE show_id = p_show AND opening = p_opening AND freed_at IS NULL AND ends_at <= now()
     RETURNING number, state, redeemed_at
    ), ended AS (
        UPDATE queue_place
           SET state = CASE WHEN due.redeemed_at IS NULL THEN 2 ELSE 3 END
          FROM due
         WHERE queue_place.show_id = p_show AND queue_place.opening = p_opening
           AND queue_place.number = due.number AND queue_place.state = 0 AND due.state = 'over'
    )
    SELECT count(*) INTO v_freed FROM due;
    RETURN v_freed;
END $$;

-- Calls people: first those who missed a turn and whose time has come, then the given numbers in the order of
-- their positions; at most p_max. Numbers whose place has ended are passed over. The caller has locked the
-- queue, and p_max is what the cap leaves. Returns (people called, the next position to call, when).
DROP FUNCTION IF EXISTS call_people(bigint, int, int[], int, int, boolean);
CREATE FUNCTION call_people(
    p_show bigint, p_opening int, p_numbers int[], p_first int, p_max int, p_is_end boolean
) RETURNS TABLE (called int, serving int, called_at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    v_room    waiting_room;
    v_queue   queue;
    v_recalls int;
    v_new     int;
    v_last    int;
    v_now     timestamptz := clock_timestamp();
BEGIN
    SELECT * INTO v_room FROM waiting_room AS room WHERE room.show_id = p_show;
    SELECT * INTO v_queue FROM queue WHERE queue.show_id = p_show AND queue.opening = p_opening;
    WITH again AS (
        UPDATE queue_turn SET state = 'over'
         WHERE (show_id, opening, number, call) IN (
            SELECT turn.show_id, turn.opening, turn.number, turn.call
              FROM queue_turn AS turn
             WHERE turn.show_id = p_show AND turn.opening = p_opening AND turn.state = 'missed'
               AND (turn.recall_at <= p_first OR p_is_end)
          ORDER BY turn.recall_at, turn.position
             LIMIT p_max)
     RETURNING number, position, way_in
    )
    INSERT INTO queue_turn (show_id, opening, number, call, position, way_in, inside_max, called_at, ends_at)
    SELECT p_show, p_opening, number, 2, position, way_in, v_room.inside_max, v_now,
           v_now + v_room.turn_s * interval '1 s'
      FROM again;
    GET DIAGNOSTICS v_recalls = ROW_COUNT;
    WITH live AS (
          SELECT given.number, p_first + given.ord::int - 1 AS position
            FROM unnest(p_numbers) WITH ORDINALITY AS given (number, ord)
            JOIN queue_place AS place
              ON place.show_id = p_show AND place.opening = p_opening
             AND place.number = given.number AND place.state = 0
        ORDER BY given.ord
           LIMIT p_max - v_recalls
    ), added AS (
        INSERT INTO queue_turn (show_id, opening, number, position, way_in, inside_max, called_at, ends_at)
        SELECT p_show, p_opening, live.number, live.position,
               CASE WHEN v_queue.key IS NULL THEN 'arrival'
                    WHEN live.number < v_queue.entrants THEN 'draw' ELSE 'late' END,
               v_room.inside_max, v_now, v_now + v_room.turn_s * interval '1 s'
          FROM live
     RETURNING position
    )
    SELECT count(*), max(position) INTO v_new, v_last FROM added;
    called := v_recalls + v_new;
    called_at := v_now;
    -- All of the numbers were looked at, unless the cap stopped us at one of them.
    serving := CASE WHEN v_recalls + v_new < p_max THEN p_first + cardinality(p_numbers)
                    ELSE coalesce(v_last + 1, p_first) END;
    RETURN NEXT;
END $$;

-- Redeems a turn: the person is inside from now on. No row: it is not their turn now.
DROP FUNCTION IF EXISTS redeem_turn(bigint, int, int);
CREATE FUNCTION redeem_turn(p_show bigint, p_opening int, p_number int)
RETURNS TABLE (redeemed_at timestamptz, ends_at timestamptz, way_in text) LANGUAGE sql AS $$
    UPDATE queue_turn AS turn
       SET state = 'inside', redeemed_at = now(),
           ends_at = now() + (SELECT window_s FROM waiting_room WHERE show_id = p_show) * interval '1 s'
     WHERE turn.show_id = p_show AND turn.opening = p_opening AND turn.number = p_number
       AND turn.state = 'called' AND turn.ends_at > now()
 RETURNING turn.redeemed_at, turn.ends_at, turn.way_in;
$$;
