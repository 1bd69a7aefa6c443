-- name: every_entry_balances
  SELECT show_id, format('entry %s of booking %s is off by %s', entry, min(number), sum(amount_minor)) AS what
    FROM journal
GROUP BY show_id, entry
  HAVING sum(amount_minor) <> 0 OR count(DISTINCT currency) > 1 OR count(DISTINCT (number, attempt)) > 1;

-- name: journal_matches_payments
-- S3, S10. Of each payment: what lies at the gateway is what came less what went back, what is owed is what
-- is on its way, and the shares are the rest.
SELECT show_id, format('payment %s/%s: books say %s at the gateway, %s owed, %s shared, %s by hand; it has '
                       '%s, %s, %s, %s', number, attempt,
                       books.gateway, books.owed, books.shares, books.by_hand,
                       has.gateway, has.owed, has.shares, has.by_hand) AS what
  FROM (SELECT p.show_id, p.number, p.attempt,
               CASE WHEN came THEN p.amount_minor ELSE 0 END - r.done - d.open - d.lost AS gateway,
               -r.open - CASE p.step WHEN 'late' THEN p.amount_minor ELSE 0 END AS owed,
               CASE p.step WHEN 'paid' THEN r.not_late - p.amount_minor ELSE 0 END + d.lost AS shares,
               -r.by_hand AS by_hand, d.open AS disputed
          FROM payment AS p,
               LATERAL (SELECT p.step IN ('paid', 'late', 'returned') AS came) AS c,
               LATERAL (SELECT coalesce(sum(amount_minor) FILTER (
                                   WHERE state = 'done' AND settled_note IS NULL), 0) AS done,
                               coalesce(sum(amount_minor) FILTER (
                                   WHERE state = 'done' AND settled_note IS NOT NULL), 0) AS by_hand,
                               coalesce(sum(amount_minor) FILTER (WHERE state <> 'done'), 0) AS open,
                               coalesce(sum(amount_minor) FILTER (
                                   WHERE why NOT IN ('late', 'card')), 0) AS not_late
                          FROM refund AS r
                         WHERE r.show_id = p.show_id AND r.number = p.number AND r.attempt = p.attempt) AS r,
               LATERAL (SELECT coalesce(sum(amount_minor) FILTER (WHERE state = 'open'), 0) AS open,
                               coalesce(sum(amount_minor) FILTER (WHERE state = 'lost'), 0) AS lost
                          FROM chargeback AS d
                         WHERE d.show_id = p.show_id AND d.number = p.number AND d.attempt = p.attempt) AS d
       ) AS has
  FULL JOIN (SELECT show_id, number, attempt,
                    coalesce(sum(amount_minor) FILTER (WHERE account LIKE 'gateway:%'), 0) AS gateway,
                    coalesce(sum(amount_minor) FILTER (WHERE account = 'owed'), 0) AS owed,
                    coalesce(sum(amount_minor) FILTER (WHERE account IN ('organiser', 'fee', 'tax')), 0)
                        AS shares,
                    coalesce(sum(amount_minor) FILTER (WHERE account = 'by_hand'), 0) AS by_hand,
                    coalesce(sum(amount_minor) FILTER (WHERE account = 'disputed'), 0) AS disputed
               FROM journal
              GROUP BY 1, 2, 3) AS books USING (show_id, number, attempt)
 WHERE (coalesce(has.gateway, 0), coalesce(has.owed, 0), coalesce(has.shares, 0), coalesce(has.by_hand, 0),
        coalesce(has.disputed, 0))
    <> (coalesce(books.gateway, 0), coalesce(books.owed, 0), coalesce(books.shares, 0),
        coalesce(books.by_hand, 0), coalesce(books.disputed, 0));

-- name: paid_what_it_costs
-- S5. A confirmed booking has one payment, in its currency, of what its seats cost, including those given
-- back since; a free booking has none.
SELECT booking.show_id, format('booking %s is confirmed for %s %s, given back %s; payments: %s',
                               booking.number, booking.amount_minor, booking.currency, gone.minor, paid.list)
           AS what
  FROM booking,
       LATERAL (SELECT coalesce(sum(seats_minor), 0) AS minor FROM refund
                 WHERE refund.show_id = booking.show_id AND refund.number = booking.number
                   AND why NOT IN ('late', 'card')) AS gone,
       LATERAL (SELECT array_agg(amount_minor || ' ' || currency) AS list FROM payment
                 WHERE payment.show_id = booking.show_id AND payment.number = booking.number
                   AND step = 'paid') AS paid
 WHERE booking.state = 'confirmed'
   AND paid.list IS DISTINCT FROM CASE WHEN booking.amount_minor + gone.minor > 0
           THEN ARRAY[(booking.amount_minor + gone.minor) || ' ' || booking.currency] END;

-- name: money_has_a_booking
-- S3. Money that was not refunded belongs to a booking that was confirmed.
SELECT show_id,
       format('booking %s is %s, and payment %s was not returned', number, booking.state, attempt) AS what
  FROM payment JOIN booking USING (show_id, number)
 WHERE payment.step = 'paid' AND booking.state NOT IN ('confirmed', 'refunded');

