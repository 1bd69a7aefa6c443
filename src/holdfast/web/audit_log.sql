-- The functions of audit_log/, for every folder that changes something on behalf of staff.

-- name: append
SELECT append_to_audit_log($1::text::jsonb);

-- name: erase_person
SELECT erase_person_from_audit_log($1);
