-- pods/functions.sql: whether this database may sell a show, and the guard that stops every other write.
-- needs: bookings

-- Those of these shows that this database may not sell: the directory names another one, or its rows are not
-- of the current epoch. A pod that was restored from a backup has another, a copy that is not complete, too.
CREATE OR REPLACE FUNCTION shows_elsewhere(p_shows bigint[]) RETURNS TABLE (show_id bigint)
LANGUAGE sql STABLE AS $$
    SELECT wanted.show_id
      FROM unnest(p_shows) AS wanted (show_id)
      LEFT JOIN show_pod AS directory ON directory.show_id = wanted.show_id
      LEFT JOIN show_copy AS copy ON copy.show_id = wanted.show_id
     WHERE coalesce(directory.pod, '') <> (SELECT name FROM pod_identity)
        OR coalesce(directory.epoch, 1) <> coalesce(copy.epoch, 1);
$$;

CREATE OR REPLACE FUNCTION show_is_here(p_show bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM shows_elsewhere(ARRAY[p_show]));
$$;

-- The lock between writers of a show (shared) and the fence of a move (exclusive).
CREATE OR REPLACE FUNCTION lock_show_copy(p_show bigint, p_shared boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_shared THEN
        PERFORM pg_advisory_xact_lock_shared(38, (p_show % 2147483647)::int);
    ELSE
        PERFORM pg_advisory_xact_lock(38, (p_show % 2147483647)::int);
    END IF;
END $$;

-- After every statement that writes rows of a sale, in an installation with pods. The fence takes the lock
-- exclusively: it waits for writers that passed here, and writers that come later see it. lock_not_available
-- is what a locked show raises, too: other shows of a batch go on, and the buyer gets 503 with Retry-After.
--
-- A transaction looks at a show once: it keeps the lock until its end, so no fence comes in between.
CREATE OR REPLACE FUNCTION refuse_show_elsewhere() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_seen  text := coalesce(current_setting('holdfast.shows_here', true), '');  -- " 7 12 "
    v_shows bigint[];
    v_show  bigint;
BEGIN
    IF current_setting('holdfast.copies_show', true) = 'on' THEN
        RETURN NULL;
    END IF;
    v_shows := ARRAY(SELECT DISTINCT show_id FROM written WHERE strpos(v_seen, ' ' || show_id || ' ') = 0);
    IF v_shows = '{}' THEN
        RETURN NULL;
    END IF;
    -- Two statements for all shows of a batch. The second must begin when all locks are held: it sees what a
    -- fence has committed that one of them waited for.
    PERFORM lock_show_copy(show_id, true) FROM unnest(v_shows) AS show_id;
    SELECT show_id INTO v_show FROM shows_elsewhere(v_shows) LIMIT 1;
    IF v_show IS NOT NULL THEN
        RAISE EXCEPTION 'show % is not sold in this database', v_show USING ERRCODE = 'lock_not_available';
    END IF;
    IF length(v_seen) < 4000 THEN  -- a retention run has thousands: each text would be longer
        v_seen := v_seen || ' ' || array_to_string(v_shows, ' ') || ' ';
        PERFORM set_config('holdfast.shows_here', v_seen, true);
    END IF;
    RETURN NULL;
END $$;

-- In a pod, when a change of the show arrives from the home database: the map must be rebuilt, as after
-- set_sale. The columns of set_sale arrive by replication, the others are the pod's own. After reprice_sale
-- the map stays, here as at home: it knows no prices. Home writes the prices before the sale.
CREATE OR REPLACE FUNCTION follow_changed_sale() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.hidden = OLD.hidden AND has_other_prices_only(NEW.show_id, NEW.revision) THEN
        RETURN NEW;
    END IF;
    NEW.epoch := OLD.epoch + 1;
    NEW.map_stale := true;
    NEW.marked_at := now();
    IF NOT NEW.cancelled THEN
        NEW.emptied_at := NULL;
    END IF;
    RETURN NEW;
END $$;

-- In a pod, when the start of a show has been moved at home: releases of blocks that count from it move, too.
CREATE OR REPLACE FUNCTION follow_moved_show() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM move_block_releases(NEW.id, NEW.starts_at);
    RETURN NULL;
END $$;

-- In a pod, when a guest has become one person with an account at home: what the guest has here counts for
-- the account as well, as merge_owner_counts does at home in the same transaction.
CREATE OR REPLACE FUNCTION follow_signed_in_guest() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM merge_owner_counts(NEW.id, NEW.guest_of);
    RETURN NULL;
END $$;

-- In the home database: a new show goes to the pod with the fewest shows, of those that take any.
CREATE OR REPLACE FUNCTION give_show_to_pod() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_pod (show_id, pod)
    SELECT NEW.id, p.name
      FROM pod AS p
      LEFT JOIN show_pod AS d ON d.pod = p.name
     WHERE p.takes_new_shows
  GROUP BY p.name
  ORDER BY count(d.show_id), p.name
     LIMIT 1;
    RETURN NULL;
END $$;

-- From the commit on, no statement writes rows of this show here. Its time is that of the lock: all rows of
-- the show in this database are older.
CREATE OR REPLACE FUNCTION fence_show(p_show bigint, p_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_show_copy(p_show, false);
    INSERT INTO show_copy (show_id, epoch, changed_at) VALUES (p_show, -p_epoch, clock_timestamp())
        ON CONFLICT (show_id) DO UPDATE SET epoch = excluded.epoch, changed_at = excluded.changed_at;
END $$;

-- The guard on these tables. Repeatable: what is there is not locked.
CREATE OR REPLACE FUNCTION guard_shows(p_tables text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
    v_event text;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        FOREACH v_event IN ARRAY ARRAY['INSERT', 'UPDATE', 'DELETE'] LOOP
            CONTINUE WHEN EXISTS (SELECT FROM pg_trigger
                                   WHERE tgrelid = v_table::regclass
                                     AND tgname = 'refuse_elsewhere_' || lower(v_event));
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON %I REFERENCING %s TABLE AS written '
                           'FOR EACH STATEMENT EXECUTE FUNCTION refuse_show_elsewhere()',
                           'refuse_elsewhere_' || lower(v_event), v_event, v_table,
                           CASE v_event WHEN 'DELETE' THEN 'OLD' ELSE 'NEW' END);
        END LOOP;
    END LOOP;
END $$;

-- The numbers of an identity column that are this database's: of every p_shares, the p_number-th. Rows of a
-- moved show keep their numbers, so two pods must never use the same. Repeatable: a column that has its share
-- is not locked. Locked before its last number is read: one that is drawn meanwhile would be drawn again.
CREATE OR REPLACE FUNCTION share_numbers(p_tables text[], p_number int, p_shares int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
    v_last bigint;
    v_step bigint;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        SELECT seqincrement INTO v_step
          FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence(v_table, 'id')::regclass;
        EXECUTE format('SELECT last_value FROM %s', pg_get_serial_sequence(v_table, 'id')) INTO v_last;
        CONTINUE WHEN v_step = p_shares AND v_last % p_shares = p_number;
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', v_table);
        EXECUTE format('SELECT last_value FROM %s', pg_get_serial_sequence(v_table, 'id')) INTO v_last;
        EXECUTE format('ALTER TABLE %I ALTER COLUMN id SET INCREMENT BY %s RESTART WITH %s',
                       v_table, p_shares, (v_last / p_shares + 1) * p_shares + p_number);
    END LOOP;
END $$;

-- After a show has arrived: later rows have higher numbers than those that came with it. Their order counts.
CREATE OR REPLACE FUNCTION raise_numbers(p_tables text[], p_show bigint, p_number int, p_shares int)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
    v_highest bigint;
    v_last bigint;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        EXECUTE format('SELECT max(id) FROM %I WHERE show_id = $1', v_table) INTO v_highest USING p_show;
        EXECUTE format('SELECT last_value FROM %s', pg_get_serial_sequence(v_table, 'id')) INTO v_last;
        IF v_highest >= v_last THEN  -- 1024 further: numbers may be drawn meanwhile
            PERFORM setval(pg_get_serial_sequence(v_table, 'id'),
                           (v_highest / p_shares + 1024) * p_shares + p_number, false);
        END IF;
    END LOOP;
END $$;

-- In the home database: what the pods receive. Repeatable; an upgrade that adds tables calls it again.
CREATE OR REPLACE FUNCTION publish_to_pods(p_tables text[], p_sale_columns text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_what text := format('%s, sale (%s)',
        (SELECT string_agg(quote_ident(name), ', ') FROM unnest(p_tables) AS name),
        (SELECT string_agg(quote_ident(name), ', ') FROM unnest(p_sale_columns) AS name));
BEGIN
    IF EXISTS (SELECT FROM pg_publication WHERE pubname = 'holdfast_pods') THEN
        EXECUTE 'ALTER PUBLICATION holdfast_pods SET TABLE ' || v_what;
    ELSE
        EXECUTE 'CREATE PUBLICATION holdfast_pods FOR TABLE ' || v_what;
    END IF;
    CREATE OR REPLACE TRIGGER give_show_to_pod AFTER INSERT ON show
        FOR EACH ROW EXECUTE FUNCTION give_show_to_pod();
END $$;

-- In a pod that is still empty: receive what the home database publishes, through a slot that exists there.
-- Facts about a changed or cancelled show are written here, too: this pod's workers tell its buyers.
CREATE OR REPLACE FUNCTION subscribe_to_home(p_tables text[], p_home text, p_slot text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('TRUNCATE %s, sale CASCADE',
                   (SELECT string_agg(quote_ident(name), ', ') FROM unnest(p_tables) AS name));
    CREATE OR REPLACE TRIGGER follow_changed_sale BEFORE UPDATE ON sale FOR EACH ROW
        WHEN (OLD.revision <> NEW.revision OR OLD.hidden <> NEW.hidden)
        EXECUTE FUNCTION follow_changed_sale();
    ALTER TABLE sale ENABLE REPLICA TRIGGER follow_changed_sale;
    CREATE OR REPLACE TRIGGER follow_signed_in_guest AFTER UPDATE ON account FOR EACH ROW
        WHEN (NEW.guest_of IS NOT NULL AND OLD.guest_of IS DISTINCT FROM NEW.guest_of)
        EXECUTE FUNCTION follow_signed_in_guest();
    ALTER TABLE account ENABLE REPLICA TRIGGER follow_signed_in_guest;
    CREATE OR REPLACE TRIGGER follow_moved_show AFTER UPDATE ON show FOR EACH ROW
        WHEN (OLD.starts_at <> NEW.starts_at)
        EXECUTE FUNCTION follow_moved_show();
    ALTER TABLE show ENABLE REPLICA TRIGGER follow_moved_show;
    EXECUTE format('CREATE SUBSCRIPTION holdfast_home CONNECTION %L PUBLICATION holdfast_pods '
                   'WITH (create_slot = false, slot_name = %L)', p_home, p_slot);
END $$;

-- The rows of a show that was moved away, or of a copy that was never completed. The caller has set
-- holdfast.copies_show; rows that are otherwise never deleted have a copy elsewhere. Epoch 0: no directory,
-- not even one that was restored to before the move, makes this database sell the show without them.
CREATE OR REPLACE FUNCTION remove_rows_of_show(p_tables text[], p_show bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
BEGIN
    IF show_is_here(p_show) THEN
        RAISE EXCEPTION 'show % is sold here: its rows stay', p_show;
    END IF;
    FOREACH v_table IN ARRAY p_tables LOOP
        EXECUTE format('DELETE FROM %I WHERE show_id = $1', v_table) USING p_show;
    END LOOP;
    UPDATE show_copy SET epoch = 0, changed_at = clock_timestamp() WHERE show_id = p_show;
END $$;

-- Rows of a pod's own that a new subscription would remove with the copies they refer to. Those of an earlier
-- try, which was interrupted, stay: the tables may be empty by now.
CREATE OR REPLACE FUNCTION set_aside(p_tables text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        IF to_regclass('aside_' || v_table) IS NULL THEN
            EXECUTE format('CREATE TABLE %I AS TABLE %I', 'aside_' || v_table, v_table);
        END IF;
    END LOOP;
END $$;

-- What this database decides about its sales: all columns but those that home publishes. What home has
-- changed since they were set aside did not pass the triggers of a change.
CREATE OR REPLACE FUNCTION put_sale_back(p_published text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('UPDATE sale SET %s FROM aside_sale AS old WHERE old.show_id = sale.show_id',
                           string_agg(format('%1$I = old.%1$I', attname), ', '))
               FROM pg_attribute
              WHERE attrelid = 'sale'::regclass AND attnum > 0 AND NOT attisdropped
                AND attname <> ALL (p_published));
    PERFORM restore_missed_sales(array_agg(show_id), array_agg(closes_at)) FROM aside_sale;
    PERFORM publish_missed_changes(array_agg(show_id), array_agg(revision), array_agg(cancelled))
       FROM aside_sale;
END $$;

-- Rows whose copy is gone at home are gone, too, as if home had deleted it a moment later.
CREATE OR REPLACE FUNCTION put_rows_back(p_table text, p_copy text, p_column text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I SELECT old.* FROM %I AS old JOIN %I AS copy ON copy.id = old.%I',
                   p_table, 'aside_' || p_table, p_copy, p_column);
END $$;

CREATE OR REPLACE FUNCTION forget_aside(p_tables text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        EXECUTE format('DROP TABLE %I', 'aside_' || v_table);
    END LOOP;
END $$;
