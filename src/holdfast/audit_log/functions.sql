-- audit_log/functions.sql: entries are appended to chains, and their personal part is erased.
-- needs: organisers

-- What an entry's hash covers: the hash before it, and every column but the personal part and its salt. A
-- change here breaks every chain that exists.
CREATE OR REPLACE FUNCTION audit_hash(p_before bytea, p_entry audit_entry) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(p_before || convert_to(jsonb_build_array(
        p_entry.chain, p_entry.number, (extract(epoch FROM p_entry.at) * 1000000)::bigint, p_entry.action,
        p_entry.subject_kind, p_entry.subject_id, p_entry.subject_name, p_entry.actor_id, p_entry.person_id,
        p_entry.via, p_entry.before, p_entry.after, encode(p_entry.digest, 'hex'))::text, 'UTF8'));
$$;

CREATE OR REPLACE FUNCTION audit_digest(p_salt bytea, p_personal jsonb) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(p_salt || convert_to(p_personal::text, 'UTF8'));
$$;

-- Appends entries (a JSON array of objects) to their chains; with a show_id, to that of its organiser. Call
-- it last in a transaction: it locks the ends of the chains until the commit, in the order of their numbers,
-- so that two transactions cannot deadlock.
CREATE OR REPLACE FUNCTION append_to_audit_log(p_entries jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_chain bigint;
    v_given jsonb;
    v_last  audit_chain;
    v_new   audit_entry;
BEGIN
    FOR v_chain, v_given IN
        SELECT coalesce((SELECT organiser_id FROM show_organiser WHERE show_id = (one->>'show_id')::bigint),
                        (one->>'chain')::bigint) AS chain, one
          FROM jsonb_array_elements(p_entries) WITH ORDINALITY AS e (one, ord)
      ORDER BY chain, ord
    LOOP
        INSERT INTO audit_chain (chain) VALUES (v_chain) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT v_last FROM audit_chain WHERE chain = v_chain FOR UPDATE;
        v_new := jsonb_populate_record(NULL::audit_entry, v_given);
        v_new.chain := v_chain;
        v_new.number := v_last.number + 1;
        v_new.at := greatest(v_last.at, clock_timestamp());
        v_new.salt := uuid_send(gen_random_uuid());
        v_new.digest := audit_digest(v_new.salt, v_new.personal);
        v_new.hash := audit_hash(v_last.hash, v_new);
        INSERT INTO audit_entry SELECT v_new.*;
        UPDATE audit_chain SET number = v_new.number, hash = v_new.hash, at = v_new.at
         WHERE chain = v_new.chain;
    END LOOP;
END $$;

-- Erases the personal part of entries. That it was erased, and of which entries, is an entry of its own: a
-- part that is missing without one was removed by hand.
CREATE OR REPLACE FUNCTION erase_from_audit_log(p_chain bigint, p_numbers bigint[], p_why text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_erased bigint[];
BEGIN
    WITH erased AS (
           UPDATE audit_entry SET personal = NULL, salt = NULL
            WHERE chain = p_chain AND number = ANY (p_numbers) AND personal IS NOT NULL
        RETURNING number
    )
    SELECT array_agg(number ORDER BY number) INTO v_erased FROM erased;
    IF v_erased IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM append_to_audit_log(jsonb_build_array(jsonb_build_object(
        'chain', p_chain, 'action', 'audit_log.personal_data_erased', 'subject_kind', 'audit_log',
        'subject_id', p_chain::text, 'subject_name', '', 'via', 'job', 'before', '{}'::jsonb,
        'after', jsonb_build_object('numbers', v_erased, 'why', p_why), 'personal', '{}'::jsonb)));
    RETURN cardinality(v_erased);
END $$;

-- Erases what the entries have of one account: as the person who acted, and as the person they are about.
CREATE OR REPLACE FUNCTION erase_person_from_audit_log(p_account bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM erase_from_audit_log(chain, numbers, 'account ' || p_account)
       FROM (SELECT chain, array_agg(number) AS numbers
               FROM (SELECT chain, number FROM audit_entry
                      WHERE actor_id = p_account AND personal IS NOT NULL
                      UNION
                     SELECT chain, number FROM audit_entry
                      WHERE person_id = p_account AND personal IS NOT NULL) AS of_account
           GROUP BY chain ORDER BY chain) AS by_chain;
END $$;

CREATE OR REPLACE FUNCTION audit_entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.personal IS NULL AND NEW.salt IS NULL
       AND to_jsonb(NEW) - '{personal,salt}'::text[] = to_jsonb(OLD) - '{personal,salt}'::text[] THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'entry % of chain % of the audit log is never changed or deleted', OLD.number, OLD.chain
        USING ERRCODE = 'check_violation';
END $$;

CREATE OR REPLACE TRIGGER audit_entries_stay BEFORE UPDATE OR DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_entries_stay();
