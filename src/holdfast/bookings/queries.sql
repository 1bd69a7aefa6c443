-- name: open_holds
-- Many claims become durable holds in one round trip: functions_opening.sql. The lock wait is limited for
-- this statement alone; the last argument depends on it, so that it is set before the function runs. So is
-- the trace that facts carry to their consumers; empty: the batch is not sampled.
SELECT opened.*
  FROM concat(set_config('lock_timeout', $15, true), set_config('holdfast.trace', $18, true)) AS lock_wait,
       open_holds($1::text::bigint[], $2::text::bigint[], $3::text::text[], $4::text::bigint[],
                  $5::text::text[], $6::text::text[], $7::text::int[], $8::text::bigint[],
                  $9::text::text[], $10::text::text[], $11::text::text[], $12::text::bigint[],
                  $13::text::boolean[], $14 AND lock_wait IS NOT NULL,
                  $16::text::boolean[], $17::text::hold_limits) AS opened;

-- name: confirm_free
SELECT * FROM confirm_free($1, $2, $3);

-- name: merge
-- The lock wait is limited as in open_holds.
SELECT merged.*, (extract(epoch FROM expires_at - now()) * 1000)::int AS left_ms
  FROM set_config('lock_timeout', $7, true) AS lock_wait,
       merge_holds($1, $2, $3, $4, $5, CASE WHEN lock_wait IS NOT NULL THEN $6::int END) AS merged;

-- name: booking_of_request
SELECT *, state = 'held' AND expires_at <= now() AS has_lapsed
  FROM booking
 WHERE owner_id = $1 AND show_id = $2 AND request_id = $3;

-- name: bookings
SELECT found.*
  FROM unnest($1::bigint[], $2::bigint[]) AS requested(show_id, number)
 CROSS JOIN LATERAL (SELECT *
                       FROM booking
                      WHERE booking.show_id = requested.show_id AND booking.number = requested.number
                      LIMIT 1) AS found;

-- name: bookings_of_owner
-- Newest first; a page starts before a number.
  SELECT *
    FROM booking
   WHERE owner_id = $1 AND number < $2 AND state <> 'blocked' AND counts
ORDER BY number DESC
   LIMIT $3;

-- name: open_holds_of
-- Of each of these owners in a show, the newest first.
SELECT found.*
  FROM unnest($1::bigint[], $2::bigint[]) AS requested(owner_id, show_id)
 CROSS JOIN LATERAL (SELECT *
                       FROM booking
                      WHERE booking.owner_id = requested.owner_id AND booking.show_id = requested.show_id
                        AND state = 'held' AND expires_at > now() AND counts
                   ORDER BY number DESC
                      LIMIT $3) AS found;

-- name: seats_of_owner
-- An owner's seats in a show now, without expired holds.
SELECT number, seats, state, expires_at
  FROM booking
 WHERE owner_id = $1
   AND show_id = $2
   AND (state IN ('paying', 'confirmed') OR (state = 'held' AND expires_at > now()))
   AND counts;

-- name: sweep
-- HELD rows whose time has passed, oldest first; rows another sweep has in hand are skipped. $2: of all
-- shows, without a look at which of them this database sells.
WITH lapsed AS (
    SELECT array_agg(show_id) AS shows, array_agg(number) AS numbers
      FROM (SELECT show_id, number FROM booking
             WHERE state = 'held' AND expires_at <= now() AND ($2 OR show_is_here(show_id))
          ORDER BY expires_at LIMIT $1) AS oldest
)
SELECT expired.show_id, expired.number
  FROM lapsed, expire_lapsed(lapsed.shows, lapsed.numbers) AS expired;

-- name: sweep_show
-- The same for one show.
WITH lapsed AS (
    SELECT array_agg(show_id) AS shows, array_agg(number) AS numbers
      FROM (SELECT show_id, number FROM booking
             WHERE state = 'held' AND expires_at <= now() AND show_id = $1
          ORDER BY expires_at LIMIT $2) AS oldest
)
SELECT count(*) FROM lapsed, expire_lapsed(lapsed.shows, lapsed.numbers);

