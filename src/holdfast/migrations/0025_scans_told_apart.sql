-- 0025_scans_told_apart.sql: the same scan is the same ticket; of three let in with one, two are raised.
--
-- check_in_now, undo_check_in, check_in_later of 0010_door.sql, written anew.

-- One scan at a gate with a network. p_serial NULL: the code is none of ours. p_edition NULL: found by hand.
-- No row: no pass. The same scan again gets the first answer again; a row without an id: the device has used
-- this id for another ticket, and nobody is let in by the answer that one got.
CREATE OR REPLACE FUNCTION check_in_now(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int, p_binding int
) RETURNS TABLE (check_in_id bigint, show_id bigint, verdict text, gate text, scanned_at timestamptz,
                 seat int, number bigint, first_at timestamptz, first_gate text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass    record;
    v_ticket  ticket;
    v_life    ticket_life;
    v_door    door;
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
        SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
        SELECT * INTO v_life FROM ticket_life WHERE show_id = p_show AND serial = p_serial;
        SELECT * INTO v_door FROM door WHERE show_id = p_show;
    END IF;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
    IF NOT FOUND THEN
        v_verdict := CASE WHEN p_serial IS NULL THEN 'unknown'
                          WHEN NOT v_pass.covers THEN 'wrong_show'
                          ELSE door_verdict(v_ticket, v_life, v_door, p_way, p_edition, p_binding) END;
        INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, by_hand,
                              scanned_at)
        VALUES (v_show, v_pass.pass_id, p_scan, v_pass.gate, p_way, v_verdict,
                CASE WHEN v_pass.covers THEN p_serial END,
                coalesce(p_edition, (v_life).edition, 1), p_serial IS NOT NULL AND p_edition IS NULL,
                clock_timestamp())
            ON CONFLICT (show_id, pass_id, scan_id) DO NOTHING
        RETURNING * INTO v_row;
        IF v_row.id IS NULL THEN  -- a twin of this request, at the same moment: both asked about nothing
            SELECT * INTO v_row FROM check_in
             WHERE show_id = v_show AND pass_id = v_pass.pass_id AND scan_id = p_scan;
        ELSIF v_pass.covers THEN
            PERFORM move_through_door(p_show, p_serial, v_verdict, v_row.scanned_at);
            IF v_verdict IN ('admitted', 'left') THEN
                PERFORM tell_of_ticket(p_show, v_ticket.number,
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

-- Take an admission back: the last thing that happened with the ticket, in this show, a short while ago.
-- No row: there is no such check-in, or it is not the last one, or it is too old. A row without an id: the
-- device has used this id for something else.
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
    SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = v_done.serial FOR UPDATE;
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
        -- Nobody is inside any more, unless a gate without a network had let somebody else in, too.
        UPDATE ticket_life
           SET is_inside = EXISTS (SELECT 1 FROM check_in AS c
                                    WHERE c.show_id = p_show AND c.serial = v_done.serial
                                      AND c.id <> p_id AND c.verdict = 'admitted'
                                      AND NOT EXISTS (SELECT 1 FROM check_in AS u
                                                       WHERE u.show_id = p_show AND u.undoes = c.id)
                                      AND NOT EXISTS (SELECT 1 FROM check_in AS o
                                                       WHERE o.show_id = p_show AND o.serial = v_done.serial
                                                         AND o.verdict = 'left'
                                                         AND o.scanned_at >= c.scanned_at))
         WHERE show_id = p_show AND serial = v_done.serial;
        -- Unless somebody was inside with it before, it is as if it had never been used.
        UPDATE ticket SET used_at = NULL
         WHERE show_id = p_show AND serial = v_done.serial
           AND NOT EXISTS (SELECT 1 FROM check_in AS c
                            WHERE c.show_id = p_show AND c.serial = v_done.serial AND c.verdict = 'admitted'
                              AND NOT EXISTS (SELECT 1 FROM check_in AS u
                                               WHERE u.show_id = p_show AND u.undoes = c.id));
        PERFORM tell_of_ticket(p_show, v_ticket.number, 'ticket.check_in_undone',
                               jsonb_build_object('serial', v_done.serial, 'gate', v_pass.gate));
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.gate, v_row.scanned_at, v_ticket.seat, v_ticket.number;
END $$;

-- One scan that a device decided without a network. It has happened: it is recorded as it was told, and what
-- it contradicts is raised. Of two admissions the earlier by the devices' clocks is the first. Of three the
-- second and the third are raised, in whatever order they are told: so an earlier one is looked for first.
CREATE OR REPLACE FUNCTION check_in_later(
    p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition int,
    p_verdict text, p_scanned_at timestamptz, p_grace interval
) RETURNS TABLE (check_in_id bigint, verdict text, why text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pass   record;
    v_ticket ticket;
    v_life   ticket_life;
    v_row    check_in;
    v_rival  check_in;
    v_why    text;
    v_scan   text := p_scan;
    -- A clock that is ahead of ours, or far behind, is put where it can have been.
    v_at     timestamptz := least(p_scanned_at, clock_timestamp());
BEGIN
    SELECT * INTO v_pass FROM pass_now(p_account, p_show, p_grace);
    IF v_pass.covers IS NOT TRUE THEN
        RETURN;
    END IF;
    v_at := greatest(v_at, v_pass.starts_at);
    SELECT * INTO v_ticket FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
    SELECT * INTO v_life FROM ticket_life WHERE show_id = p_show AND serial = p_serial;
    SELECT * INTO v_row FROM check_in
     WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    -- A device that counts its scans from the beginning again: this is another one, and it happened.
    IF FOUND AND v_row.serial IS DISTINCT FROM p_serial THEN
        v_scan := p_scan || '~' || p_serial;
        SELECT * INTO v_row FROM check_in
         WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    END IF;
    -- We had answered, the answer was lost, and the device decided otherwise: that happened, too.
    IF FOUND AND v_row.verdict <> p_verdict THEN
        v_scan := v_scan || '~';
        SELECT * INTO v_row FROM check_in
         WHERE show_id = p_show AND pass_id = v_pass.pass_id AND scan_id = v_scan;
    END IF;
    IF FOUND THEN
        RETURN QUERY SELECT v_row.id, v_row.verdict,
            (SELECT min(d.why) FROM door_conflict AS d
              WHERE d.show_id = p_show AND v_row.id IN (d.first_id, d.second_id));
        RETURN;
    END IF;
    INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, offline, scanned_at)
    VALUES (p_show, v_pass.pass_id, v_scan, v_pass.gate, p_way, p_verdict, p_serial, p_edition, true, v_at)
    RETURNING * INTO v_row;
    IF p_verdict = 'admitted' THEN
        -- Somebody else inside with it at that time: let in, and not scanned out or taken back in between.
        SELECT c.* INTO v_rival FROM check_in AS c
         WHERE c.show_id = p_show AND c.serial = p_serial AND c.id <> v_row.id AND c.verdict = 'admitted'
           AND NOT EXISTS (SELECT 1 FROM check_in AS u WHERE u.show_id = p_show AND u.undoes = c.id)
           AND NOT EXISTS (SELECT 1 FROM check_in AS o
                            WHERE o.show_id = p_show AND o.serial = p_serial AND o.verdict = 'left'
                              AND o.scanned_at > least(c.scanned_at, v_at)
                              AND o.scanned_at <= greatest(c.scanned_at, v_at))
      ORDER BY c.scanned_at > v_at, abs(extract(epoch FROM c.scanned_at - v_at)) LIMIT 1;
        v_why := CASE WHEN v_ticket.serial IS NULL THEN 'unknown'
                      WHEN v_ticket.voided_at IS NOT NULL THEN 'void'
                      WHEN v_rival.id IS NOT NULL THEN 'used'
                      WHEN p_edition <> coalesce((v_life).edition, 1) THEN 'transferred' END;
    END IF;
    IF v_why IS NOT NULL THEN
        INSERT INTO door_conflict (show_id, serial, why, first_id, second_id)
        SELECT p_show, p_serial, v_why,
               CASE WHEN v_why = 'used' AND v_rival.scanned_at > v_at THEN v_row.id ELSE v_rival.id END,
               CASE WHEN v_why = 'used' AND v_rival.scanned_at > v_at THEN v_rival.id ELSE v_row.id END
            ON CONFLICT (show_id, second_id) DO NOTHING;
        PERFORM tell_of_ticket(p_show, v_ticket.number, 'door.conflict_raised',
                               jsonb_build_object('serial', p_serial, 'why', v_why));
    END IF;
    IF v_ticket.voided_at IS NULL AND v_ticket.serial IS NOT NULL THEN
        -- Who came in before somebody went out elsewhere is not inside any more.
        IF NOT EXISTS (SELECT 1 FROM check_in AS c
                        WHERE c.show_id = p_show AND c.serial = p_serial AND c.id <> v_row.id
                          AND c.verdict IN ('admitted', 'left') AND c.scanned_at > v_at) THEN
            PERFORM move_through_door(p_show, p_serial, p_verdict, v_at);
        ELSIF p_verdict = 'admitted' THEN
            UPDATE ticket SET used_at = coalesce(used_at, v_at) WHERE show_id = p_show AND serial = p_serial;
        END IF;
        IF p_verdict = 'admitted' AND v_why IS NULL THEN
            PERFORM tell_of_ticket(p_show, v_ticket.number, 'ticket.checked_in',
                jsonb_build_object('serial', p_serial, 'seat', v_ticket.seat, 'gate', v_pass.gate,
                                   'scanned_at', v_at));
        END IF;
    END IF;
    RETURN QUERY SELECT v_row.id, v_row.verdict, v_why;
END $$;
