-- name: copy_shows
-- Shows like the first one, with the numbers after it.
INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency, hold_ttl_s,
                  owner_seats_max, order_seats_max, orphan_rule)
SELECT event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency, hold_ttl_s,
       owner_seats_max, order_seats_max, orphan_rule
  FROM show, unnest($2::bigint[]) AS copy
 WHERE id = $1 AND copy <> $1;

-- name: copy_prices
INSERT INTO price (show_id, category, price_minor)
SELECT copy, category, price_minor FROM price, unnest($2::bigint[]) AS copy WHERE show_id = $1 AND copy <> $1;

-- name: copy_sales
INSERT INTO sale (show_id, opens_at, closes_at, cancelled, owner_seats_max, revision)
SELECT copy, opens_at, closes_at, cancelled, owner_seats_max, revision
  FROM sale, unnest($2::bigint[]) AS copy
 WHERE show_id = $1 AND copy <> $1;
