-- Statements of the dispatch. Most take many rows at once; each says what happens to rows that do not match.
-- Lock order: rides before offers. Answers skip rows that another transaction has locked: the phone sends
-- them again a moment later, and no two statements wait for each other.

-- name: add_drivers
INSERT INTO driver (driver_id, cell) SELECT * FROM unnest($1::int[], $2::bigint[]);

-- name: report_drivers
-- A driver that is not in the table is ignored.
UPDATE driver SET cell = report.cell, is_online = report.is_online
  FROM unnest($1::int[], $2::bigint[], $3::boolean[]) AS report (driver_id, cell, is_online)
 WHERE driver.driver_id = report.driver_id;

-- name: request_rides
INSERT INTO ride (pickup, dropoff, gives_up_at)
SELECT pickup, dropoff, statement_timestamp() + $3 * interval '1 second'
  FROM unnest($1::bigint[], $2::bigint[]) AS trip (pickup, dropoff)
RETURNING ride_id;

-- name: read_free_drivers
SELECT driver_id, cell FROM driver
 WHERE is_online AND NOT EXISTS (
       SELECT FROM offer WHERE offer.driver_id = driver.driver_id AND state IN ('offered', 'accepted'));

-- name: take_rides
-- Rides that a living worker has, or that are locked, are left alone.
UPDATE ride SET due_at = statement_timestamp() + $2 * interval '1 second', turn = turn + 1
 WHERE ride_id IN (
       SELECT ride_id FROM ride WHERE state = 'waiting' AND due_at <= statement_timestamp()
        ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING ride_id, pickup, turn,
       ARRAY(SELECT driver_id FROM offer WHERE offer.ride_id = ride.ride_id) AS tried,
       (SELECT offer_id || ' ' || driver_id FROM offer
         WHERE offer.ride_id = ride.ride_id AND offer.state = 'offered') AS live;

-- name: renew_rides
-- A ride that another worker has taken is not returned: this worker must stop matching it.
UPDATE ride SET due_at = statement_timestamp() + $3 * interval '1 second'
  FROM unnest($1::bigint[], $2::int[]) AS mine (ride_id, turn)
 WHERE ride.ride_id = mine.ride_id AND ride.turn = mine.turn
RETURNING ride.ride_id, ride.turn;

-- name: make_offer
-- No offer if another worker has the ride (is_ours is false), or if the driver is offline, has a live offer
-- or is on a ride.
WITH mine AS (
    UPDATE ride SET due_at = greatest(due_at, statement_timestamp() + $6 * interval '1 second')
     WHERE ride_id = $2 AND turn = $3 AND state = 'waiting' RETURNING ride_id
), made AS (
    INSERT INTO offer (offer_id, ride_id, driver_id, ends_at)
    SELECT $1, mine.ride_id, driver_id, statement_timestamp() + $5 * interval '1 second'
      FROM mine, driver WHERE driver_id = $4 AND is_online
    ON CONFLICT DO NOTHING RETURNING offer_id
)
SELECT EXISTS (SELECT FROM mine) AS is_ours, EXISTS (SELECT FROM made) AS is_made;

-- name: close_overdue_offers
-- The answers to these offers, and "lapsed" for those whose time is over. A live offer is not returned.
WITH overdue AS (
    SELECT offer_id FROM offer
     WHERE offer_id = ANY ($1::text[]) AND state = 'offered' AND ends_at <= statement_timestamp()
       FOR UPDATE SKIP LOCKED
), lapsed AS (
    UPDATE offer SET state = 'lapsed' FROM overdue WHERE offer.offer_id = overdue.offer_id
    RETURNING offer.offer_id, state
)
SELECT offer_id, state FROM offer WHERE offer_id = ANY ($1::text[]) AND state <> 'offered'
UNION SELECT offer_id, state FROM lapsed;

-- name: give_up_ride
-- Not before the rider's patience is over, not while an offer is live, not if another worker has the ride.
UPDATE ride SET state = 'no_driver'
 WHERE ride_id = $1 AND turn = $2 AND state = 'waiting' AND gives_up_at <= statement_timestamp()
   AND NOT EXISTS (SELECT FROM offer WHERE offer.ride_id = ride.ride_id AND offer.state = 'offered')
RETURNING ride_id;

-- name: read_open_offers
SELECT offer_id, ride_id, driver_id,
       extract(epoch FROM ends_at - statement_timestamp())::float8 AS left_s,
       extract(epoch FROM ends_at - made_at)::float8 AS whole_s
  FROM offer WHERE state = 'offered';

-- name: accept_offers
-- The commit. Nothing happens to an offer that has ended or was answered before, whose ride is not waiting,
-- or whose row is locked. The keys refuse a second driver for a ride, and a second ride for a driver.
WITH live AS (
    SELECT offer_id, ride_id, driver_id FROM ride JOIN offer USING (ride_id)
     WHERE offer_id = ANY ($1::text[]) AND offer.state = 'offered' AND ends_at > statement_timestamp()
       AND ride.state = 'waiting'
       FOR UPDATE SKIP LOCKED
), assigned AS (
    INSERT INTO assignment (ride_id, driver_id, offer_id) SELECT ride_id, driver_id, offer_id FROM live
    ON CONFLICT DO NOTHING RETURNING ride_id, offer_id
), answered AS (
    UPDATE offer SET state = 'accepted' FROM assigned WHERE offer.offer_id = assigned.offer_id
)
UPDATE ride SET state = 'assigned' FROM assigned WHERE ride.ride_id = assigned.ride_id
RETURNING assigned.offer_id;

-- name: decline_offers
-- An offer that has ended or was answered before is left as it is.
WITH live AS (
    SELECT offer_id FROM offer
     WHERE offer_id = ANY ($1::text[]) AND state = 'offered' AND ends_at > statement_timestamp()
       FOR UPDATE SKIP LOCKED
)
UPDATE offer SET state = 'declined' FROM live WHERE offer.offer_id = live.offer_id
RETURNING offer.offer_id;

-- name: complete_rides
-- A ride that has ended before, or has no driver, is left as it is.
WITH ended AS (
    UPDATE assignment SET ended_at = statement_timestamp()
     WHERE ride_id = ANY ($1::bigint[]) AND ended_at IS NULL RETURNING ride_id, offer_id
), released AS (
    UPDATE offer SET state = 'ended' FROM ended WHERE offer.offer_id = ended.offer_id
)
UPDATE ride SET state = 'completed' FROM ended WHERE ride.ride_id = ended.ride_id
RETURNING ride.ride_id;

-- name: lock_assignments_to_copy
-- Decisions that are not in the pool of claims yet. Locked while they are copied: a commit that comes after
-- the "free" of the same ride would take the driver out of the city. Rows that another worker copies are
-- left to it.
SELECT ride_id, driver_id, offer_id, ended_at IS NOT NULL AS has_ended FROM assignment
 WHERE copied = 'nothing' OR (copied = 'commit' AND ended_at IS NOT NULL)
 ORDER BY ride_id LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: mark_copied
UPDATE assignment SET copied = CASE WHEN ended_at IS NULL THEN 'commit' ELSE 'free' END
 WHERE ride_id = ANY ($1::bigint[]);

-- name: read_live_offers
-- What the pool of claims is built from: drivers with a live offer or ride.
SELECT offer_id, ride_id, driver_id, state = 'accepted' AS is_accepted,
       extract(epoch FROM ends_at - statement_timestamp())::float8 AS left_s
  FROM offer WHERE state IN ('offered', 'accepted');

-- name: read_city
-- Everything on the map but the cars: waiting riders and rides on their way.
SELECT ride_id, driver_id, pickup, dropoff,
       extract(epoch FROM statement_timestamp() - requested_at)::float8 AS age_s
  FROM ride LEFT JOIN assignment USING (ride_id)
 WHERE state IN ('waiting', 'assigned')
 ORDER BY ride_id;

-- name: read_figures
-- Over the last 10 seconds (rates) and the last 60 (times).
WITH matched AS (
    SELECT assigned_at, extract(epoch FROM assigned_at - requested_at)::float8 AS took_s
      FROM assignment JOIN ride USING (ride_id)
     WHERE assigned_at > statement_timestamp() - interval '60 seconds'
)
SELECT count(*) FILTER (WHERE assigned_at > statement_timestamp() - interval '10 seconds') / 10::float8
           AS matches_per_s,
       coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY took_s), 0) AS match_p50_s,
       coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY took_s), 0) AS match_p95_s
  FROM matched;

-- name: read_history
-- Entries of the last second are left out: one with a smaller number may not be committed yet.
SELECT entry, at, subject, history.state, ride_id, history.driver_id, offer_id, ends_at, gives_up_at
  FROM history JOIN ride USING (ride_id) LEFT JOIN offer USING (offer_id, ride_id)
 WHERE entry > $1 AND at < statement_timestamp() - $2 * interval '1 second'
 ORDER BY entry LIMIT $3;

-- name: read_pace
SELECT speed FROM pace;

-- name: set_pace
UPDATE pace SET speed = $1;
