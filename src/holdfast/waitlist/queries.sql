-- The waitlist of a show. Changes are made under the lock of its row in `waitlist`.

-- name: add_waitlist
INSERT INTO waitlist (show_id) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: lock
-- Before the sale, before bookings: everything that changes the list waits here.
SELECT is_live, empty_at IS NOT NULL AND empty_at < now() - $2 * interval '1 s' AS is_idle
  FROM waitlist
 WHERE show_id = $1
   FOR UPDATE;

-- name: live_entry
SELECT * FROM waitlist_entry WHERE show_id = $1 AND owner_id = $2 AND ended_at IS NULL;

-- name: live_entries
-- Of one person, in all shows; the accounts are theirs.
SELECT * FROM waitlist_entry WHERE owner_id = ANY($1::bigint[]) AND ended_at IS NULL ORDER BY joined_at;

-- name: last_entry
-- The live one, or the one that ended last.
  SELECT * FROM waitlist_entry WHERE show_id = $1 AND owner_id = $2 ORDER BY number DESC LIMIT 1;

-- name: add_entry
-- The caller has the lock, and has looked for a live entry of this owner.
WITH next AS (
    UPDATE waitlist SET joined = joined + 1, is_live = true, empty_at = NULL WHERE show_id = $1
 RETURNING joined
)
INSERT INTO waitlist_entry (show_id, number, owner_id, seats, categories, price_minor_max, together, until,
                            queue_position)
SELECT $1, joined, $2, $3, $4, $5, $6, $7, $8 FROM next
RETURNING *;

-- name: end_entry
-- One that has ended stays as it did.
UPDATE waitlist_entry SET state = $3, ended_at = now()
 WHERE show_id = $1 AND number = $2 AND ended_at IS NULL;

-- name: ahead
-- Parties before this one, and the seats they want.
SELECT count(*)::int AS parties, coalesce(sum(seats), 0)::int AS seats
  FROM waitlist_entry
 WHERE show_id = $1 AND state = 'waiting'
   AND (coalesce(queue_position, 9223372036854775807), number)
       < (coalesce($2::bigint, 9223372036854775807), $3::bigint);

-- name: figures
SELECT (SELECT count(*)::int FROM waitlist_entry WHERE show_id = $1 AND state = 'waiting') AS parties,
       (SELECT coalesce(sum(seats), 0)::int FROM waitlist_entry
         WHERE show_id = $1 AND state = 'waiting') AS seats,
       (SELECT coalesce(sum(cardinality(seats)), 0)::int FROM waitlist_offer
         WHERE show_id = $1 AND offered_at > now() - $2 * interval '1 day') AS offered_seats;

-- name: waiting
-- The next parties in the order of the list, behind ($2, $3).
  SELECT *, coalesce(queue_position, 9223372036854775807) AS rank
    FROM waitlist_entry
   WHERE show_id = $1 AND state = 'waiting'
     AND (coalesce(queue_position, 9223372036854775807), number) > ($2::bigint, $3::bigint)
ORDER BY coalesce(queue_position, 9223372036854775807), number
   LIMIT $4;

-- name: is_waited_for
SELECT EXISTS (SELECT FROM waitlist_entry WHERE show_id = $1 AND state = 'waiting');

-- name: add_offer
WITH offered AS (
    UPDATE waitlist_entry SET state = 'offered' WHERE show_id = $1 AND number = $3
)
INSERT INTO waitlist_offer (show_id, number, entry, seats, expires_at) VALUES ($1, $2, $3, $4, $5);

-- name: offer_of_entry
SELECT number, seats, expires_at, outcome FROM waitlist_offer WHERE show_id = $1 AND entry = $2;

