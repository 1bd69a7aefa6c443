-- 0010_door.sql: what becomes of a ticket after it was issued, and who may ask for it at the door.
--
-- One row decides: whoever lets somebody in, gives a ticket back or gives it away locks its row in `ticket`
-- first. show_id is in every key here too.

-- Keys that sign tickets. They stay: a ticket bought a year ahead must still be good.
CREATE TABLE ticket_key (
    id         smallint    PRIMARY KEY,                   -- a byte of every code
    private    bytea       NOT NULL,                      -- Ed25519
    secret     bytea       NOT NULL,                      -- where live codes come from
    signs_from timestamptz NOT NULL,
    CONSTRAINT a_key_id_is_a_byte CHECK (id BETWEEN 1 AND 255)
);

-- How a show's tickets are checked; no row: as the defaults say.
CREATE TABLE door (
    show_id bigint  PRIMARY KEY,
    codes   text    NOT NULL DEFAULT 'fixed',
    reentry boolean NOT NULL DEFAULT true,                -- who was scanned out may come in again
    CONSTRAINT codes_are_fixed_or_live CHECK (codes IN ('fixed', 'live', 'live_or_paper'))
);

-- A ticket after it was issued; no row: nothing has happened to it.
CREATE TABLE ticket_life (
    show_id     bigint  NOT NULL,
    serial      bigint  NOT NULL,
    edition     int     NOT NULL DEFAULT 1,               -- raised when it changes hands
    owner_id    bigint,                                   -- whose it is now; NULL: see owner_email, booking
    owner_email text,                                     -- given to somebody without an account yet
    phone       bytea,                                    -- hash of the name the phone goes by
    binding     int     NOT NULL DEFAULT 0,               -- which phone that is: live codes are for it alone
    is_inside   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (show_id, serial),
    CONSTRAINT a_ticket_has_one_owner CHECK (owner_id IS NULL OR owner_email IS NULL)
);
CREATE INDEX tickets_given_to ON ticket_life (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX tickets_waiting_for ON ticket_life (owner_email) WHERE owner_email IS NOT NULL;

-- A ticket with all that is known of it.
CREATE VIEW issued_ticket AS
SELECT ticket.show_id, ticket.number, ticket.seat, ticket.serial,
       coalesce(ticket_life.edition, 1) AS edition, coalesce(ticket_life.binding, 0) AS binding,
       coalesce(door.codes, 'fixed') AS codes,
       booking.owner_id AS booked_by, ticket_life.owner_id, ticket_life.owner_email,
       ticket.issued_at, ticket.voided_at, ticket.used_at,
       coalesce(ticket_life.is_inside, false) AS is_inside
  FROM ticket
  JOIN booking USING (show_id, number)
  LEFT JOIN ticket_life USING (show_id, serial)
  LEFT JOIN door USING (show_id);

-- Every time a ticket was given away.
CREATE TABLE ticket_transfer (
    show_id    bigint      NOT NULL,
    serial     bigint      NOT NULL,
    edition    int         NOT NULL,                      -- the one it began
    from_id    bigint      NOT NULL,
    to_id      bigint,                                    -- NULL: nobody with this address has an account
    email      text        NOT NULL,
    taken_back boolean     NOT NULL DEFAULT false,        -- from nobody: back to who gave it
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, serial, edition)
);

-- How often the tickets of a booking were sent again.
CREATE TABLE ticket_resend (
    show_id bigint      NOT NULL,
    number  bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (show_id, number, at)
);

-- What lets a device ask at the door: of some shows, at one gate, for a day. Made and ended by the organiser.
CREATE TABLE gate_pass (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   bigint      NOT NULL,                    -- who the device signs in as: of role gate
    organiser_id bigint,                                  -- NULL: made by an admin
    gate         text        NOT NULL,
    name         text        NOT NULL,                    -- of the device or the person
    code_hash    bytea,                                   -- signs it in; NULL: a password does
    device_key   bytea,                                   -- X25519, the first to come: packs are for it
    starts_at    timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    revoked_at   timestamptz,
    made_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT a_pass_ends_after_it_starts CHECK (starts_at < ends_at),
    CONSTRAINT a_gate_has_a_name CHECK (char_length(gate) BETWEEN 1 AND 60)
);
CREATE INDEX passes_of_an_account ON gate_pass (account_id);
CREATE UNIQUE INDEX one_pass_a_code ON gate_pass (code_hash) WHERE code_hash IS NOT NULL;

CREATE TABLE gate_pass_show (
    show_id bigint NOT NULL,
    pass_id bigint NOT NULL REFERENCES gate_pass,
    PRIMARY KEY (show_id, pass_id)
);
CREATE INDEX shows_of_a_pass ON gate_pass_show (pass_id);

-- Every scan, for ever: rows are added and never changed.
CREATE TABLE check_in (
    show_id    bigint      NOT NULL,                      -- of the pass where the code is nobody's
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    pass_id    bigint      NOT NULL,
    scan_id    text        NOT NULL,                      -- the device's: the same id is the same scan
    gate       text        NOT NULL,
    way        text        NOT NULL,
    verdict    text        NOT NULL,
    serial     bigint,                                    -- NULL: no ticket of ours
    edition    int,
    undoes     bigint,                                    -- the id of the check-in that this one takes back
    by_hand    boolean     NOT NULL DEFAULT false,        -- found by name or reference, not scanned
    offline    boolean     NOT NULL DEFAULT false,        -- decided by the device, told later
    scanned_at timestamptz NOT NULL,                      -- offline: by the device's clock
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (show_id, id),
    CONSTRAINT one_row_a_scan UNIQUE (show_id, pass_id, scan_id),
    CONSTRAINT ways_at_a_door CHECK (way IN ('entry', 'exit', 'undo')),
    CONSTRAINT verdicts_at_a_door CHECK (verdict IN
        ('admitted', 'left', 'undone', 'unknown', 'wrong_show', 'void', 'transferred', 'used', 'stale_code',
         'live_code_needed', 'not_inside'))
);
CREATE INDEX check_ins_of_a_ticket ON check_in (show_id, serial, id) WHERE serial IS NOT NULL;

