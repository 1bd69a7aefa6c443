-- What a city looks forward to.

-- name: events_opening
-- Events with shows to come of which none is on sale yet, in a city ($1, null: any). Without one: no row.
  SELECT show.event_id
    FROM show
    JOIN hall ON hall.id = show.hall_id
    JOIN venue ON venue.id = hall.venue_id
    JOIN city ON city.id = venue.city_id
   WHERE NOT show.cancelled
     AND show.starts_at > now()
     AND ($1::text IS NULL OR city.slug = $1)
GROUP BY show.event_id
  HAVING bool_and(show.opens_at > now())
ORDER BY min(show.opens_at), show.event_id
   LIMIT $2;

-- name: shows_by_id
-- Those that are there; a show that is gone is left out.
  SELECT *
    FROM show_detail
   WHERE show_id = ANY ($1::bigint[])
ORDER BY starts_at, show_id;
