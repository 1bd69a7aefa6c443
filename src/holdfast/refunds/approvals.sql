-- Refunds that wait for a second person. An organiser of null stands for an admin, who sees all.

-- name: limits
-- For each of these shows: above which amount its organiser wants a second person. No row: never.
SELECT show.show_id, refund_limit.currency, refund_limit.amount_minor
  FROM show_organiser AS show
  JOIN refund_limit USING (organiser_id)
 WHERE show.show_id = ANY ($1);

-- name: lock
-- Proposals that can still be approved, locked until the transaction ends. No row: decided, or expired.
  SELECT id, proposed_by
    FROM refund_proposal
   WHERE id = ANY ($1) AND state = 'pending' AND expires_at > now()
ORDER BY id
     FOR UPDATE;

-- name: propose
-- A repeated request finds the proposal of the first.
INSERT INTO refund_proposal (show_id, number, organiser_id, why, what, seats, amount_minor, currency, note,
                             proposed_by, expires_at)
SELECT $1, $2, show.organiser_id, $3, $4, $5, $6, $7, $8, $9, now() + $10 * interval '1 hour'
  FROM show_organiser AS show
 WHERE show.show_id = $1
ON CONFLICT ON CONSTRAINT one_proposal_per_reason DO NOTHING
  RETURNING id;

-- name: approve
UPDATE refund_proposal SET state = 'approved', decided_by = $2, decided_at = now() WHERE id = $1;

-- name: end
-- Rejected by another person, or withdrawn by the one who proposed it. One that is decided stays so: no row.
   UPDATE refund_proposal
      SET state = CASE WHEN proposed_by = $2 THEN 'withdrawn' ELSE 'rejected' END,
          decided_by = $2, decided_at = now(), decided_note = $3
    WHERE id = $1 AND state = 'pending'
RETURNING id;

-- name: proposal_of_reason
SELECT id FROM refund_proposal WHERE show_id = $1 AND number = $2 AND why = $3;

-- name: proposals
-- Newest first, before an id ($4); one ($2), or in a state ($3).
  SELECT proposal.*, proposer.name AS proposer_name, decider.name AS decider_name,
         CASE WHEN proposal.state = 'pending' AND proposal.expires_at <= now() THEN 'expired'
              ELSE proposal.state END AS shown_state
    FROM (SELECT *
            FROM refund_proposal
           WHERE ($1::bigint IS NULL OR organiser_id = $1)
             AND ($2::bigint IS NULL OR id = $2)
             AND ($3::text IS NULL
                  OR CASE $3 WHEN 'pending' THEN state = 'pending' AND expires_at > now()
                             WHEN 'expired' THEN state = 'pending' AND expires_at <= now()
                             ELSE state = $3 END)
             AND id < $4
        ORDER BY id DESC
           LIMIT $5) AS proposal
    LEFT JOIN account_profile AS proposer ON proposer.id = proposal.proposed_by
    LEFT JOIN account_profile AS decider ON decider.id = proposal.decided_by
ORDER BY proposal.id DESC;

-- name: organiser_limits
SELECT currency, amount_minor FROM refund_limit WHERE organiser_id = $1 ORDER BY currency;

-- name: lock_limits
-- Against another change of them. An organiser without any has no row to lock: the last change wins.
SELECT currency, amount_minor FROM refund_limit WHERE organiser_id = $1 ORDER BY currency FOR UPDATE;

-- name: drop_limits
DELETE FROM refund_limit WHERE organiser_id = $1;

-- name: put_limits
INSERT INTO refund_limit (organiser_id, currency, amount_minor)
SELECT $1, currency, amount_minor FROM unnest($2::text[], $3::bigint[]) AS input (currency, amount_minor)
ON CONFLICT (organiser_id, currency) DO UPDATE SET amount_minor = excluded.amount_minor;
