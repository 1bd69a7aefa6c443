-- name: add_fact
INSERT INTO outbox (show_id, number, kind, body) VALUES ($1, $2, $3, $4::text::jsonb);

-- name: hold_facts
-- No transaction commits a fact until this one ends.
LOCK TABLE outbox IN SHARE MODE;

-- name: log
SELECT name, settled_id FROM fact_log;

-- name: ids_after
SELECT id FROM outbox WHERE id > $1 ORDER BY id LIMIT $2;

-- name: writers
-- Transactions that may have an id of the outbox in hand: an INSERT locks the table before it draws one, and
-- keeps the lock to its end. Other transactions are not waited for, however long they take.
SELECT virtualtransaction
  FROM pg_locks
 WHERE locktype = 'relation'
   AND relation = 'outbox'::regclass
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND mode = 'RowExclusiveLock'
   AND granted;

-- name: settle
-- Another relay may be further already: then nothing changes.
UPDATE fact_log SET settled_id = $1 WHERE settled_id < $1;

-- name: facts_after
-- With what never changes of their bookings, which the outbox does not repeat. Beyond what is settled
-- something may still appear in between: it is left for later. OFFSET 0: a booking is looked up for each fact
-- of the few, whatever the statistics say; a join that they know nothing of reads all bookings there are.
  SELECT facts.id, facts.show_id, facts.number, facts.kind, facts.body, facts.at, facts.trace,
         coalesce(facts.ends_at, booking.expires_at) AS ends_at,
         booking.owner_id, booking.seats, booking.prices_minor, booking.amount_minor, booking.currency,
         booking.note, booking.is_block
    FROM (SELECT *
            FROM outbox
           WHERE id > $1 AND id <= (SELECT settled_id FROM fact_log)
        ORDER BY id
           LIMIT $2) AS facts
    LEFT JOIN LATERAL (
         SELECT * FROM booking_for_fact AS b WHERE b.show_id = facts.show_id AND b.number = facts.number
         OFFSET 0) AS booking ON true
ORDER BY facts.id;

-- name: is_due
-- Whether there are facts for the relay to settle.
SELECT coalesce((SELECT max(id) FROM outbox), 0) > settled_id FROM fact_log;

-- name: add_group
-- One that exists stays where it is.
INSERT INTO consumer_group (name, checkpoint)
SELECT $1, CASE WHEN $2 THEN 0 ELSE settled_id END FROM fact_log
    ON CONFLICT (name) DO NOTHING;

-- name: lock_group
-- The rows of a group: the first has its name, those of further parts begin with it.
SELECT name, checkpoint FROM consumer_group WHERE split_part(name, ':', 1) = $1 ORDER BY name FOR UPDATE;

-- name: drop_parts
-- Facts that wait belong to the group, so its first row stays.
DELETE FROM consumer_group WHERE split_part(name, ':', 1) = $1 AND name <> $1;

-- name: add_parts
-- The first row is there. A process that had a turn has lost it: what it consumed since is delivered again.
INSERT INTO consumer_group (name, checkpoint)
SELECT name, $2 FROM unnest($1::text[]) AS name
    ON CONFLICT (name) DO UPDATE
   SET checkpoint = excluded.checkpoint, reader = '', lease_until = '-infinity', moved_at = now();

-- name: look
-- Whose turn it is; free when its time has passed. No row: there is no such group. The last fact there is
-- comes from the end of an index, whatever the statistics say.
SELECT checkpoint, settled_id, coalesce((SELECT max(id) FROM outbox), 0) AS last_id,
       (SELECT count(*) FROM consumer_group AS part WHERE split_part(part.name, ':', 1) = $4) AS parts,
       EXISTS (SELECT FROM parked_fact WHERE group_name = $4 AND dead_at IS NULL) AS has_parked,
       reader = $2 AND lease_until > now() + $3 * interval '1 s' AS is_mine,
       reader = $2 OR lease_until < now() AS is_free
  FROM consumer_group, fact_log
 WHERE consumer_group.name = $1;

