-- Query correction: known words, near words, and whether a query matches anything.

-- name: found
-- Whether any listing matches, for each tsquery in order. Most match without the descriptions.
  SELECT EXISTS (SELECT FROM listing WHERE brief @@ input.words::tsquery)
         OR EXISTS (SELECT FROM listing WHERE doc @@ input.words::tsquery) AS found
    FROM unnest($1::text[]) WITH ORDINALITY AS input (words, place)
ORDER BY place;

-- name: words_known
-- First how many listings there are, about; then how often words are used that begin with $2; then the words
-- that are known.
   SELECT '' AS word, greatest(reltuples, 0)::int AS uses FROM pg_class WHERE oid = 'listing'::regclass
UNION ALL
   SELECT '', coalesce(sum(uses), 0)::int FROM listing_word WHERE word >= $2 AND word < $2 || U&'\+10FFFF'
UNION ALL
   SELECT word, uses FROM listing_word WHERE word = ANY ($1::text[]);

-- name: words_near
-- Words that share a key with these: few, whatever the number of words (search/spelling.py). Key by key:
-- for an overlap of many keys the planner may prefer to read every word there is.
SELECT DISTINCT word, uses
  FROM unnest($1::text[]) AS key
  JOIN listing_word ON keys @> ARRAY[key] COLLATE "C";

-- name: words_beginning
-- The most used words that begin so.
  SELECT word, uses
    FROM listing_word
   WHERE word >= $1 AND word < $1 || U&'\+10FFFF'
ORDER BY uses DESC, word
   LIMIT $2;
