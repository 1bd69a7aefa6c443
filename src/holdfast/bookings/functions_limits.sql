-- bookings/functions_limits.sql: counters of owners and parties, each checked and raised in one statement.
--
-- A party is a range of network addresses. It stands behind the @ of a claim id, for bookings of guests and
-- of unverified accounts. Its seats count until they are paid for, given back or lapsed; free seats also once
-- they are confirmed. A counter is locked until its transaction ends, so the next one sees what it has
-- counted: two requests cannot both take the last place below a limit. Counters of owners are locked before
-- those of parties, each in key order.
--
-- p_limits is NULL for the previous release, which knows none of them.

DROP FUNCTION IF EXISTS count_owners_down(bigint[], bigint[], int[]);

-- Adds the new seats to the counters of their owners. Returns the requests over a limit: of an owner with
-- several requests in the batch the first ones that fit win.
CREATE OR REPLACE FUNCTION count_owners_up(
    p_show bigint[], p_owner bigint[], p_number bigint[], p_claim text[], p_seats text[], p_max int[],
    p_guest boolean[], p_limits hold_limits
) RETURNS TABLE (place int, reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_guests bigint[] := '{}';
    v_holds_max  int := coalesce((p_limits).guest_holds_max, 2147483647);
    v_lapses_max int := coalesce((p_limits).lapses_max, 2147483647);
    v_cool_since timestamptz := now() - coalesce((p_limits).cooldown_s, 0) * interval '1 s';
    v_show   bigint[];  -- of the counters that were raised
    v_owner  bigint[];
    v_over   int[];
    v_count  int;
    v_holds  int;
BEGIN
    IF true = ANY (p_guest) THEN
        v_guests := ARRAY(SELECT owner_id FROM unnest(p_owner, p_guest) AS a (owner_id, is_guest)
                           WHERE is_guest);
    END IF;
    WITH counted AS (
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max, holds)
        SELECT show_id, owner_id, sum(cardinality(seats::int[]))::int, max(seats_max),
               count(*) FILTER (WHERE claim_id LIKE '%@%')::int
          FROM unnest(p_show, p_owner, p_number, p_seats, p_max, p_claim)
            AS a (show_id, owner_id, number, seats, seats_max, claim_id)
         WHERE number IS NOT NULL
      GROUP BY show_id, owner_id
        HAVING sum(cardinality(seats::int[])) <= max(seats_max)
           AND (count(*) FILTER (WHERE claim_id LIKE '%@%') <= v_holds_max OR owner_id <> ALL (v_guests))
      ORDER BY show_id, owner_id
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max,
               holds = owner_count.holds + excluded.holds
         WHERE owner_count.seats + owner_count.guest_seats + excluded.seats <= excluded.seats_max
           AND (owner_count.lapses < v_lapses_max OR owner_count.lapsed_at <= v_cool_since)
           AND (owner_count.holds + excluded.holds <= v_holds_max OR excluded.owner_id <> ALL (v_guests))
     RETURNING show_id, owner_id
    )
    SELECT array_agg(show_id), array_agg(owner_id) INTO v_show, v_owner FROM counted;
    IF cardinality(v_show) = cardinality(array_remove(p_number, NULL)) THEN
        RETURN;  -- a counter for each request: all fit
    END IF;
    SELECT array_agg(ord ORDER BY show_id, owner_id, ord) INTO v_over
      FROM unnest(p_show, p_owner, p_number) WITH ORDINALITY AS a (show_id, owner_id, number, ord)
     WHERE number IS NOT NULL
       AND NOT EXISTS (SELECT FROM unnest(v_show, v_owner) AS counted (show_id, owner_id)
                        WHERE counted.show_id = a.show_id AND counted.owner_id = a.owner_id);

    FOREACH place IN ARRAY coalesce(v_over, '{}') LOOP  -- together they do not fit: try one by one
        v_count := cardinality(p_seats[place]::int[]);
        v_holds := (p_claim[place] LIKE '%@%')::int;
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max, holds)
        SELECT p_show[place], p_owner[place], v_count, p_max[place], v_holds
         WHERE v_count <= p_max[place]
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max,
               holds = owner_count.holds + excluded.holds
         WHERE owner_count.seats + owner_count.guest_seats + excluded.seats <= excluded.seats_max
           AND (owner_count.lapses < v_lapses_max OR owner_count.lapsed_at <= v_cool_since)
           AND (owner_count.holds + excluded.holds <= v_holds_max OR excluded.owner_id <> ALL (v_guests));
        IF NOT FOUND THEN
            SELECT CASE WHEN lapses >= v_lapses_max AND lapsed_at > v_cool_since THEN 'cooling'
                        WHEN holds + v_holds > v_holds_max AND owner_id = ANY (v_guests)
                        THEN 'has_hold' ELSE 'limit' END
              INTO reason
              FROM owner_count WHERE show_id = p_show[place] AND owner_id = p_owner[place];
            reason := coalesce(reason, 'limit');
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

