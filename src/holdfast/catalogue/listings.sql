-- Lists of events and shows for the API and the site.

-- name: events_opening
-- Events with upcoming shows of which none is on sale yet, in a city ($1, null: any).
  SELECT show.event_id
    FROM show
    JOIN hall ON hall.id = show.hall_id
    JOIN venue ON venue.id = hall.venue_id
    JOIN city ON city.id = venue.city_id
   WHERE NOT show.cancelled
     AND NOT show.hidden
     AND show.starts_at > now()
     AND ($1::text IS NULL OR city.slug = $1)
GROUP BY show.event_id
  HAVING bool_and(show.opens_at > now())
ORDER BY min(show.opens_at), show.event_id
   LIMIT $2;

-- name: shows_by_id
-- Unknown ids are left out.
  SELECT *
    FROM show_detail
   WHERE show_id = ANY ($1::bigint[])
ORDER BY starts_at, show_id;
