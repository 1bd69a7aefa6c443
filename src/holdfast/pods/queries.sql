-- name: shows_changed_since
-- The directory, from a moment on. A commit may come some seconds after the time of its row.
SELECT show_id, pod, epoch, changed_at FROM show_pod WHERE changed_at >= $1 ORDER BY changed_at;

-- name: count_moves
-- Grows with every show that moves.
SELECT coalesce(sum(epoch - 1), 0)::bigint FROM show_pod;

-- name: raise_mark
-- At home. Its commit comes after all that the pod shall have.
INSERT INTO pod_mark AS m (pod, number) VALUES ($1, 1)
    ON CONFLICT (pod) DO UPDATE SET number = m.number + 1
RETURNING number;

-- name: mark
SELECT number FROM pod_mark WHERE pod = $1;

-- name: find_show
SELECT pod, epoch FROM show_pod WHERE show_id = $1;

-- name: show_is_here
SELECT show_is_here($1);

-- name: pods
SELECT p.name, p.number, p.takes_new_shows, p.added_at,
       (SELECT count(*) FROM show_pod AS d WHERE d.pod = p.name) AS shows
  FROM pod AS p
 ORDER BY p.number;

-- name: add_pod
INSERT INTO pod (name, number, takes_new_shows)
VALUES ($1, (SELECT coalesce(max(number), 0) + 1 FROM pod), $2)
    ON CONFLICT (name) DO UPDATE SET takes_new_shows = excluded.takes_new_shows
RETURNING number;

-- name: identify
UPDATE pod_identity SET name = $1;

-- name: identity
SELECT name FROM pod_identity;

-- name: knows_pods
SELECT to_regclass('pod_identity') IS NOT NULL;

-- name: layout_of_show
SELECT layout_hash FROM show_detail WHERE show_id = $1;

-- name: fence
SELECT fence_show($1, $2);

-- name: lock_copy
SELECT lock_show_copy($1, false);

-- name: try_lock_place
-- At home, by a mover's connection: one command at a time decides where a show is, and none while all
-- databases are looked at (pods/moment.py). False: another command does.
SELECT pg_advisory_lock_shared(41, 0) IS NOT NULL
   AND pg_try_advisory_lock(39, ($1::bigint % 2147483647)::int);

-- name: try_lock_place_in_transaction
SELECT pg_try_advisory_xact_lock(39, ($1::bigint % 2147483647)::int);

-- name: complete_copy
-- The rows of this epoch are all here. $3: the last fact of the show from an earlier stay.
INSERT INTO show_copy (show_id, epoch, moves_until, facts_until)
VALUES ($1, $2, (SELECT coalesce(max(id), 0) FROM booking_history WHERE show_id = $1), $3)
    ON CONFLICT (show_id) DO UPDATE
   SET epoch = excluded.epoch, moves_until = excluded.moves_until, facts_until = excluded.facts_until,
       changed_at = now();

-- name: remove_fence
-- Of a move that was given up. A show without a fence stays as it is.
UPDATE show_copy SET epoch = $2, changed_at = now() WHERE show_id = $1 AND epoch = -$2::bigint;

-- name: switch
-- The move itself: one row, compared with what the mover has read.
INSERT INTO show_pod AS d (show_id, pod, epoch) VALUES ($1, $2, $3 + 1)
    ON CONFLICT (show_id) DO UPDATE SET pod = excluded.pod, epoch = excluded.epoch, changed_at = now()
 WHERE d.epoch = $3
RETURNING epoch;

-- name: copies_show
SELECT set_config('holdfast.copies_show', 'on', true);

-- name: wait_for_lock_at_most
SELECT set_config('lock_timeout', $1, true);

-- name: fenced_shows
-- For longer than $1 seconds.
SELECT show_id, -epoch AS epoch, changed_at FROM show_copy AS c
 WHERE epoch < 0 AND changed_at < clock_timestamp() - $1 * interval '1 s'
   AND EXISTS (SELECT FROM show_pod AS d
                WHERE d.show_id = c.show_id AND d.epoch = -c.epoch
                  AND d.pod = (SELECT name FROM pod_identity))
   AND NOT EXISTS (SELECT FROM show_detail AS s WHERE s.show_id = c.show_id AND s.deleted_at IS NOT NULL);