-- Adds the new seats to the counters of their parties, in the same way.
CREATE OR REPLACE FUNCTION count_parties_up(
    p_show bigint[], p_number bigint[], p_claim text[], p_seats text[], p_limits hold_limits
) RETURNS TABLE (place int, reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_seats_max  int := coalesce((p_limits).range_seats_max, 2147483647);
    v_lapses_max int := coalesce((p_limits).range_lapses_max, 2147483647);
    v_cool_since timestamptz := now() - coalesce((p_limits).cooldown_s, 0) * interval '1 s';
    v_show   bigint[];  -- of the counters that were raised
    v_raised text[];
    v_wanted int;       -- counters to be raised
    v_count  int[];
    v_party  text[];
    v_over   int[];
BEGIN
    WITH wanted AS MATERIALIZED (
        SELECT show_id, split_part(claim_id, '@', 2) AS party, sum(cardinality(seats::int[]))::int AS seats
          FROM unnest(p_show, p_claim, p_number, p_seats) AS a (show_id, claim_id, number, seats)
         WHERE number IS NOT NULL AND split_part(claim_id, '@', 2) <> ''
      GROUP BY 1, 2
    ), counted AS (
        INSERT INTO party_count (show_id, party, seats)
        SELECT show_id, party, seats FROM wanted WHERE seats <= v_seats_max ORDER BY show_id, party
            ON CONFLICT (show_id, party) DO UPDATE SET seats = party_count.seats + excluded.seats
         WHERE party_count.seats + excluded.seats <= v_seats_max
           AND (party_count.lapses < v_lapses_max OR party_count.lapsed_at <= v_cool_since)
     RETURNING show_id, party
    )
    SELECT array_agg(show_id), array_agg(party), (SELECT count(*) FROM wanted)
      INTO v_show, v_raised, v_wanted
      FROM counted;
    IF coalesce(cardinality(v_show), 0) = v_wanted THEN
        RETURN;  -- all fit: whose request is over a limit need not be searched for
    END IF;
    v_count := ARRAY(SELECT cardinality(seats::int[]) FROM unnest(p_seats) AS seats);
    v_party := ARRAY(SELECT split_part(claim_id, '@', 2) FROM unnest(p_claim) AS claim_id);
    SELECT array_agg(ord ORDER BY show_id, party, ord) INTO v_over
      FROM unnest(p_show, v_party, p_number) WITH ORDINALITY AS a (show_id, party, number, ord)
     WHERE number IS NOT NULL AND party <> ''
       AND NOT EXISTS (SELECT FROM unnest(v_show, v_raised) AS counted (show_id, party)
                        WHERE counted.show_id = a.show_id AND counted.party = a.party);

    FOREACH place IN ARRAY coalesce(v_over, '{}') LOOP
        INSERT INTO party_count (show_id, party, seats)
        SELECT p_show[place], v_party[place], v_count[place]
         WHERE v_count[place] <= v_seats_max
            ON CONFLICT (show_id, party) DO UPDATE SET seats = party_count.seats + excluded.seats
         WHERE party_count.seats + excluded.seats <= v_seats_max
           AND (party_count.lapses < v_lapses_max OR party_count.lapsed_at <= v_cool_since);
        IF NOT FOUND THEN
            SELECT CASE WHEN lapses >= v_lapses_max AND lapsed_at > v_cool_since THEN 'cooling' END
              INTO reason
              FROM party_count WHERE show_id = p_show[place] AND party = v_party[place];
            reason := coalesce(reason, 'range_full');
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

-- Subtracts seats from the counters of the bookings' owners: p_seats per booking, or all seats of each where
-- it is NULL: unpaid holds end. A block does not count. With p_lapsed the budget of unpaid holds is used.
CREATE OR REPLACE FUNCTION count_owners_down(
    p_show bigint[], p_number bigint[], p_seats int[] DEFAULT NULL, p_lapsed boolean DEFAULT false
) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, count(*)::int AS bookings,
               count(*) FILTER (WHERE p_seats IS NULL AND booking.claim_id LIKE '%@%')::int AS holds,
               sum(CASE WHEN p_seats IS NULL THEN cardinality(booking.seats) ELSE a.seats END)::int AS seats
          FROM unnest(p_show, p_number, p_seats) AS a (show_id, number, seats)
          JOIN booking USING (show_id, number)
         WHERE booking.counts
         GROUP BY 1, 2
    ), locked AS (
        SELECT owner_count.show_id, owner_count.owner_id, gone.seats, gone.holds AS ended, gone.bookings,
               owner_count.lapses_since > now() - interval '1 hour' AS is_same_hour
          FROM owner_count JOIN gone USING (show_id, owner_id)
         WHERE gone.seats > 0
      ORDER BY owner_count.show_id, owner_count.owner_id
           FOR UPDATE OF owner_count
    )
    UPDATE owner_count
       SET seats = owner_count.seats - locked.seats,
           holds = greatest(0, owner_count.holds - locked.ended),
           lapses = CASE WHEN NOT p_lapsed THEN lapses
                         WHEN is_same_hour THEN lapses + bookings ELSE bookings END,
           lapses_since = CASE WHEN NOT p_lapsed OR is_same_hour THEN lapses_since ELSE now() END,
           lapsed_at = CASE WHEN p_lapsed THEN now() ELSE lapsed_at END
      FROM locked
     WHERE owner_count.show_id = locked.show_id AND owner_count.owner_id = locked.owner_id;