-- name: no_more_back_than_came
-- S4. What a payment says of its refunds is what they come to; and all of one that was returned.
SELECT show_id, format('payment %s/%s of %s is %s: %s went back, %s of it in refunds',
                       number, attempt, amount_minor, step, refunds_minor, r.minor) AS what
  FROM payment,
       LATERAL (SELECT coalesce(sum(amount_minor), 0) AS minor, coalesce(sum(fee_minor), 0) AS fee,
                       coalesce(sum(tax_minor), 0) AS tax
                  FROM refund
                 WHERE refund.show_id = payment.show_id AND refund.number = payment.number
                   AND refund.attempt = payment.attempt) AS r
 WHERE r.minor <> refunds_minor OR r.minor > amount_minor OR r.fee > fee_minor OR r.tax > tax_minor
    OR (step = 'returned' AND r.minor <> amount_minor)
    OR (step NOT IN ('paid', 'returned') AND r.minor > 0);

-- name: one_ticket_per_seat
-- S11. Valid tickets are those of the seats of confirmed bookings. Of a cancelled show,
-- tickets that were used before stay as they were.
SELECT coalesce(live.show_id, ticket.show_id) AS show_id,
       format('seat %s: booking %s, ticket of %s', coalesce(live.seat, ticket.seat), live.number,
              ticket.number) AS what
  FROM (SELECT show_id, number, unnest(seats) AS seat FROM booking WHERE state = 'confirmed') AS live
  FULL JOIN (SELECT ticket.* FROM ticket JOIN booking USING (show_id, number) JOIN sale USING (show_id)
              WHERE voided_at IS NULL
                AND NOT (used_at IS NOT NULL AND cancelled AND booking.state = 'refunded')) AS ticket
    ON ticket.show_id = live.show_id AND ticket.number = live.number AND ticket.seat = live.seat
 WHERE live.number IS DISTINCT FROM ticket.number;

-- name: late_refunds_were_late
-- No refund is due to a seat sold twice: money refunded as late was captured after its booking had
-- stopped waiting for it.
SELECT refund.show_id, format('payment %s/%s went back as late, and its booking was waiting for it',
                              refund.number, refund.attempt) AS what
  FROM refund JOIN payment USING (show_id, number, attempt)
 WHERE refund.why = 'late'
   AND NOT EXISTS (SELECT 1 FROM booking_move AS m
                    WHERE m.show_id = refund.show_id AND m.number = refund.number
                      AND m.fence = payment.fence AND m.move IN ('expire', 'decline')
                      AND m.at <= refund.requested_at);

-- name: late_money_is_settled
-- L2. Booked or on its way back within a minute.
SELECT payment.show_id, format('payment %s/%s has been late since %s', number, attempt, came.at) AS what
  FROM payment,
       LATERAL (SELECT max(at) AS at FROM journal
                 WHERE journal.show_id = payment.show_id AND journal.number = payment.number
                   AND journal.attempt = payment.attempt) AS came
 WHERE step = 'late' AND came.at < now() - $1 * interval '1 s';

-- name: refunds_end_in_time
-- L2. The gateway has taken it within a quarter of an hour, or a person knows of it.
SELECT show_id, format('refund %s/%s/%s was decided at %s', number, attempt, id, requested_at) AS what
  FROM refund
 WHERE state = 'requested' AND requested_at < now() - $1 * interval '1 s';

-- name: payments_end_in_time
-- L3. A payment that got nowhere has let its seats go.
SELECT show_id, format('booking %s is paying, and its time was up at %s', number, expires_at) AS what
  FROM booking
 WHERE state = 'paying' AND expires_at < now() - $1 * interval '1 s';

-- name: payments
-- For the comparison with the gateway; payments in progress are undecided and left out.
  SELECT p.show_id, p.number, p.attempt, p.key, p.reference, p.step::text AS step, p.currency,
         CASE WHEN p.step IN ('paid', 'late', 'returned') THEN p.amount_minor ELSE 0 END AS came_minor,
         coalesce(sum(r.amount_minor) FILTER (WHERE r.state = 'done' AND r.settled_note IS NULL), 0)::bigint
             AS back_minor,
         coalesce(sum(r.amount_minor) FILTER (WHERE r.state = 'requested'), 0)::bigint AS requested_minor
    FROM payment AS p
    LEFT JOIN refund AS r USING (show_id, number, attempt)
   WHERE p.gateway = $1 AND p.step NOT IN ('charge', 'look_up', 'call_off', 'watch')
GROUP BY p.show_id, p.number, p.attempt;

-- name: keys_under_way
SELECT key FROM payment WHERE gateway = $1 AND step IN ('charge', 'look_up', 'call_off', 'watch');

-- name: bookings_known
-- Which of these there are.
SELECT show_id, number
  FROM booking JOIN unnest($1::bigint[], $2::bigint[]) AS a (show_id, number) USING (show_id, number);

-- name: oldest_payment
SELECT min(requested_at) FROM payment WHERE gateway = $1;
