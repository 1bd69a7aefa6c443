-- Tickets that their owners offer to the waitlist. Changes are made under the lock of its row in `waitlist`.

-- name: put
-- An open return gets other seats; one that is being sold stays as it is: no row.
INSERT INTO waitlist_return (show_id, number, seats) VALUES ($1, $2, $3)
    ON CONFLICT (show_id, number) WHERE ended_at IS NULL
    DO UPDATE SET seats = excluded.seats WHERE waitlist_return.selling = '{}'
RETURNING *;

-- name: last
  SELECT * FROM waitlist_return WHERE show_id = $1 AND number = $2 ORDER BY id DESC LIMIT 1;

-- name: withdraw
UPDATE waitlist_return SET state = 'withdrawn', ended_at = now()
 WHERE show_id = $1 AND number = $2 AND ended_at IS NULL AND selling = '{}';

-- name: live
-- With the seats that the booking still has.
  SELECT waitlist_return.number, waitlist_return.selling,
         ARRAY(SELECT unnest(waitlist_return.seats)
               INTERSECT
               SELECT unnest(booking.seats) WHERE booking.state = 'confirmed' ORDER BY 1) AS seats
    FROM waitlist_return
    JOIN offer_booking AS booking USING (show_id, number)
   WHERE waitlist_return.show_id = $1 AND waitlist_return.ended_at IS NULL
ORDER BY waitlist_return.id;

-- name: begin
-- From now on it cannot be withdrawn.
UPDATE waitlist_return SET selling = $3 WHERE show_id = $1 AND number = $2 AND ended_at IS NULL;

-- name: finish
-- These seats are sold; the return goes on with the others, if there are any.
UPDATE waitlist_return
   SET seats = CASE WHEN seats <@ $3 THEN seats
                    ELSE ARRAY(SELECT unnest(seats) EXCEPT SELECT unnest($3::int[]) ORDER BY 1) END,
       selling = '{}',
       state = CASE WHEN seats <@ $3 THEN 'sold' ELSE 'open' END,
       ended_at = CASE WHEN seats <@ $3 THEN now() END
 WHERE show_id = $1 AND number = $2 AND ended_at IS NULL;

-- name: close
-- The seats cannot be given back any more; with NULL, all returns of a show whose sale is over.
UPDATE waitlist_return SET state = 'closed', selling = '{}', ended_at = now()
 WHERE show_id = $1 AND ($2::bigint IS NULL OR number = $2) AND ended_at IS NULL;
