-- tickets/functions.sql: tickets as other folders may see and change them.
-- needs: bookings
--
-- Admission, refund and transfer take the lock of the ticket's row first; whichever commits first wins, and
-- the others see what it did. Several tickets are locked in the order of (show_id, number, seat).

-- The oldest key whose codes and links are good at this show: 1, unless older ones were revoked.
CREATE OR REPLACE FUNCTION oldest_ticket_key(p_show bigint) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(key_id), 0) + 1 FROM revoked_ticket_key WHERE show_id IN (0, p_show);
$$;

-- A ticket with its buyer and the way it is checked. One that is suspended counts as void until it is not.
-- LEFT: every ticket has its booking, and the planner, whose statistics may be older than the sale, cannot
-- begin with the bookings and read all tickets of the show for each.
CREATE OR REPLACE VIEW ticket_detail AS
SELECT ticket.show_id, ticket.number, ticket.seat, ticket.serial, ticket.edition, ticket.binding,
       coalesce(entry_policy.codes, 'fixed') AS codes,
       booking.owner_id AS booked_by, ticket.owner_id, ticket.owner_email,
       ticket.issued_at, coalesce(ticket.voided_at, ticket.suspended_at) AS voided_at, ticket.used_at,
       ticket.is_inside,
       oldest_ticket_key(ticket.show_id) AS oldest_key
  FROM ticket
  LEFT JOIN payable_booking AS booking USING (show_id, number)
  LEFT JOIN entry_policy USING (show_id);

-- The same for earlier programs. Those of the first schema know no oldest_key. Goes after 0.1.
-- keeps its columns: they are arguments of a constructor
CREATE OR REPLACE VIEW issued_ticket AS
SELECT show_id, number, seat, serial, edition, binding, codes, booked_by, owner_id, owner_email, issued_at,
       voided_at, used_at, is_inside, oldest_key
  FROM ticket_detail;

-- Tickets that are void only because their payment is disputed.
CREATE OR REPLACE VIEW suspended_ticket AS
SELECT show_id, serial FROM ticket WHERE suspended_at IS NOT NULL AND voided_at IS NULL;

-- As of now, not of the statement that calls it: the ticket was locked meanwhile.
CREATE OR REPLACE FUNCTION is_ticket_suspended(p_show bigint, p_serial bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM suspended_ticket WHERE show_id = p_show AND serial = p_serial);
END $$;

-- What a refund must know of a ticket.
CREATE OR REPLACE VIEW ticket_for_refund AS
SELECT show_id, number, seat, voided_at, used_at, owner_id, owner_email FROM ticket;

-- A transfer, for the messages to both sides.
CREATE OR REPLACE VIEW ticket_handover AS
SELECT show_id, serial, edition, from_id, email FROM ticket_transfer;

-- The addresses of one person in transfers. The transfers themselves stay; a ticket that waits for one of the
-- addresses can be taken back by its sender.
CREATE OR REPLACE FUNCTION erase_ticket_addresses(p_addresses text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ticket_transfer SET email = '' WHERE email = ANY (p_addresses);
    UPDATE ticket SET owner_email = '' WHERE owner_email = ANY (p_addresses);
END $$;

-- The same some time later: tickets that were given to the address since then are another person's.
CREATE OR REPLACE FUNCTION erase_earlier_ticket_addresses(p_addresses text[], p_before timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ticket SET owner_email = ''
     WHERE owner_email = ANY (p_addresses)
       AND NOT EXISTS (SELECT FROM ticket_transfer AS t
                        WHERE t.show_id = ticket.show_id AND t.serial = ticket.serial
                          AND t.email = ticket.owner_email AND t.at > p_before);
    UPDATE ticket_transfer SET email = '' WHERE email = ANY (p_addresses) AND at <= p_before;
END $$;

-- One ticket per seat, in the transaction that confirms the booking.
CREATE OR REPLACE FUNCTION issue_tickets(p_show bigint[], p_number bigint[], p_seat int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ticket (show_id, number, seat, serial)
    SELECT show_id, number, seat, new_number()
      FROM unnest(p_show, p_number, p_seat) WITH ORDINALITY AS a (show_id, number, seat, ord)
  ORDER BY ord;
END $$;

-- Tickets of seats that were given back. One that has admitted a visitor stays as it is.
CREATE OR REPLACE FUNCTION void_tickets(p_show bigint, p_number bigint, p_seats int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ticket SET voided_at = now()
     WHERE show_id = p_show AND number = p_number AND seat = ANY (p_seats)
       AND voided_at IS NULL AND used_at IS NULL;
END $$;

-- The payment of a booking is disputed, or not any more: its tickets admit no visitor meanwhile.
CREATE OR REPLACE FUNCTION suspend_tickets(p_show bigint, p_number bigint, p_is_suspended boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_tickets(ARRAY[p_show], ARRAY[p_number]);
    UPDATE ticket SET suspended_at = CASE WHEN p_is_suspended THEN coalesce(suspended_at, now()) END
     WHERE show_id = p_show AND number = p_number;
END $$;

-- All tickets of these bookings, after the bookings and their payments.
CREATE OR REPLACE FUNCTION lock_tickets(p_show bigint[], p_number bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM ticket AS t JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY t.show_id, t.number, t.seat FOR UPDATE OF t;
END $$;

-- One ticket, locked until the transaction ends. No row: there is none with this serial.
CREATE OR REPLACE FUNCTION lock_ticket(p_show bigint, p_serial bigint) RETURNS SETOF ticket
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
END $$;

-- How a show's tickets are checked; the defaults, if nothing was set.
CREATE OR REPLACE FUNCTION entry_policy_of(p_show bigint) RETURNS entry_policy LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_policy entry_policy;
BEGIN
    SELECT * INTO v_policy FROM entry_policy WHERE show_id = p_show;
    IF NOT FOUND THEN
        v_policy := ROW(p_show, 'fixed', true)::entry_policy;
    END IF;
    RETURN v_policy;
END $$;

-- A scan moved the visitor in or out (NULL: neither), and used the ticket at this time (NULL: did not). The
-- first use stays. The caller holds the lock of the ticket.
CREATE OR REPLACE FUNCTION mark_ticket(
    p_show bigint, p_serial bigint, p_is_inside boolean, p_used_at timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ticket
       SET is_inside = coalesce(p_is_inside, is_inside), used_at = coalesce(used_at, p_used_at)
     WHERE show_id = p_show AND serial = p_serial;
END $$;

-- An admission was taken back: what remains of the other scans.
CREATE OR REPLACE FUNCTION unmark_ticket(
    p_show bigint, p_serial bigint, p_is_inside boolean, p_is_used boolean
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ticket
       SET is_inside = p_is_inside, used_at = CASE WHEN p_is_used THEN used_at END
     WHERE show_id = p_show AND serial = p_serial;
END $$;
