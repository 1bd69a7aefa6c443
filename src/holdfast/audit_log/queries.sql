-- name: entries
-- Newest first, of one chain ($1) before a number ($8). Times become numbers first: entries are in the order
-- of both. Planned for its arguments each time, so that each filter uses its own index.
  SELECT entry.*, account.name AS actor_name, account.email AS actor_email
    FROM (SELECT *
            FROM audit_entry
           WHERE chain = $1
             AND ($2::text IS NULL OR action = $2)
             AND ($3::bigint IS NULL OR actor_id = $3)
             AND ($4::text IS NULL OR subject_kind = $4)
             AND ($5::text IS NULL OR subject_id = $5)
             AND number >= coalesce((SELECT number FROM audit_entry
                                      WHERE chain = $1 AND at >= $6::timestamptz
                                   ORDER BY at, number LIMIT 1),
                                    CASE WHEN $6 IS NULL THEN 0 ELSE $8::bigint END)
             AND number < coalesce((SELECT number FROM audit_entry
                                     WHERE chain = $1 AND at >= $7::timestamptz
                                  ORDER BY at, number LIMIT 1), $8::bigint)
             AND number < $8::bigint
        ORDER BY number DESC
           LIMIT $9) AS entry
    LEFT JOIN account_profile AS account ON account.id = entry.actor_id
ORDER BY entry.number DESC;

-- name: head
-- The last entry of a chain; no row if it has none.
SELECT number, encode(hash, 'hex') AS hash FROM audit_chain WHERE chain = $1;

-- name: heads
SELECT chain, number, encode(hash, 'hex') AS hash FROM audit_chain ORDER BY chain;

-- name: has_entry
-- Whether a chain still has the entry that was its last one at an earlier time.
SELECT EXISTS (SELECT FROM audit_entry WHERE chain = $1 AND number = $2 AND hash = decode($3, 'hex'));
