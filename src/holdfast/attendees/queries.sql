-- Where a query takes an organiser, null stands for an admin, who sees all. First keys are found, each way by
-- its own index; `bookings` then loads what is shown of them.

-- name: shows_of
-- The latest shows of an organiser, or of one event.
  SELECT show.show_id
    FROM show_organiser AS show
   WHERE ($1::bigint IS NULL OR show.organiser_id = $1)
     AND ($2::bigint IS NULL OR show.event_id = $2)
ORDER BY show.show_id DESC
   LIMIT $3;

-- name: newest
-- Of some shows ($1), in a state ($2; null: any), before a number ($3).
  SELECT found.show_id, found.number
    FROM unnest($1::bigint[]) AS of_show (show_id)
   CROSS JOIN LATERAL (
           SELECT booking.show_id, booking.number
             FROM payable_booking AS booking
            WHERE booking.show_id = of_show.show_id AND booking.number < $3::bigint
              AND booking.state IN ('confirmed', 'refunded')
              AND ($2::text IS NULL OR booking.state = $2::text::booking_state)
         ORDER BY booking.number DESC
            LIMIT $4) AS found
ORDER BY found.number DESC
   LIMIT $4;

-- name: newest_of_any_state
-- The same with holds, lapsed and cancelled bookings.
  SELECT found.show_id, found.number
    FROM unnest($1::bigint[]) AS of_show (show_id)
   CROSS JOIN LATERAL (
           SELECT booking.show_id, booking.number
             FROM payable_booking AS booking
            WHERE booking.show_id = of_show.show_id AND booking.number < $2::bigint
         ORDER BY booking.number DESC
            LIMIT $3) AS found
ORDER BY found.number DESC
   LIMIT $3;

-- name: existing
-- Which of these keys are bookings of the organiser's shows.
SELECT booking.show_id, booking.number
  FROM unnest($1::bigint[], $2::bigint[]) AS wanted (show_id, number)
  JOIN payable_booking AS booking USING (show_id, number)
  JOIN show_organiser AS show USING (show_id)
 WHERE $3::bigint IS NULL OR show.organiser_id = $3;

-- name: seat_holder
SELECT show_id, number FROM seat_holder WHERE show_id = $1 AND seat = $2;

-- name: people_by_email
SELECT id FROM account_profile WHERE email = $1
 UNION
SELECT id FROM account_profile WHERE contact_email = $1
 LIMIT $2;

-- name: people_by_name
SELECT id
  FROM account_profile
 WHERE to_tsvector('simple', name) @@ to_tsquery('simple', $1)
   AND name <> 'Guest'
 LIMIT $2;

-- name: of_people
-- Bookings of these accounts ($1), and bookings with a ticket that was given to one of them or to an address
-- ($2), of an organiser ($3) and perhaps of one show ($4), before a number ($5).
  SELECT DISTINCT theirs.show_id, theirs.number
    FROM (SELECT booking.show_id, booking.number FROM payable_booking AS booking
           WHERE booking.owner_id = ANY ($1)
           UNION ALL
          SELECT ticket.show_id, ticket.number FROM ticket_for_refund AS ticket
           WHERE ticket.owner_id = ANY ($1)
           UNION ALL
          SELECT ticket.show_id, ticket.number FROM ticket_for_refund AS ticket
           WHERE ticket.owner_email = $2) AS theirs
    JOIN show_organiser AS show USING (show_id)
   WHERE ($3::bigint IS NULL OR show.organiser_id = $3)
     AND ($4::bigint IS NULL OR theirs.show_id = $4)
     AND theirs.number < $5::bigint
ORDER BY theirs.number DESC
   LIMIT $6;

-- name: named_in_show
-- Sold bookings of one show by the names of their buyers: at most as many rows as the hall has seats.
-- OFFSET 0: each buyer is looked up by key; the planner would rather read every account.
  SELECT booking.show_id, booking.number
    FROM payable_booking AS booking
   CROSS JOIN LATERAL (SELECT FROM account_profile AS account
                        WHERE account.id = booking.owner_id
                          AND to_tsvector('simple', account.name) @@ to_tsquery('simple', $2)
                       OFFSET 0) AS buyer
   WHERE booking.show_id = $1 AND booking.number < $3::bigint
     AND booking.state IN ('confirmed', 'refunded')
ORDER BY booking.number DESC
   LIMIT $4;

-- name: bookings
-- What is shown of a booking, in the order of the keys.
  SELECT booking.show_id, booking.number, booking.state::text AS state, booking.seats, booking.prices_minor,
         booking.amount_minor, booking.currency, booking.opened_at, booking.confirmed_at,
         booking.owner_id, account.name, account.reached_at AS email,
         (SELECT coalesce(sum(refund.amount_minor), 0)::bigint FROM decided_refund AS refund
           WHERE refund.show_id = booking.show_id AND refund.number = booking.number) AS refunded_minor
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS wanted (show_id, number, place)
    JOIN payable_booking AS booking USING (show_id, number)
    LEFT JOIN account_profile AS account ON account.id = booking.owner_id
ORDER BY wanted.place;

-- name: attendees
-- Tickets of a show after (number $2, seat $3); with $4 given-back ones, too. The holder of a ticket that was
-- given to an address without an account is that address.
  SELECT ticket.number, ticket.seat, ticket.issued_at, ticket.voided_at, ticket.used_at, ticket.is_inside,
         buyer.name AS buyer_name, buyer.reached_at AS buyer_email,
         CASE WHEN ticket.owner_email IS NULL THEN coalesce(holder.name, buyer.name) END AS name,
         coalesce(ticket.owner_email, holder.reached_at, buyer.reached_at) AS email
    FROM ticket_detail AS ticket
    LEFT JOIN account_profile AS buyer ON buyer.id = ticket.booked_by
    LEFT JOIN account_profile AS holder ON holder.id = ticket.owner_id
   WHERE ticket.show_id = $1
     AND (ticket.number, ticket.seat) > ($2::bigint, $3::int)
     AND ($4 OR ticket.voided_at IS NULL)
     AND ($5::bigint IS NULL OR ticket.number = $5)
ORDER BY ticket.number, ticket.seat
   LIMIT $6;

-- name: moves
-- Every step of a booking, oldest first.
  SELECT history.at, history.move, history.state::text AS state, history.actor_id, account.name AS actor_name
    FROM booking_history AS history
    LEFT JOIN account_profile AS account ON account.id = history.actor_id
   WHERE history.show_id = $1 AND history.number = $2
ORDER BY history.id
   LIMIT $3;
