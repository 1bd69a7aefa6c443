-- The audit log: its chains of hashes are computed again.

-- name: audit_log_is_whole
-- An entry that was changed, deleted, inserted or moved. The first of a chain has nothing before it.
SELECT format(CASE WHEN number <> coalesce(before, 0) + 1
                   THEN 'log %s: entries between %s and %s are missing'
                   ELSE 'log %s: entry %3$s was changed, or one before it replaced' END,
              chain, coalesce(before, 0), number) AS what
  FROM (SELECT audit_entry.chain, audit_entry.number, audit_entry.hash AS stored,
               lag(number) OVER entries AS before,
               audit_hash(coalesce(lag(hash) OVER entries, ''), audit_entry) AS computed
          FROM audit_entry
        WINDOW entries AS (PARTITION BY chain ORDER BY number)) AS chained
 WHERE stored <> computed OR number <> coalesce(before, 0) + 1;

-- name: audit_log_is_erased_on_record
-- A personal part that does not match its digest, or that is gone without an entry that says so.
WITH erased AS (
    SELECT audit_entry.chain, listed.number::bigint AS number
      FROM audit_entry, jsonb_array_elements_text(after->'numbers') AS listed (number)
     WHERE action = 'audit_log.personal_data_erased'
)
SELECT format('log %s: the personal data of entry %s was %s', chain, number,
              CASE WHEN personal IS NULL THEN 'removed without a record' ELSE 'changed' END) AS what
  FROM audit_entry
 WHERE CASE WHEN personal IS NULL
            THEN NOT EXISTS (SELECT FROM erased
                              WHERE erased.chain = audit_entry.chain AND erased.number = audit_entry.number)
            ELSE digest <> audit_digest(salt, personal) END;

-- name: audit_log_has_its_end
-- The last entries of a chain were deleted, or the note of its end was.
SELECT format('log %s: it ends with entry %s, and %s is on record', coalesce(head.chain, last.chain),
              coalesce(last.number, 0), coalesce(head.number, 0)) AS what
  FROM audit_chain AS head
  FULL JOIN (SELECT DISTINCT ON (chain) chain, number, hash
               FROM audit_entry ORDER BY chain, number DESC) AS last
    ON last.chain = head.chain
 WHERE (head.number, head.hash) IS DISTINCT FROM (coalesce(last.number, 0), coalesce(last.hash, ''));
