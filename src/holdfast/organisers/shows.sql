-- Shows: when they play and for how much. An organiser of null stands for an admin, who sees all.

-- name: hall_busy
-- A show in this hall that overlaps these times, other than show $4.
  SELECT id, starts_at, ends_at
    FROM show
   WHERE hall_id = $1
     AND NOT cancelled
     AND deleted_at IS NULL
     AND starts_at < $3
     AND ends_at > $2
     AND id <> $4
ORDER BY starts_at
   LIMIT 1;

-- name: add_shows
-- Many shows in one statement; their numbers grow in the order given.
WITH input AS (
    SELECT *
      FROM unnest($1::bigint[], $2::bigint[], $3::text[],
                  $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
                  $8::text[], $9::int[], $10::int[], $11::int[], $12::text[], $13::boolean[]) WITH ORDINALITY
        AS input (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at,
                  currency, hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule, published, place)
)
INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at,
                  currency, hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule, published)
     SELECT event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency, hold_ttl_s,
            owner_seats_max, order_seats_max, orphan_rule, published
       FROM input
   ORDER BY place
  RETURNING id;

-- name: put_prices
INSERT INTO price (show_id, category, price_minor)
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])
ON CONFLICT (show_id, category) DO UPDATE
        SET price_minor = excluded.price_minor;

-- name: put_terms
-- A revision's terms are written once: a second time is a bug, and fails.
INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max)
     SELECT show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy::jsonb, card_seats_max
       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::text[], $7::int[])
         AS input (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max);

-- name: copy_terms
-- A revision in which only prices are others: the terms of the one before it go on.
INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max)
     SELECT show_id, $2::bigint, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max
       FROM show_terms
      WHERE show_id = $1 AND revision = $2::bigint - 1;

-- name: prices
SELECT category, price_minor
  FROM price
 WHERE show_id = $1;

-- name: show
-- One show of this organiser, locked. Its terms are read by a separate statement after the lock: joined here
-- they could belong to the revision before that of the transaction we waited for.
SELECT show.id, show.event_id, show.hall_id, show.layout_hash, show.starts_at, show.ends_at, show.opens_at,
       show.closes_at, show.currency, show.hold_ttl_s, show.owner_seats_max, show.order_seats_max,
       show.orphan_rule, show.cancelled, show.published, show.revision
  FROM show
  JOIN event ON event.id = show.event_id
 WHERE show.id = $1
   AND show.deleted_at IS NULL
   AND ($2::bigint IS NULL OR event.organiser_id = $2)
   FOR UPDATE OF show;

-- name: policy_of_event
SELECT refund_policy
  FROM event
 WHERE id = $1;

-- name: title_of_event
SELECT title FROM event WHERE id = $1;

-- name: change_show
   UPDATE show
      SET layout_hash = $2, starts_at = $3, ends_at = $4, opens_at = $5, closes_at = $6, hold_ttl_s = $7,
          owner_seats_max = $8, order_seats_max = $9, orphan_rule = $10, cancelled = $11,
          published = $12, revision = revision + 1, updated_at = now()
    WHERE id = $1
RETURNING revision;

-- name: list_shows
  SELECT card.show_id AS id, card.event_id, card.hall_id, card.layout_hash, card.starts_at, card.ends_at,
         card.opens_at, card.closes_at, card.currency, card.hold_ttl_s, card.owner_seats_max,
         card.order_seats_max, card.orphan_rule, card.cancelled, card.published, card.revision,
         card.title, card.venue, card.hall, card.seats,
         card.fee_minor, card.fee_bp, card.tax_bp, card.refund_policy, card.card_seats_max,
         array(SELECT category FROM price WHERE show_id = card.show_id ORDER BY category) AS categories,
         array(SELECT price_minor FROM price WHERE show_id = card.show_id ORDER BY category) AS prices,
         count(*) OVER () AS total
    FROM show_detail AS card
   WHERE card.deleted_at IS NULL
     AND ($1::bigint IS NULL OR card.organiser_id = $1)
     AND ($4::bigint IS NULL OR card.event_id = $4)
     AND ($5::bigint IS NULL OR card.show_id = $5)
ORDER BY card.starts_at, card.show_id
   LIMIT $2 OFFSET $3;

-- name: terms
-- The terms of a show at a revision.
SELECT fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max
  FROM show_terms
 WHERE show_id = $1 AND revision = $2;
