-- Deleting: rows are marked, in transactions that hold the locks of removal.py.

-- name: lock_shows_of_event
  SELECT id FROM show WHERE event_id = $1 AND deleted_at IS NULL ORDER BY id FOR UPDATE;

-- name: lock_halls_of_venue
  SELECT id FROM hall WHERE venue_id = $1 AND deleted_at IS NULL ORDER BY id FOR UPDATE;

-- name: has_payments
-- Money may still arrive for a booking that lapsed while it was being paid for.
SELECT EXISTS (SELECT FROM payment_detail WHERE show_id = $1);

-- name: show_in_halls
SELECT id FROM show WHERE hall_id = ANY ($1) AND deleted_at IS NULL ORDER BY starts_at LIMIT 1;

-- name: delete_show
UPDATE show SET deleted_at = now(), published = false, updated_at = now() WHERE id = $1;

-- name: delete_price_plan
DELETE FROM price_plan WHERE show_id = $1;

-- name: delete_event
UPDATE event SET deleted_at = now(), published = false, updated_at = now() WHERE id = $1;

-- name: delete_halls
UPDATE hall SET deleted_at = now(), updated_at = now() WHERE id = ANY ($1);

-- name: delete_venue
UPDATE venue SET deleted_at = now(), published = false, updated_at = now() WHERE id = $1;
