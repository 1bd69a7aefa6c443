-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: guests
-- Guests and sign-ups that were never confirmed, without a booking and a ticket, in the order of their ids,
-- which is that of their ages; not those that bought in a pod ($4). With arrays, because the planner cannot
-- know how many are guests: a join planned for one row compared each with each.
WITH seen AS MATERIALIZED (
      SELECT id, created_at FROM account WHERE email LIKE '%@guest.invalid' AND id > $1 ORDER BY id LIMIT $3
), buyers AS MATERIALIZED (
    SELECT owner_id FROM payable_booking WHERE owner_id = ANY (ARRAY(SELECT id FROM seen))
     UNION
    SELECT owner_id FROM ticket_for_refund WHERE owner_id = ANY (ARRAY(SELECT id FROM seen))
), gone AS (
    DELETE FROM account
     WHERE id = ANY (ARRAY(SELECT id FROM seen WHERE created_at < now() - $2 * interval '1 day'))
       AND email LIKE '%@guest.invalid'
       AND id NOT IN (SELECT owner_id FROM buyers)
       AND id <> ALL ($4::bigint[])
 RETURNING 1
)
SELECT CASE WHEN count(*) = $3 AND max(created_at) < now() - $2 * interval '1 day'
            THEN max(id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM seen;

-- name: guests_seen
-- Those that the next batch of `guests` looks at.
  SELECT id FROM account WHERE email LIKE '%@guest.invalid' AND id > $1 ORDER BY id LIMIT $2;

-- name: buyers_among
-- In a pod: which of these have a booking or a ticket there.
SELECT owner_id FROM payable_booking WHERE owner_id = ANY ($1::bigint[])
 UNION
SELECT owner_id FROM ticket_for_refund WHERE owner_id = ANY ($1::bigint[]);

-- name: contacts
-- Name and address of guests who bought something: the booking stays, the person is forgotten.
WITH seen AS MATERIALIZED (
      SELECT id, created_at FROM account WHERE email LIKE '%@guest.invalid' AND id > $1 ORDER BY id LIMIT $3
), gone AS (
    UPDATE account SET contact_email = NULL, name = 'Guest', password_hash = NULL, verified_at = NULL
     WHERE id = ANY (ARRAY(SELECT id FROM seen WHERE created_at < now() - $2 * interval '1 day'))
       AND email LIKE '%@guest.invalid'
       AND contact_email IS NOT NULL
 RETURNING 1
)
SELECT CASE WHEN count(*) = $3 AND max(created_at) < now() - $2 * interval '1 day'
            THEN max(id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM seen;
