-- What is stored about one person, and erasing it.

-- name: accounts_of_person
SELECT accounts_of_person($1) AS account_id;

-- name: addresses_of
SELECT addresses_of($1) AS address;

-- name: account_profiles
SELECT id AS account_id, name, coalesce(reached_at, '') AS email, is_verified AS email_verified,
       role::text, locale
  FROM account_profile
 WHERE id = ANY ($1::bigint[])
 ORDER BY id;

-- name: bookings
  SELECT booking.show_id, booking.number, show_detail.title, show_detail.venue, show_detail.starts_at,
         booking.state::text, cardinality(booking.seats) AS seats, booking.amount_minor, booking.currency,
         booking.opened_at, booking.confirmed_at
    FROM payable_booking AS booking
    JOIN show_detail USING (show_id)
   WHERE booking.owner_id = ANY ($1::bigint[])
ORDER BY booking.number;

-- name: payments
  SELECT show_id, number, attempt, gateway, step::text, amount_minor, currency, refunds_minor
    FROM payment_for_refund
   WHERE owner_id = ANY ($1::bigint[])
ORDER BY number, attempt;

-- name: refunds
  SELECT show_id, number, amount_minor, currency, state::text
    FROM refund_detail
   WHERE owner_id = ANY ($1::bigint[])
ORDER BY number, id;

-- name: tickets
  SELECT show_id, number, serial, issued_at, voided_at, used_at
    FROM ticket_detail
   WHERE owner_id = ANY ($1::bigint[])
      OR (booked_by = ANY ($1::bigint[]) AND owner_id IS NULL AND owner_email IS NULL)
ORDER BY serial;

-- name: transfers
-- To an address of theirs; to whom they gave tickets is the other person's data.
  SELECT show_id, serial, edition, email
    FROM ticket_handover
   WHERE email = ANY ($1::text[])
ORDER BY serial, edition;

-- name: messages
  SELECT address, kind, channel, locale, state::text, written_at
    FROM notice_to_person
   WHERE address = ANY ($1::text[])
ORDER BY written_at;

-- name: consents
-- organisation_id 0: the house; show_id 0: at the sign-up.
  SELECT organisation_id, kind, version, show_id, agreed_at
    FROM consent_of_person
   WHERE account_id = ANY ($1::bigint[])
ORDER BY agreed_at, organisation_id, kind;

-- name: sign_in_services
  SELECT issuer, subject, email, linked_at, last_used_at
    FROM sign_in_service
   WHERE account_id = ANY ($1::bigint[])
ORDER BY linked_at;

-- name: waitlists
  SELECT show_id, number AS entry, seats, categories, price_minor_max, together, until, joined_at, state,
         ended_at
    FROM waitlist_of_person
   WHERE owner_id = ANY ($1::bigint[])
ORDER BY joined_at, show_id;

-- name: end_waits
SELECT end_waits_of($1);

-- name: erase_identities
SELECT erase_identities($1);

-- name: end_memberships
-- The organisations that would have no owner; if there are any, nothing has changed.
SELECT end_memberships($1);

-- name: erase_notices
SELECT erase_notices($1);

-- name: erase_ticket_addresses
SELECT erase_ticket_addresses($1);

-- name: erase_from_audit_log
SELECT erase_person_from_audit_log(account_id) FROM unnest($1::bigint[]) AS account_id;

-- name: erase_accounts
SELECT account_id, new_version FROM erase_accounts($1, $2);

-- name: add_erasure
INSERT INTO erasure_due (account_ids, addresses) VALUES ($1, $2);

-- name: erasures_due
SELECT id, account_ids, addresses, requested_at FROM erasure_due ORDER BY id LIMIT $1;

-- name: complete_erasure
DELETE FROM erasure_due WHERE id = $1;

-- name: count_erasures
SELECT count(*) FROM erasure_due;

-- name: erase_earlier_notices
SELECT erase_earlier_notices($1, $2, $3);

-- name: erase_earlier_ticket_addresses
SELECT erase_earlier_ticket_addresses($1, $2);

-- name: are_erased
SELECT are_erased($1);
