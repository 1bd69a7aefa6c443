-- name: one_owner_per_seat
-- S1. Counted from the bookings themselves, not from the key that is there to prevent it.
  SELECT show_id, format('seat %s is in %s live bookings', seat, count(*)) AS what
    FROM (SELECT show_id, unnest(seats) AS seat FROM booking
           WHERE state IN ('held', 'paying', 'confirmed', 'blocked')) AS live
GROUP BY show_id, seat
  HAVING count(*) > 1;

-- name: read_by_blocks
-- Until the transaction ends: one plan, by bitmaps, whatever the statistics say. Those from before a sale
-- expect hardly any holds, and would fetch each of them by itself; those of a long past expect that as many
-- shows as are checked at once have much of it, and would read all bookings.
SELECT set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'off', true);

-- name: oversold_in
-- The same for some shows ($1), each state by an index of its own: ended bookings are not read. Holds are
-- found by their end: "IS TRUE" keeps the planner from looking for them by show, where it would find ended
-- ones, too, and from comparing each of them with every element of the array.
  SELECT show_id, seat
    FROM (SELECT show_id, unnest(seats) AS seat FROM booking
           WHERE state = 'held' AND (show_id IN (SELECT unnest($1::bigint[]))) IS TRUE
           UNION ALL
          SELECT show_id, unnest(seats) FROM booking WHERE show_id = ANY ($1) AND state = 'confirmed'
           UNION ALL
          SELECT show_id, unnest(seats) FROM booking
           WHERE show_id = ANY ($1) AND state IN ('paying', 'blocked')) AS live
GROUP BY show_id, seat
  HAVING count(*) > 1;

-- name: sales_after
-- The next sales after ($1, $2) that have not been over for a day, the soonest to close first, and their
-- sizes, one by one: joined, all shows of the past would be read.
SELECT closes_at, show_id,
       (SELECT layout.seats FROM show JOIN layout ON layout.hash = show.layout_hash
         WHERE show.id = next.show_id) AS seats
  FROM (SELECT closes_at, show_id
          FROM sale
         WHERE closes_at > now() - interval '1 day' AND (closes_at, show_id) > ($1, $2)
      ORDER BY closes_at, show_id
         LIMIT $3) AS next
ORDER BY closes_at, show_id;

-- name: seats_taken_as_booked
-- A live booking has exactly its seats in taken_seat, and no other booking has any. An archived sale has
-- none. A key with the number 0 is reserved for the waitlist: waitlist.sql.
SELECT coalesce(live.show_id, taken_seat.show_id) AS show_id,
       format('seat %s: booking %s, key %s',
              coalesce(live.seat, taken_seat.seat), live.number, taken_seat.number) AS what
  FROM (SELECT show_id, number, unnest(seats) AS seat FROM booking
         WHERE state IN ('held', 'paying', 'confirmed', 'blocked')) AS live
  FULL JOIN taken_seat ON taken_seat.show_id = live.show_id AND taken_seat.seat = live.seat
 WHERE live.number IS DISTINCT FROM taken_seat.number
   AND (live.number IS NOT NULL OR taken_seat.number <> 0)
   AND NOT EXISTS (SELECT FROM sale WHERE sale.show_id = live.show_id AND sale.archived_at IS NOT NULL);

-- name: no_owner_over_the_limit
-- S12. The counter is what the owner has, and not above what is allowed.
SELECT coalesce(has.show_id, owner_count.show_id) AS show_id,
       format('owner %s has %s seats, counted %s, allowed %s', coalesce(has.owner_id, owner_count.owner_id),
              has.seats, owner_count.seats, owner_count.seats_max) AS what
  FROM (SELECT show_id, owner_id, sum(cardinality(seats))::int AS seats FROM booking
         WHERE state IN ('held', 'paying', 'confirmed') AND counts
         GROUP BY 1, 2) AS has
  FULL JOIN owner_count ON owner_count.show_id = has.show_id AND owner_count.owner_id = has.owner_id
 WHERE (coalesce(has.seats, 0) <> coalesce(owner_count.seats, 0)
        OR owner_count.seats > owner_count.seats_max)
   AND NOT EXISTS (SELECT FROM sale WHERE sale.show_id = has.show_id AND sale.archived_at IS NOT NULL);

-- name: no_range_miscounted
-- Unpaid and free seats of an address range, and unpaid holds of their owners, are what the counters say.
SELECT coalesce(has.show_id, party_count.show_id) AS show_id,
       format('range %s has %s unpaid seats, counted %s', coalesce(has.party, party_count.party), has.seats,
              party_count.seats) AS what
  FROM (SELECT show_id, split_part(claim_id, '@', 2) AS party, sum(cardinality(seats))::int AS seats
          FROM booking
         WHERE claim_id LIKE '%@%'
           AND (state IN ('held', 'paying') OR state = 'confirmed' AND was_free(booking))
         GROUP BY 1, 2) AS has
  FULL JOIN party_count ON party_count.show_id = has.show_id AND party_count.party = has.party
 WHERE coalesce(has.seats, 0) <> coalesce(party_count.seats, 0)
   AND NOT EXISTS (SELECT FROM sale WHERE sale.show_id = has.show_id AND sale.archived_at IS NOT NULL)
 UNION ALL
