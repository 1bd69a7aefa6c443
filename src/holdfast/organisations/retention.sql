-- Rules of engines/retention.py: ($1 position, $2 days, $3 rows) → next position (NULL: the end), deleted.

-- name: invitations
-- That were accepted, declined, withdrawn or not used in time, in the order of their ids.
WITH seen AS MATERIALIZED (
      SELECT id FROM invitation WHERE id > $1 ORDER BY id LIMIT $3
), gone AS (
    DELETE FROM invitation
     USING seen
     WHERE invitation.id = seen.id
       AND coalesce(invitation.ended_at, invitation.expires_at) < now() - $2 * interval '1 day'
 RETURNING 1
)
SELECT CASE WHEN count(*) = $3 THEN max(id) END AS reached, (SELECT count(*) FROM gone) AS deleted FROM seen;