-- name: take_turn
-- Another process took it: no row.
   UPDATE consumer_group
      SET reader = $2, lease_until = now() + $3 * interval '1 s'
    WHERE name = $1 AND (reader = $2 OR lease_until < now())
RETURNING checkpoint;

-- name: give_turn_back
-- Another process has it by now: nothing changes.
UPDATE consumer_group SET reader = '', lease_until = '-infinity' WHERE name = $1 AND reader = $2;

-- name: move_checkpoint
-- The turn was lost, or an operator started a replay: no row, and the batch is consumed again.
   UPDATE consumer_group
      SET checkpoint = $4, moved_at = now()
    WHERE name = $1 AND reader = $2 AND checkpoint = $3
RETURNING checkpoint;

-- name: oldest_checkpoint
-- Of every group but the relay; NULL: there are no consumers.
SELECT min(checkpoint) FROM consumer_group WHERE name <> $1;

-- name: park
INSERT INTO parked_fact (group_name, fact_id, key, fact, tries, reason, due_at)
SELECT $1, fact_id, key, fact, tries, reason, now() + pause_s * interval '1 s'
  FROM unnest($2::bigint[], $3::text[], $4::bytea[], $5::int[], $6::text[], $7::float8[])
    AS a (fact_id, key, fact, tries, reason, pause_s)
    ON CONFLICT (group_name, fact_id) DO UPDATE
   SET tries = excluded.tries, reason = excluded.reason, due_at = excluded.due_at, dead_at = NULL;

-- name: keys_waiting
SELECT DISTINCT key FROM parked_fact WHERE group_name = $1 AND key = ANY ($2::text[]) AND dead_at IS NULL;

-- name: parked_due
-- The first of each key whose time has come; those behind it wait for it.
SELECT fact_id, fact, tries
  FROM (SELECT DISTINCT ON (key) fact_id, fact, tries, due_at
          FROM parked_fact
         WHERE group_name = $1 AND dead_at IS NULL
      ORDER BY key, fact_id) AS first
 WHERE due_at <= now()
 ORDER BY fact_id
 LIMIT $2;

-- name: unpark
DELETE FROM parked_fact WHERE group_name = $1 AND fact_id = $2;

-- name: park_again
UPDATE parked_fact
   SET tries = $3, reason = $4, due_at = now() + $5 * interval '1 s',
       dead_at = CASE WHEN $6 THEN now() END
 WHERE group_name = $1 AND fact_id = $2;

-- name: consume_once
-- Again: no row is added. A twin that is at it is waited for.
INSERT INTO consumed_fact (group_name, fact_id) VALUES ($1, $2)
    ON CONFLICT (group_name, fact_id) DO NOTHING
RETURNING fact_id;

-- name: consume_many
-- The same for several: those that were consumed before are not among the rows.
INSERT INTO consumed_fact (group_name, fact_id)
SELECT $1, fact_id FROM unnest($2::bigint[]) AS fact_id ORDER BY fact_id
    ON CONFLICT (group_name, fact_id) DO NOTHING
RETURNING fact_id;

-- name: purge_facts
-- Those that everybody has passed, and that are older than we keep them, oldest first. The horizon is raised
-- in the same step: who counts facts counts from there.
WITH horizon AS (
       UPDATE fact_log SET purged_until = greatest(purged_until, now() - $1 * interval '1 h')
    RETURNING purged_until
), gone AS (
    SELECT id, show_id
      FROM outbox
     WHERE id <= (SELECT min(checkpoint) FROM consumer_group)
       AND at < (SELECT purged_until FROM horizon)
  ORDER BY id
     LIMIT $2
)
DELETE FROM outbox USING gone WHERE outbox.id = gone.id AND outbox.show_id = gone.show_id;

