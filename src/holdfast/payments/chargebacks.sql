-- name: record
SELECT record_chargeback($1, $2, $3, $4, $5, $6, $7, $8);

-- name: newest
-- Newest first, of shows of this organiser; of all when it is null.
  SELECT chargeback.*
    FROM chargeback
   WHERE ($1::bigint IS NULL
          OR EXISTS (SELECT 1 FROM show_detail AS s
                      WHERE s.show_id = chargeback.show_id AND s.organiser_id = $1))
     AND ($2::text IS NULL OR state = $2::chargeback_state)
ORDER BY changed_at DESC, show_id, number
  OFFSET $3
   LIMIT $4;