-- name: columns
SELECT attname AS name, attidentity <> '' AS is_identity
  FROM pg_attribute
 WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
 ORDER BY attnum;

-- name: slot_exists
SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1);

-- name: create_slot
SELECT pg_create_logical_replication_slot($1, 'pgoutput');

-- name: subscription_exists
SELECT EXISTS (SELECT FROM pg_subscription
                WHERE subname = $1
                  AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()));

-- name: tables_not_ready
-- Tables whose first copy is still under way.
SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r';

-- name: wal_level
SELECT current_setting('wal_level');

-- name: links
-- How far each pod is behind, and what is retained for it, in bytes; NULL: the log that it needs is gone.
SELECT slot_name, active, wal_status AS status,
       CASE WHEN wal_status <> 'lost' THEN
           pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint END AS behind_bytes,
       CASE WHEN wal_status <> 'lost' THEN
           pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint END AS retained_bytes
  FROM pg_replication_slots
 WHERE slot_type = 'logical' AND database = current_database() AND slot_name LIKE 'holdfast_pod_%';

-- name: log_retained_max
SELECT current_setting('max_slot_wal_keep_size');

-- name: facts
-- Of a pod. Without a subscription nothing arrives.
SELECT (SELECT name FROM pod_identity) AS identity, s.subenabled AS is_enabled,
       EXISTS (SELECT FROM pg_stat_subscription AS w
                WHERE w.subid = s.oid AND w.relid IS NULL AND w.pid IS NOT NULL) AS is_receiving,
       (SELECT count(*)::int FROM pg_subscription_rel AS r
         WHERE r.srsubid = s.oid AND r.srsubstate <> 'r') AS tables_under_way,
       (SELECT max(number) FROM schema_step) AS schema_step
  FROM (SELECT 1) AS one
  LEFT JOIN pg_subscription AS s
    ON s.subname = 'holdfast_home'
   AND s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: guard_shows
SELECT guard_shows($1);

-- name: share_numbers
SELECT share_numbers($1, $2, $3);

-- name: raise_numbers
SELECT raise_numbers($1, $2, $3, $4);

-- name: publish_to_pods
SELECT publish_to_pods($1, $2);

-- name: subscribe_to_home
SELECT subscribe_to_home($1, $2, $3);

-- name: remove_rows
-- Of a show that was moved away, or of a copy that was not completed.
SELECT remove_rows_of_show($1, $2);

-- name: pod_number
SELECT number FROM pod WHERE name = $1;

-- name: published_tables
SELECT tablename AS name, attnames::text[] AS columns
  FROM pg_publication_tables
 WHERE pubname = 'holdfast_pods';

-- name: refresh_alone
-- Until the transaction ends.
SELECT pg_advisory_xact_lock(42, 0);

-- name: received_tables
SELECT srrelid::regclass::text AS name FROM pg_subscription_rel;

-- name: guarded_tables
SELECT DISTINCT tgrelid::regclass::text AS name FROM pg_trigger WHERE tgname = 'refuse_elsewhere_insert';

-- name: refresh_subscription
ALTER SUBSCRIPTION holdfast_home REFRESH PUBLICATION;

-- name: disable_subscription
ALTER SUBSCRIPTION holdfast_home DISABLE;

-- name: leave_slot
-- Home's slot is dropped there: this database may be a restored one, and the slot another server's.
ALTER SUBSCRIPTION holdfast_home SET (slot_name = NONE);

-- name: drop_subscription
DROP SUBSCRIPTION holdfast_home;

-- name: slot_is_active
SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND active);

-- name: drop_slot
SELECT pg_drop_replication_slot($1);

-- name: set_aside
SELECT set_aside($1);

-- name: put_sale_back
SELECT put_sale_back($1);

-- name: put_rows_back
SELECT put_rows_back($1, $2, $3);

-- name: forget_aside
SELECT forget_aside($1);

-- name: hold_moves
-- Waits for moves under way.
SELECT pg_advisory_lock(41, 0);

-- name: let_moves
SELECT pg_advisory_unlock(41, 0);

