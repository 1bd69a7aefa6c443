-- Price rules and the prices that follow them. A show's row is locked first, then its plan, then its sale.

-- name: show
-- One show of this organiser ($2; null: an admin), locked so that price changes are serialised.
SELECT show.id, show.layout_hash, show.currency, show.starts_at, show.ends_at, show.opens_at, show.closes_at,
       show.cancelled, show.revision, now() AS at
  FROM show
  JOIN event ON event.id = show.event_id
 WHERE show.id = $1
   AND ($2::bigint IS NULL OR event.organiser_id = $2)
   FOR UPDATE OF show;

-- name: show_if_free
-- The same for the job: a show that is locked by another transaction is skipped until the next run.
SELECT id, layout_hash, currency, starts_at, ends_at, opens_at, closes_at, cancelled, revision, now() AS at
  FROM show
 WHERE id = $1
   FOR UPDATE SKIP LOCKED;

-- name: plan
SELECT rules, coming, due_at <= now() AS is_due
  FROM price_plan
 WHERE show_id = $1;

-- name: due
  SELECT price_plan.show_id, show.layout_hash
    FROM price_plan
    JOIN show ON show.id = price_plan.show_id
   WHERE due_at <= now()
ORDER BY due_at
   LIMIT $1;

-- name: put_plan
INSERT INTO price_plan (show_id, rules, due_at)
     VALUES ($1, $2::text::jsonb, now())
ON CONFLICT (show_id) DO UPDATE
        SET rules = excluded.rules, due_at = now();

-- name: drop_plan
DELETE FROM price_plan WHERE show_id = $1;

-- name: record_rules
INSERT INTO price_rules_history (show_id, rules, actor_id) VALUES ($1, $2::text::jsonb, $3);

-- name: looked
-- Without a time to look again it is never, or when its show is changed.
UPDATE price_plan SET coming = $2::text::jsonb, due_at = coalesce($3::timestamptz, 'infinity')
 WHERE show_id = $1;

-- name: put_off
-- A show that could not be looked at: not before the others have had their turn.
UPDATE price_plan SET due_at = now() + $2 * interval '1 s' WHERE show_id = $1;

-- name: look_again
-- Its times or its layout are others now.
UPDATE price_plan SET due_at = now() WHERE show_id = $1;

-- name: raise_revision
UPDATE show SET revision = revision + 1, updated_at = now() WHERE id = $1 RETURNING revision;

-- name: add_changes
INSERT INTO price_change (show_id, revision, category, was_minor, price_minor, why, sold, seats, actor_id)
     SELECT $1, $2, category, was_minor, price_minor, $6, sold, seats, $7::bigint
       FROM unnest($3::text[], $4::bigint[], $5::bigint[], $8::int[], $9::int[])
         AS input (category, was_minor, price_minor, sold, seats);

-- name: changes
  SELECT revision, category, was_minor, price_minor, why, sold, seats, actor_id, at
    FROM price_change
   WHERE show_id = $1
ORDER BY revision DESC, category
   LIMIT $2;

-- name: is_due
SELECT count(*) FROM (SELECT FROM price_plan WHERE due_at <= now() ORDER BY due_at LIMIT 1) AS due;
