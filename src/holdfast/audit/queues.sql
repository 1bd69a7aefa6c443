-- name: one_live_place_per_person
  SELECT show_id, format('account %s has %s live places', account_id, count(*)) AS what
    FROM queue_place
   WHERE state = 0
GROUP BY show_id, opening, account_id
  HAVING count(*) > 1;

-- name: one_place_per_number
-- Numbers are dense: each below the number of people who joined is there once. Deleted after the show.
SELECT queue.show_id,
       format('opening %s: %s numbers for %s people', queue.opening, places.numbers, queue.joined) AS what
  FROM queue
 CROSS JOIN LATERAL (SELECT count(DISTINCT number)::int AS numbers, count(*)::int AS places,
                            coalesce(max(number), -1) AS last
                       FROM queue_place AS place
                      WHERE place.show_id = queue.show_id AND place.opening = queue.opening) AS places
 WHERE places.places > 0
   AND (places.numbers <> places.places OR places.last + 1 <> queue.joined OR places.numbers <> queue.joined);

-- name: people_called_in_order
-- Each position was called at most once, and none that is not served yet.
SELECT turn.show_id, format('number %s was called at position %s, and %s are served',
                            turn.number, turn.position, queue.serving) AS what
  FROM queue_turn AS turn
  JOIN queue USING (show_id, opening)
 WHERE turn.position >= queue.serving
 UNION ALL
SELECT show_id, format('position %s was called twice', position)
  FROM queue_turn
 WHERE call = 1
 GROUP BY show_id, opening, position
HAVING count(*) > 1;

-- name: people_inside_within_the_cap
-- At the moment of each call, the people who were called or inside, the new ones included.
SELECT show_id, format('%s people inside at %s, allowed %s', inside, at, inside_max) AS what
  FROM (SELECT show_id, at, is_call, inside_max,
               sum(CASE WHEN is_call THEN 1 ELSE -1 END)
                   OVER (PARTITION BY show_id, opening ORDER BY at, is_call
                         RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS inside
          FROM (SELECT show_id, opening, called_at AS at, true AS is_call, inside_max FROM queue_turn
                 UNION ALL
                SELECT show_id, opening, freed_at, false, NULL FROM queue_turn WHERE freed_at IS NOT NULL
               ) AS step
       ) AS moment
 WHERE is_call AND inside > inside_max;

-- name: draw_as_committed
-- The seed of every draw is the one that was committed to: draw.py has the encoding. A draw without the
-- announced value was after the deadline that was committed to.
SELECT show_id, format('opening %s: the seed is not the one that was committed to', opening) AS what
  FROM queue
 WHERE seed IS NOT NULL
   AND commitment IS DISTINCT FROM sha256(
           int8send(27)
        || CASE WHEN beacon_until IS NULL THEN 'holdfast queue commitment 1'::bytea
                ELSE 'holdfast queue commitment 2'::bytea END
        || int8send(8) || int8send(show_id)
        || int8send(8) || int8send(opening)
        || int8send(octet_length(seed)) || seed
        || CASE WHEN beacon_until IS NULL THEN ''::bytea
                ELSE int8send(octet_length(beacon)) || convert_to(beacon, 'UTF8')
                     || int8send(8) || int8send(extract(epoch FROM beacon_until)::bigint) END)
 UNION ALL
SELECT show_id, format('opening %s: the draw did not wait for its beacon', opening)
  FROM queue
 WHERE key IS NOT NULL AND beacon <> '' AND beacon_value IS NULL
   AND (beacon_until IS NULL OR drawn_at < beacon_until);
