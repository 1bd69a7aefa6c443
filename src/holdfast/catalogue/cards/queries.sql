-- name: shows_by_id
-- Those that are there; a show that is gone is left out.
  SELECT *
    FROM show_card
   WHERE show_id = ANY ($1::bigint[])
ORDER BY starts_at, show_id;