$$;

-- A guest has signed in: what they have counts for the account as well, in the transaction that does it.
CREATE OR REPLACE FUNCTION merge_owner_counts(p_guest bigint, p_account bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_shows bigint[] := ARRAY(SELECT DISTINCT show_id FROM booking WHERE owner_id = p_guest);
BEGIN
    PERFORM FROM owner_count
      WHERE show_id = ANY (v_shows) AND owner_id IN (p_guest, p_account)
      ORDER BY show_id, owner_id FOR UPDATE;
    WITH merged AS (
        UPDATE owner_count SET counts_for = p_account
         WHERE show_id = ANY (v_shows) AND owner_id = p_guest AND counts_for IS NULL
     RETURNING *
    )
    INSERT INTO owner_count (show_id, owner_id, seats, seats_max, guest_seats, lapses, lapses_since,
                             lapsed_at)
    SELECT show_id, p_account, 0, seats_max, seats, lapses, lapses_since, lapsed_at
      FROM merged
        ON CONFLICT (show_id, owner_id) DO UPDATE
       SET guest_seats = owner_count.guest_seats + excluded.guest_seats,
           lapses = owner_count.lapses + excluded.lapses,
           lapses_since = least(owner_count.lapses_since, excluded.lapses_since),
           lapsed_at = greatest(owner_count.lapsed_at, excluded.lapsed_at);
END $$;

CREATE OR REPLACE FUNCTION count_for_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner_count SET guest_seats = greatest(0, guest_seats + NEW.seats - OLD.seats)
     WHERE show_id = NEW.show_id AND owner_id = NEW.counts_for;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER count_for_account AFTER UPDATE OF seats ON owner_count
    FOR EACH ROW WHEN (NEW.counts_for IS NOT NULL AND NEW.seats <> OLD.seats AND OLD.counts_for IS NOT NULL)
    EXECUTE FUNCTION count_for_account();

-- Unpaid holds of owners who count for a party end, and the owners keep the seats.
CREATE OR REPLACE FUNCTION count_holds_down(p_show bigint[], p_number bigint[]) RETURNS void
LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, count(*)::int AS holds
          FROM unnest(p_show, p_number) AS a (show_id, number) JOIN booking USING (show_id, number)
         WHERE booking.claim_id LIKE '%@%'
         GROUP BY 1, 2
    ), locked AS (
        SELECT owner_count.show_id, owner_count.owner_id, gone.holds
          FROM owner_count JOIN gone USING (show_id, owner_id)
      ORDER BY owner_count.show_id, owner_count.owner_id
           FOR UPDATE OF owner_count
    )
    UPDATE owner_count SET holds = greatest(0, owner_count.holds - locked.holds)
      FROM locked
     WHERE owner_count.show_id = locked.show_id AND owner_count.owner_id = locked.owner_id;