-- name: cancel
-- The lock wait is limited, and the trace set, as in open_holds.
SELECT cancelled.*
  FROM concat(set_config('lock_timeout', $6, true), set_config('holdfast.trace', $7, true)) AS lock_wait,
       cancel_holds($1, $2, $3, $4, CASE WHEN lock_wait IS NOT NULL THEN $5::bigint END) AS cancelled;

-- name: extension
-- How long a hold may be made to last from now, in ms; no row: it is not held any more.
-- Never less than it has: a claim that ended before its row would show a held seat as free.
SELECT floor(extract(epoch FROM
           greatest(expires_at, least(now() + $4 * interval '1 ms', opened_at + $5 * interval '1 s')) - now()
       ) * 1000)::bigint AS left_ms,
       fence, expires_at
  FROM booking
 WHERE show_id = $1 AND number = $2 AND owner_id = $3 AND state = 'held' AND expires_at > now();

-- name: extend
-- The lock wait is limited as in open_holds.
SELECT extended.*
  FROM set_config('lock_timeout', $6, true) AS lock_wait,
       extend_holds($1, $2, $3, $4, CASE WHEN lock_wait IS NOT NULL THEN $5::int END) AS extended;

-- name: block
SELECT * FROM block_seats($1, $2, $3, $4);

-- name: blocks
SELECT * FROM booking WHERE show_id = $1 AND state = 'blocked' ORDER BY number;

-- name: set_sale
-- Raises the epoch: the map must be rebuilt before Redis sells from it.
INSERT INTO sale (show_id, opens_at, closes_at, cancelled, owner_seats_max, revision)
VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (show_id) DO UPDATE
   SET opens_at = excluded.opens_at, closes_at = excluded.closes_at, cancelled = excluded.cancelled,
       owner_seats_max = excluded.owner_seats_max, revision = excluded.revision,
       epoch = sale.epoch + 1, map_stale = true, marked_at = now(),
       emptied_at = CASE WHEN excluded.cancelled THEN sale.emptied_at END;

-- name: mark_sale
-- The map of this show must be rebuilt before Redis sells from it again. Once is enough; and not at all if
-- there is a later map than the one that was found wrong ($2).
UPDATE sale SET map_stale = true, epoch = epoch + 1, marked_at = now()
 WHERE show_id = $1 AND NOT map_stale AND ($2::bigint IS NULL OR epoch <= $2);

-- name: lock_sale
-- Against holds that are being opened, until the map is published.
SELECT epoch, map_stale, revision, cancelled OR hidden AS is_closed, has_waitlist,
       floor(extract(epoch FROM opens_at - now()) * 1000)::bigint AS opens_in_ms,
       floor(extract(epoch FROM closes_at - now()) * 1000)::bigint AS closes_in_ms
  FROM sale
 WHERE show_id = $1
   FOR UPDATE;

-- name: raise_epoch
UPDATE sale SET epoch = $2, map_stale = false, marked_at = now() WHERE show_id = $1;

-- name: sale
-- The time since the epoch was raised stands in for a version while only the ledger can be read.
SELECT epoch, map_stale, revision, floor(extract(epoch FROM now() - marked_at) * 10)::bigint AS age_ds
  FROM sale
 WHERE show_id = $1;

-- name: stale_sales
-- Shows whose map must be rebuilt, and that are still on sale.
SELECT show_id
  FROM sale
 WHERE map_stale AND epoch > 1 AND closes_at > now() AND opens_at < now() + interval '1 minute'
 LIMIT $1;

-- name: live_bookings
-- Everything that takes seats in a show now. Found by the seats, so that ended bookings cost nothing. The
-- array makes it two index scans whatever the statistics say: they know nothing of a show that has just gone
-- on sale, and a join planned for one row took 38 s for 15 000. Seats that are reserved for the waitlist are
-- a block without a number; so are those of lapsed holds that no sweep has closed, if there is a waitlist.
WITH live AS (
    SELECT number, owner_id, claim_id, seats, state::text AS state, counts,
           ceil(extract(epoch FROM expires_at - now()) * 1000)::bigint AS left_ms,
           state = 'held' AND expires_at <= now()
           AND (SELECT has_waitlist FROM sale WHERE show_id = $1) AS is_waited_for
      FROM booking
     WHERE show_id = $1
       AND number = ANY (ARRAY(SELECT DISTINCT number FROM taken_seat WHERE show_id = $1))
)
SELECT number, owner_id, claim_id, seats, state, counts, left_ms FROM live WHERE is_waited_for IS NOT TRUE
 UNION ALL
