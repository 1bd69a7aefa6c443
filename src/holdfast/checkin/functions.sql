-- checkin/functions.sql: scans at a gate that is online, and taking them back. Uploads are in upload.py.
-- needs: tickets, outbox, organisations

-- Passes that were not revoked. A pass with a code was accepted by the device that signed in with it. A pass
-- of a person counts while they are a member of the organisation with the right to work at its door: they
-- have accepted that themselves, and lose it with the membership.
CREATE OR REPLACE VIEW good_pass AS
SELECT id, account_id, organiser_id, gate, name, code_hash, device_key, starts_at, ends_at, revoked_at,
       made_at
  FROM gate_pass
 WHERE revoked_at IS NULL
   AND (code_hash IS NOT NULL
        OR EXISTS (SELECT FROM organisation_member AS member
                    WHERE member.organisation_id = gate_pass.organiser_id
                      AND member.account_id = gate_pass.account_id
                      AND member.rights && '{door,owner}'));

-- Every scan that moved a visitor, for reports: one that the gate took back does not count.
CREATE OR REPLACE VIEW gate_scan AS
SELECT show_id, gate, verdict, scanned_at
  FROM check_in AS scan
 WHERE verdict IN ('admitted', 'left')
   AND NOT EXISTS (SELECT FROM check_in AS undo
                    WHERE undo.show_id = scan.show_id AND undo.verdict = 'undone' AND undo.undoes = scan.id);

-- Only retention deletes check-ins, of shows that were over long ago.
CREATE OR REPLACE FUNCTION check_ins_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND (EXISTS (SELECT FROM archived_sale WHERE show_id = OLD.show_id)
                             OR current_setting('holdfast.copies_show', true) = 'on') THEN
        RETURN OLD;  -- of a show that was moved: another database has its check-ins now
    END IF;
    RAISE EXCEPTION 'a check-in is never changed' USING ERRCODE = 'check_violation';
END $$;

CREATE OR REPLACE TRIGGER check_ins_stay BEFORE UPDATE OR DELETE ON check_in
    FOR EACH ROW EXECUTE FUNCTION check_ins_stay();