$$;

-- These bookings are paid for, given back or lapsed: they no longer count for their party. A confirmed one
-- without a price goes on counting: otherwise one range could get all seats of a free show.
CREATE OR REPLACE FUNCTION count_parties_down(p_show bigint[], p_number bigint[], p_lapsed boolean)
RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, split_part(booking.claim_id, '@', 2) AS party, count(*)::int AS bookings,
               sum(cardinality(booking.seats))::int AS seats
          FROM unnest(p_show, p_number) AS a (show_id, number) JOIN booking USING (show_id, number)
         WHERE booking.claim_id LIKE '%@%' AND (booking.state <> 'confirmed' OR booking.amount_minor > 0)
         GROUP BY 1, 2
    ), locked AS (
        SELECT party_count.show_id, party_count.party, gone.seats, gone.bookings,
               party_count.lapses_since > now() - interval '1 hour' AS is_same_hour
          FROM party_count JOIN gone USING (show_id, party)
      ORDER BY party_count.show_id, party_count.party
           FOR UPDATE OF party_count
    )
    UPDATE party_count
       SET seats = greatest(0, party_count.seats - locked.seats),
           lapses = CASE WHEN NOT p_lapsed THEN lapses
                         WHEN is_same_hour THEN lapses + bookings ELSE bookings END,
           lapses_since = CASE WHEN NOT p_lapsed OR is_same_hour THEN lapses_since ELSE now() END,
           lapsed_at = CASE WHEN p_lapsed THEN now() ELSE lapsed_at END
      FROM locked
     WHERE party_count.show_id = locked.show_id AND party_count.party = locked.party;
$$;

-- Whether a booking had no price from the start, not only after its paid seats were given back.
CREATE OR REPLACE FUNCTION was_free(p_booking booking) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT p_booking.amount_minor = 0
           AND NOT EXISTS (SELECT FROM booking_move AS m
                            WHERE m.show_id = p_booking.show_id AND m.number = p_booking.number
                              AND m.move = 'pay');
$$;

-- Confirmed bookings without a price have given back p_seats of their seats.
CREATE OR REPLACE FUNCTION count_free_seats_down(p_show bigint[], p_number bigint[], p_seats int[])
RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        SELECT booking.show_id, split_part(booking.claim_id, '@', 2) AS party, sum(a.seats)::int AS seats
          FROM unnest(p_show, p_number, p_seats) AS a (show_id, number, seats)
          JOIN booking USING (show_id, number)
         WHERE booking.claim_id LIKE '%@%' AND was_free(booking)
         GROUP BY 1, 2
    ), locked AS (
        SELECT party_count.show_id, party_count.party, gone.seats
          FROM party_count JOIN gone USING (show_id, party)
      ORDER BY party_count.show_id, party_count.party
           FOR UPDATE OF party_count
    )
    UPDATE party_count SET seats = greatest(0, party_count.seats - locked.seats)
      FROM locked
     WHERE party_count.show_id = locked.show_id AND party_count.party = locked.party;
$$;

-- A booking that had ended takes seats again, or takes those of another one: counted whatever the limit says.
CREATE OR REPLACE FUNCTION count_party_again(p_booking booking, p_seats int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO party_count (show_id, party, seats)
    SELECT p_booking.show_id, split_part(p_booking.claim_id, '@', 2), p_seats
     WHERE p_booking.claim_id LIKE '%@%'
        ON CONFLICT (show_id, party) DO UPDATE SET seats = party_count.seats + excluded.seats;
$$;