SELECT 0, 0, 'waitlist', array_agg(seat ORDER BY seat), 'blocked', false, 0
  FROM (SELECT seat FROM reserved_seat WHERE show_id = $1
         UNION ALL
        SELECT unnest(seats) FROM live WHERE is_waited_for) AS reserved
HAVING count(*) > 0;

-- name: lapses
-- Owners and parties whose holds ended unpaid lately: those that may be in a cool-down, a day at most. Found
-- by an index that has only them.
SELECT owner_id::text AS who, lapses,
       (extract(epoch FROM now() - lapses_since) * 1000)::bigint AS first_ms_ago,
       (extract(epoch FROM now() - lapsed_at) * 1000)::bigint AS last_ms_ago
  FROM owner_count
 WHERE show_id = $1 AND lapses > 0
   AND lapsed_at > now() - interval '1 day'
 UNION ALL
SELECT '@' || party, lapses,
       (extract(epoch FROM now() - lapses_since) * 1000)::bigint,
       (extract(epoch FROM now() - lapsed_at) * 1000)::bigint
  FROM party_count
 WHERE show_id = $1 AND lapses > 0
   AND lapsed_at > now() - interval '1 day';

-- name: shows_with_moves
-- Shows something happened in since then, after this one.
SELECT DISTINCT show_id FROM booking_move
 WHERE at > now() - $1 * interval '1 s' AND show_id > $2 ORDER BY show_id LIMIT $3;

-- name: open_sales
-- The next shows after this one that are on sale and have had a map.
SELECT show_id FROM sale
 WHERE show_id > $1 AND closes_at > now() AND epoch > 1 AND NOT map_stale ORDER BY show_id LIMIT $2;

-- name: counts
-- Seats by state, for listings; a lapsed hold is free, and a seat reserved for the waitlist is blocked.
-- Held and paying seats are what remains of the taken ones: an index of live bookings by show would cost each
-- hold an entry, and every look at lapsed bookings gets slower with each night of them. An archived sale has
-- no taken seats.
-- MATERIALIZED: lapsed holds are found by their end; by their show the planner would find ended ones, too.
WITH due AS MATERIALIZED (
    SELECT show_id, seats FROM booking WHERE state = 'held' AND expires_at <= now()
), lapsed AS (
    SELECT show_id, sum(cardinality(seats))::int AS seats FROM due WHERE show_id = ANY ($1) GROUP BY show_id
)
SELECT requested.show_id, booked.seats AS booked, blocked.seats + reserved.seats AS blocked,
       greatest(taken.seats - booked.seats - blocked.seats - reserved.seats - coalesce(lapsed.seats, 0), 0)
           AS held
  FROM unnest($1::bigint[]) AS requested (show_id)
 CROSS JOIN LATERAL (SELECT count(*)::int AS seats FROM taken_seat
                      WHERE taken_seat.show_id = requested.show_id) AS taken
 CROSS JOIN LATERAL (SELECT coalesce(sum(cardinality(seats)), 0)::int AS seats FROM booking
                      WHERE booking.show_id = requested.show_id AND state = 'confirmed') AS booked
 CROSS JOIN LATERAL (SELECT coalesce(sum(cardinality(seats)), 0)::int AS seats FROM booking
                      WHERE booking.show_id = requested.show_id AND state = 'blocked') AS blocked
 CROSS JOIN LATERAL (SELECT count(*)::int AS seats FROM reserved_seat
                      WHERE reserved_seat.show_id = requested.show_id) AS reserved
  LEFT JOIN lapsed USING (show_id);

-- name: sale_of_copy
-- What the database that sells a show decides about its sale; the rest is the organiser's.
SELECT epoch, emptied_at, archived_at, purged_at, has_waitlist FROM sale WHERE show_id = $1;

-- name: adopt_sale
-- The show was moved here. Maps of this database are newer than all maps before.
UPDATE sale
   SET epoch = greatest(epoch, $2) + 1, map_stale = true, marked_at = now(),
       emptied_at = $3, archived_at = $4, purged_at = $5, has_waitlist = $6
 WHERE show_id = $1;

-- name: has_bookings
SELECT EXISTS (SELECT FROM booking);