SELECT coalesce(has.show_id, owner_count.show_id),
       format('owner %s has %s unpaid holds, counted %s', coalesce(has.owner_id, owner_count.owner_id),
              has.holds, owner_count.holds)
  FROM (SELECT show_id, owner_id, count(*)::int AS holds
          FROM booking
         WHERE state IN ('held', 'paying') AND claim_id LIKE '%@%'
         GROUP BY 1, 2) AS has
  FULL JOIN owner_count ON owner_count.show_id = has.show_id AND owner_count.owner_id = has.owner_id
 WHERE coalesce(has.holds, 0) <> coalesce(owner_count.holds, 0)
   AND NOT EXISTS (SELECT FROM sale WHERE sale.show_id = has.show_id AND sale.archived_at IS NOT NULL);

-- name: every_move_recorded
-- S8. The last audit row of a booking says the state it is in.
SELECT booking.show_id,
       format('booking %s is %s, its last move says %s', booking.number, booking.state, last.state) AS what
  FROM booking
  LEFT JOIN LATERAL (SELECT state FROM booking_move
                      WHERE booking_move.show_id = booking.show_id AND booking_move.number = booking.number
                   ORDER BY id DESC LIMIT 1) AS last ON true
 WHERE last.state IS DISTINCT FROM booking.state;

-- name: moves_follow_the_state_machine
-- S8. Every step of every booking is one that the drawing has.
SELECT show_id, format('booking %s went from %s to %s', number, before, state) AS what
  FROM (SELECT show_id, number, move, state,
               lag(state) OVER (PARTITION BY show_id, number ORDER BY id) AS before
          FROM booking_move) AS steps
 WHERE before IS NOT NULL
   AND NOT (move = 'reduce' AND before = state AND (state = 'confirmed' OR state = 'blocked'))
   AND NOT (move = 'merge' AND before = state AND state = 'held')
   AND (before, state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'),
        ('expired', 'confirmed'), ('expired', 'failed'), ('confirmed', 'refunded'),
        ('blocked', 'cancelled'));

-- name: one_fact_per_move
-- S14. A booking has as many facts as moves. A move and its fact are
-- of one moment; those from before the last purge are not counted, nor those from before a show was moved
-- here: its facts are in the database that it came from.
SELECT coalesce(moves.show_id, facts.show_id) AS show_id,
       format('booking %s has %s moves and %s facts', coalesce(moves.number, facts.number),
              coalesce(moves.n, 0), coalesce(facts.n, 0)) AS what
  FROM (SELECT show_id, number, count(*) AS n
          FROM fact_log, booking_move LEFT JOIN show_copy USING (show_id)
         WHERE at >= purged_until
           AND id > coalesce(moves_until, 0) AND coalesce(epoch, 1) > 0 GROUP BY 1, 2) AS moves
  FULL JOIN (SELECT show_id, number, count(*) AS n
               FROM fact_log, outbox LEFT JOIN show_copy USING (show_id)
              WHERE at >= purged_until AND kind LIKE 'booking.%'
                AND id > coalesce(facts_until, 0) AND coalesce(epoch, 1) > 0 GROUP BY 1, 2) AS facts
    ON facts.show_id = moves.show_id AND facts.number = moves.number
 WHERE moves.n IS DISTINCT FROM facts.n;

-- name: expired_holds_are_closed
-- L1. A hold whose time passed is closed within seconds. Not that of a show that is being moved, or that was
-- deleted in a pod: its database writes nothing of it.
SELECT show_id, format('booking %s lapsed at %s and is still held', number, expires_at) AS what
  FROM booking
 WHERE state = 'held' AND expires_at < now() - $1 * interval '1 s' AND show_is_here(show_id);

-- name: amounts_add_up
SELECT show_id, format('booking %s: seats cost %s, amount %s', number,
                       (SELECT sum(p) FROM unnest(prices_minor) AS p), amount_minor) AS what
  FROM booking
 WHERE amount_minor <> (SELECT coalesce(sum(p), 0) FROM unnest(prices_minor) AS p);

-- name: shows_on_the_map
-- Shows with a live booking, or a sale that is open.
SELECT show_id FROM sale WHERE show_id IN (SELECT show_id FROM taken_seat)
 UNION
SELECT show_id FROM sale WHERE epoch > 1 AND closes_at > now();

-- name: dead_letters
-- Each count has a partial index, or reads a table that is nearly empty.
SELECT (SELECT count(*)::int FROM parked_fact WHERE dead_at IS NOT NULL) AS facts,
       (SELECT count(*)::int FROM gateway_webhook WHERE dead)            AS webhooks,
       (SELECT count(*)::int FROM notice WHERE state = 'dead')           AS notices;
