-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: guests
-- Guests who have no booking and no ticket, in the order of their ids, which is that of their ages.
WITH seen AS MATERIALIZED (
      SELECT id, created_at FROM account WHERE password_hash IS NULL AND id > $1 ORDER BY id LIMIT $3
), gone AS (
    DELETE FROM account
     USING seen
     WHERE account.id = seen.id
       AND account.password_hash IS NULL
       AND seen.created_at < now() - $2 * interval '1 day'
       AND NOT EXISTS (SELECT FROM payable_booking AS booking WHERE booking.owner_id = seen.id)
       AND NOT EXISTS (SELECT FROM ticket_for_refund AS ticket WHERE ticket.owner_id = seen.id)
 RETURNING 1
)
SELECT CASE WHEN count(*) = $3 AND max(created_at) < now() - $2 * interval '1 day'
            THEN max(id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM seen;

-- name: contacts
-- Name and address of guests who bought something: the booking stays, the person is forgotten.
WITH seen AS MATERIALIZED (
      SELECT id, created_at FROM account WHERE password_hash IS NULL AND id > $1 ORDER BY id LIMIT $3
), gone AS (
    UPDATE account SET contact_email = NULL, name = 'Guest'
      FROM seen
     WHERE account.id = seen.id
       AND account.password_hash IS NULL
       AND account.contact_email IS NOT NULL
       AND seen.created_at < now() - $2 * interval '1 day'
 RETURNING 1
)
SELECT CASE WHEN count(*) = $3 AND max(created_at) < now() - $2 * interval '1 day'
            THEN max(id) END AS reached,
       (SELECT count(*) FROM gone) AS deleted
  FROM seen;