CREATE FUNCTION check_ins_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a check-in is never changed' USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER check_ins_stay BEFORE UPDATE OR DELETE ON check_in
    FOR EACH STATEMENT EXECUTE FUNCTION check_ins_stay();

-- Two let in with one ticket, or one with a ticket that was worth nothing: found when a device without a
-- network told of its scans. Both check-ins stay as they were.
CREATE TABLE door_conflict (
    show_id   bigint      NOT NULL,
    id        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    serial    bigint      NOT NULL,
    why       text        NOT NULL,
    first_id  bigint,                                     -- by the devices' clocks; NULL: there is none
    second_id bigint      NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, id),
    CONSTRAINT one_conflict_a_check_in UNIQUE (show_id, second_id),
    CONSTRAINT conflicts_at_a_door CHECK (why IN ('used', 'void', 'transferred', 'unknown'))
);

-- Who looked people up, and when: the limit is counted here.
CREATE TABLE gate_search (
    pass_id bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pass_id, at)
);

-- The pass that lets this account ask about a show now: one that covers the show, else any; none: no row.
CREATE FUNCTION pass_now(p_account bigint, p_show bigint, p_grace interval DEFAULT '0')
RETURNS TABLE (pass_id bigint, gate text, covers boolean, any_show bigint, starts_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT gate_pass.id, gate_pass.gate, covered.show_id IS NOT NULL,
           (SELECT min(s.show_id) FROM gate_pass_show AS s WHERE s.pass_id = gate_pass.id),
           gate_pass.starts_at
      FROM gate_pass
      LEFT JOIN gate_pass_show AS covered ON covered.pass_id = gate_pass.id AND covered.show_id = p_show
     WHERE gate_pass.account_id = p_account
       AND gate_pass.revoked_at IS NULL
       AND gate_pass.starts_at <= now()
       AND gate_pass.ends_at + p_grace > now()
  ORDER BY covered.show_id IS NULL, gate_pass.id DESC
     LIMIT 1;
$$;

-- What the door says to a ticket whose row is locked: everything but whether the code itself is good.
CREATE FUNCTION door_verdict(
    p_ticket ticket, p_life ticket_life, p_door door, p_way text, p_edition int, p_binding int
) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN (p_ticket).serial IS NULL THEN 'unknown'
                WHEN (p_ticket).voided_at IS NOT NULL THEN 'void'
                WHEN p_edition < coalesce((p_life).edition, 1) THEN 'transferred'
                WHEN p_edition > coalesce((p_life).edition, 1) THEN 'unknown'
                WHEN p_edition IS NOT NULL AND p_binding IS NULL AND (p_door).codes = 'live'
                     THEN 'live_code_needed'
                WHEN p_binding <> coalesce((p_life).binding, 0) THEN 'stale_code'
                WHEN p_way = 'exit' THEN CASE WHEN (p_life).is_inside THEN 'left' ELSE 'not_inside' END
                WHEN (p_ticket).used_at IS NULL THEN 'admitted'
                WHEN (p_life).is_inside OR NOT coalesce((p_door).reentry, true) THEN 'used'
                ELSE 'admitted' END;
$$;

-- What a verdict does to a ticket. One that refuses does nothing.
CREATE FUNCTION move_through_door(p_show bigint, p_serial bigint, p_verdict text, p_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_verdict NOT IN ('admitted', 'left') THEN
        RETURN;
    END IF;
    INSERT INTO ticket_life (show_id, serial, is_inside) VALUES (p_show, p_serial, p_verdict = 'admitted')
        ON CONFLICT (show_id, serial) DO UPDATE SET is_inside = excluded.is_inside;
    IF p_verdict = 'admitted' THEN
        UPDATE ticket SET used_at = coalesce(used_at, p_at) WHERE show_id = p_show AND serial = p_serial;
    END IF;
END $$;

-- A fact about a ticket, for whoever wants to hear it. No names in it.
CREATE FUNCTION tell_of_ticket(p_show bigint, p_number bigint, p_kind text, p_body jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO outbox (show_id, number, kind, body) VALUES (p_show, p_number, p_kind, p_body);
$$;

-- One scan at a gate with a network. p_serial NULL: the code is none of ours. p_edition NULL: found by hand.
-- No row: no pass. The same scan again gets the first answer again.
CREATE FUNCTION check_in_now(
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
-- No row: there is no such check-in, or it is not the last one, or it is too old.
CREATE FUNCTION undo_check_in(p_account bigint, p_show bigint, p_id bigint, p_scan text, p_within interval)
RETURNS TABLE (check_in_id bigint, gate text, scanned_at timestamptz, seat int, number bigint)
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
        RETURNING * INTO v_row;
        UPDATE ticket_life SET is_inside = false WHERE show_id = p_show AND serial = v_done.serial;
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
-- it contradicts is raised. Of two admissions the earlier by the devices' clocks is the first.
CREATE FUNCTION check_in_later(
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
    -- We had answered, the answer was lost, and the device decided otherwise: that happened, too.
    IF FOUND AND v_row.verdict <> p_verdict THEN
        v_scan := p_scan || '~';
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
      ORDER BY abs(extract(epoch FROM c.scanned_at - v_at)) LIMIT 1;
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
