-- The house, of which there is one.

-- name: load
-- Always one row. An installation from before the house has events and no row.
SELECT house.name, house.currency, house.timezone, house.gateway,
       house.is_only IS NOT NULL AS is_begun,
       house.is_only IS NOT NULL OR EXISTS (SELECT FROM event_summary) AS is_open
  FROM (SELECT) AS always
  LEFT JOIN house ON true;

-- name: begin
-- No row: it was set up before, maybe by another tab a moment ago.
INSERT INTO house (name, currency, timezone, gateway) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
  RETURNING name, currency, timezone, gateway;

-- name: locked
SELECT name, currency, timezone, gateway FROM house FOR UPDATE;

-- name: set
INSERT INTO house (name, currency, timezone, gateway) VALUES ($1, $2, $3, $4)
ON CONFLICT (is_only) DO UPDATE
        SET name = excluded.name, currency = excluded.currency, timezone = excluded.timezone,
            gateway = excluded.gateway, changed_at = now();

-- name: second_factor_for
SELECT second_factor_for FROM house_rule;

-- name: set_second_factor_for
INSERT INTO house_rule (second_factor_for) VALUES ($1)
ON CONFLICT (is_only) DO UPDATE SET second_factor_for = excluded.second_factor_for, changed_at = now();
