-- The waitlist: $1 is how many seconds a step may be late.

-- name: reserved_seats_have_their_key
-- A seat is reserved exactly if its key has the number 0, and then no live booking has it.
SELECT coalesce(reserved.show_id, taken.show_id) AS show_id,
       format('seat %s: reserved since %s, key %s', coalesce(reserved.seat, taken.seat), reserved.since,
              taken.number) AS what
  FROM reserved_seat AS reserved
  FULL JOIN (SELECT show_id, seat, number FROM taken_seat WHERE number = 0) AS taken
         ON taken.show_id = reserved.show_id AND taken.seat = reserved.seat
 WHERE (reserved.seat IS NULL OR taken.seat IS NULL) AND $1::int > 0;

-- name: reserved_seats_are_waited_for
-- Without a waiting party they are public again.
SELECT show_id, format('seat %s is reserved since %s, and no party waits', seat, since) AS what
  FROM reserved_seat
 WHERE since < now() - $1 * interval '1 s'
   AND NOT EXISTS (SELECT FROM waitlist_entry AS entry
                    WHERE entry.show_id = reserved_seat.show_id
                      AND (entry.state = 'waiting' OR entry.ended_at > now() - $1 * interval '1 s'));

-- name: every_offer_ends
-- As taken, declined or lapsed, as its booking did; its entry says the same.
SELECT offer.show_id,
       format('offer %s: %s, its booking %s, its party %s', offer.number, coalesce(offer.outcome, 'open'),
              coalesce(booking.state::text, 'gone'), coalesce(entry.state, 'gone')) AS what
  FROM waitlist_offer AS offer
  LEFT JOIN booking ON booking.show_id = offer.show_id AND booking.number = offer.number
  LEFT JOIN waitlist_entry AS entry ON entry.show_id = offer.show_id AND entry.number = offer.entry
  LEFT JOIN LATERAL (SELECT max(at) AS at FROM booking_move AS move
                      WHERE move.show_id = offer.show_id AND move.number = offer.number) AS moved ON true
 WHERE entry.state IS DISTINCT FROM coalesce(offer.outcome, 'offered')
    OR offer.outcome = 'taken' AND booking.state NOT IN ('confirmed', 'refunded')
    OR offer.outcome IS NULL AND booking.state IS NULL
    OR offer.outcome IS NULL AND booking.state NOT IN ('held', 'paying')
       AND moved.at < now() - $1 * interval '1 s';
