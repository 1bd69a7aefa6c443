-- name: template_is_ready
-- No row: there is no such database. False: its migration did not end.
SELECT datistemplate FROM pg_database WHERE datname = 'pretix_template';

-- name: drop_template
DROP DATABASE IF EXISTS pretix_template;

-- name: create_template
CREATE DATABASE pretix_template;

-- name: finish_template
ALTER DATABASE pretix_template IS_TEMPLATE true;

-- name: drop_copy
DROP DATABASE IF EXISTS pretix;

-- name: create_copy
CREATE DATABASE pretix TEMPLATE pretix_template;

-- name: pretix_seats
-- Seats with an owner, and those with several. Carts that lapsed and cancelled orders do not count.
WITH owner AS (
    SELECT cart.seat_id, false AS is_bought
      FROM pretixbase_cartposition AS cart
      JOIN pretixbase_event AS event ON event.id = cart.event_id
     WHERE event.slug = ANY ($1::text[]) AND cart.seat_id IS NOT NULL AND cart.expires > now()
     UNION ALL
    SELECT position.seat_id, placed.status = 'p'
      FROM pretixbase_orderposition AS position
      JOIN pretixbase_order AS placed ON placed.id = position.order_id
      JOIN pretixbase_event AS event ON event.id = placed.event_id
     WHERE event.slug = ANY ($1::text[]) AND position.seat_id IS NOT NULL
       AND NOT position.canceled AND placed.status IN ('n', 'p')
), seat AS (
    SELECT count(*) AS owners, bool_or(is_bought) AS is_bought FROM owner GROUP BY seat_id
)
SELECT count(*) AS taken, count(*) FILTER (WHERE owners > 1) AS twice,
       count(*) FILTER (WHERE is_bought) AS bought
  FROM seat;

-- name: holdfast_seats
-- The same, from the bookings and not from the table with the unique key that rules it out.
WITH seat AS (
    SELECT count(*) AS owners, bool_or(state = 'confirmed') AS is_bought
      FROM booking, unnest(seats) AS place
     WHERE show_id = ANY ($1::bigint[]) AND state IN ('held', 'paying', 'confirmed')
       AND (state <> 'held' OR expires_at > now())
  GROUP BY show_id, place
)
SELECT count(*) AS taken, count(*) FILTER (WHERE owners > 1) AS twice,
       count(*) FILTER (WHERE is_bought) AS bought
  FROM seat;
