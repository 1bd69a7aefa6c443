-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: lapsed
-- Bookings that lapsed or were cancelled, with their moves. One that was ever paid for stays: money may have
-- moved. So does one with facts that consumers may still read. The position is the end of the last one seen,
-- in microseconds.
WITH seen AS MATERIALIZED (
      SELECT show_id, number, expires_at
        FROM booking
       WHERE state IN ('expired', 'cancelled')
         AND expires_at < now() - $2 * interval '1 day'
         AND expires_at > timestamptz '1970-01-01 UTC' + $1 * interval '1 microsecond'
    ORDER BY expires_at
       LIMIT $3
), old AS MATERIALIZED (
    SELECT show_id, number
      FROM seen
     WHERE NOT has_facts(show_id, number) AND show_is_here(show_id)
       AND NOT EXISTS (SELECT FROM booking_move AS m
                        WHERE m.show_id = seen.show_id AND m.number = seen.number AND m.move = 'pay')
), moves AS (
    DELETE FROM booking_move USING old
     WHERE booking_move.show_id = old.show_id AND booking_move.number = old.number
), gone AS (
    DELETE FROM booking USING old
     WHERE booking.show_id = old.show_id AND booking.number = old.number
 RETURNING 1
)
SELECT CASE WHEN count(*) = $3 THEN (extract(epoch FROM max(expires_at)) * 1000000)::bigint END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM seen;

-- name: past_sales
-- Seat keys and counters. One sale after the other, so a position is not needed.
SELECT reached, deleted FROM archive_past_sales($2::int, $3::int) WHERE $1::bigint >= 0;