-- name: end_offers
-- Offers whose booking has ended, with their entries. One that is held or being paid for stays open.
WITH ended AS (
    UPDATE waitlist_offer
       SET outcome = CASE booking.state WHEN 'confirmed' THEN 'taken' WHEN 'refunded' THEN 'taken'
                                        WHEN 'cancelled' THEN 'declined' ELSE 'lapsed' END,
           ended_at = now()
      FROM offer_booking AS booking
     WHERE waitlist_offer.show_id = $1 AND waitlist_offer.outcome IS NULL
       AND booking.show_id = waitlist_offer.show_id AND booking.number = waitlist_offer.number
       AND booking.state NOT IN ('held', 'paying')
 RETURNING waitlist_offer.entry, waitlist_offer.number, waitlist_offer.seats, waitlist_offer.outcome
)
UPDATE waitlist_entry SET state = ended.outcome, ended_at = now()
  FROM ended
 WHERE waitlist_entry.show_id = $1 AND waitlist_entry.number = ended.entry AND ended_at IS NULL
RETURNING waitlist_entry.number AS entry, ended.number, ended.seats, waitlist_entry.owner_id,
          ended.outcome AS state;

-- name: end_waits
-- Parties whose own time is over; all of them if the sale is over.
UPDATE waitlist_entry SET state = CASE WHEN $2 THEN 'closed' ELSE 'timed_out' END, ended_at = now()
 WHERE show_id = $1 AND state = 'waiting' AND ($2 OR until <= now())
RETURNING number AS entry, NULL::bigint AS number, NULL::int[] AS seats, owner_id, state;

-- name: mark_empty
UPDATE waitlist SET empty_at = coalesce(empty_at, now()) WHERE show_id = $1;

-- name: mark_waiting
UPDATE waitlist SET empty_at = NULL WHERE show_id = $1 AND empty_at IS NOT NULL;

-- name: mark_over
UPDATE waitlist SET is_live = false WHERE show_id = $1;

-- name: due
-- Waitlists with something to do: reserved seats, an offer or a wait that has ended, or no party left since
-- $3 seconds. The others cost this one look.
  SELECT show_id
    FROM waitlist
    JOIN sale_for_waitlist AS sale USING (show_id)
   WHERE waitlist.is_live AND show_id > $1
     AND (sale.is_over OR NOT sale.has_waitlist
          OR EXISTS (SELECT FROM waitlist_entry AS entry
                      WHERE entry.show_id = waitlist.show_id AND entry.state = 'waiting'
                        AND entry.until <= now())
          OR EXISTS (SELECT FROM waitlist_offer AS offer
                       JOIN offer_booking AS booking USING (show_id, number)
                      WHERE offer.show_id = waitlist.show_id AND offer.outcome IS NULL
                        AND booking.state NOT IN ('held', 'paying'))
          OR EXISTS (SELECT FROM waitlist_return AS back
                      WHERE back.show_id = waitlist.show_id AND back.ended_at IS NULL)
          OR waitlist.empty_at < now() - $3 * interval '1 s'
          OR waitlist.empty_at IS NULL
             AND NOT EXISTS (SELECT FROM waitlist_entry AS entry
                              WHERE entry.show_id = waitlist.show_id AND entry.state = 'waiting'))
   UNION
  SELECT show_id FROM seat_for_waitlist JOIN sale_for_waitlist USING (show_id) WHERE show_id > $1
ORDER BY show_id
   LIMIT $2;

-- name: live_among
SELECT show_id FROM waitlist WHERE show_id = ANY ($1) AND is_live;

-- name: parties
  SELECT entry.*, account.name, coalesce(account.reached_at, '') AS email, offer.number AS offer_number,
         offer.seats AS offer_seats, offer.outcome AS offer_outcome
    FROM waitlist_entry AS entry
    JOIN account_profile AS account ON account.id = entry.owner_id
    LEFT JOIN waitlist_offer AS offer ON offer.show_id = entry.show_id AND offer.entry = entry.number
   WHERE entry.show_id = $1 AND entry.number > $2 AND ($3::text IS NULL OR entry.state = $3)
ORDER BY entry.number
   LIMIT $4;

-- name: counts
SELECT state, count(*)::int AS parties FROM waitlist_entry WHERE show_id = $1 GROUP BY state;

-- name: reserved
SELECT seat FROM seat_for_waitlist WHERE show_id = $1 ORDER BY seat;

-- name: is_due
-- Whether there is a waitlist that may have something to do.
SELECT count(*) FROM (SELECT FROM waitlist WHERE is_live ORDER BY show_id LIMIT 1) AS due;