-- The pass with which this account may scan for a show now: one that covers the show, else any; none: no row.
CREATE OR REPLACE FUNCTION pass_now(p_account bigint, p_show bigint, p_grace interval DEFAULT '0')
RETURNS TABLE (pass_id bigint, gate text, covers boolean, any_show bigint, starts_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT pass.id, pass.gate, covered.show_id IS NOT NULL,
           (SELECT min(s.show_id) FROM gate_pass_show AS s WHERE s.pass_id = pass.id),
           pass.starts_at
      FROM good_pass AS pass
      LEFT JOIN gate_pass_show AS covered ON covered.pass_id = pass.id AND covered.show_id = p_show
     WHERE pass.account_id = p_account
       AND pass.starts_at <= now()
       AND pass.ends_at + p_grace > now()
  ORDER BY covered.show_id IS NULL, pass.id DESC
     LIMIT 1;
$$;

-- The verdict on a ticket whose row is locked: everything but whether the code itself is genuine. Rows are
-- never deleted, so a genuine code without a row, or with a later edition, was issued before the ledger was
-- put back to an earlier instant.
CREATE OR REPLACE FUNCTION door_verdict(
    p_ticket ticket, p_policy entry_policy, p_way text, p_edition int, p_binding int
) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN (p_ticket).serial IS NULL AND p_edition IS NULL THEN 'unknown'
                WHEN (p_ticket).serial IS NULL THEN 'lost_in_restore'
                WHEN coalesce((p_ticket).voided_at, (p_ticket).suspended_at) IS NOT NULL THEN 'void'
                WHEN p_edition < (p_ticket).edition THEN 'transferred'
                WHEN p_edition > (p_ticket).edition THEN 'lost_in_restore'
                WHEN p_edition IS NOT NULL AND p_binding IS NULL AND (p_policy).codes = 'live'
                     THEN 'live_code_needed'
                WHEN p_binding <> (p_ticket).binding THEN 'stale_code'
                WHEN p_way = 'exit' THEN CASE WHEN (p_ticket).is_inside THEN 'left' ELSE 'not_inside' END
                WHEN (p_ticket).used_at IS NULL THEN 'admitted'
                WHEN (p_ticket).is_inside OR NOT (p_policy).reentry THEN 'used'
                ELSE 'admitted' END;
$$;

-- What a verdict does to a ticket. A rejection does nothing.
CREATE OR REPLACE FUNCTION apply_verdict(p_show bigint, p_serial bigint, p_verdict text, p_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_verdict IN ('admitted', 'left') THEN
        PERFORM mark_ticket(p_show, p_serial, p_verdict = 'admitted',
                            CASE p_verdict WHEN 'admitted' THEN p_at END);
    END IF;
END $$;

-- One scan at a gate that is online. p_serial NULL: the code is not valid. p_edition NULL: found by hand.
-- p_key: which key signed the code. No row: no pass. The same scan again gets the first answer again; a row
-- without an id: the device has used this scan id for another ticket, and the answer to that one must not
-- admit anybody here. The lock of the ticket decides between two gates that scan it at once: the second sees
-- what the first did.
DROP FUNCTION IF EXISTS check_in_now(bigint, text, text, bigint, bigint, int, int);
CREATE OR REPLACE FUNCTION check_in_now(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int, p_binding int,
    p_key int DEFAULT NULL
) RETURNS TABLE (check_in_id bigint, show_id bigint, verdict text, gate text, scanned_at timestamptz,
                 seat int, number bigint, first_at timestamptz, first_gate text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass    record;
    v_ticket  ticket;
    v_policy  entry_policy;
    v_show    bigint;
    v_row     check_in;
    v_verdict text;
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_show := CASE WHEN v_pass.covers THEN p_show ELSE v_pass.any_show END;
    IF v_pass.covers THEN
        SELECT * INTO v_ticket FROM lock_ticket(p_show, p_serial);
        v_policy := entry_policy_of(p_show);
    END IF;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
    IF NOT FOUND THEN
        v_verdict := CASE WHEN p_serial IS NULL THEN 'unknown'
                          WHEN NOT v_pass.covers THEN 'wrong_show'
                          WHEN p_key < oldest_ticket_key(p_show) THEN 'revoked_code'
                          ELSE door_verdict(v_ticket, v_policy, p_way, p_edition, p_binding) END;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, by_hand,
                              scanned_at)
        VALUES (v_show, v_pass.pass_id, p_scan, v_pass.gate, p_way, v_verdict,
                CASE WHEN v_pass.covers THEN p_serial END,
                coalesce(p_edition, v_ticket.edition, 1), p_serial IS NOT NULL AND p_edition IS NULL,
                clock_timestamp())
            ON CONFLICT (show_id, pass_id, scan_id) DO NOTHING
        RETURNING * INTO v_row;
        IF v_row.id IS NULL THEN  -- the same request twice at once, without a ticket to lock
            SELECT * INTO v_row FROM check_in
             WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
        ELSIF v_pass.covers THEN
            PERFORM apply_verdict(p_show, p_serial, v_verdict, v_row.scanned_at);
            IF v_verdict IN ('admitted', 'left') THEN
                PERFORM add_fact(p_show, v_ticket.number,
                    CASE v_verdict WHEN 'admitted' THEN 'ticket.checked_in' ELSE 'ticket.checked_out' END,
                    jsonb_build_object('serial', p_serial, 'seat', v_ticket.seat, 'gate', v_pass.gate,
                                       'scanned_at', v_row.scanned_at));
            END IF;
        END IF;
    END IF;
    IF v_row.undoes IS NOT NULL
       OR v_row.way <> p_way OR v_row.edition <> coalesce(p_edition, v_row.edition)
       OR v_row.serial IS DISTINCT FROM (CASE WHEN v_pass.covers THEN p_serial END) THEN
        RETURN QUERY SELECT NULL::bigint, v_show, v_row.verdict, v_row.gate, v_row.scanned_at,
                            NULL::int, NULL::bigint, NULL::timestamptz, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT v_row.id, v_show, v_row.verdict, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number,
           earlier.scanned_at, earlier.gate
      FROM (SELECT 1) AS one
      LEFT JOIN LATERAL (
               SELECT c.scanned_at, c.gate FROM check_in AS c
                WHERE v_row.verdict = 'used' AND c.show_id = p_show AND c.serial = p_serial
                  AND c.id < v_row.id AND c.verdict = 'admitted'
             ORDER BY c.id DESC LIMIT 1) AS earlier ON true;
END $$;

-- Takes an admission back: it must be the last thing that happened with the ticket, in this show, a short
-- while ago. No row: there is no such check-in, or it is not the last one, or it is too old. A row without an
-- id: the device has used this scan id for something else.
CREATE OR REPLACE FUNCTION undo_check_in(
    p_account bigint, p_show bigint, p_id bigint, p_scan text, p_within interval
) RETURNS TABLE (check_in_id bigint, gate text, scanned_at timestamptz, seat int, number bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass   record;
    v_ticket ticket;
    v_done   check_in;
    v_row    check_in;
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show);
    SELECT * INTO v_done FROM check_in WHERE show_id = p_show AND id = p_id AND verdict = 'admitted';
    IF v_pass.covers IS NOT TRUE OR v_done.id IS NULL OR v_done.at < now() - p_within THEN
        RETURN;
    END IF;
    SELECT * INTO v_ticket FROM lock_ticket(p_show, v_done.serial);
    SELECT * INTO v_row FROM check_in
     WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = p_scan AND undoes = p_id;
    IF NOT FOUND THEN
        IF EXISTS (SELECT 1 FROM check_in AS c WHERE c.show_id = p_show AND c.serial = v_done.serial
                      AND c.id > p_id AND c.verdict IN ('admitted', 'left', 'undone')) THEN
            RETURN;
        END IF;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, undoes,
                              scanned_at)
        VALUES (p_show, v_pass.pass_id, p_scan, v_pass.gate, 'undo', 'undone', v_done.serial, v_done.edition,
                p_id, clock_timestamp())
            ON CONFLICT (show_id, pass_id, scan_id) DO NOTHING
        RETURNING * INTO v_row;
        IF v_row.id IS NULL THEN
            RETURN QUERY SELECT NULL::bigint, v_pass.gate, now(), NULL::int, NULL::bigint;
            RETURN;
        END IF;
        -- Another admission that stands keeps the ticket used; one without an exit after it keeps a visitor
        -- inside (an offline gate may have admitted a second one).
        PERFORM unmark_ticket(p_show, v_done.serial,
                    coalesce(bool_or(NOT EXISTS (SELECT 1 FROM check_in AS o
                                                  WHERE o.show_id = p_show AND o.serial = v_done.serial
                                                    AND o.verdict = 'left'
                                                    AND o.scanned_at >= c.scanned_at)), false),
                    count(*) > 0)
           FROM check_in AS c
          WHERE c.show_id = p_show AND c.serial = v_done.serial AND c.verdict = 'admitted'
            AND NOT EXISTS (SELECT 1 FROM check_in AS u WHERE u.show_id = p_show AND u.undoes = c.id);
        PERFORM add_fact(p_show, v_ticket.number, 'ticket.check_in_undone',
                               jsonb_build_object('serial', v_done.serial, 'gate', v_pass.gate));
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number;
END $$;