-- name: purge_consumed
-- A fact beyond the checkpoint may come again, and one that is parked will: theirs stay.
DELETE FROM consumed_fact
 WHERE (group_name, fact_id) IN (
       SELECT g.name, old.fact_id
         FROM (SELECT split_part(name, ':', 1) AS name, min(checkpoint) AS checkpoint
                 FROM consumer_group GROUP BY 1) AS g,
              LATERAL (SELECT fact_id, at FROM consumed_fact
                        WHERE group_name = g.name AND fact_id <= g.checkpoint
                     ORDER BY fact_id LIMIT $2) AS old
        WHERE old.at < now() - $1 * interval '1 h'
          AND NOT EXISTS (SELECT FROM parked_fact
                           WHERE group_name = g.name AND parked_fact.fact_id = old.fact_id));

-- name: groups
-- A group is as far as the last of its parts.
SELECT name, checkpoint, parts, reader, is_read,
       (SELECT count(*) FROM (SELECT FROM outbox WHERE id > checkpoint LIMIT 100000) AS few) AS behind,
       coalesce(extract(epoch FROM now() - (SELECT at FROM outbox WHERE id > checkpoint
                                         ORDER BY id LIMIT 1)), 0)::float8 AS lag_s,
       (SELECT count(*) FROM parked_fact WHERE group_name = name AND dead_at IS NULL) AS parked,
       (SELECT count(*) FROM parked_fact WHERE group_name = name AND dead_at IS NOT NULL) AS dead
  FROM (SELECT split_part(name, ':', 1) AS name, min(checkpoint) AS checkpoint, count(*) AS parts,
               string_agg(DISTINCT reader, ' ') AS reader, bool_and(lease_until > now()) AS is_read
          FROM consumer_group
         GROUP BY 1) AS all_groups
 ORDER BY name;

-- name: dead
  SELECT group_name, fact_id, tries, reason, dead_at, fact
    FROM parked_fact
   WHERE dead_at IS NOT NULL AND ($1 = '' OR group_name = $1)
ORDER BY group_name, fact_id
   LIMIT $2;

-- name: is_dead
-- Of any group, if $1 is empty.
SELECT EXISTS (SELECT FROM parked_fact
                WHERE ($1 = '' OR group_name = $1) AND fact_id = $2 AND dead_at IS NOT NULL);

-- name: retry_dead
-- From the beginning; others of its key are not waited for: they went on long ago.
UPDATE parked_fact
   SET dead_at = NULL, tries = 0, due_at = now()
 WHERE dead_at IS NOT NULL AND ($1 = '' OR group_name = $1) AND ($2::bigint IS NULL OR fact_id = $2);

-- name: first_since
SELECT min(id) FROM outbox WHERE at >= $1;

-- name: oldest
SELECT min(id) FROM outbox;

-- name: rewind
-- Only backwards. Afterwards any process may take the turn.
   UPDATE consumer_group
      SET checkpoint = $2, reader = '', lease_until = '-infinity', moved_at = now()
    WHERE split_part(name, ':', 1) = $1 AND checkpoint >= $2
RETURNING (SELECT count(*) FROM outbox WHERE id > $2) AS facts;

-- name: forget_consumed_after
DELETE FROM consumed_fact WHERE group_name = $1 AND fact_id > $2;

-- name: forget_parked_after
DELETE FROM parked_fact WHERE group_name = $1 AND fact_id > $2;

-- name: forget_group
DELETE FROM consumer_group WHERE split_part(name, ':', 1) = $1;

-- name: last_of_show
SELECT coalesce(max(id), 0) FROM outbox WHERE show_id = $1;

-- name: unread_of_show
-- Groups that have facts of this show still to process.
SELECT name
  FROM consumer_group AS g
 WHERE checkpoint < (SELECT max(id) FROM outbox WHERE show_id = $1)
    OR EXISTS (SELECT FROM parked_fact AS p
                WHERE p.group_name = g.name AND p.key LIKE $1::text || ':%' AND p.dead_at IS NULL);
