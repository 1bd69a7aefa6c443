-- Legal texts and consent to them.

-- name: in_force
-- The newest version of each; withdrawn ones have no text.
  SELECT DISTINCT ON (organisation_id, kind) organisation_id, kind, version, texts = '{}' AS is_withdrawn
    FROM legal_text
ORDER BY organisation_id, kind, version DESC;

-- name: one
-- $3 0: the newest.
  SELECT organisation_id, kind, version, texts::text, published_at,
         ARRAY(SELECT other.version FROM legal_text AS other
                WHERE other.organisation_id = $1 AND other.kind = $2
             ORDER BY other.version DESC) AS versions
    FROM legal_text
   WHERE organisation_id = $1 AND kind = $2 AND ($3 = 0 OR version = $3)
ORDER BY version DESC
   LIMIT 1;

-- name: lock
-- Two who publish at once get two versions.
SELECT pg_advisory_xact_lock(hashtextextended('legal_text', $1));

-- name: publish
   INSERT INTO legal_text (organisation_id, kind, version, texts)
   SELECT $1, $2, coalesce(max(version), 0) + 1, $3::jsonb
     FROM legal_text WHERE organisation_id = $1 AND kind = $2
RETURNING version;

-- name: terms_of_shows
-- The newest terms of the house (0) and of each show's organiser, in this order; none that are withdrawn.
  SELECT requested.show_id, newest.organisation_id, newest.version
    FROM unnest($1::bigint[]) AS requested(show_id)
    LEFT JOIN show_organiser ON show_organiser.show_id = requested.show_id
   CROSS JOIN LATERAL unnest(ARRAY[0, organiser_id]) WITH ORDINALITY AS owner(id, place)
   CROSS JOIN LATERAL (SELECT organisation_id, version, texts = '{}' AS is_withdrawn
                         FROM legal_text
                        WHERE organisation_id = owner.id AND kind = 'terms'
                     ORDER BY version DESC
                        LIMIT 1) AS newest
   WHERE NOT newest.is_withdrawn
ORDER BY requested.show_id, owner.place;

-- name: agree
INSERT INTO consent (account_id, organisation_id, kind, version, show_id, number)
     SELECT $1, a.organisation_id, a.kind, a.version, $5, $6
       FROM unnest($2::bigint[], $3::text[], $4::int[]) AS a (organisation_id, kind, version)
ON CONFLICT DO NOTHING;
