-- The schema of a migrated database, as pg_dump prints it. Written by `make docs`; do not edit.

CREATE TYPE account_role AS ENUM (
    'fan',
    'organiser',
    'gate',
    'admin'
);

CREATE TYPE booking_state AS ENUM (
    'held',
    'paying',
    'confirmed',
    'expired',
    'cancelled',
    'failed',
    'refunded',
    'blocked'
);

CREATE TYPE chargeback_state AS ENUM (
    'open',
    'won',
    'lost'
);

CREATE TYPE delivery_state AS ENUM (
    'queued',
    'done',
    'dead',
    'missed'
);

CREATE TYPE hold_limits AS (
	range_seats_max integer,
	guest_holds_max integer,
	lapses_max integer,
	range_lapses_max integer,
	cooldown_s integer
);

CREATE TYPE notice_state AS ENUM (
    'queued',
    'sent',
    'stored',
    'unsent',
    'obsolete',
    'dead'
);

CREATE TYPE payment_step AS ENUM (
    'charge',
    'look_up',
    'call_off',
    'watch',
    'late',
    'paid',
    'declined',
    'called_off',
    'expired',
    'returned'
);

CREATE TYPE refund_state AS ENUM (
    'requested',
    'done',
    'by_hand'
);

CREATE FUNCTION accounts_of_person(p_account bigint) RETURNS SETOF bigint
    LANGUAGE sql STABLE
    AS $$
    SELECT id FROM account WHERE id = p_account OR guest_of = p_account;
$$;

CREATE FUNCTION add_fact(p_show bigint, p_number bigint, p_kind text, p_body jsonb) RETURNS bigint
    LANGUAGE sql
    AS $$
    INSERT INTO outbox (show_id, number, kind, body) VALUES (p_show, p_number, p_kind, p_body) RETURNING id;
$$;

CREATE FUNCTION add_facts(p_show bigint[], p_number bigint[], p_kind text[], p_ends_at timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], p_body jsonb[] DEFAULT NULL::jsonb[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO outbox (show_id, number, kind, ends_at, body)
    SELECT show_id, number, kind, ends_at, body
      FROM unnest(p_show, p_number, p_kind, p_ends_at, p_body) WITH ORDINALITY
        AS a (show_id, number, kind, ends_at, body, ord)
  ORDER BY ord;
END $$;

CREATE FUNCTION add_journal_entry(p_show bigint, p_number bigint, p_attempt integer, p_currency text, p_kind text, p_accounts text[], p_amounts bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_entry bigint := new_number();
BEGIN
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT p_show, v_entry, account, amount, p_currency, p_number, p_attempt, p_kind
      FROM unnest(p_accounts, p_amounts) AS l (account, amount)
     WHERE amount <> 0;
END $$;

CREATE FUNCTION add_to_refunds(p_show bigint, p_number bigint, p_attempt integer, p_amount bigint) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE payment SET refunds_minor = refunds_minor + p_amount
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
$$;

CREATE FUNCTION addresses_of(p_accounts bigint[]) RETURNS SETOF text
    LANGUAGE sql STABLE
    AS $$
    SELECT email FROM account WHERE id = ANY (p_accounts)
     UNION
    SELECT contact_email FROM account WHERE id = ANY (p_accounts) AND contact_email IS NOT NULL;
$$;

CREATE FUNCTION adopt_places(p_show bigint, p_opening integer, p_accounts bigint[]) RETURNS void
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    AS $$
    UPDATE queue_place
       SET account_id = found.account_id
      FROM (SELECT guest.account_id, min(place.number) AS number
              FROM guests_of_accounts(p_accounts) AS guest
             CROSS JOIN LATERAL current_place(p_show, p_opening, guest.guest_id) AS place
             WHERE place.state = 0
               AND NOT EXISTS (SELECT FROM current_place(p_show, p_opening, guest.account_id))
          GROUP BY guest.account_id) AS found
     WHERE queue_place.show_id = p_show AND queue_place.opening = p_opening
       AND queue_place.number = found.number;
$$;

CREATE FUNCTION append_to_audit_log(p_entries jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION apply_verdict(p_show bigint, p_serial bigint, p_verdict text, p_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF p_verdict IN ('admitted', 'left') THEN
        PERFORM mark_ticket(p_show, p_serial, p_verdict = 'admitted',
                            CASE p_verdict WHEN 'admitted' THEN p_at END);
    END IF;
END $$;

CREATE FUNCTION archive_past_sales(p_days integer, p_max integer) RETURNS TABLE(reached bigint, deleted bigint)
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_show  bigint;
    v_count bigint;
    v_left  bigint := p_max;
BEGIN
    FOR v_show IN
          SELECT show_id FROM sale
           WHERE purged_at IS NULL AND closes_at < now() - p_days * interval '1 day'
        ORDER BY closes_at
           LIMIT 50
             FOR UPDATE SKIP LOCKED
    LOOP
        DELETE FROM taken_seat
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM taken_seat WHERE show_id = v_show LIMIT v_left));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
        DELETE FROM owner_count
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM owner_count WHERE show_id = v_show LIMIT v_left));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
        DELETE FROM party_count
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM party_count WHERE show_id = v_show LIMIT v_left));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
        DELETE FROM reserved_seat WHERE show_id = v_show AND show_is_here(v_show);
        UPDATE sale
           SET archived_at = coalesce(archived_at, clock_timestamp()),
               purged_at = CASE WHEN v_left > 0 THEN now() END
         WHERE show_id = v_show;
        EXIT WHEN v_left <= 0;
    END LOOP;
    RETURN QUERY SELECT CASE WHEN v_show IS NOT NULL THEN 1::bigint END, p_max - v_left;
END $$;

CREATE FUNCTION are_erased(p_accounts bigint[]) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT NOT EXISTS (SELECT FROM account WHERE id = ANY (p_accounts) AND erased_at IS NULL);
$$;

CREATE FUNCTION audit_digest(p_salt bytea, p_personal jsonb) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT sha256(p_salt || convert_to(p_personal::text, 'UTF8'));
$$;

CREATE FUNCTION audit_entries_stay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.personal IS NULL AND NEW.salt IS NULL
       AND to_jsonb(NEW) - '{personal,salt}'::text[] = to_jsonb(OLD) - '{personal,salt}'::text[] THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'entry % of chain % of the audit log is never changed or deleted', OLD.number, OLD.chain
        USING ERRCODE = 'check_violation';
END $$;

CREATE TABLE audit_entry (
    chain bigint NOT NULL,
    number bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    action text NOT NULL,
    subject_kind text NOT NULL,
    subject_id text NOT NULL,
    subject_name text NOT NULL,
    actor_id bigint,
    person_id bigint,
    via text NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    personal jsonb,
    salt bytea,
    digest bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT a_salt_is_erased_with_what_it_salts CHECK (((personal IS NULL) = (salt IS NULL)))
);

CREATE FUNCTION audit_hash(p_before bytea, p_entry audit_entry) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT sha256(p_before || convert_to(jsonb_build_array(
        p_entry.chain, p_entry.number, (extract(epoch FROM p_entry.at) * 1000000)::bigint, p_entry.action,
        p_entry.subject_kind, p_entry.subject_id, p_entry.subject_name, p_entry.actor_id, p_entry.person_id,
        p_entry.via, p_entry.before, p_entry.after, encode(p_entry.digest, 'hex'))::text, 'UTF8'));
$$;

CREATE FUNCTION begin_paying(p_show bigint[], p_number bigint[], p_owner bigint[], p_buffer_s integer) RETURNS TABLE(place integer, show_id bigint, number bigint, fence bigint, amount_minor bigint, currency text, hold_ends_at timestamp with time zone, deadline_at timestamp with time zone)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_place    int[];
    v_show     bigint[];
    v_number   bigint[];
    v_fence    bigint[];
    v_amount   bigint[];
    v_currency text[];
    v_ends     timestamptz[];
    v_deadline timestamptz[];
BEGIN
    WITH fit AS (
        SELECT booking.show_id, booking.number, booking.expires_at AS hold_ends_at, a.place
          FROM unnest(p_show, p_number, p_owner) WITH ORDINALITY AS a (show_id, number, owner_id, place)
         CROSS JOIN LATERAL booking_by_key(a.show_id, a.number) AS booking
         WHERE booking.owner_id = a.owner_id
           AND booking.state = 'held' AND booking.expires_at > now() AND booking.amount_minor > 0
           AND NOT EXISTS (SELECT 1 FROM sale WHERE sale.show_id = booking.show_id AND sale.cancelled)
    ), moved AS (
        UPDATE booking
           SET state = 'paying', fence = new_number(),
               expires_at = greatest(booking.expires_at, now()) + p_buffer_s * interval '1 s'
          FROM fit
         WHERE booking.show_id = fit.show_id AND booking.number = fit.number
     RETURNING fit.*, booking.fence, booking.amount_minor, booking.currency, booking.expires_at
    )
    SELECT array_agg(moved.place), array_agg(moved.show_id), array_agg(moved.number), array_agg(moved.fence),
           array_agg(moved.amount_minor), array_agg(moved.currency), array_agg(moved.hold_ends_at),
           array_agg(moved.expires_at)
      INTO v_place, v_show, v_number, v_fence, v_amount, v_currency, v_ends, v_deadline
      FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM record_moves(v_show, v_number, 'pay', 0);
    RETURN QUERY
    SELECT * FROM unnest(v_place, v_show, v_number, v_fence, v_amount, v_currency, v_ends, v_deadline);
END $$;

CREATE FUNCTION block_seats(p_show bigint, p_seats integer[], p_note text, p_actor bigint) RETURNS TABLE(number bigint, taken integer[])
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_number bigint := new_number();
    v_taken  int[];
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    PERFORM expire_lapsed(array_agg(p_show), array_agg(t.number))
       FROM taken_seat t WHERE t.show_id = p_show AND t.seat = ANY (p_seats);
    SELECT array_agg(t.seat ORDER BY t.seat) INTO v_taken
      FROM taken_seat t WHERE t.show_id = p_show AND t.seat = ANY (p_seats);
    IF EXISTS (SELECT FROM sale WHERE show_id = p_show AND archived_at IS NOT NULL) THEN
        v_taken := p_seats;  -- which seats are free is no longer known
    END IF;
    IF v_taken IS NULL THEN
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT p_show, seat, v_number FROM unnest(p_seats) AS seat ORDER BY seat;
        INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id,
                             seats, prices_minor, amount_minor, currency,
                             note, counts, opened_at, expires_at)
        VALUES (p_show, v_number, p_actor, v_number, 'blocked', 'block:' || v_number, 0, 'block' || v_number,
                p_seats, array_fill(0::bigint, ARRAY[cardinality(p_seats)]), 0, 'XXX',
                p_note, false, now(), now() + interval '100 years');
        PERFORM record_moves(ARRAY[p_show], ARRAY[v_number], 'block', p_actor);
    END IF;
    RETURN QUERY SELECT CASE WHEN v_taken IS NULL THEN v_number END, v_taken;
END $$;

CREATE TABLE booking (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    owner_id bigint NOT NULL,
    fence bigint NOT NULL,
    state booking_state NOT NULL,
    request_id text NOT NULL,
    body_hash bigint NOT NULL,
    claim_id text NOT NULL,
    seats integer[] NOT NULL,
    prices_minor bigint[] NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    counts boolean DEFAULT true NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    revision bigint DEFAULT 0 NOT NULL,
    CONSTRAINT a_price_for_every_seat CHECK ((cardinality(seats) = cardinality(prices_minor))),
    CONSTRAINT confirmed_has_a_time CHECK (((confirmed_at IS NULL) = (state <> ALL (ARRAY['confirmed'::booking_state, 'refunded'::booking_state])))),
    CONSTRAINT no_negative_amount CHECK ((amount_minor >= 0))
);

CREATE VIEW payable_booking AS
 SELECT show_id,
    number,
    owner_id,
    fence,
    state,
    request_id,
    body_hash,
    claim_id,
    seats,
    prices_minor,
    amount_minor,
    currency,
    note,
    counts,
    opened_at,
    expires_at,
    confirmed_at,
    revision
   FROM booking
  WHERE (state <> 'blocked'::booking_state);

CREATE FUNCTION booking_by_key(p_show bigint, p_number bigint) RETURNS SETOF payable_booking
    LANGUAGE sql STABLE
    AS $$
    SELECT * FROM payable_booking WHERE show_id = p_show AND number = p_number OFFSET 0;
$$;

CREATE FUNCTION booking_moves_as_drawn() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('held', 'paying'), ('held', 'confirmed'), ('held', 'expired'), ('held', 'cancelled'),
        ('paying', 'held'), ('paying', 'confirmed'), ('paying', 'expired'),
        ('expired', 'confirmed'), ('expired', 'failed'), ('confirmed', 'refunded'), ('blocked', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a booking does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION booking_rows(p_show bigint[], p_number bigint[], p_outcome text[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[], p_left_ms integer[], p_currency text[], p_seats text[], p_prices text[], p_amount bigint[], p_revision bigint[]) RETURNS SETOF booking
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN QUERY
    SELECT (jsonb_populate_record(NULL::booking, to_jsonb(new))).*
      FROM new_bookings(p_show, p_number, p_outcome, p_owner, p_request, p_hash, p_claim, p_note, p_left_ms,
                        p_currency, p_seats, p_prices, p_amount, p_revision) AS new;
END $$;

CREATE FUNCTION bookings_with_seats(p_show bigint) RETURNS SETOF payable_booking
    LANGUAGE sql STABLE
    AS $$
    SELECT *
      FROM payable_booking
     WHERE show_id = p_show
       AND number = ANY (ARRAY(SELECT DISTINCT number FROM taken_seat WHERE show_id = p_show));
$$;

CREATE FUNCTION call_people(p_show bigint, p_opening integer, p_numbers integer[], p_first integer, p_max integer, p_is_end boolean) RETURNS TABLE(called integer, serving integer, called_at timestamp with time zone)
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_room    waiting_room;
    v_queue   queue;
    v_recalls int;
    v_new     int;
    v_last    int;
    v_now     timestamptz := clock_timestamp();
BEGIN
    SELECT * INTO v_room FROM waiting_room AS room WHERE room.show_id = p_show;
    SELECT * INTO v_queue FROM queue WHERE queue.show_id = p_show AND queue.opening = p_opening;
    WITH again AS (
        UPDATE queue_turn SET state = 'over'
         WHERE (show_id, opening, number, call) IN (
            SELECT turn.show_id, turn.opening, turn.number, turn.call
              FROM queue_turn AS turn
             WHERE turn.show_id = p_show AND turn.opening = p_opening AND turn.state = 'missed'
               AND (turn.recall_at <= p_first OR p_is_end)
          ORDER BY turn.recall_at, turn.position
             LIMIT p_max)
     RETURNING number, position, way_in
    )
    INSERT INTO queue_turn (show_id, opening, number, call, position, way_in, inside_max, called_at, ends_at)
    SELECT p_show, p_opening, number, 2, position, way_in, v_room.inside_max, v_now,
           v_now + v_room.turn_s * interval '1 s'
      FROM again;
    GET DIAGNOSTICS v_recalls = ROW_COUNT;
    WITH live AS (
          SELECT given.number, p_first + given.ord::int - 1 AS position
            FROM unnest(p_numbers) WITH ORDINALITY AS given (number, ord)
            JOIN queue_place AS place
              ON place.show_id = p_show AND place.opening = p_opening
             AND place.number = given.number AND place.state = 0
        ORDER BY given.ord
           LIMIT p_max - v_recalls
    ), added AS (
        INSERT INTO queue_turn (show_id, opening, number, position, way_in, inside_max, called_at, ends_at)
        SELECT p_show, p_opening, live.number, live.position,
               CASE WHEN v_queue.key IS NULL THEN 'arrival'
                    WHEN live.number < v_queue.entrants THEN 'draw' ELSE 'late' END,
               v_room.inside_max, v_now, v_now + v_room.turn_s * interval '1 s'
          FROM live
     RETURNING position
    )
    SELECT count(*), max(position) INTO v_new, v_last FROM added;
    called := v_recalls + v_new;
    called_at := v_now;
    -- All of the numbers were looked at, unless the cap stopped us at one of them.
    serving := CASE WHEN v_recalls + v_new < p_max THEN p_first + cardinality(p_numbers)
                    ELSE coalesce(v_last + 1, p_first) END;
    RETURN NEXT;
END $$;

CREATE FUNCTION cancel_holds(p_show bigint[], p_number bigint[], p_fence bigint[], p_from booking_state, p_actor bigint) RETURNS SETOF booking
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    PERFORM share_sales(p_show);
    WITH locked AS (
        SELECT booking.show_id, booking.number
          FROM unnest(p_show, p_number, p_fence) AS requested (show_id, number, fence)
          JOIN booking USING (show_id, number)
         WHERE booking.fence = requested.fence AND booking.state = p_from
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking
    ), moved AS (
        UPDATE booking SET state = 'cancelled'
          FROM locked
         WHERE booking.show_id = locked.show_id AND booking.number = locked.number AND booking.state = p_from
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    PERFORM count_owners_down(v_show, v_number);
    PERFORM record_moves(v_show, v_number,
                         CASE p_from WHEN 'blocked' THEN 'unblock' ELSE 'cancel' END, p_actor);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

CREATE FUNCTION cancelled_shows_with_buyers(p_max integer) RETURNS SETOF bigint
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    AS $$
    WITH cancelled AS (
          SELECT show_id,
                 EXISTS (SELECT FROM seat_holder WHERE seat_holder.show_id = sale.show_id) AS has_buyers
            FROM sale
           WHERE sale.cancelled AND sale.emptied_at IS NULL
        ORDER BY show_id
           LIMIT p_max
    ), emptied AS (
        UPDATE sale SET emptied_at = now()
         WHERE show_id = ANY (ARRAY(SELECT show_id FROM cancelled WHERE NOT has_buyers)) AND cancelled
    )
    SELECT show_id FROM cancelled WHERE has_buyers;
$$;

CREATE FUNCTION card_limit_reason() RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT 'This card has reached the limit of seats per card for this show. The money goes back to it.';
$$;

CREATE FUNCTION cards_over(p_show bigint[], p_number bigint[], p_owner bigint[], p_card text[], p_places integer[]) RETURNS integer[]
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_over int[];
    v_one  record;
    v_card text := '';
    v_show bigint := 0;
    v_has  int := 0;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM unnest(p_card) AS card WHERE card <> '') THEN
        RETURN NULL;
    END IF;
    PERFORM lock_cards(p_show, p_card);
    FOR v_one IN
        SELECT place, b.show_id, b.number, p_card[place] AS card, cardinality(b.seats) AS seats,
               card_limit.card_seats_max
          FROM unnest(p_places) AS place
          JOIN payable_booking AS b
            ON b.show_id = p_show[place] AND b.number = p_number[place] AND b.owner_id = p_owner[place]
          JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
         WHERE p_card[place] <> '' AND b.state IN ('held', 'paying')
      ORDER BY b.show_id, p_card[place], place
    LOOP
        IF (v_one.show_id, v_one.card) <> (v_show, v_card) THEN
            v_show := v_one.show_id;
            v_card := v_one.card;
            v_has := seats_of_card(v_one.show_id, v_one.card, v_one.number);
        END IF;
        IF v_has + v_one.seats > v_one.card_seats_max THEN
            v_over := v_over || v_one.place;
        ELSE
            v_has := v_has + v_one.seats;  -- requests of the same batch share the limit
        END IF;
    END LOOP;
    RETURN v_over;
END $$;

CREATE FUNCTION chargeback_lines(p_state chargeback_state, p_gateway text, p_amount bigint) RETURNS TABLE(account text, amount bigint)
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT * FROM (VALUES ('gateway:' || p_gateway, -p_amount),
                          (CASE p_state WHEN 'open' THEN 'disputed' ELSE 'organiser' END, p_amount)) AS l
     WHERE p_state IN ('open', 'lost');
$$;

CREATE FUNCTION check_in_now(p_account bigint, p_scan text, p_way text, p_show bigint, p_serial bigint, p_edition integer, p_binding integer, p_key integer DEFAULT NULL::integer) RETURNS TABLE(check_in_id bigint, show_id bigint, verdict text, gate text, scanned_at timestamp with time zone, seat integer, number bigint, first_at timestamp with time zone, first_gate text)
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION check_ins_stay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' AND (EXISTS (SELECT FROM archived_sale WHERE show_id = OLD.show_id)
                             OR current_setting('holdfast.copies_show', true) = 'on') THEN
        RETURN OLD;  -- of a show that was moved: another database has its check-ins now
    END IF;
    RAISE EXCEPTION 'a check-in is never changed' USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION confirm_free(p_show bigint, p_number bigint, p_fence bigint) RETURNS SETOF booking
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM sale WHERE show_id = p_show AND NOT cancelled FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE booking SET state = 'confirmed', confirmed_at = now()
     WHERE show_id = p_show AND number = p_number AND fence = p_fence
       AND state = 'held' AND amount_minor = 0 AND expires_at > now();
    IF FOUND THEN
        PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'confirm', 0);
        RETURN QUERY SELECT * FROM booking WHERE show_id = p_show AND number = p_number;
    END IF;
END $$;

CREATE FUNCTION confirm_late(p_show bigint, p_number bigint, p_amount bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_booking booking;
BEGIN
    SELECT * INTO STRICT v_booking FROM booking WHERE show_id = p_show AND number = p_number;
    -- Another amount: some seats were given back meanwhile. A cancelled show sells nothing, and an archived
    -- one no longer knows which seats are free.
    IF v_booking.amount_minor <> p_amount
       OR NOT EXISTS (SELECT 1 FROM sale WHERE show_id = p_show AND NOT cancelled AND archived_at IS NULL)
       OR NOT (v_booking.state = 'held' OR (v_booking.state = 'expired' AND retake_seats(v_booking))) THEN
        RETURN NULL;
    END IF;
    UPDATE booking SET state = 'confirmed', confirmed_at = now(), fence = new_number()
     WHERE show_id = p_show AND number = p_number
 RETURNING * INTO v_booking;
    PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'confirm', NULL);
    RETURN v_booking.fence;
END $$;

CREATE FUNCTION confirm_paying(p_show bigint[], p_number bigint[], p_fence bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'confirmed', confirmed_at = now()
          FROM unnest(p_show, p_number, p_fence) AS a (show_id, number, fence)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = a.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NOT NULL THEN
        PERFORM record_moves(v_show, v_number, 'confirm', NULL);
    END IF;
END $$;

CREATE TABLE payment (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    owner_id bigint NOT NULL,
    fence bigint NOT NULL,
    request_id text NOT NULL,
    body_hash bigint NOT NULL,
    key text NOT NULL,
    gateway text NOT NULL,
    method text NOT NULL,
    return_url text DEFAULT ''::text NOT NULL,
    step payment_step NOT NULL,
    amount_minor bigint NOT NULL,
    fee_minor bigint DEFAULT 0 NOT NULL,
    tax_minor bigint DEFAULT 0 NOT NULL,
    currency text NOT NULL,
    refunds_minor bigint DEFAULT 0 NOT NULL,
    reference text,
    card text,
    action_url text,
    client_secret text,
    reason text,
    code text,
    hold_ends_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone NOT NULL,
    turn integer DEFAULT 0 NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    looked_at timestamp with time zone,
    CONSTRAINT a_payment_is_of_something CHECK ((amount_minor > 0)),
    CONSTRAINT ended_or_due CHECK (((due_at IS NULL) = (ended_at IS NOT NULL))),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (((fee_minor >= 0) AND (tax_minor >= 0) AND ((fee_minor + tax_minor) <= amount_minor))),
    CONSTRAINT no_more_goes_back_than_came CHECK (((refunds_minor >= 0) AND (refunds_minor <= amount_minor)))
);

CREATE VIEW payment_detail AS
 SELECT payment.show_id,
    payment.number,
    payment.attempt,
    payment.owner_id,
    payment.fence,
    payment.request_id,
    payment.body_hash,
    payment.key,
    payment.gateway,
    payment.method,
    payment.return_url,
    payment.step,
    payment.amount_minor,
    payment.fee_minor,
    payment.tax_minor,
    payment.currency,
    payment.refunds_minor,
    payment.reference,
    payment.card,
    payment.action_url,
    payment.client_secret,
    payment.reason,
    payment.code,
    payment.hold_ends_at,
    payment.deadline_at,
    payment.turn,
    payment.tries,
    payment.due_at,
    payment.requested_at,
    payment.ended_at,
    payment.looked_at,
    booking.state AS booking_state,
    booking.claim_id,
    booking.seats,
    booking.prices_minor,
    booking.revision,
    (floor((EXTRACT(epoch FROM (payment.deadline_at - clock_timestamp())) * (1000)::numeric)))::bigint AS left_ms,
    (floor((EXTRACT(epoch FROM (payment.hold_ends_at - clock_timestamp())) * (1000)::numeric)))::bigint AS hold_left_ms
   FROM (payment
     JOIN payable_booking booking USING (show_id, number));

CREATE FUNCTION confirm_payments(p_show bigint[], p_number bigint[], p_attempt integer[], p_reference text[], p_card text[], p_fee bigint[], p_tax bigint[]) RETURNS SETOF payment_detail
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_amount   bigint[];
    v_currency text[];
BEGIN
    SELECT array_agg(payment.amount_minor ORDER BY a.ord), array_agg(payment.currency ORDER BY a.ord)
      INTO v_amount, v_currency
      FROM unnest(p_show, p_number, p_attempt) WITH ORDINALITY AS a (show_id, number, attempt, ord)
      LEFT JOIN payment ON payment.show_id = a.show_id AND payment.number = a.number
                       AND payment.attempt = a.attempt;
    RETURN QUERY
    SELECT * FROM confirm_payments(p_show, p_number, p_attempt, p_reference, p_card, v_amount, v_currency,
                                   p_fee, p_tax);
END $$;

CREATE FUNCTION confirm_payments(p_show bigint[], p_number bigint[], p_attempt integer[], p_reference text[], p_card text[], p_amount bigint[], p_currency text[], p_fee bigint[], p_tax bigint[]) RETURNS SETOF payment_detail
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    PERFORM return_cards_over(p_show, p_number, p_attempt, p_card);
    PERFORM confirm_paying(array_agg(show_id), array_agg(number), array_agg(payment.fence))
       FROM unnest(p_show, p_number, p_attempt, p_amount, p_currency)
            AS a (show_id, number, attempt, amount_minor, currency)
       JOIN payment USING (show_id, number, attempt, amount_minor, currency);

    WITH changed AS (
        UPDATE payment
           SET step = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                           THEN 'paid' ELSE 'late' END::payment_step,
               reference = coalesce(a.reference, payment.reference), card = coalesce(payment.card, a.card),
               fee_minor = a.fee, tax_minor = a.tax, method = '', client_secret = NULL, tries = 0,
               -- A failed attempt frees its request id, and another payment may use it by now.
               request_id = CASE WHEN payment.ended_at IS NULL THEN payment.request_id
                                 ELSE '~' || payment.key END,
               due_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                             THEN NULL ELSE now() END,
               ended_at = CASE WHEN booking.fence = payment.fence AND booking.state = 'confirmed'
                               THEN now() END
          FROM unnest(p_show, p_number, p_attempt, p_reference, p_card, p_amount, p_currency, p_fee, p_tax)
               AS a (show_id, number, attempt, reference, card, amount, currency, fee, tax)
          JOIN payable_booking AS booking USING (show_id, number)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.amount_minor = a.amount AND payment.currency = a.currency
           AND payment.step NOT IN ('paid', 'late', 'returned')
     RETURNING payment.*
    ), entries AS MATERIALIZED (
        SELECT *, new_number() AS entry FROM changed
    )
    INSERT INTO journal (show_id, entry, account, amount_minor, currency, number, attempt, kind)
    SELECT show_id, entry, account, amount, currency, number, attempt,
           CASE step WHEN 'paid' THEN 'charge' ELSE 'late charge' END
      FROM entries,
           LATERAL (SELECT * FROM split_payment(gateway, amount_minor, fee_minor, tax_minor)
                     WHERE step = 'paid'
                     UNION ALL
                    VALUES ('gateway:' || gateway, CASE step WHEN 'late' THEN amount_minor END),
                           ('owed', CASE step WHEN 'late' THEN -amount_minor END)) AS l (account, amount)
     WHERE amount <> 0;
    RETURN QUERY SELECT * FROM payment_details(p_show, p_number, p_attempt);
END $$;

CREATE FUNCTION count_cards_down(p_show bigint[], p_card text[], p_seats integer[]) RETURNS void
    LANGUAGE sql
    AS $$ SELECT; $$;

CREATE FUNCTION count_cards_up(p_show bigint[], p_number bigint[], p_owner bigint[], p_card text[], p_max integer[]) RETURNS integer[]
    LANGUAGE sql
    AS $$ SELECT NULL::int[]; $$;

CREATE FUNCTION count_for_account() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE owner_count SET guest_seats = greatest(0, guest_seats + NEW.seats - OLD.seats)
     WHERE show_id = NEW.show_id AND owner_id = NEW.counts_for;
    RETURN NULL;
END $$;

CREATE FUNCTION count_free_seats_down(p_show bigint[], p_number bigint[], p_seats integer[]) RETURNS void
    LANGUAGE sql
    AS $$
    WITH gone AS (
        SELECT booking.show_id, split_part(booking.claim_id, '@', 2) AS party, sum(a.seats)::int AS seats
          FROM unnest(p_show, p_number, p_seats) AS a (show_id, number, seats)
          JOIN booking USING (show_id, number)
         WHERE booking.claim_id LIKE '%@%' AND was_free(booking)
         GROUP BY 1, 2
    ), locked AS (
        SELECT party_count.show_id, party_count.party, gone.seats
          FROM party_count JOIN gone USING (show_id, party)
      ORDER BY party_count.show_id, party_count.party
           FOR UPDATE OF party_count
    )
    UPDATE party_count SET seats = greatest(0, party_count.seats - locked.seats)
      FROM locked
     WHERE party_count.show_id = locked.show_id AND party_count.party = locked.party;
$$;

CREATE FUNCTION count_holds_down(p_show bigint[], p_number bigint[]) RETURNS void
    LANGUAGE sql
    AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, count(*)::int AS holds
          FROM unnest(p_show, p_number) AS a (show_id, number) JOIN booking USING (show_id, number)
         WHERE booking.claim_id LIKE '%@%'
         GROUP BY 1, 2
    ), locked AS (
        SELECT owner_count.show_id, owner_count.owner_id, gone.holds
          FROM owner_count JOIN gone USING (show_id, owner_id)
      ORDER BY owner_count.show_id, owner_count.owner_id
           FOR UPDATE OF owner_count
    )
    UPDATE owner_count SET holds = greatest(0, owner_count.holds - locked.holds)
      FROM locked
     WHERE owner_count.show_id = locked.show_id AND owner_count.owner_id = locked.owner_id;
$$;

CREATE FUNCTION count_owners_down(p_show bigint[], p_number bigint[], p_seats integer[] DEFAULT NULL::integer[], p_lapsed boolean DEFAULT false) RETURNS void
    LANGUAGE sql
    AS $$
    WITH gone AS (
        SELECT booking.show_id, booking.owner_id, count(*)::int AS bookings,
               count(*) FILTER (WHERE p_seats IS NULL AND booking.claim_id LIKE '%@%')::int AS holds,
               sum(CASE WHEN p_seats IS NULL THEN cardinality(booking.seats) ELSE a.seats END)::int AS seats
          FROM unnest(p_show, p_number, p_seats) AS a (show_id, number, seats)
          JOIN booking USING (show_id, number)
         WHERE booking.counts
         GROUP BY 1, 2
    ), locked AS (
        SELECT owner_count.show_id, owner_count.owner_id, gone.seats, gone.holds AS ended, gone.bookings,
               owner_count.lapses_since > now() - interval '1 hour' AS is_same_hour
          FROM owner_count JOIN gone USING (show_id, owner_id)
         WHERE gone.seats > 0
      ORDER BY owner_count.show_id, owner_count.owner_id
           FOR UPDATE OF owner_count
    )
    UPDATE owner_count
       SET seats = owner_count.seats - locked.seats,
           holds = greatest(0, owner_count.holds - locked.ended),
           lapses = CASE WHEN NOT p_lapsed THEN lapses
                         WHEN is_same_hour THEN lapses + bookings ELSE bookings END,
           lapses_since = CASE WHEN NOT p_lapsed OR is_same_hour THEN lapses_since ELSE now() END,
           lapsed_at = CASE WHEN p_lapsed THEN now() ELSE lapsed_at END
      FROM locked
     WHERE owner_count.show_id = locked.show_id AND owner_count.owner_id = locked.owner_id;
$$;

CREATE FUNCTION count_owners_up(p_show bigint[], p_owner bigint[], p_number bigint[], p_seats text[], p_max integer[]) RETURNS integer[]
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN (SELECT array_agg(place)
              FROM count_owners_up(p_show, p_owner, p_number,
                                   array_fill(''::text, ARRAY[cardinality(p_show)]), p_seats, p_max, NULL,
                                   NULL));
END $$;

CREATE FUNCTION count_owners_up(p_show bigint[], p_owner bigint[], p_number bigint[], p_claim text[], p_seats text[], p_max integer[], p_guest boolean[], p_limits hold_limits) RETURNS TABLE(place integer, reason text)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_guests bigint[] := '{}';
    v_holds_max  int := coalesce((p_limits).guest_holds_max, 2147483647);
    v_lapses_max int := coalesce((p_limits).lapses_max, 2147483647);
    v_cool_since timestamptz := now() - coalesce((p_limits).cooldown_s, 0) * interval '1 s';
    v_show   bigint[];  -- of the counters that were raised
    v_owner  bigint[];
    v_over   int[];
    v_count  int;
    v_holds  int;
BEGIN
    IF true = ANY (p_guest) THEN
        v_guests := ARRAY(SELECT owner_id FROM unnest(p_owner, p_guest) AS a (owner_id, is_guest)
                           WHERE is_guest);
    END IF;
    WITH counted AS (
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max, holds)
        SELECT show_id, owner_id, sum(cardinality(seats::int[]))::int, max(seats_max),
               count(*) FILTER (WHERE claim_id LIKE '%@%')::int
          FROM unnest(p_show, p_owner, p_number, p_seats, p_max, p_claim)
            AS a (show_id, owner_id, number, seats, seats_max, claim_id)
         WHERE number IS NOT NULL
      GROUP BY show_id, owner_id
        HAVING sum(cardinality(seats::int[])) <= max(seats_max)
           AND (count(*) FILTER (WHERE claim_id LIKE '%@%') <= v_holds_max OR owner_id <> ALL (v_guests))
      ORDER BY show_id, owner_id
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max,
               holds = owner_count.holds + excluded.holds
         WHERE owner_count.seats + owner_count.guest_seats + excluded.seats <= excluded.seats_max
           AND (owner_count.lapses < v_lapses_max OR owner_count.lapsed_at <= v_cool_since)
           AND (owner_count.holds + excluded.holds <= v_holds_max OR excluded.owner_id <> ALL (v_guests))
     RETURNING show_id, owner_id
    )
    SELECT array_agg(show_id), array_agg(owner_id) INTO v_show, v_owner FROM counted;
    IF cardinality(v_show) = cardinality(array_remove(p_number, NULL)) THEN
        RETURN;  -- a counter for each request: all fit
    END IF;
    SELECT array_agg(ord ORDER BY show_id, owner_id, ord) INTO v_over
      FROM unnest(p_show, p_owner, p_number) WITH ORDINALITY AS a (show_id, owner_id, number, ord)
     WHERE number IS NOT NULL
       AND NOT EXISTS (SELECT FROM unnest(v_show, v_owner) AS counted (show_id, owner_id)
                        WHERE counted.show_id = a.show_id AND counted.owner_id = a.owner_id);

    FOREACH place IN ARRAY coalesce(v_over, '{}') LOOP  -- together they do not fit: try one by one
        v_count := cardinality(p_seats[place]::int[]);
        v_holds := (p_claim[place] LIKE '%@%')::int;
        INSERT INTO owner_count (show_id, owner_id, seats, seats_max, holds)
        SELECT p_show[place], p_owner[place], v_count, p_max[place], v_holds
         WHERE v_count <= p_max[place]
            ON CONFLICT (show_id, owner_id) DO UPDATE
           SET seats = owner_count.seats + excluded.seats, seats_max = excluded.seats_max,
               holds = owner_count.holds + excluded.holds
         WHERE owner_count.seats + owner_count.guest_seats + excluded.seats <= excluded.seats_max
           AND (owner_count.lapses < v_lapses_max OR owner_count.lapsed_at <= v_cool_since)
           AND (owner_count.holds + excluded.holds <= v_holds_max OR excluded.owner_id <> ALL (v_guests));
        IF NOT FOUND THEN
            SELECT CASE WHEN lapses >= v_lapses_max AND lapsed_at > v_cool_since THEN 'cooling'
                        WHEN holds + v_holds > v_holds_max AND owner_id = ANY (v_guests)
                        THEN 'has_hold' ELSE 'limit' END
              INTO reason
              FROM owner_count WHERE show_id = p_show[place] AND owner_id = p_owner[place];
            reason := coalesce(reason, 'limit');
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION count_parties_down(p_show bigint[], p_number bigint[], p_lapsed boolean) RETURNS void
    LANGUAGE sql
    AS $$
    WITH gone AS (
        SELECT booking.show_id, split_part(booking.claim_id, '@', 2) AS party, count(*)::int AS bookings,
               sum(cardinality(booking.seats))::int AS seats
          FROM unnest(p_show, p_number) AS a (show_id, number) JOIN booking USING (show_id, number)
         WHERE booking.claim_id LIKE '%@%' AND (booking.state <> 'confirmed' OR booking.amount_minor > 0)
         GROUP BY 1, 2
    ), locked AS (
        SELECT party_count.show_id, party_count.party, gone.seats, gone.bookings,
               party_count.lapses_since > now() - interval '1 hour' AS is_same_hour
          FROM party_count JOIN gone USING (show_id, party)
      ORDER BY party_count.show_id, party_count.party
           FOR UPDATE OF party_count
    )
    UPDATE party_count
       SET seats = greatest(0, party_count.seats - locked.seats),
           lapses = CASE WHEN NOT p_lapsed THEN lapses
                         WHEN is_same_hour THEN lapses + bookings ELSE bookings END,
           lapses_since = CASE WHEN NOT p_lapsed OR is_same_hour THEN lapses_since ELSE now() END,
           lapsed_at = CASE WHEN p_lapsed THEN now() ELSE lapsed_at END
      FROM locked
     WHERE party_count.show_id = locked.show_id AND party_count.party = locked.party;
$$;

CREATE FUNCTION count_parties_up(p_show bigint[], p_number bigint[], p_claim text[], p_seats text[], p_limits hold_limits) RETURNS TABLE(place integer, reason text)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_seats_max  int := coalesce((p_limits).range_seats_max, 2147483647);
    v_lapses_max int := coalesce((p_limits).range_lapses_max, 2147483647);
    v_cool_since timestamptz := now() - coalesce((p_limits).cooldown_s, 0) * interval '1 s';
    v_show   bigint[];  -- of the counters that were raised
    v_raised text[];
    v_wanted int;       -- counters to be raised
    v_count  int[];
    v_party  text[];
    v_over   int[];
BEGIN
    WITH wanted AS MATERIALIZED (
        SELECT show_id, split_part(claim_id, '@', 2) AS party, sum(cardinality(seats::int[]))::int AS seats
          FROM unnest(p_show, p_claim, p_number, p_seats) AS a (show_id, claim_id, number, seats)
         WHERE number IS NOT NULL AND split_part(claim_id, '@', 2) <> ''
      GROUP BY 1, 2
    ), counted AS (
        INSERT INTO party_count (show_id, party, seats)
        SELECT show_id, party, seats FROM wanted WHERE seats <= v_seats_max ORDER BY show_id, party
            ON CONFLICT (show_id, party) DO UPDATE SET seats = party_count.seats + excluded.seats
         WHERE party_count.seats + excluded.seats <= v_seats_max
           AND (party_count.lapses < v_lapses_max OR party_count.lapsed_at <= v_cool_since)
     RETURNING show_id, party
    )
    SELECT array_agg(show_id), array_agg(party), (SELECT count(*) FROM wanted)
      INTO v_show, v_raised, v_wanted
      FROM counted;
    IF coalesce(cardinality(v_show), 0) = v_wanted THEN
        RETURN;  -- all fit: whose request is over a limit need not be searched for
    END IF;
    v_count := ARRAY(SELECT cardinality(seats::int[]) FROM unnest(p_seats) AS seats);
    v_party := ARRAY(SELECT split_part(claim_id, '@', 2) FROM unnest(p_claim) AS claim_id);
    SELECT array_agg(ord ORDER BY show_id, party, ord) INTO v_over
      FROM unnest(p_show, v_party, p_number) WITH ORDINALITY AS a (show_id, party, number, ord)
     WHERE number IS NOT NULL AND party <> ''
       AND NOT EXISTS (SELECT FROM unnest(v_show, v_raised) AS counted (show_id, party)
                        WHERE counted.show_id = a.show_id AND counted.party = a.party);

    FOREACH place IN ARRAY coalesce(v_over, '{}') LOOP
        INSERT INTO party_count (show_id, party, seats)
        SELECT p_show[place], v_party[place], v_count[place]
         WHERE v_count[place] <= v_seats_max
            ON CONFLICT (show_id, party) DO UPDATE SET seats = party_count.seats + excluded.seats
         WHERE party_count.seats + excluded.seats <= v_seats_max
           AND (party_count.lapses < v_lapses_max OR party_count.lapsed_at <= v_cool_since);
        IF NOT FOUND THEN
            SELECT CASE WHEN lapses >= v_lapses_max AND lapsed_at > v_cool_since THEN 'cooling' END
              INTO reason
              FROM party_count WHERE show_id = p_show[place] AND party = v_party[place];
            reason := coalesce(reason, 'range_full');
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION count_party_again(p_booking booking, p_seats integer) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO party_count (show_id, party, seats)
    SELECT p_booking.show_id, split_part(p_booking.claim_id, '@', 2), p_seats
     WHERE p_booking.claim_id LIKE '%@%'
        ON CONFLICT (show_id, party) DO UPDATE SET seats = party_count.seats + excluded.seats;
$$;

CREATE FUNCTION current_place(p_show bigint, p_opening integer, p_account bigint) RETURNS TABLE(number integer, state smallint, joined_s integer)
    LANGUAGE sql STABLE
    AS $$
    SELECT place.number, place.state, place.joined_s
      FROM queue_place AS place
     WHERE place.account_id = p_account
       AND place.rejoined = 0
       AND place.show_id IS NOT DISTINCT FROM p_show
       AND place.opening IS NOT DISTINCT FROM p_opening
    OFFSET 0;
$$;

CREATE FUNCTION decline_payments(p_show bigint[], p_number bigint[], p_attempt integer[], p_reason text[], p_code text[], p_step payment_step) RETURNS SETOF payment_detail
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
    v_fence  bigint[];
    v_ends   timestamptz[];
    v_body   jsonb[];
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    WITH ended AS (
        UPDATE payment
           SET step = p_step, reason = a.reason, code = a.code, method = '', client_secret = NULL,
               due_at = NULL, ended_at = now()
          FROM unnest(p_show, p_number, p_attempt, p_reason, p_code)
               AS a (show_id, number, attempt, reason, code)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    )
    SELECT array_agg(show_id), array_agg(number), array_agg(fence), array_agg(hold_ends_at),
           array_agg(jsonb_build_object('attempt', attempt, 'reason', reason, 'code', code,
                                        'amount_minor', amount_minor, 'currency', currency))
      INTO v_show, v_number, v_fence, v_ends, v_body
      FROM ended;
    IF v_show IS NOT NULL THEN
        PERFORM add_facts(v_show, v_number,
                          array_fill('payment.' || p_step::text, ARRAY[cardinality(v_show)]), NULL, v_body);
        PERFORM return_to_held(v_show, v_number, v_fence, v_ends);
    END IF;
    RETURN QUERY SELECT * FROM payment_details(p_show, p_number, p_attempt);
END $$;

CREATE FUNCTION delete_openings(p_show bigint[], p_number bigint[], p_lost integer[]) RETURNS void
    LANGUAGE sql
    AS $$
    WITH lost AS (
        SELECT p_show[i] AS show_id, p_number[i] AS number
          FROM unnest(p_lost) AS i
         WHERE p_number[i] IS NOT NULL
    ), gone AS (
        DELETE FROM taken_seat
         USING (SELECT booking.show_id, booking.number, unnest(booking.seats) AS seat
                  FROM booking JOIN lost USING (show_id, number)) AS had
         WHERE taken_seat.show_id = had.show_id
           AND taken_seat.seat = had.seat
           AND taken_seat.number = had.number
    )
    DELETE FROM booking USING lost WHERE booking.show_id = lost.show_id AND booking.number = lost.number;
$$;

CREATE TABLE entry_policy (
    show_id bigint NOT NULL,
    codes text DEFAULT 'fixed'::text NOT NULL,
    reentry boolean DEFAULT true NOT NULL,
    CONSTRAINT codes_are_fixed_or_live CHECK ((codes = ANY (ARRAY['fixed'::text, 'live'::text, 'live_or_paper'::text])))
);

CREATE SEQUENCE ledger_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE ticket (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    seat integer NOT NULL,
    serial bigint DEFAULT nextval('ledger_number'::regclass) NOT NULL,
    issued_at timestamp with time zone DEFAULT now() NOT NULL,
    voided_at timestamp with time zone,
    used_at timestamp with time zone,
    edition integer DEFAULT 1 NOT NULL,
    owner_id bigint,
    owner_email text,
    phone bytea,
    binding integer DEFAULT 0 NOT NULL,
    is_inside boolean DEFAULT false NOT NULL,
    suspended_at timestamp with time zone,
    CONSTRAINT a_ticket_has_one_owner CHECK (((owner_id IS NULL) OR (owner_email IS NULL))),
    CONSTRAINT voided_tickets_are_unused CHECK (((voided_at IS NULL) OR (used_at IS NULL)))
);

CREATE FUNCTION door_verdict(p_ticket ticket, p_policy entry_policy, p_way text, p_edition integer, p_binding integer) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
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

CREATE FUNCTION end_due_turns(p_show bigint, p_opening integer, p_recall_at integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_freed int;
BEGIN
    WITH due AS (
        UPDATE queue_turn
           SET state = CASE WHEN state = 'called' AND call = 1 THEN 'missed' ELSE 'over' END,
               recall_at = CASE WHEN state = 'called' AND call = 1 THEN p_recall_at END,
               freed_at = clock_timestamp()
         WHERE show_id = p_show AND opening = p_opening AND freed_at IS NULL AND ends_at <= now()
     RETURNING number, state, redeemed_at
    ), ended AS (
        UPDATE queue_place
           SET state = CASE WHEN due.redeemed_at IS NULL THEN 2 ELSE 3 END
          FROM due
         WHERE queue_place.show_id = p_show AND queue_place.opening = p_opening
           AND queue_place.number = due.number AND queue_place.state = 0 AND due.state = 'over'
    )
    SELECT count(*) INTO v_freed FROM due;
    RETURN v_freed;
END $$;

CREATE FUNCTION end_memberships(p_accounts bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM organisation
      WHERE id IN (SELECT organisation_id FROM membership WHERE account_id = ANY (p_accounts))
      ORDER BY id FOR NO KEY UPDATE;
    RETURN QUERY
        SELECT DISTINCT own.organisation_id FROM membership AS own
         WHERE own.account_id = ANY (p_accounts) AND 'owner' = ANY (own.rights)
           AND NOT EXISTS (SELECT FROM membership AS other
                            WHERE other.organisation_id = own.organisation_id
                              AND other.account_id <> ALL (p_accounts) AND 'owner' = ANY (other.rights));
    IF FOUND THEN
        RETURN;
    END IF;
    DELETE FROM membership WHERE account_id = ANY (p_accounts);
    UPDATE invitation SET ended_at = now(), ended_as = 'withdrawn'
     WHERE invited_by = ANY (p_accounts) AND ended_at IS NULL;
END $$;

CREATE FUNCTION end_visits(p_show bigint, p_opening integer, p_numbers integer[], p_state integer, p_grace_s integer) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE queue_place SET state = p_state
     WHERE show_id = p_show AND opening = p_opening AND number = ANY (p_numbers) AND state = 0;
    UPDATE queue_turn
       SET state = CASE state WHEN 'inside' THEN 'ending' ELSE 'over' END,
           ended_at = CASE state WHEN 'inside' THEN clock_timestamp() END,
           ends_at = CASE state WHEN 'inside'
                                THEN least(ends_at, clock_timestamp() + p_grace_s * interval '1 s')
                                ELSE ends_at END,
           freed_at = CASE state WHEN 'called' THEN clock_timestamp() WHEN 'missed' THEN freed_at END
     WHERE show_id = p_show AND opening = p_opening AND number = ANY (p_numbers)
       AND state IN ('called', 'inside', 'missed');
$$;

CREATE FUNCTION end_waits_of(p_owners bigint[]) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE waitlist_entry SET state = 'left', ended_at = now()
     WHERE owner_id = ANY (p_owners) AND state = 'waiting';
$$;

CREATE FUNCTION entry_policy_of(p_show bigint) RETURNS entry_policy
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    v_policy entry_policy;
BEGIN
    SELECT * INTO v_policy FROM entry_policy WHERE show_id = p_show;
    IF NOT FOUND THEN
        v_policy := ROW(p_show, 'fixed', true)::entry_policy;
    END IF;
    RETURN v_policy;
END $$;

CREATE FUNCTION erase_accounts(p_accounts bigint[], p_addresses text[]) RETURNS TABLE(account_id bigint, new_version integer)
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM mail_token WHERE mail_token.account_id = ANY (p_accounts) OR email = ANY (p_addresses);
    DELETE FROM totp WHERE totp.account_id = ANY (p_accounts);
    DELETE FROM passkey WHERE passkey.account_id = ANY (p_accounts);
    DELETE FROM recovery_code WHERE recovery_code.account_id = ANY (p_accounts);
    DELETE FROM sign_in_step WHERE sign_in_step.account_id = ANY (p_accounts);
    UPDATE session SET ended_at = now(), ended_by = 'erased', device = ''
     WHERE session.account_id = ANY (p_accounts) AND ended_at IS NULL;
    RETURN QUERY
    UPDATE account
       SET email = 'erased-' || id || '@guest.invalid', name = 'Erased', password_hash = NULL,
           contact_email = NULL, verified_at = NULL, locale = 'en', guest_of = NULL, erased_at = now(),
           version = version + 1, changed_at = now()
     WHERE id = ANY (p_accounts)
    RETURNING id, version;
END $$;

CREATE FUNCTION erase_earlier_notices(p_accounts bigint[], p_addresses text[], p_before timestamp with time zone) RETURNS void
    LANGUAGE sql
    AS $$
    DELETE FROM notice
     WHERE address = ANY (p_addresses) AND (written_at <= p_before OR account_id = ANY (p_accounts));
$$;

CREATE FUNCTION erase_earlier_ticket_addresses(p_addresses text[], p_before timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE ticket SET owner_email = ''
     WHERE owner_email = ANY (p_addresses)
       AND NOT EXISTS (SELECT FROM ticket_transfer AS t
                        WHERE t.show_id = ticket.show_id AND t.serial = ticket.serial
                          AND t.email = ticket.owner_email AND t.at > p_before);
    UPDATE ticket_transfer SET email = '' WHERE email = ANY (p_addresses) AND at <= p_before;
END $$;

CREATE FUNCTION erase_from_audit_log(p_chain bigint, p_numbers bigint[], p_why text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION erase_identities(p_accounts bigint[]) RETURNS void
    LANGUAGE sql
    AS $$
    DELETE FROM oidc_identity WHERE account_id = ANY (p_accounts);
$$;

CREATE FUNCTION erase_notices(p_addresses text[]) RETURNS void
    LANGUAGE sql
    AS $$
    DELETE FROM notice WHERE address = ANY (p_addresses);
$$;

CREATE FUNCTION erase_person_from_audit_log(p_account bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION erase_ticket_addresses(p_addresses text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE ticket_transfer SET email = '' WHERE email = ANY (p_addresses);
    UPDATE ticket SET owner_email = '' WHERE owner_email = ANY (p_addresses);
END $$;

CREATE FUNCTION expire_lapsed(p_show bigint[], p_number bigint[]) RETURNS SETOF booking
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH lapsed AS (
        SELECT booking.show_id, booking.number
          FROM unnest(p_show, p_number) AS requested (show_id, number)
          JOIN booking USING (show_id, number)
         WHERE booking.state = 'held' AND booking.expires_at <= now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking SKIP LOCKED
    ), moved AS (
        UPDATE booking SET state = 'expired'
          FROM lapsed
         WHERE booking.show_id = lapsed.show_id AND booking.number = lapsed.number
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    PERFORM count_owners_down(v_show, v_number, p_lapsed => true);
    PERFORM record_moves(v_show, v_number, 'expire', NULL);
    RETURN QUERY
    SELECT booking.*
      FROM booking JOIN unnest(v_show, v_number) AS m (show_id, number) USING (show_id, number);
END $$;

CREATE FUNCTION expire_paying(p_show bigint[], p_number bigint[], p_fence bigint[]) RETURNS TABLE(show_id bigint, number bigint, fence bigint, seats integer)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'expired'
          FROM unnest(p_show, p_number, p_fence) AS a (show_id, number, fence)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = a.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(moved.show_id), array_agg(moved.number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    PERFORM count_owners_down(v_show, v_number, p_lapsed => true);
    PERFORM record_moves(v_show, v_number, 'expire', NULL);
    RETURN QUERY
    SELECT b.show_id, b.number, b.fence, cardinality(b.seats)
      FROM unnest(v_show, v_number) AS a (show_id, number)
      JOIN booking AS b USING (show_id, number);
END $$;

CREATE FUNCTION expire_payments(p_show bigint[], p_number bigint[], p_attempt integer[], p_step payment_step, p_due_ms integer) RETURNS SETOF payment_detail
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
    v_fence  bigint[];
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    WITH ended AS (
        UPDATE payment
           SET step = p_step, method = '', client_secret = NULL, tries = 0,
               due_at = CASE p_step WHEN 'watch' THEN now() + p_due_ms * interval '1 ms' END,
               ended_at = CASE p_step WHEN 'watch' THEN NULL ELSE now() END
          FROM unnest(p_show, p_number, p_attempt) AS a (show_id, number, attempt)
         WHERE payment.show_id = a.show_id AND payment.number = a.number AND payment.attempt = a.attempt
           AND payment.step IN ('charge', 'look_up', 'call_off', 'watch')
     RETURNING payment.*
    )
    SELECT array_agg(show_id), array_agg(number), array_agg(fence)
      INTO v_show, v_number, v_fence
      FROM ended;
    IF v_show IS NOT NULL THEN
        PERFORM expire_paying(v_show, v_number, v_fence);
    END IF;
    RETURN QUERY SELECT * FROM payment_details(p_show, p_number, p_attempt);
END $$;

CREATE FUNCTION expire_under(p_show bigint[], p_seats text[], p_number bigint[]) RETURNS TABLE(show_id bigint, number bigint)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH lapsed AS (
        SELECT booking.show_id, booking.number
          FROM booking
         WHERE (booking.show_id, booking.number) IN (
                   SELECT taken_seat.show_id, taken_seat.number
                     FROM requested_seats(p_show, p_seats, p_number) JOIN taken_seat USING (show_id, seat))
           AND booking.state = 'held' AND booking.expires_at <= now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE booking SET state = 'expired' FROM lapsed
         WHERE booking.show_id = lapsed.show_id AND booking.number = lapsed.number
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(moved.show_id), array_agg(moved.number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM release_seats(v_show, v_number);
    INSERT INTO taken_seat (show_id, seat, number)
    SELECT freed.show_id, freed.seat, s.number
      FROM (SELECT show_id, unnest(seats) AS seat FROM booking
              JOIN unnest(v_show, v_number) AS l (show_id, number) USING (show_id, number)) AS freed
      JOIN requested_seats(p_show, p_seats, p_number) AS s USING (show_id, seat)
     ORDER BY freed.show_id, freed.seat, s.ord
        ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM unnest(v_show, v_number);
END $$;

CREATE FUNCTION extend_holds(p_show bigint[], p_number bigint[], p_fence bigint[], p_ttl_s integer[], p_life_max_s integer) RETURNS SETOF booking
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM share_sales(p_show);
    RETURN QUERY
    WITH locked AS (
        SELECT booking.show_id, booking.number, requested.ttl_s
          FROM unnest(p_show, p_number, p_fence, p_ttl_s) AS requested (show_id, number, fence, ttl_s)
          JOIN booking USING (show_id, number)
         WHERE booking.fence = requested.fence AND booking.state = 'held' AND booking.expires_at > now()
      ORDER BY booking.show_id, booking.number
           FOR UPDATE OF booking
    )
    UPDATE booking
       SET expires_at = greatest(expires_at, least(now() + locked.ttl_s * interval '1 s',
                                                   opened_at + p_life_max_s * interval '1 s'))
      FROM locked
     WHERE booking.show_id = locked.show_id AND booking.number = locked.number
       AND booking.state = 'held' AND booking.expires_at > now()
 RETURNING booking.*;
END $$;

CREATE FUNCTION fail_expired(p_show bigint, p_number bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE booking SET state = 'failed' WHERE show_id = p_show AND number = p_number AND state = 'expired';
    IF FOUND THEN
        PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'fail', NULL);
    END IF;
END $$;

CREATE FUNCTION fence_show(p_show bigint, p_epoch bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lock_show_copy(p_show, false);
    INSERT INTO show_copy (show_id, epoch, changed_at) VALUES (p_show, -p_epoch, clock_timestamp())
        ON CONFLICT (show_id) DO UPDATE SET epoch = excluded.epoch, changed_at = excluded.changed_at;
END $$;

CREATE FUNCTION file_sale(p_show bigint, p_manifest text) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE sale SET filed_at = clock_timestamp(), filed_as = p_manifest WHERE show_id = p_show;
$$;

CREATE FUNCTION find_losers(p_show bigint[], p_seats text[], p_number bigint[]) RETURNS TABLE(lost integer[], details jsonb)
    LANGUAGE sql
    AS $$
    WITH missing AS (
        SELECT s.ord, s.seat,
               CASE taken_seat.number WHEN 0 THEN 'waitlist' ELSE booking.claim_id END AS claim_id,
               CASE taken_seat.number WHEN 0 THEN 0 ELSE booking.owner_id END AS owner_id,
               CASE taken_seat.number WHEN 0 THEN ARRAY[s.seat] ELSE booking.seats END AS seats,
               CASE taken_seat.number WHEN 0 THEN 'blocked' ELSE booking.state END AS state,
               CASE taken_seat.number WHEN 0 THEN now() + interval '1 h' ELSE booking.expires_at END
                   AS expires_at
          FROM requested_seats(p_show, p_seats, p_number) AS s
          LEFT JOIN taken_seat USING (show_id, seat)
          LEFT JOIN booking ON booking.show_id = taken_seat.show_id AND booking.number = taken_seat.number
         WHERE taken_seat.number IS DISTINCT FROM s.number
    )
    SELECT array_agg(DISTINCT ord),
           jsonb_agg(jsonb_build_object(
               'ord', ord, 'seat', seat,
               'claim_id', claim_id, 'owner_id', owner_id, 'seats', seats, 'state', state,
               'left_ms', ceil(extract(epoch FROM expires_at - now()) * 1000)::bigint))
      FROM missing;
$$;

CREATE FUNCTION follow_changed_sale() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
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

CREATE FUNCTION follow_moved_show() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    PERFORM move_block_releases(NEW.id, NEW.starts_at);
    RETURN NULL;
END $$;

CREATE FUNCTION follow_signed_in_guest() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    PERFORM merge_owner_counts(NEW.id, NEW.guest_of);
    RETURN NULL;
END $$;

CREATE FUNCTION forget_aside(p_tables text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        EXECUTE format('DROP TABLE %I', 'aside_' || v_table);
    END LOOP;
END $$;

CREATE FUNCTION freeze_booking_facts(p_show bigint, p_number bigint, p_body jsonb) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE outbox
       SET body = coalesce(body, '{}') || p_body
     WHERE show_id = p_show AND number = p_number AND kind LIKE 'booking.%'
       AND NOT coalesce(body, '{}') ? 'seats';
$$;

CREATE FUNCTION give_show_to_pod() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION give_up_seats(p_booking booking, p_seats integer[], p_actor bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_after booking;
BEGIN
    PERFORM freeze_booking_facts(p_booking.show_id, p_booking.number, jsonb_build_object(
        'seats', p_booking.seats, 'prices_minor', p_booking.prices_minor,
        'amount_minor', p_booking.amount_minor));
    UPDATE booking
       SET seats = rest.seats, prices_minor = rest.prices, amount_minor = rest.amount
      FROM (SELECT array_agg(seat ORDER BY ord) AS seats, array_agg(price ORDER BY ord) AS prices,
                   sum(price)::bigint AS amount
              FROM unnest(p_booking.seats, p_booking.prices_minor) WITH ORDINALITY AS a (seat, price, ord)
             WHERE seat <> ALL (p_seats)) AS rest
     WHERE show_id = p_booking.show_id AND number = p_booking.number
 RETURNING booking.* INTO v_after;
    PERFORM void_tickets(p_booking.show_id, p_booking.number, p_seats);
    PERFORM release_some_seats(p_booking.show_id, p_booking.number, p_seats);
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id, seats)
    VALUES (v_after.show_id, v_after.number, 'reduce', v_after.state, v_after.fence, p_actor, p_seats);
    PERFORM add_fact(v_after.show_id, v_after.number, 'booking.reduced', jsonb_build_object(
        'seats', v_after.seats, 'prices_minor', v_after.prices_minor,
        'amount_minor', v_after.amount_minor, 'given_back', p_seats));
END $$;

CREATE FUNCTION guard_shows(p_tables text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION guests_of_accounts(p_accounts bigint[]) RETURNS TABLE(account_id bigint, guest_id bigint)
    LANGUAGE sql STABLE
    AS $$
    SELECT guest_of, id FROM account WHERE guest_of = ANY (p_accounts);
$$;

CREATE FUNCTION has_facts(p_show bigint, p_number bigint) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT EXISTS (SELECT FROM outbox WHERE show_id = p_show AND number = p_number);
$$;

CREATE FUNCTION has_other_prices_only(p_show bigint, p_revision bigint) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT EXISTS (SELECT FROM price_change
                    WHERE show_id = p_show AND revision = p_revision AND why <> 'organiser')
$$;

CREATE FUNCTION hide_sales(p_show bigint[], p_hidden boolean[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR UPDATE;
    UPDATE sale
       SET hidden = wanted.hidden, epoch = sale.epoch + 1, map_stale = true, marked_at = now()
      FROM unnest(p_show, p_hidden) AS wanted (show_id, hidden)
     WHERE sale.show_id = wanted.show_id;
    PERFORM add_fact(show_id, NULL, 'show.changed',
                     jsonb_build_object('opens_at', opens_at, 'closes_at', closes_at, 'revision', revision))
       FROM sale WHERE show_id = ANY (p_show);
END $$;

CREATE FUNCTION invoices_stay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'an invoice is never changed: issue a credit note';
END $$;

CREATE FUNCTION is_card_over(p_payment payment) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lock_cards(ARRAY[p_payment.show_id], ARRAY[p_payment.card]);
    RETURN EXISTS (
        SELECT 1
          FROM payable_booking AS b
          JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
         WHERE b.show_id = p_payment.show_id AND b.number = p_payment.number
           AND seats_of_card(b.show_id, p_payment.card, b.number) + cardinality(b.seats)
               > card_limit.card_seats_max);
END $$;

CREATE FUNCTION is_ticket_suspended(p_show bigint, p_serial bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM suspended_ticket WHERE show_id = p_show AND serial = p_serial);
END $$;

CREATE FUNCTION issue_tickets(p_show bigint[], p_number bigint[], p_seat integer[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO ticket (show_id, number, seat, serial)
    SELECT show_id, number, seat, new_number()
      FROM unnest(p_show, p_number, p_seat) WITH ORDINALITY AS a (show_id, number, seat, ord)
  ORDER BY ord;
END $$;

CREATE FUNCTION join_queues(p_show bigint[], p_account bigint[]) RETURNS TABLE(ord bigint, number integer, joined_s integer, is_new boolean)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_show     bigint;
    v_queue    queue;
    v_accounts bigint[];
    v_new      bigint[];
    v_ended    int[];
BEGIN
    FOR v_show IN SELECT DISTINCT s FROM unnest(p_show) AS s ORDER BY s LOOP
        SELECT queue.* INTO v_queue
          FROM queue
         WHERE queue.show_id = v_show
           AND queue.opening = (SELECT room.opening FROM waiting_room AS room WHERE room.show_id = v_show)
           FOR UPDATE;
        CONTINUE WHEN v_queue.state IS NULL OR v_queue.state NOT IN ('open', 'admitting', 'overridden');
        SELECT array_agg(a.account_id ORDER BY a.first) INTO v_accounts
          FROM (SELECT given.account_id, min(given.ord) AS first
                  FROM unnest(p_show, p_account) WITH ORDINALITY AS given (show_id, account_id, ord)
                 WHERE given.show_id = v_show
                 GROUP BY given.account_id) AS a;
        PERFORM adopt_places(v_show, v_queue.opening, v_accounts);
        SELECT array_agg(a.account_id ORDER BY a.ord), array_agg(place.number) FILTER (WHERE place.state <> 0)
          INTO v_new, v_ended
          FROM unnest(v_accounts) WITH ORDINALITY AS a (account_id, ord)
          LEFT JOIN LATERAL current_place(v_show, v_queue.opening, a.account_id) AS place ON true
         WHERE place.number IS NULL OR place.state <> 0;
        IF v_ended IS NOT NULL THEN
            -- An ended place stays for its number, as an earlier one.
            UPDATE queue_place AS place
               SET rejoined = 1 + (SELECT max(earlier.rejoined) FROM queue_place AS earlier
                                    WHERE earlier.account_id = place.account_id
                                      AND earlier.show_id IS NOT DISTINCT FROM v_show
                                      AND earlier.opening IS NOT DISTINCT FROM v_queue.opening)
             WHERE place.show_id = v_show AND place.opening = v_queue.opening
               AND place.number = ANY (v_ended);
        END IF;
        IF v_new IS NOT NULL THEN
            INSERT INTO queue_place (show_id, opening, account_id, number, joined_s)
            SELECT v_show, v_queue.opening, a.account_id, v_queue.joined + a.ord - 1,
                   extract(epoch FROM clock_timestamp() - v_queue.opened_at)
              FROM unnest(v_new) WITH ORDINALITY AS a (account_id, ord);
            UPDATE queue SET joined = queue.joined + cardinality(v_new)
             WHERE queue.show_id = v_show AND queue.opening = v_queue.opening;
        END IF;
        RETURN QUERY
        SELECT given.ord, place.number, place.joined_s, place.number >= v_queue.joined
          FROM unnest(p_show, p_account) WITH ORDINALITY AS given (show_id, account_id, ord)
         CROSS JOIN LATERAL current_place(v_show, v_queue.opening, given.account_id) AS place
         WHERE given.show_id = v_show;
    END LOOP;
END $$;

CREATE FUNCTION journal_balances() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written GROUP BY show_id, entry
                HAVING sum(amount_minor) <> 0 OR count(DISTINCT currency) > 1) THEN
        RAISE EXCEPTION 'an entry of the journal does not balance' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION leave_to_newer_workers() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.due_at := 'infinity';
    RETURN NEW;
END $$;

CREATE FUNCTION limit_proving_mails() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.kind NOT IN ('confirm_address', 'reset_password', 'sign_in_link', 'invitation', 'ticket_got')
       AND EXISTS (SELECT FROM account_profile WHERE id = NEW.account_id AND is_verified) THEN
        RETURN NEW;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('holdfast mails to ' || NEW.address, 0));
    IF (SELECT count(*) FROM notice
         WHERE address = NEW.address AND written_at > now() - interval '1 hour'
           AND (show_id = 0 OR kind IN ('ticket_got', 'confirm_address'))) >= 6 THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION lock_bookings(p_show bigint[], p_number bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
BEGIN
    PERFORM 1 FROM booking JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY show_id, number FOR UPDATE OF booking;
END $$;

CREATE FUNCTION lock_cards(p_show bigint[], p_card text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('holdfast card ' || show_id || ' ' || card, 0))
       FROM (SELECT DISTINCT show_id, card FROM unnest(p_show, p_card) AS a (show_id, card)
              WHERE card <> '' ORDER BY show_id, card) AS cards;
END $$;

CREATE FUNCTION lock_for_refunds(p_show bigint[], p_number bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM share_sales(p_show);
    PERFORM lock_bookings(p_show, p_number);
    PERFORM lock_payments(p_show, p_number);
    PERFORM lock_tickets(p_show, p_number);
END $$;

CREATE FUNCTION lock_payments(p_show bigint[], p_number bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1 FROM payment AS p JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY p.show_id, p.number, p.attempt FOR UPDATE OF p;
END $$;

CREATE FUNCTION lock_show_copy(p_show bigint, p_shared boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF p_shared THEN
        PERFORM pg_advisory_xact_lock_shared(38, (p_show % 2147483647)::int);
    ELSE
        PERFORM pg_advisory_xact_lock(38, (p_show % 2147483647)::int);
    END IF;
END $$;

CREATE FUNCTION lock_ticket(p_show bigint, p_serial bigint) RETURNS SETOF ticket
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN QUERY SELECT * FROM ticket WHERE show_id = p_show AND serial = p_serial FOR UPDATE;
END $$;

CREATE FUNCTION lock_tickets(p_show bigint[], p_number bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1 FROM ticket AS t JOIN unnest(p_show, p_number) AS a (show_id, number) USING (show_id, number)
      ORDER BY t.show_id, t.number, t.seat FOR UPDATE OF t;
END $$;

CREATE FUNCTION make_own_organisation(p_account bigint, p_name text) RETURNS void
    LANGUAGE sql
    AS $$
    WITH made AS (
        INSERT INTO organisation (id, name) VALUES (p_account, p_name) ON CONFLICT DO NOTHING RETURNING id
    )
    INSERT INTO membership (organisation_id, account_id, rights) SELECT id, id, '{owner}' FROM made;
$$;

CREATE FUNCTION mark_every_map_stale() RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE sale SET map_stale = true, epoch = epoch + 1000, marked_at = now();
$$;

CREATE FUNCTION mark_ticket(p_show bigint, p_serial bigint, p_is_inside boolean, p_used_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE ticket
       SET is_inside = coalesce(p_is_inside, is_inside), used_at = coalesce(used_at, p_used_at)
     WHERE show_id = p_show AND serial = p_serial;
END $$;

CREATE TABLE listing (
    event_id bigint NOT NULL,
    title text NOT NULL,
    kind text NOT NULL,
    language text NOT NULL,
    genre text NOT NULL,
    language_name text NOT NULL,
    genre_name text NOT NULL,
    cities text[] NOT NULL,
    dates date[] NOT NULL,
    currency text NOT NULL,
    from_price_minor bigint,
    ends_at timestamp with time zone NOT NULL,
    soonest_s double precision NOT NULL,
    unrated double precision NOT NULL,
    unpopular double precision DEFAULT 0 NOT NULL,
    brief tsvector NOT NULL,
    doc tsvector NOT NULL,
    words text[] NOT NULL,
    written_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE FUNCTION matching_listings(p_words tsquery, p_where text, p_kind text, p_language text, p_genre text) RETURNS SETOF listing
    LANGUAGE sql STABLE
    AS $$
    SELECT *
      FROM listing
     WHERE (p_words IS NULL OR CASE p_where WHEN 'brief' THEN brief @@ p_words
                                            WHEN 'rest' THEN doc @@ p_words AND NOT brief @@ p_words
                                            ELSE doc @@ p_words END)
       AND (p_kind IS NULL OR kind = p_kind)
       AND (p_language IS NULL OR language = p_language)
       AND (p_genre IS NULL OR genre = p_genre)
       AND ends_at > now();
$$;

CREATE TABLE listing_show (
    show_id bigint NOT NULL,
    event_id bigint NOT NULL,
    venue_id bigint NOT NULL,
    city text NOT NULL,
    local_date date NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    closes_at timestamp with time zone NOT NULL,
    currency text NOT NULL,
    from_price_minor bigint,
    seats integer NOT NULL,
    taken integer NOT NULL,
    wanted integer NOT NULL,
    accessible boolean NOT NULL
);

CREATE FUNCTION matching_shows(p_city text, p_venues bigint[], p_date_from date, p_date_to date, p_currency text, p_price_min bigint, p_price_max bigint, p_available boolean, p_accessible boolean) RETURNS SETOF listing_show
    LANGUAGE sql STABLE
    AS $$
    SELECT *
      FROM listing_show
     WHERE (p_city IS NULL OR city = p_city)
       AND (p_venues IS NULL OR venue_id = ANY (p_venues))
       AND (p_date_from IS NULL OR local_date >= p_date_from)
       AND (p_date_to IS NULL OR local_date <= p_date_to)
       AND (p_currency IS NULL OR currency = p_currency)
       AND (p_price_min IS NULL OR from_price_minor >= p_price_min)
       AND (p_price_max IS NULL OR from_price_minor <= p_price_max)
       AND (NOT p_available OR (taken < seats AND opens_at <= now() AND closes_at > now()))
       AND (NOT p_accessible OR accessible)
       AND ends_at > now();
$$;

CREATE FUNCTION may_be_written_to(p_account bigint) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT account.is_verified OR account.contact_at = '-infinity'
           OR EXISTS (SELECT FROM payer
                       WHERE payer.owner_id = account.id AND payer.requested_at >= account.contact_at)
      FROM account_profile AS account
     WHERE account.id = p_account;
$$;

CREATE FUNCTION merge_holds(p_show bigint, p_to bigint, p_to_fence bigint, p_from bigint, p_from_fence bigint, p_life_max_s integer) RETURNS SETOF booking
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_to   booking;
    v_from booking;
BEGIN
    PERFORM share_sales(ARRAY[p_show]);
    PERFORM FROM booking
      WHERE show_id = p_show AND number IN (p_to, p_from)
      ORDER BY number
        FOR UPDATE;
    SELECT * INTO v_to FROM booking
     WHERE show_id = p_show AND number = p_to AND fence = p_to_fence
       AND state = 'held' AND expires_at > now();
    SELECT * INTO v_from FROM booking
     WHERE show_id = p_show AND number = p_from AND fence = p_from_fence
       AND state = 'held' AND expires_at > now();
    IF v_to.number IS NULL OR v_from.number IS NULL OR v_to.owner_id <> v_from.owner_id
       OR v_to.revision <> v_from.revision THEN
        RETURN;
    END IF;
    -- Facts that no consumer has read yet are about the seats of that moment.
    PERFORM freeze_booking_facts(p_show, p_to, jsonb_build_object(
        'seats', v_to.seats, 'prices_minor', v_to.prices_minor, 'amount_minor', v_to.amount_minor));
    UPDATE booking SET state = 'cancelled' WHERE show_id = p_show AND number = p_from;
    PERFORM count_holds_down(ARRAY[p_show], ARRAY[p_from]);
    PERFORM record_moves(ARRAY[p_show], ARRAY[p_from], 'cancel', 0);
    UPDATE taken_seat SET number = p_to
     WHERE show_id = p_show AND seat = ANY (v_from.seats) AND number = p_from;
    UPDATE booking
       SET seats = joined.seats, prices_minor = joined.prices,
           amount_minor = v_to.amount_minor + v_from.amount_minor,
           expires_at = greatest(expires_at, least(v_from.expires_at,
                                                   opened_at + p_life_max_s * interval '1 s'))
      FROM (SELECT array_agg(seat ORDER BY seat) AS seats, array_agg(price ORDER BY seat) AS prices
              FROM unnest(v_to.seats || v_from.seats, v_to.prices_minor || v_from.prices_minor)
                AS a (seat, price)) AS joined
     WHERE show_id = p_show AND number = p_to;
    PERFORM count_party_again(v_to, cardinality(v_from.seats));
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id, seats)
    VALUES (p_show, p_to, 'merge', v_to.state, v_to.fence, v_to.owner_id, v_from.seats);
    -- After the other one's booking.cancelled: a consumer that follows seats has them taken at the end.
    PERFORM add_fact(p_show, p_to, 'booking.merged', jsonb_build_object(
        'seats', seats, 'prices_minor', prices_minor, 'amount_minor', amount_minor,
        'added', v_from.seats, 'from_number', p_from))
       FROM booking WHERE show_id = p_show AND number = p_to;
    RETURN QUERY SELECT * FROM booking WHERE show_id = p_show AND number = p_to;
END $$;

CREATE FUNCTION merge_owner_counts(p_guest bigint, p_account bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_shows bigint[] := ARRAY(SELECT DISTINCT show_id FROM booking WHERE owner_id = p_guest);
BEGIN
    PERFORM FROM owner_count
      WHERE show_id = ANY (v_shows) AND owner_id IN (p_guest, p_account)
      ORDER BY show_id, owner_id FOR UPDATE;
    WITH merged AS (
        UPDATE owner_count SET counts_for = p_account
         WHERE show_id = ANY (v_shows) AND owner_id = p_guest AND counts_for IS NULL
     RETURNING *
    )
    INSERT INTO owner_count (show_id, owner_id, seats, seats_max, guest_seats, lapses, lapses_since,
                             lapsed_at)
    SELECT show_id, p_account, 0, seats_max, seats, lapses, lapses_since, lapsed_at
      FROM merged
        ON CONFLICT (show_id, owner_id) DO UPDATE
       SET guest_seats = owner_count.guest_seats + excluded.guest_seats,
           lapses = owner_count.lapses + excluded.lapses,
           lapses_since = least(owner_count.lapses_since, excluded.lapses_since),
           lapsed_at = greatest(owner_count.lapsed_at, excluded.lapsed_at);
END $$;

CREATE FUNCTION move_block_releases(p_show bigint, p_starts_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE seat_block SET release_at = p_starts_at - hours_before * interval '1 h'
     WHERE show_id = p_show AND hours_before IS NOT NULL;
END $$;

CREATE FUNCTION new_bookings(p_show bigint[], p_number bigint[], p_outcome text[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[], p_left_ms integer[], p_currency text[], p_seats text[], p_prices text[], p_amount bigint[], p_revision bigint[]) RETURNS TABLE(show_id bigint, number bigint, owner_id bigint, fence bigint, state booking_state, request_id text, body_hash bigint, claim_id text, seats integer[], prices_minor bigint[], amount_minor bigint, currency text, note text, counts boolean, opened_at timestamp with time zone, expires_at timestamp with time zone, confirmed_at timestamp with time zone, revision bigint)
    LANGUAGE sql STABLE
    AS $$
    SELECT show_id, number, owner_id, number AS fence, outcome::booking_state, request_id, body_hash,
           claim_id, seats::int[], prices::bigint[], amount, currency, note, true,
           now(), now() + left_ms * interval '1 ms', CASE outcome WHEN 'confirmed' THEN now() END, revision
      FROM unnest(p_show, p_number, p_outcome, p_owner, p_request, p_hash, p_claim,
                  p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount, p_revision)
        AS a (show_id, number, outcome, owner_id, request_id, body_hash, claim_id,
              note, left_ms, currency, seats, prices, amount, revision)
     WHERE outcome IN ('held', 'confirmed');
$$;

CREATE FUNCTION new_number() RETURNS bigint
    LANGUAGE sql
    AS $$
    SELECT (((date_part('epoch', clock_timestamp()) - 1577836800) * 16)::bigint << 13)
           | (nextval('ledger_number') & 8191);
$$;

CREATE FUNCTION oldest_ticket_key(p_show bigint) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(max(key_id), 0) + 1 FROM revoked_ticket_key WHERE show_id IN (0, p_show);
$$;

CREATE FUNCTION open_holds(p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[], p_left_ms integer[], p_revision bigint[], p_currency text[], p_seats text[], p_prices text[], p_amount bigint[], p_by_ledger boolean) RETURNS TABLE(outcomes text[], numbers bigint[], epochs bigint[], opened_at timestamp with time zone, details jsonb)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;
    RETURN QUERY
    SELECT opened.outcomes, opened.numbers, opened.epochs, opened.opened_at, opened.details
      FROM open_holds(p_show, p_owner, p_request, p_hash, p_claim, p_note, p_left_ms, p_revision, p_currency,
                      p_seats, p_prices, p_amount, array_fill(true, ARRAY[cardinality(p_show)]),
                      p_by_ledger) AS opened;
END $$;

CREATE FUNCTION open_holds(p_show bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_claim text[], p_note text[], p_left_ms integer[], p_revision bigint[], p_currency text[], p_seats text[], p_prices text[], p_amount bigint[], p_confirms_free boolean[], p_by_ledger boolean, p_guest boolean[] DEFAULT NULL::boolean[], p_limits hold_limits DEFAULT NULL::hold_limits) RETURNS TABLE(outcomes text[], numbers bigint[], epochs bigint[], opened_at timestamp with time zone, details jsonb)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_outcome text[];
    v_epoch   bigint[];
    v_max     int[];
    -- the booking opened for each request; NULL: none
    v_number  bigint[] := ARRAY(SELECT new_number() FROM unnest(p_show));
    v_lapsed_show   bigint[];
    v_lapsed_number bigint[];
    v_details jsonb;
    v_lost    int[];
    v_reason  text[];                -- of each of them
    v_easy    boolean;
BEGIN
    -- Shared between holds. A rebuild of the seat map takes it exclusively, so it never misses a hold that
    -- commits after it has read the bookings. Skipped if it is taken: waiting here would make the buyers of
    -- all other shows in the batch wait for this one.
    SELECT array_agg(sale_verdict(sale, requested.revision, requested.is_done, p_by_ledger)
                     ORDER BY requested.ord),
           array_agg(coalesce(sale.epoch, 0) ORDER BY requested.ord),
           array_agg(coalesce(sale.owner_seats_max, 0) ORDER BY requested.ord)
      INTO v_outcome, v_epoch, v_max
      FROM (SELECT show_id, revision, amount = 0 AND confirms_free AS is_done, ord
              FROM unnest(p_show, p_revision, p_amount, p_confirms_free) WITH ORDINALITY
                AS a (show_id, revision, amount, confirms_free, ord)) AS requested
      LEFT JOIN (SELECT * FROM sale WHERE show_id = ANY (p_show)
                 ORDER BY show_id FOR SHARE SKIP LOCKED) AS sale
     USING (show_id);
    IF 0 = ANY (v_epoch) THEN  -- no row was read: the sale is locked, or there is none
        FOR i IN 1 .. cardinality(p_show) LOOP
            IF v_epoch[i] = 0 AND EXISTS (SELECT FROM sale WHERE show_id = p_show[i]) THEN
                v_outcome[i] := 'locked';
                v_number[i] := NULL;
            END IF;
        END LOOP;
    END IF;

    -- The easy way: Redis has decided already, so nothing is in the way. Seats are inserted in key order, so
    -- that two batches that want the same ones cannot deadlock.
    v_easy := v_outcome <@ ARRAY['held', 'confirmed', 'locked'];
    IF v_easy THEN
        BEGIN
            INSERT INTO booking
            SELECT * FROM new_bookings(p_show, v_number, v_outcome, p_owner, p_request, p_hash, p_claim,
                                       p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount,
                                       p_revision);
            INSERT INTO taken_seat (show_id, seat, number)
            SELECT show_id, seat, number FROM requested_seats(p_show, p_seats, v_number)
          ORDER BY show_id, seat;
        EXCEPTION WHEN unique_violation THEN
            v_easy := false;
        END;
    END IF;

    IF NOT v_easy THEN
        -- The careful way. A known request id inserts nothing and is answered from its first booking.
        INSERT INTO booking
        SELECT * FROM new_bookings(p_show, v_number, v_outcome, p_owner, p_request, p_hash, p_claim,
                                   p_note, p_left_ms, p_currency, p_seats, p_prices, p_amount, p_revision)
            ON CONFLICT (owner_id, show_id, request_id) DO NOTHING;
        SELECT array_agg(CASE WHEN booking.number IS NULL AND a.outcome IN ('held', 'confirmed') THEN 'same'
                              ELSE a.outcome END ORDER BY a.ord),
               array_agg(booking.number ORDER BY a.ord)
          INTO v_outcome, v_number
          FROM unnest(p_show, v_number, v_outcome) WITH ORDINALITY AS a (show_id, number, outcome, ord)
          LEFT JOIN booking USING (show_id, number);
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT show_id, seat, number FROM requested_seats(p_show, p_seats, v_number) ORDER BY show_id, seat
            ON CONFLICT DO NOTHING;
        -- Expire what has lapsed, take what became free, and find who still lacks a seat.
        SELECT array_agg(show_id), array_agg(number) INTO v_lapsed_show, v_lapsed_number
          FROM expire_under(p_show, p_seats, v_number);
        SELECT l.lost, l.details INTO v_lost, v_details FROM find_losers(p_show, p_seats, v_number) AS l;
        PERFORM delete_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. coalesce(cardinality(v_lost), 0) LOOP
            v_outcome[v_lost[i]] := 'taken';
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;

    -- The limits: counters are the last of all locks, those of owners before those of parties, in key order.
    -- What lapsed above is subtracted first.
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM count_owners_down(v_lapsed_show, v_lapsed_number, p_lapsed => true);
    END IF;
    SELECT array_agg(over.place), array_agg(over.reason) INTO v_lost, v_reason
      FROM count_owners_up(p_show, p_owner, v_number, p_claim, p_seats, v_max, p_guest, p_limits) AS over;
    IF v_lost IS NOT NULL THEN
        PERFORM delete_openings(p_show, v_number, v_lost);
        FOR i IN 1 .. cardinality(v_lost) LOOP
            v_outcome[v_lost[i]] := v_reason[i];
            v_number[v_lost[i]] := NULL;
        END LOOP;
    END IF;
    IF v_lapsed_show IS NOT NULL THEN
        PERFORM record_moves(v_lapsed_show, v_lapsed_number, 'expire', NULL);
    END IF;
    IF array_to_string(p_claim, ' ') LIKE '%@%' THEN
        SELECT array_agg(over.place), array_agg(over.reason) INTO v_lost, v_reason
          FROM count_parties_up(p_show, v_number, p_claim, p_seats, p_limits) AS over;
        IF v_lost IS NOT NULL THEN
            PERFORM count_owners_down(array_agg(p_show[place]), array_agg(v_number[place]))
               FROM unnest(v_lost) AS place;
            PERFORM delete_openings(p_show, v_number, v_lost);
            FOR i IN 1 .. cardinality(v_lost) LOOP
                v_outcome[v_lost[i]] := v_reason[i];
                v_number[v_lost[i]] := NULL;
            END LOOP;
        END IF;
    END IF;

    -- Audit row and fact of each; a booking with nothing to pay makes a second move at once.
    INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
    SELECT show_id, number, 'hold', 'held', number, owner_id
      FROM unnest(p_show, v_number, p_owner) AS a (show_id, number, owner_id)
     WHERE number IS NOT NULL;
    PERFORM add_facts(array_agg(show_id), array_agg(number), array_agg('booking.held'::text),
                      array_agg(now() + left_ms * interval '1 ms'))
       FROM unnest(p_show, v_number, p_left_ms) AS a (show_id, number, left_ms)
      WHERE number IS NOT NULL;
    IF 'confirmed' = ANY (v_outcome) THEN
        PERFORM record_moves(array_agg(show_id), array_agg(number), 'confirm', NULL)
           FROM unnest(p_show, v_number, v_outcome) AS a (show_id, number, outcome)
          WHERE outcome = 'confirmed';
    END IF;

    RETURN QUERY SELECT v_outcome, v_number, v_epoch, now(), v_details;
END $$;

CREATE FUNCTION open_offer(p_show bigint, p_owner bigint, p_seats integer[], p_prices bigint[], p_currency text, p_note text, p_ttl_s integer, p_limits hold_limits) RETURNS SETOF booking
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_number bigint := new_number();
    v_sale   sale;
    v_moved  int;
BEGIN
    SELECT * INTO STRICT v_sale FROM sale WHERE show_id = p_show;
    PERFORM FROM count_owners_up(ARRAY[p_show], ARRAY[p_owner], ARRAY[v_number], ARRAY['offer'],
                                 ARRAY[p_seats::text], ARRAY[v_sale.owner_seats_max], ARRAY[false], p_limits);
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                         prices_minor, amount_minor, currency, note, opened_at, expires_at, revision)
    VALUES (p_show, v_number, p_owner, v_number, 'held', 'offer:' || v_number, 0, 'offer' || v_number,
            p_seats, p_prices, (SELECT sum(price) FROM unnest(p_prices) AS price), p_currency, p_note, now(),
            now() + p_ttl_s * interval '1 s', v_sale.revision);
    UPDATE taken_seat SET number = v_number
     WHERE show_id = p_show AND seat = ANY (p_seats) AND number = 0;
    GET DIAGNOSTICS v_moved = ROW_COUNT;
    ASSERT v_moved = cardinality(p_seats), 'an offer of a seat that is not reserved';
    DELETE FROM reserved_seat WHERE show_id = p_show AND seat = ANY (p_seats);
    INSERT INTO booking_move (show_id, number, move, state, fence)
    VALUES (p_show, v_number, 'hold', 'held', v_number);
    PERFORM add_facts(ARRAY[p_show], ARRAY[v_number], ARRAY['booking.held'::text],
                      ARRAY[now() + p_ttl_s * interval '1 s']);
    RETURN QUERY SELECT * FROM booking WHERE show_id = p_show AND number = v_number;
END $$;

CREATE FUNCTION organisers_have_an_organisation() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM make_own_organisation(NEW.id, NEW.name);
    RETURN NULL;
END $$;

CREATE FUNCTION owners_are_organisations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM organisation WHERE id = NEW.organiser_id) THEN
        PERFORM make_own_organisation(id, name) FROM account_profile
          WHERE id = NEW.organiser_id AND role IN ('organiser', 'admin');
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION pass_now(p_account bigint, p_show bigint, p_grace interval DEFAULT '00:00:00'::interval) RETURNS TABLE(pass_id bigint, gate text, covers boolean, any_show bigint, starts_at timestamp with time zone)
    LANGUAGE sql STABLE
    AS $$
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

CREATE FUNCTION payment_details(p_show bigint[], p_number bigint[], p_attempt integer[]) RETURNS SETOF payment_detail
    LANGUAGE sql
    AS $$
    SELECT detail.*
      FROM unnest(p_show, p_number, p_attempt) WITH ORDINALITY AS a (show_id, number, attempt, ord),
           LATERAL (SELECT * FROM payment_detail AS d
                     WHERE d.show_id = a.show_id AND d.number = a.number AND d.attempt = a.attempt
                     LIMIT 1) AS detail
  ORDER BY a.ord;
$$;

CREATE FUNCTION price_changes_are_never_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the price of show % at revision % is history and never changes',
                    OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION publish_cancelled_sale() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    PERFORM add_fact(NEW.show_id, NULL, 'show.cancelled', jsonb_build_object('revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE FUNCTION publish_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM add_fact(0, NULL, TG_TABLE_NAME || '.changed',
                     jsonb_build_object(TG_TABLE_NAME || '_id', NEW.id));
    RETURN NULL;
END $$;

CREATE FUNCTION publish_late_payment(p_payment payment, p_is_booked boolean, p_is_over boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_body jsonb := jsonb_build_object('attempt', p_payment.attempt, 'amount_minor', p_payment.amount_minor,
                                       'currency', p_payment.currency);
BEGIN
    IF p_is_over THEN
        PERFORM add_fact(p_payment.show_id, p_payment.number, 'payment.declined',
                         v_body || jsonb_build_object('reason', p_payment.reason, 'code', p_payment.code));
    ELSE
        PERFORM add_fact(p_payment.show_id, p_payment.number, 'payment.late',
                         v_body || jsonb_build_object('booked', p_is_booked));
    END IF;
END $$;

CREATE FUNCTION publish_missed_changes(p_show bigint[], p_revision bigint[], p_cancelled boolean[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM add_fact(sale.show_id, NULL,
                     CASE WHEN sale.cancelled THEN 'show.cancelled' ELSE 'show.changed' END,
                     CASE WHEN sale.cancelled THEN jsonb_build_object('revision', sale.revision)
                          ELSE jsonb_build_object('opens_at', sale.opens_at, 'closes_at', sale.closes_at,
                                                  'revision', sale.revision) END)
       FROM sale JOIN unnest(p_show, p_revision, p_cancelled) AS old (show_id, revision, cancelled)
      USING (show_id)
      WHERE sale.revision <> old.revision AND NOT (sale.cancelled AND old.cancelled);
    UPDATE sale SET map_stale = true, epoch = epoch + 1, marked_at = now() WHERE show_id = ANY (p_show);
END $$;

CREATE FUNCTION publish_prices() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM add_fact(show_id, NULL, 'show.prices_changed', jsonb_build_object(
                'revision', revision, 'why', min(why),
                'prices', jsonb_agg(jsonb_build_object('category', category, 'was_minor', was_minor,
                                                       'price_minor', price_minor) ORDER BY category)))
       FROM changed
   GROUP BY show_id, revision;
    RETURN NULL;
END $$;

CREATE TABLE refund (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    id integer NOT NULL,
    why text NOT NULL,
    seats integer[] DEFAULT '{}'::integer[] NOT NULL,
    seats_minor bigint DEFAULT 0 NOT NULL,
    amount_minor bigint NOT NULL,
    fee_minor bigint DEFAULT 0 NOT NULL,
    tax_minor bigint DEFAULT 0 NOT NULL,
    state refund_state DEFAULT 'requested'::refund_state NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    reference text,
    reason text,
    settled_note text,
    actor_id bigint,
    round integer DEFAULT 1 NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    done_at timestamp with time zone,
    organiser_id bigint,
    CONSTRAINT a_refund_is_of_something CHECK (((amount_minor > 0) OR ((amount_minor = 0) AND (seats <> '{}'::integer[])))),
    CONSTRAINT fee_and_tax_are_part_of_it CHECK (((fee_minor >= 0) AND (tax_minor >= 0) AND ((fee_minor + tax_minor) <= amount_minor))),
    CONSTRAINT requested_is_due CHECK (((state = 'requested'::refund_state) = (due_at IS NOT NULL)))
);

CREATE FUNCTION publish_refund(p_refund refund, p_currency text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF p_refund.amount_minor > 0 THEN
        PERFORM add_fact(p_refund.show_id, p_refund.number, 'refund.' || p_refund.state, jsonb_build_object(
            'attempt', p_refund.attempt, 'refund', p_refund.id, 'why', split_part(p_refund.why, ':', 1),
            'amount_minor', p_refund.amount_minor, 'currency', p_currency,
            'seats', p_refund.seats, 'reason', p_refund.reason));
    END IF;
END $$;

CREATE FUNCTION publish_sale() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    PERFORM add_fact(NEW.show_id, NULL, CASE TG_OP WHEN 'INSERT' THEN 'show.on_sale' ELSE 'show.changed' END,
                     jsonb_build_object('opens_at', NEW.opens_at, 'closes_at', NEW.closes_at,
                                        'revision', NEW.revision));
    RETURN NULL;
END $$;

CREATE FUNCTION publish_to_pods(p_tables text[], p_sale_columns text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION put_rows_back(p_table text, p_copy text, p_column text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('INSERT INTO %I SELECT old.* FROM %I AS old JOIN %I AS copy ON copy.id = old.%I',
                   p_table, 'aside_' || p_table, p_copy, p_column);
END $$;

CREATE FUNCTION put_sale_back(p_published text[]) RETURNS void
    LANGUAGE plpgsql
    AS $_$
BEGIN
    EXECUTE (SELECT format('UPDATE sale SET %s FROM aside_sale AS old WHERE old.show_id = sale.show_id',
                           string_agg(format('%1$I = old.%1$I', attname), ', '))
               FROM pg_attribute
              WHERE attrelid = 'sale'::regclass AND attnum > 0 AND NOT attisdropped
                AND attname <> ALL (p_published));
    PERFORM restore_missed_sales(array_agg(show_id), array_agg(closes_at)) FROM aside_sale;
    PERFORM publish_missed_changes(array_agg(show_id), array_agg(revision), array_agg(cancelled))
       FROM aside_sale;
END $_$;

CREATE FUNCTION raise_numbers(p_tables text[], p_show bigint, p_number integer, p_shares integer) RETURNS void
    LANGUAGE plpgsql
    AS $_$
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
END $_$;

CREATE FUNCTION record_chargeback(p_show bigint, p_number bigint, p_attempt integer, p_reference text, p_state chargeback_state, p_amount bigint, p_reason text, p_suspends boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_payment payment;
    v_before  chargeback;
    v_amount  bigint;
BEGIN
    PERFORM lock_bookings(ARRAY[p_show], ARRAY[p_number]);
    PERFORM lock_payments(ARRAY[p_show], ARRAY[p_number]);
    SELECT * INTO STRICT v_payment FROM payment
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
    SELECT * INTO v_before FROM chargeback
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND reference = p_reference;
    IF v_before.state IS NOT DISTINCT FROM p_state OR v_payment.step NOT IN ('paid', 'returned') THEN
        RETURN false;
    END IF;
    v_amount := coalesce(v_before.amount_minor, least(p_amount, v_payment.amount_minor));
    INSERT INTO chargeback (show_id, number, attempt, reference, state, amount_minor, currency, reason)
    VALUES (p_show, p_number, p_attempt, p_reference, p_state, v_amount, v_payment.currency, p_reason)
        ON CONFLICT (show_id, number, attempt, reference) DO UPDATE
       SET state = excluded.state, reason = excluded.reason, changed_at = now();
    PERFORM add_journal_entry(p_show, p_number, p_attempt, v_payment.currency, 'chargeback ' || p_state,
                              array_agg(account), array_agg(amount))
       FROM (SELECT account, sum(amount)::bigint AS amount
               FROM (SELECT * FROM chargeback_lines(p_state, v_payment.gateway, v_amount)
                      UNION ALL
                     SELECT account, -amount
                       FROM chargeback_lines(v_before.state, v_payment.gateway, v_amount)) AS l
              GROUP BY account) AS moved;
    IF p_suspends THEN
        PERFORM suspend_tickets(p_show, p_number, p_state <> 'won');
    END IF;
    PERFORM add_fact(p_show, p_number, 'payment.disputed', jsonb_build_object(
        'attempt', p_attempt, 'state', p_state, 'reason', p_reason, 'amount_minor', v_amount,
        'currency', v_payment.currency, 'tickets_suspended', p_suspends AND p_state <> 'won'));
    RETURN true;
END $$;

CREATE FUNCTION record_moves(p_show bigint[], p_number bigint[], p_move text, p_actor bigint) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
DECLARE
    v_show   bigint[];
    v_number bigint[];
    v_kind   text[];
    v_has_parties boolean;
BEGIN
    WITH moved AS (
        SELECT show_id, number, booking.state, booking.fence, booking.owner_id, ord,
               booking.claim_id LIKE '%@%' AS has_party
          FROM unnest(p_show, p_number) WITH ORDINALITY AS a (show_id, number, ord)
          JOIN booking USING (show_id, number)
    ), audit AS (
        INSERT INTO booking_move (show_id, number, move, state, fence, actor_id)
        SELECT show_id, number, p_move, state, fence, CASE p_actor WHEN 0 THEN owner_id ELSE p_actor END
          FROM moved
      ORDER BY ord
    )
    SELECT array_agg(show_id ORDER BY ord), array_agg(number ORDER BY ord),
           array_agg('booking.' || state ORDER BY ord), bool_or(has_party)
      INTO v_show, v_number, v_kind, v_has_parties
      FROM moved;
    PERFORM add_facts(v_show, v_number, v_kind);
    IF p_move = 'confirm' THEN
        PERFORM issue_tickets(array_agg(show_id ORDER BY ord, place), array_agg(number ORDER BY ord, place),
                              array_agg(seat ORDER BY ord, place))
           FROM unnest(v_show, v_number) WITH ORDINALITY AS a (show_id, number, ord)
           JOIN booking USING (show_id, number),
                unnest(booking.seats) WITH ORDINALITY AS s (seat, place);
    END IF;
    -- The last locks of all; here, so that no move can miss it.
    IF v_has_parties AND p_move IN ('confirm', 'expire', 'cancel') THEN
        IF p_move = 'confirm' THEN  -- the other moves have counted their owners down
            PERFORM count_holds_down(v_show, v_number);
        END IF;
        PERFORM count_parties_down(v_show, v_number, p_move = 'expire');
    END IF;
END $$;

CREATE FUNCTION record_refund(p_show bigint, p_number bigint, p_attempt integer, p_id integer, p_why text, p_seats integer[], p_seats_minor bigint, p_amount bigint, p_fee bigint, p_tax bigint, p_currency text, p_note text, p_actor bigint, p_due_ms integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_refund refund;
BEGIN
    IF p_attempt IS NOT NULL THEN
        INSERT INTO refund (show_id, number, attempt, id, why, seats, seats_minor, amount_minor, fee_minor,
                            tax_minor, state, note, actor_id, due_at, done_at)
        VALUES (p_show, p_number, p_attempt, p_id, p_why, p_seats, p_seats_minor, p_amount, p_fee, p_tax,
                CASE p_amount WHEN 0 THEN 'done' ELSE 'requested' END::refund_state, p_note, p_actor,
                CASE p_amount WHEN 0 THEN NULL ELSE now() + p_due_ms * interval '1 ms' END,
                CASE p_amount WHEN 0 THEN now() END)
     RETURNING * INTO v_refund;
        PERFORM add_to_refunds(p_show, p_number, p_attempt, p_amount);
        PERFORM add_journal_entry(p_show, p_number, p_attempt, p_currency, 'refund',
                                  ARRAY['organiser', 'fee', 'tax', 'owed'],
                                  ARRAY[p_amount - p_fee - p_tax, p_fee, p_tax, -p_amount]);
        PERFORM publish_refund(v_refund, p_currency);
    END IF;
    IF p_seats <> '{}' THEN
        PERFORM return_seats(p_show, p_number, p_seats, p_actor);
    END IF;
END $$;

CREATE FUNCTION record_time_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO show_time_change (show_id, revision, starts_before, starts_at)
    VALUES (NEW.id, NEW.revision, OLD.starts_at, NEW.starts_at);
    RETURN NULL;
END $$;

CREATE FUNCTION redeem_turn(p_show bigint, p_opening integer, p_number integer) RETURNS TABLE(redeemed_at timestamp with time zone, ends_at timestamp with time zone, way_in text)
    LANGUAGE sql
    AS $$
    UPDATE queue_turn AS turn
       SET state = 'inside', redeemed_at = now(),
           ends_at = now() + (SELECT window_s FROM waiting_room WHERE show_id = p_show) * interval '1 s'
     WHERE turn.show_id = p_show AND turn.opening = p_opening AND turn.number = p_number
       AND turn.state = 'called' AND turn.ends_at > now()
 RETURNING turn.redeemed_at, turn.ends_at, turn.way_in;
$$;

CREATE FUNCTION refresh_visibility(p_event bigint, p_venue bigint, p_show bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_show   bigint[];
    v_hidden boolean[];
BEGIN
    WITH wanted AS (
          SELECT show.id, show.hidden,
                 NOT (show.published AND event.published AND venue.published) AS is_hidden
            FROM show
            JOIN event ON event.id = show.event_id
            JOIN hall ON hall.id = show.hall_id
            JOIN venue ON venue.id = hall.venue_id
           WHERE show.id = ANY (ARRAY(
                     SELECT id FROM show WHERE event_id = p_event
                      UNION ALL
                     SELECT show.id FROM hall JOIN show ON show.hall_id = hall.id
                      WHERE hall.venue_id = p_venue
                      UNION ALL
                     SELECT p_show))
        ORDER BY show.id
             FOR UPDATE OF show
    ), changed AS (
           UPDATE show SET hidden = wanted.is_hidden, updated_at = now()
             FROM wanted
            WHERE show.id = wanted.id AND wanted.hidden <> wanted.is_hidden
        RETURNING show.id, show.hidden
    )
    SELECT array_agg(id ORDER BY id), array_agg(hidden ORDER BY id) INTO v_show, v_hidden FROM changed;
    IF v_show IS NOT NULL THEN
        PERFORM hide_sales(v_show, v_hidden);
    END IF;
    RETURN QUERY SELECT unnest(v_show);
END $$;

CREATE FUNCTION refuse_filed_sale() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the sale of show % is in the archive', NEW.show_id
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;

CREATE FUNCTION refuse_show_elsewhere() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION release_block(p_show bigint, p_number bigint, p_seats integer[], p_actor bigint) RETURNS TABLE(was integer[], released integer[])
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_block booking;
    v_gone  int[];
BEGIN
    PERFORM 1 FROM sale WHERE show_id = p_show FOR SHARE;
    SELECT * INTO v_block FROM booking
     WHERE show_id = p_show AND number = p_number AND state = 'blocked' FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT FROM seat_block AS s
                             WHERE s.show_id = p_show AND s.number = p_number AND s.withdrawn) THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(seat ORDER BY seat), '{}') INTO v_gone
      FROM unnest(v_block.seats) AS seat WHERE p_seats IS NULL OR seat = ANY (p_seats);
    IF cardinality(v_gone) = cardinality(v_block.seats) THEN
        PERFORM cancel_holds(ARRAY[p_show], ARRAY[p_number], ARRAY[v_block.fence], 'blocked', p_actor);
        DELETE FROM seat_block AS s WHERE s.show_id = p_show AND s.number = p_number;
    ELSIF cardinality(v_gone) > 0 THEN
        PERFORM give_up_seats(v_block, v_gone, p_actor);
    END IF;
    RETURN QUERY SELECT v_block.seats, v_gone;
END $$;

CREATE FUNCTION release_seats(p_show bigint[], p_number bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM sale WHERE show_id = ANY (p_show) AND has_waitlist) THEN
        PERFORM reserve_seats(booking.show_id, booking.number, booking.seats)
           FROM booking
           JOIN unnest(p_show, p_number) AS requested (show_id, number) USING (show_id, number);
    END IF;
    DELETE FROM taken_seat
     USING (SELECT booking.show_id, booking.number, unnest(booking.seats) AS seat
              FROM booking
              JOIN unnest(p_show, p_number) AS requested (show_id, number) USING (show_id, number)) AS gone
     WHERE taken_seat.show_id = gone.show_id
       AND taken_seat.seat = gone.seat
       AND taken_seat.number = gone.number;
END $$;

CREATE FUNCTION release_some_seats(p_show bigint, p_number bigint, p_seats integer[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM reserve_seats(p_show, p_number, p_seats);
    DELETE FROM taken_seat WHERE show_id = p_show AND seat = ANY (p_seats) AND number = p_number;
END $$;

CREATE FUNCTION remove_rows_of_show(p_tables text[], p_show bigint) RETURNS void
    LANGUAGE plpgsql
    AS $_$
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
END $_$;

CREATE FUNCTION rename_block(p_show bigint, p_number bigint, p_name text) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE booking SET note = p_name WHERE show_id = p_show AND number = p_number AND state = 'blocked';
$$;

CREATE FUNCTION rename_fact_log() RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE fact_log SET name = 'facts-' || left(replace(gen_random_uuid()::text, '-', ''), 12);
$$;

CREATE TABLE chargeback (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    reference text NOT NULL,
    state chargeback_state NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    reason text NOT NULL,
    opened_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE VIEW payment_for_refund AS
 SELECT show_id,
    number,
    attempt,
    owner_id,
    fence,
    step,
    key,
    gateway,
    reference,
    card,
    currency,
    amount_minor,
    fee_minor,
    tax_minor,
    refunds_minor,
    (EXISTS ( SELECT 1
           FROM chargeback c
          WHERE ((c.show_id = payment.show_id) AND (c.number = payment.number) AND (c.attempt = payment.attempt) AND (c.state <> 'won'::chargeback_state)))) AS is_disputed
   FROM payment;

CREATE VIEW refund_detail AS
 SELECT refund.show_id,
    refund.number,
    refund.attempt,
    refund.id,
    refund.why,
    refund.seats,
    refund.seats_minor,
    refund.amount_minor,
    refund.fee_minor,
    refund.tax_minor,
    refund.state,
    refund.note,
    refund.reference,
    refund.reason,
    refund.settled_note,
    refund.actor_id,
    refund.round,
    refund.tries,
    refund.due_at,
    refund.requested_at,
    refund.done_at,
    refund.organiser_id,
    payment.owner_id,
    payment.key,
    payment.gateway,
    payment.currency,
    payment.reference AS payment_reference
   FROM (refund
     JOIN payment_for_refund payment USING (show_id, number, attempt));

CREATE FUNCTION reopen_refund(p_show bigint, p_number bigint, p_attempt integer, p_id integer, p_reason text) RETURNS SETOF refund_detail
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_refund  refund;
    v_payment payment_for_refund;
BEGIN
    UPDATE refund SET state = 'by_hand', reason = p_reason, done_at = NULL
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id
       AND state = 'done' AND settled_note IS NULL AND amount_minor > 0
 RETURNING * INTO v_refund;
    IF FOUND THEN
        SELECT * INTO STRICT v_payment FROM payment_for_refund
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
        PERFORM add_journal_entry(p_show, p_number, p_attempt, v_payment.currency, 'refund failed',
                                  ARRAY['owed', 'gateway:' || v_payment.gateway],
                                  ARRAY[-v_refund.amount_minor, v_refund.amount_minor]);
        PERFORM publish_refund(v_refund, v_payment.currency);
    END IF;
    RETURN QUERY
    SELECT * FROM refund_detail
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id;
END $$;

CREATE FUNCTION requested_seats(p_show bigint[], p_seats text[], p_number bigint[]) RETURNS TABLE(show_id bigint, seat integer, number bigint, ord integer)
    LANGUAGE sql STABLE
    AS $$
    SELECT a.show_id, seat, a.number, a.ord::int
      FROM unnest(p_show, p_seats, p_number) WITH ORDINALITY AS a (show_id, seats, number, ord),
           unnest(a.seats::int[]) AS seat
     WHERE a.number IS NOT NULL;
$$;

CREATE FUNCTION reserve_seats(p_show bigint, p_number bigint, p_seats integer[]) RETURNS void
    LANGUAGE sql
    AS $$
    WITH moved AS (
        UPDATE taken_seat SET number = 0
         WHERE show_id = p_show AND seat = ANY (p_seats) AND number = p_number
           AND EXISTS (SELECT FROM sale WHERE sale.show_id = p_show AND has_waitlist AND NOT cancelled)
     RETURNING show_id, seat
    )
    INSERT INTO reserved_seat (show_id, seat) SELECT show_id, seat FROM moved;
$$;

CREATE FUNCTION restore_archived_sale() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    PERFORM return_archived_rows(NEW);
    NEW.archived_at := NULL;
    NEW.purged_at := NULL;
    RETURN NEW;
END $$;

CREATE FUNCTION restore_missed_sales(p_show bigint[], p_closes_at timestamp with time zone[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_sale sale;
BEGIN
    FOR v_sale IN
        SELECT sale.* FROM sale JOIN unnest(p_show, p_closes_at) AS old (show_id, closes_at) USING (show_id)
         WHERE sale.archived_at IS NOT NULL AND sale.closes_at <> old.closes_at
    LOOP
        PERFORM return_archived_rows(v_sale);
        UPDATE sale SET archived_at = NULL, purged_at = NULL WHERE show_id = v_sale.show_id;
    END LOOP;
END $$;

CREATE FUNCTION retake_seats(p_booking booking) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_got int;
BEGIN
    PERFORM expire_lapsed(array_agg(t.show_id), array_agg(t.number))
       FROM taken_seat AS t WHERE t.show_id = p_booking.show_id AND t.seat = ANY (p_booking.seats);
    WITH got AS (
        INSERT INTO taken_seat (show_id, seat, number)
        SELECT p_booking.show_id, seat, p_booking.number FROM unnest(p_booking.seats) AS seat ORDER BY seat
            ON CONFLICT DO NOTHING
     RETURNING 1
    )
    SELECT count(*) INTO v_got FROM got;
    IF v_got = cardinality(p_booking.seats) THEN
        UPDATE owner_count SET seats = seats + v_got, holds = holds + (p_booking.claim_id LIKE '%@%')::int
         WHERE show_id = p_booking.show_id AND owner_id = p_booking.owner_id
           AND seats + guest_seats + v_got <= seats_max;
        IF FOUND THEN
            PERFORM count_party_again(p_booking, v_got);
            RETURN true;
        END IF;
    END IF;
    DELETE FROM taken_seat
     WHERE show_id = p_booking.show_id AND seat = ANY (p_booking.seats) AND number = p_booking.number;
    RETURN false;
END $$;

CREATE TABLE sale (
    show_id bigint NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    map_stale boolean DEFAULT true NOT NULL,
    marked_at timestamp with time zone DEFAULT now() NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    closes_at timestamp with time zone NOT NULL,
    cancelled boolean DEFAULT false NOT NULL,
    owner_seats_max integer NOT NULL,
    revision bigint NOT NULL,
    emptied_at timestamp with time zone,
    archived_at timestamp with time zone,
    purged_at timestamp with time zone,
    hidden boolean DEFAULT false NOT NULL,
    has_waitlist boolean DEFAULT false NOT NULL,
    filed_at timestamp with time zone,
    filed_as text,
    CONSTRAINT a_sale_closes_after_it_opens CHECK ((closes_at > opens_at))
);

CREATE FUNCTION return_archived_rows(p_sale sale) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO taken_seat (show_id, seat, number)
    SELECT show_id, unnest(seats), number FROM booking
     WHERE show_id = p_sale.show_id AND state IN ('held', 'paying', 'confirmed', 'blocked')
        ON CONFLICT DO NOTHING;
    INSERT INTO owner_count (show_id, owner_id, seats, seats_max, holds)
    SELECT show_id, owner_id, sum(cardinality(seats)),
           greatest(sum(cardinality(seats)), p_sale.owner_seats_max),
           count(*) FILTER (WHERE state IN ('held', 'paying') AND claim_id LIKE '%@%')
      FROM booking
     WHERE show_id = p_sale.show_id AND state IN ('held', 'paying', 'confirmed') AND counts
  GROUP BY show_id, owner_id
        ON CONFLICT (show_id, owner_id) DO UPDATE
       SET seats = excluded.seats, seats_max = excluded.seats_max, holds = excluded.holds;
    INSERT INTO party_count (show_id, party, seats)
    SELECT show_id, split_part(claim_id, '@', 2), sum(cardinality(seats))
      FROM booking
     WHERE show_id = p_sale.show_id AND claim_id LIKE '%@%'
       AND (state IN ('held', 'paying') OR state = 'confirmed' AND was_free(booking))
  GROUP BY 1, 2
        ON CONFLICT (show_id, party) DO UPDATE SET seats = excluded.seats;
END $$;

CREATE FUNCTION return_cards_over(p_show bigint[], p_number bigint[], p_attempt integer[], p_card text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_new  int[];
    v_over int[];
BEGIN
    SELECT array_agg(ord ORDER BY ord) INTO v_new
      FROM unnest(p_show, p_number, p_attempt, p_card) WITH ORDINALITY
           AS a (show_id, number, attempt, card, ord)
      JOIN payment AS p USING (show_id, number, attempt)
      JOIN payable_booking AS b USING (show_id, number)
      JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
     WHERE a.card <> '' AND p.card IS NULL AND b.state = 'paying' AND b.fence = p.fence;
    IF v_new IS NULL THEN
        RETURN;
    END IF;
    v_over := cards_over(p_show, p_number,
                         ARRAY(SELECT (SELECT owner_id FROM payable_booking AS b
                                        WHERE b.show_id = a.show_id AND b.number = a.number)
                                 FROM unnest(p_show, p_number) WITH ORDINALITY AS a (show_id, number, ord)
                             ORDER BY ord), p_card, v_new);
    IF v_over IS NOT NULL THEN
        UPDATE payment AS p SET code = 'card_limit', reason = card_limit_reason()
          FROM unnest(v_over) AS i
         WHERE p.show_id = p_show[i] AND p.number = p_number[i] AND p.attempt = p_attempt[i];
        PERFORM return_to_held(array_agg(p.show_id), array_agg(p.number), array_agg(p.fence),
                               array_agg(p.hold_ends_at))
           FROM unnest(v_over) AS i
           JOIN payment AS p ON p.show_id = p_show[i] AND p.number = p_number[i] AND p.attempt = p_attempt[i];
    END IF;
END $$;

CREATE FUNCTION return_payment(p_show bigint, p_number bigint, p_attempt integer, p_why text, p_amount bigint, p_currency text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_refund refund;
BEGIN
    INSERT INTO refund (show_id, number, attempt, id, why, amount_minor)
    SELECT p_show, p_number, p_attempt, coalesce(max(id), 0) + 1, p_why, p_amount
      FROM refund
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt
 RETURNING * INTO v_refund;
    PERFORM publish_refund(v_refund, p_currency);
END $$;

CREATE FUNCTION return_seats(p_show bigint, p_number bigint, p_seats integer[], p_actor bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_booking booking;
BEGIN
    SELECT * INTO STRICT v_booking FROM booking WHERE show_id = p_show AND number = p_number;
    IF NOT p_seats @> v_booking.seats THEN
        PERFORM give_up_seats(v_booking, p_seats, p_actor);
        RETURN;
    END IF;
    UPDATE booking SET state = 'refunded' WHERE show_id = p_show AND number = p_number;
    PERFORM void_tickets(p_show, p_number, v_booking.seats);
    PERFORM release_some_seats(p_show, p_number, v_booking.seats);
    PERFORM record_moves(ARRAY[p_show], ARRAY[p_number], 'refund', p_actor);
END $$;

CREATE FUNCTION return_to_held(p_show bigint[], p_number bigint[], p_fence bigint[], p_ends_at timestamp with time zone[]) RETURNS TABLE(show_id bigint, number bigint, fence bigint, seats integer)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_show   bigint[];
    v_number bigint[];
BEGIN
    WITH moved AS (
        UPDATE booking SET state = 'held', expires_at = a.ends_at
          FROM unnest(p_show, p_number, p_fence, p_ends_at) AS a (show_id, number, fence, ends_at)
         WHERE booking.show_id = a.show_id AND booking.number = a.number
           AND booking.state = 'paying' AND booking.fence = a.fence
     RETURNING booking.show_id, booking.number
    )
    SELECT array_agg(moved.show_id), array_agg(moved.number) INTO v_show, v_number FROM moved;
    IF v_show IS NULL THEN
        RETURN;
    END IF;
    PERFORM record_moves(v_show, v_number, 'decline', 0);
    RETURN QUERY
    SELECT b.show_id, b.number, b.fence, cardinality(b.seats)
      FROM unnest(v_show, v_number) AS a (show_id, number)
      JOIN booking AS b USING (show_id, number);
END $$;

CREATE FUNCTION sale_verdict(p_sale sale, p_revision bigint, p_is_done boolean, p_by_ledger boolean) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT CASE WHEN (p_sale).show_id IS NULL OR (p_sale).cancelled OR (p_sale).hidden
                  OR now() < (p_sale).opens_at - interval '500 ms'
                  OR now() >= (p_sale).closes_at + interval '500 ms' THEN 'closed'
                WHEN (p_sale).revision <> p_revision THEN 'stale'
                WHEN p_by_ledger AND NOT (p_sale).map_stale THEN 'unmarked'
                WHEN p_is_done THEN 'confirmed'
                ELSE 'held' END;
$$;

CREATE FUNCTION sale_verdict(p_sale sale, p_revision bigint, p_amount bigint, p_by_ledger boolean) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN sale_verdict(p_sale, p_revision, p_amount = 0, p_by_ledger);
END $$;

CREATE FUNCTION seats_of_card(p_show bigint, p_card text, p_number bigint) RETURNS integer
    LANGUAGE sql
    AS $$
    SELECT coalesce(sum(cardinality(booking.seats)), 0)::int
      FROM payment JOIN payable_booking AS booking USING (show_id, number)
     WHERE payment.show_id = p_show AND payment.card = p_card AND payment.number <> p_number
       AND ((booking.state = 'confirmed' AND payment.step = 'paid')
            OR (booking.state = 'paying' AND payment.fence = booking.fence
                AND payment.step IN ('charge', 'look_up', 'call_off')));
$$;

CREATE FUNCTION set_aside(p_tables text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY p_tables LOOP
        IF to_regclass('aside_' || v_table) IS NULL THEN
            EXECUTE format('CREATE TABLE %I AS TABLE %I', 'aside_' || v_table, v_table);
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION set_block_release(p_show bigint, p_number bigint, p_release_at timestamp with time zone, p_hours_before integer) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO seat_block (show_id, number, release_at, hours_before)
         VALUES (p_show, p_number, p_release_at, p_hours_before)
    ON CONFLICT (show_id, number) DO UPDATE
            SET release_at = excluded.release_at, hours_before = excluded.hours_before;
$$;

CREATE FUNCTION set_refund_organiser() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.organiser_id := (SELECT organiser_id FROM show_organiser WHERE show_id = NEW.show_id);
    RETURN NEW;
END $$;

CREATE FUNCTION set_waitlist(p_show bigint, p_has boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE sale
       SET has_waitlist = p_has, epoch = epoch + 1, map_stale = true, marked_at = now()
     WHERE show_id = p_show AND has_waitlist <> p_has;
    RETURN FOUND;
END $$;

CREATE FUNCTION settle_late_payment(p_show bigint, p_number bigint, p_attempt integer, p_may_book boolean) RETURNS SETOF payment_detail
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_payment payment;
    v_fence   bigint;
    v_is_over boolean;
BEGIN
    PERFORM share_sales(ARRAY[p_show]);
    PERFORM lock_bookings(ARRAY[p_show], ARRAY[p_number]);
    SELECT * INTO STRICT v_payment FROM payment
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt FOR UPDATE;
    IF v_payment.step = 'late' THEN
        v_is_over := coalesce(v_payment.code = 'card_limit', false) OR is_card_over(v_payment);
        IF p_may_book AND NOT v_is_over THEN
            v_fence := confirm_late(p_show, p_number, v_payment.amount_minor);
        END IF;
        UPDATE payment SET step = CASE WHEN v_fence IS NULL THEN 'returned' ELSE 'paid' END::payment_step,
                           code = CASE WHEN v_is_over THEN 'card_limit' ELSE code END,
                           reason = CASE WHEN v_is_over THEN card_limit_reason() ELSE reason END,
                           fence = coalesce(v_fence, fence),
                           refunds_minor = CASE WHEN v_fence IS NULL THEN amount_minor ELSE 0 END,
                           due_at = NULL, ended_at = now()
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt
     RETURNING * INTO v_payment;
        IF v_fence IS NOT NULL THEN
            PERFORM add_journal_entry(
                p_show, p_number, p_attempt, v_payment.currency, 'late booking',
                array_agg(CASE WHEN l.amount > 0 THEN 'owed' ELSE l.account END), array_agg(l.amount))
               FROM split_payment('', v_payment.amount_minor, v_payment.fee_minor, v_payment.tax_minor) AS l;
        ELSE
            PERFORM return_payment(p_show, p_number, p_attempt,
                                   CASE WHEN v_is_over THEN 'card' ELSE 'late' END,
                                   v_payment.amount_minor, v_payment.currency);
            PERFORM fail_expired(p_show, p_number);
        END IF;
        PERFORM publish_late_payment(v_payment, v_fence IS NOT NULL, v_is_over);
    END IF;
    RETURN QUERY
    SELECT * FROM payment_detail WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
END $$;

CREATE FUNCTION settle_refund(p_show bigint, p_number bigint, p_attempt integer, p_id integer, p_state refund_state, p_reference text, p_reason text, p_note text) RETURNS SETOF refund_detail
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_refund  refund;
    v_payment payment_for_refund;
BEGIN
    UPDATE refund
       SET state = p_state, reference = coalesce(p_reference, reference), reason = coalesce(p_reason, reason),
           settled_note = p_note, due_at = NULL, done_at = CASE p_state WHEN 'done' THEN now() END
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id
       AND state = CASE WHEN p_note IS NULL THEN 'requested' ELSE 'by_hand' END::refund_state
 RETURNING * INTO v_refund;
    IF FOUND THEN
        SELECT * INTO STRICT v_payment FROM payment_for_refund
         WHERE show_id = p_show AND number = p_number AND attempt = p_attempt;
        IF p_state = 'done' THEN
            PERFORM add_journal_entry(
                p_show, p_number, p_attempt, v_payment.currency, 'refund done',
                ARRAY['owed', CASE WHEN p_note IS NULL THEN 'gateway:' || v_payment.gateway
                                   ELSE 'by_hand' END],
                ARRAY[v_refund.amount_minor, -v_refund.amount_minor]);
        END IF;
        PERFORM publish_refund(v_refund, v_payment.currency);
    END IF;
    RETURN QUERY
    SELECT * FROM refund_detail
     WHERE show_id = p_show AND number = p_number AND attempt = p_attempt AND id = p_id;
END $$;

CREATE FUNCTION share_numbers(p_tables text[], p_number integer, p_shares integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION share_sales(p_show bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1 FROM sale WHERE show_id = ANY (p_show) ORDER BY show_id FOR SHARE;
END $$;

CREATE FUNCTION show_is_here(p_show bigint) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT NOT EXISTS (SELECT FROM shows_elsewhere(ARRAY[p_show]));
$$;

CREATE FUNCTION shows_elsewhere(p_shows bigint[]) RETURNS TABLE(show_id bigint)
    LANGUAGE sql STABLE
    AS $$
    SELECT wanted.show_id
      FROM unnest(p_shows) AS wanted (show_id)
      LEFT JOIN show_pod AS directory ON directory.show_id = wanted.show_id
      LEFT JOIN show_copy AS copy ON copy.show_id = wanted.show_id
     WHERE coalesce(directory.pod, '') <> (SELECT name FROM pod_identity)
        OR coalesce(directory.epoch, 1) <> coalesce(copy.epoch, 1);
$$;

CREATE FUNCTION split_payment(p_gateway text, p_amount bigint, p_fee bigint, p_tax bigint) RETURNS TABLE(account text, amount bigint)
    LANGUAGE sql IMMUTABLE
    AS $$
    VALUES ('gateway:' || p_gateway, p_amount), ('organiser', -(p_amount - p_fee - p_tax)),
           ('fee', -p_fee), ('tax', -p_tax);
$$;

CREATE FUNCTION start_outcomes(p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_started integer[], p_over integer[]) RETURNS TABLE(outcome text, hash bigint, detail payment_detail)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT started.outcome, started.hash, started.detail
      FROM start_outcomes(p_show, p_number, p_owner, p_request, p_started, NULL, p_over) AS started;
END $$;

CREATE FUNCTION start_outcomes(p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_started integer[], p_ask integer[], p_over integer[]) RETURNS TABLE(outcome text, hash bigint, card_max integer, detail payment_detail)
    LANGUAGE sql
    AS $$
    SELECT CASE WHEN a.ord = ANY (p_started) THEN 'charge'
                WHEN a.ord = ANY (p_ask) THEN 'which_card'
                WHEN a.ord = ANY (p_over) THEN 'card'
                WHEN same.attempt IS NOT NULL THEN 'same'
                WHEN booking.owner_id IS DISTINCT FROM a.owner_id THEN 'none'
                -- Refused above was another request for it: this one is not decided yet.
                WHEN booking.state = 'held' AND booking.expires_at > now()
                     AND count(*) OVER (PARTITION BY a.show_id, a.number) > 1 THEN 'paying'
                ELSE booking.state::text END,
           same.body_hash, card_limit.card_seats_max, latest.detail
      FROM unnest(p_show, p_number, p_owner, p_request) WITH ORDINALITY
           AS a (show_id, number, owner_id, request_id, ord)
      LEFT JOIN payable_booking AS booking ON booking.show_id = a.show_id AND booking.number = a.number
      LEFT JOIN card_limit ON card_limit.show_id = a.show_id AND card_limit.revision = booking.revision
      LEFT JOIN LATERAL (SELECT payment.number, payment.attempt, payment.body_hash FROM payment
                          WHERE payment.owner_id = a.owner_id AND payment.show_id = a.show_id
                            AND payment.request_id = a.request_id
                            AND payment.step NOT IN ('declined', 'called_off', 'expired')
                          LIMIT 1) AS same ON true
      LEFT JOIN LATERAL (SELECT d AS detail FROM payment_detail AS d
                          WHERE d.show_id = a.show_id AND d.number = coalesce(same.number, a.number)
                            AND d.attempt = coalesce(same.attempt, d.attempt)
                       ORDER BY d.attempt DESC LIMIT 1) AS latest ON true
  ORDER BY a.ord;
$$;

CREATE FUNCTION start_payments(p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_key text[], p_method text[], p_return text[], p_card text[], p_gateway text, p_buffer_s integer, p_lease_ms integer) RETURNS TABLE(outcome text, hash bigint, card_max integer, detail payment_detail)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_fit     int[];
    v_ask     int[];
    v_over    int[];
    v_started int[];
BEGIN
    PERFORM lock_bookings(p_show, p_number);
    -- Two requests for one booking, or two with one request id, in the same batch: the first one wins.
    SELECT array_agg(ord) INTO v_fit
      FROM (SELECT *, row_number() OVER (PARTITION BY show_id, number ORDER BY ord) AS nth,
                   row_number() OVER (PARTITION BY owner_id, show_id, request_id ORDER BY ord) AS nth_of_key
              FROM unnest(p_show, p_number, p_owner, p_request) WITH ORDINALITY
                   AS a (show_id, number, owner_id, request_id, ord)) AS requested
     WHERE nth = 1 AND nth_of_key = 1
       AND NOT EXISTS (SELECT 1 FROM payment
                        WHERE payment.owner_id = requested.owner_id AND payment.show_id = requested.show_id
                          AND payment.request_id = requested.request_id
                          AND payment.step NOT IN ('declined', 'called_off', 'expired'));
    SELECT array_agg(i) FILTER (WHERE p_method[i] <> '' AND p_card[i] IS NULL) INTO v_ask
      FROM unnest(v_fit) AS i
     CROSS JOIN LATERAL booking_by_key(p_show[i], p_number[i]) AS b
      JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision
     WHERE b.owner_id = p_owner[i] AND b.state = 'held' AND b.expires_at > now();
    v_over := cards_over(p_show, p_number, p_owner, p_card, v_fit);
    v_fit := ARRAY(SELECT i FROM unnest(v_fit) AS i
                    WHERE i <> ALL (coalesce(v_ask, '{}')) AND i <> ALL (coalesce(v_over, '{}')));

    -- MATERIALIZED: the bookings move once, whatever the plan.
    WITH begun AS MATERIALIZED (
        SELECT *
          FROM begin_paying(ARRAY(SELECT p_show[i] FROM unnest(v_fit) AS i),
                            ARRAY(SELECT p_number[i] FROM unnest(v_fit) AS i),
                            ARRAY(SELECT p_owner[i] FROM unnest(v_fit) AS i), p_buffer_s)
    ), moved AS (
        SELECT begun.*, v_fit[begun.place] AS i FROM begun
    ), started AS (
        INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway,
                             method, return_url, step, amount_minor, currency, card,
                             hold_ends_at, deadline_at, due_at)
        SELECT show_id, number, n.attempt, p_owner[i], fence, p_request[i], p_hash[i],
               p_key[i] || '_' || n.attempt, p_gateway, p_method[i], p_return[i], 'charge', amount_minor,
               currency, nullif(p_card[i], ''), hold_ends_at, deadline_at,
               now() + p_lease_ms * interval '1 ms'
          FROM moved,
               LATERAL (SELECT coalesce(max(p.attempt), 0) + 1 AS attempt FROM payment AS p
                         WHERE p.show_id = moved.show_id AND p.number = moved.number) AS n
    )
    SELECT array_agg(i) INTO v_started FROM moved;
    RETURN QUERY
    SELECT * FROM start_outcomes(p_show, p_number, p_owner, p_request, v_started, v_ask, v_over);
END $$;

CREATE FUNCTION start_payments(p_show bigint[], p_number bigint[], p_owner bigint[], p_request text[], p_hash bigint[], p_key text[], p_method text[], p_return text[], p_card text[], p_card_max integer[], p_gateway text, p_buffer_s integer, p_lease_ms integer) RETURNS TABLE(outcome text, hash bigint, detail payment_detail)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT started.outcome, started.hash, started.detail
      FROM start_payments(p_show, p_number, p_owner, p_request, p_hash, p_key, p_method, p_return,
                          ARRAY(SELECT coalesce(card, '') FROM unnest(p_card) WITH ORDINALITY AS a (card, ord)
                              ORDER BY ord),
                          p_gateway, p_buffer_s, p_lease_ms) AS started;
END $$;

CREATE FUNCTION subscribe_to_home(p_tables text[], p_home text, p_slot text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION suspend_tickets(p_show bigint, p_number bigint, p_is_suspended boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lock_tickets(ARRAY[p_show], ARRAY[p_number]);
    UPDATE ticket SET suspended_at = CASE WHEN p_is_suspended THEN coalesce(suspended_at, now()) END
     WHERE show_id = p_show AND number = p_number;
END $$;

CREATE FUNCTION take_due_payments(p_gateway text, p_limit integer, p_lease_ms integer, p_per_s integer) RETURNS TABLE(show_id bigint, number bigint, attempt integer)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    v_polls int;
BEGIN
    SELECT count(*) INTO v_polls
      FROM (SELECT 1 FROM payment
             WHERE due_at <= now() AND (step = 'watch' OR (step = 'look_up' AND deadline_at > now()))
               AND show_is_here(show_id)
             LIMIT p_limit) AS due;
    IF v_polls > 0 THEN
        v_polls := take_gateway_looks(p_gateway, v_polls, p_per_s);
    END IF;
    RETURN QUERY
    WITH urgent AS (
          SELECT show_id, number, attempt
            FROM payment
           WHERE due_at <= now() AND NOT (step = 'watch' OR (step = 'look_up' AND deadline_at > now()))
             AND show_is_here(show_id)
        ORDER BY due_at
           LIMIT p_limit
             FOR UPDATE SKIP LOCKED
    ), polls AS (
          SELECT show_id, number, attempt
            FROM payment
           WHERE due_at <= now() AND (step = 'watch' OR (step = 'look_up' AND deadline_at > now()))
             AND show_is_here(show_id)
        ORDER BY due_at
           LIMIT v_polls
             FOR UPDATE SKIP LOCKED
    ), due AS (
        SELECT * FROM urgent UNION ALL SELECT * FROM polls LIMIT p_limit
    )
       UPDATE payment
          SET turn = turn + 1, tries = tries + 1, due_at = now() + p_lease_ms * interval '1 ms'
         FROM due
        WHERE payment.show_id = due.show_id AND payment.number = due.number
          AND payment.attempt = due.attempt
    RETURNING payment.show_id, payment.number, payment.attempt;
END $$;

CREATE FUNCTION take_gateway_looks(p_gateway text, p_wanted integer, p_per_s integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_full_at timestamptz;
    v_granted int;
BEGIN
    INSERT INTO gateway_budget (gateway, full_at) VALUES (p_gateway, now()) ON CONFLICT DO NOTHING;
    SELECT greatest(full_at, now()) INTO v_full_at FROM gateway_budget WHERE gateway = p_gateway FOR UPDATE;
    v_granted := greatest(0, least(p_wanted, floor(
        round(extract(epoch FROM now() + interval '1 s' - v_full_at) * p_per_s, 6))::int));
    IF v_granted > 0 THEN
        UPDATE gateway_budget SET full_at = v_full_at + v_granted * (interval '1 s' / p_per_s)
         WHERE gateway = p_gateway;
    END IF;
    RETURN v_granted;
END $$;

CREATE FUNCTION terms_are_never_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'terms of show % at revision % were promised to buyers and never change',
                    OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION trace_of_fact(p_fact bigint) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT trace FROM outbox WHERE id = p_fact;
$$;

CREATE FUNCTION undo_check_in(p_account bigint, p_show bigint, p_id bigint, p_scan text, p_within interval) RETURNS TABLE(check_in_id bigint, gate text, scanned_at timestamp with time zone, seat integer, number bigint)
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION unfile_sale(p_show bigint) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE sale SET filed_at = NULL, filed_as = NULL WHERE show_id = p_show;
$$;

CREATE FUNCTION unmark_ticket(p_show bigint, p_serial bigint, p_is_inside boolean, p_is_used boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE ticket
       SET is_inside = p_is_inside, used_at = CASE WHEN p_is_used THEN used_at END
     WHERE show_id = p_show AND serial = p_serial;
END $$;

CREATE FUNCTION unreserve_seats(p_show bigint, p_seats integer[]) RETURNS void
    LANGUAGE sql
    AS $$
    DELETE FROM reserved_seat WHERE show_id = p_show AND seat = ANY (p_seats);
    DELETE FROM taken_seat WHERE show_id = p_show AND seat = ANY (p_seats) AND number = 0;
$$;

CREATE FUNCTION void_tickets(p_show bigint, p_number bigint, p_seats integer[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE ticket SET voided_at = now()
     WHERE show_id = p_show AND number = p_number AND seat = ANY (p_seats)
       AND voided_at IS NULL AND used_at IS NULL;
END $$;

CREATE FUNCTION was_free(p_booking booking) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT p_booking.amount_minor = 0
           AND NOT EXISTS (SELECT FROM booking_move AS m
                            WHERE m.show_id = p_booking.show_id AND m.number = p_booking.number
                              AND m.move = 'pay');
$$;

CREATE FUNCTION withdraw_block(p_show bigint, p_number bigint) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO seat_block (show_id, number, withdrawn) VALUES (p_show, p_number, true);
$$;

CREATE TABLE account (
    id bigint NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password_hash text,
    role account_role DEFAULT 'fan'::account_role NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    locale text DEFAULT 'en'::text NOT NULL,
    contact_email text,
    guest_of bigint,
    verified_at timestamp with time zone,
    contact_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    banned_at timestamp with time zone,
    erased_at timestamp with time zone,
    CONSTRAINT a_contact_is_short CHECK (((char_length(contact_email) >= 3) AND (char_length(contact_email) <= 254))),
    CONSTRAINT a_locale_is_a_short_name CHECK ((locale ~ '^[a-z]{2,3}$'::text)),
    CONSTRAINT an_account_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120))),
    CONSTRAINT an_email_is_lower_case CHECK ((email = lower(email))),
    CONSTRAINT an_email_is_short CHECK (((char_length(email) >= 3) AND (char_length(email) <= 254)))
);

ALTER TABLE account ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME account_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW account_profile AS
 SELECT id,
    email,
    name,
    role,
    locale,
    contact_email,
    contact_at,
    ((verified_at IS NOT NULL) OR (EXISTS ( SELECT
           FROM account later
          WHERE ((later.id = account.guest_of) AND (later.verified_at IS NOT NULL) AND (later.email = account.contact_email))))) AS is_verified,
    ((banned_at IS NOT NULL) OR (erased_at IS NOT NULL)) AS is_shut,
    ((password_hash IS NULL) AND (email ~~ '%@guest.invalid'::text)) AS is_guest,
    COALESCE(contact_email,
        CASE
            WHEN (email !~~ '%@guest.invalid'::text) THEN email
            ELSE NULL::text
        END) AS reached_at
   FROM account;

CREATE TABLE passkey (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    credential_id bytea NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    transports text[] NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone
);

CREATE TABLE totp (
    account_id bigint NOT NULL,
    secret bytea NOT NULL,
    last_step bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    confirmed_at timestamp with time zone
);

CREATE VIEW account_with_second_factor AS
 SELECT totp.account_id
   FROM totp
  WHERE (totp.confirmed_at IS NOT NULL)
UNION
 SELECT passkey.account_id
   FROM passkey;

CREATE TABLE api_key (
    id bigint NOT NULL,
    organisation_id bigint NOT NULL,
    name text NOT NULL,
    rights text[] NOT NULL,
    created_by bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT a_key_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120))),
    CONSTRAINT known_rights CHECK ((rights <@ ARRAY['catalogue'::text, 'prices'::text, 'counter'::text, 'refund'::text, 'money'::text, 'door'::text, 'messages'::text, 'settings'::text]))
);

ALTER TABLE api_key ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME api_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE api_key_secret (
    hash bytea NOT NULL,
    key_id bigint NOT NULL,
    prefix text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ends_at timestamp with time zone,
    first_used_at timestamp with time zone
);

CREATE VIEW archived_sale AS
 SELECT show_id,
    archived_at
   FROM sale
  WHERE (archived_at IS NOT NULL);

CREATE TABLE audit_chain (
    chain bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    hash bytea DEFAULT '\x'::bytea NOT NULL,
    at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);

CREATE TABLE backup_made (
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    made_by text NOT NULL
);

CREATE VIEW booking_for_fact AS
 SELECT show_id,
    number,
    owner_id,
    seats,
    prices_minor,
    amount_minor,
    currency,
    note,
    expires_at,
    (NOT counts) AS is_block
   FROM booking;

CREATE TABLE booking_move (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    id bigint NOT NULL,
    move text NOT NULL,
    state booking_state NOT NULL,
    fence bigint NOT NULL,
    actor_id bigint,
    at timestamp with time zone DEFAULT now() NOT NULL,
    seats integer[]
);

CREATE VIEW booking_history AS
 SELECT show_id,
    number,
    id,
    move,
    state,
    actor_id,
    at
   FROM booking_move;

ALTER TABLE booking_move ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME booking_move_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue_place (
    show_id bigint NOT NULL,
    account_id bigint NOT NULL,
    number integer NOT NULL,
    opening integer NOT NULL,
    joined_s integer NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    rejoined smallint DEFAULT 0 NOT NULL,
    CONSTRAINT an_earlier_place_has_ended CHECK (((rejoined = 0) OR (state <> 0)))
);

CREATE TABLE queue_turn (
    show_id bigint NOT NULL,
    opening integer NOT NULL,
    number integer NOT NULL,
    call smallint DEFAULT 1 NOT NULL,
    "position" integer NOT NULL,
    state text DEFAULT 'called'::text NOT NULL,
    inside_max integer NOT NULL,
    called_at timestamp with time zone DEFAULT now() NOT NULL,
    redeemed_at timestamp with time zone,
    ends_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    freed_at timestamp with time zone,
    recall_at integer,
    way_in text DEFAULT 'queue'::text NOT NULL,
    CONSTRAINT inside_until_freed CHECK (((freed_at IS NULL) = (state = ANY (ARRAY['called'::text, 'inside'::text, 'ending'::text])))),
    CONSTRAINT known_turn_states CHECK ((state = ANY (ARRAY['called'::text, 'inside'::text, 'ending'::text, 'missed'::text, 'over'::text])))
);

CREATE VIEW called_person AS
 SELECT turn.show_id,
    turn.opening,
    place.account_id,
    turn.called_at,
    turn.ends_at
   FROM (queue_turn turn
     JOIN queue_place place USING (show_id, opening, number))
  WHERE ((turn.state = 'called'::text) AND (turn.freed_at IS NULL) AND (turn.ends_at > now()) AND (place.state = 0));

CREATE VIEW cancelled_sale AS
 SELECT show_id
   FROM sale
  WHERE cancelled;

CREATE TABLE show_terms (
    show_id bigint NOT NULL,
    revision bigint NOT NULL,
    fee_minor bigint NOT NULL,
    fee_bp integer NOT NULL,
    tax_bp integer NOT NULL,
    refund_policy jsonb NOT NULL,
    card_seats_max integer,
    CONSTRAINT a_card_may_buy_a_seat CHECK (((card_seats_max >= 1) AND (card_seats_max <= 1000))),
    CONSTRAINT a_fee_is_at_most_its_base CHECK (((fee_bp >= 0) AND (fee_bp <= 10000))),
    CONSTRAINT a_fee_is_not_negative CHECK (((fee_minor >= 0) AND (fee_minor <= 1000000000))),
    CONSTRAINT a_policy_has_steps CHECK ((jsonb_typeof((refund_policy -> 'steps'::text)) = 'array'::text)),
    CONSTRAINT a_tax_is_at_most_what_it_taxes CHECK (((tax_bp >= 0) AND (tax_bp <= 10000)))
);

CREATE VIEW card_limit AS
 SELECT show_id,
    revision,
    card_seats_max
   FROM show_terms
  WHERE (card_seats_max IS NOT NULL);

CREATE TABLE check_in (
    show_id bigint NOT NULL,
    id bigint NOT NULL,
    pass_id bigint NOT NULL,
    scan_id text NOT NULL,
    gate text NOT NULL,
    way text NOT NULL,
    verdict text NOT NULL,
    serial bigint,
    edition integer,
    undoes bigint,
    by_hand boolean DEFAULT false NOT NULL,
    offline boolean DEFAULT false NOT NULL,
    scanned_at timestamp with time zone NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT known_verdicts CHECK ((verdict = ANY (ARRAY['admitted'::text, 'left'::text, 'undone'::text, 'unknown'::text, 'wrong_show'::text, 'void'::text, 'transferred'::text, 'used'::text, 'stale_code'::text, 'live_code_needed'::text, 'not_inside'::text, 'lost_in_restore'::text, 'revoked_code'::text]))),
    CONSTRAINT known_ways CHECK ((way = ANY (ARRAY['entry'::text, 'exit'::text, 'undo'::text])))
);

CREATE TABLE check_in_conflict (
    show_id bigint NOT NULL,
    id bigint NOT NULL,
    serial bigint NOT NULL,
    why text NOT NULL,
    first_id bigint,
    second_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT reasons_of_a_conflict CHECK ((why = ANY (ARRAY['used'::text, 'void'::text, 'transferred'::text, 'unknown'::text])))
);

ALTER TABLE check_in_conflict ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME check_in_conflict_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE check_in ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME check_in_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE city (
    id bigint NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    country text NOT NULL,
    timezone text NOT NULL,
    lat double precision NOT NULL,
    lon double precision NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_city_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120))),
    CONSTRAINT a_city_has_a_short_slug CHECK (((char_length(slug) >= 1) AND (char_length(slug) <= 60))),
    CONSTRAINT a_city_is_on_earth CHECK (((lat >= ('-90'::integer)::double precision) AND (lat <= (90)::double precision) AND (lon >= ('-180'::integer)::double precision) AND (lon <= (180)::double precision))),
    CONSTRAINT a_country_is_two_letters CHECK ((country ~ '^[A-Z]{2}$'::text))
);

ALTER TABLE city ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME city_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE consent (
    account_id bigint NOT NULL,
    organisation_id bigint NOT NULL,
    kind text NOT NULL,
    version integer NOT NULL,
    show_id bigint DEFAULT 0 NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    agreed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE VIEW consent_of_person AS
 SELECT account_id,
    organisation_id,
    kind,
    version,
    show_id,
    number,
    agreed_at
   FROM consent;

CREATE TABLE consumed_fact (
    group_name text NOT NULL,
    fact_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE consumer_group (
    name text NOT NULL,
    checkpoint bigint NOT NULL,
    reader text DEFAULT ''::text NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    moved_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE event (
    id bigint NOT NULL,
    organiser_id bigint NOT NULL,
    kind text NOT NULL,
    title text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    language text DEFAULT ''::text NOT NULL,
    genre text DEFAULT ''::text NOT NULL,
    rating numeric(3,1),
    duration_min integer NOT NULL,
    poster text DEFAULT ''::text NOT NULL,
    people text[] DEFAULT '{}'::text[] NOT NULL,
    featured boolean DEFAULT false NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    refund_policy jsonb DEFAULT '{"steps": [{"percent": 100, "hours_before": 24}], "keep_fee": false}'::jsonb NOT NULL,
    poster_alt text DEFAULT ''::text NOT NULL,
    published boolean DEFAULT true NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT a_description_is_read_in_minutes CHECK ((char_length(description) <= 4000)),
    CONSTRAINT a_poster_is_described_in_a_sentence CHECK ((char_length(poster_alt) <= 300)),
    CONSTRAINT a_rating_is_out_of_ten CHECK (((rating >= (0)::numeric) AND (rating <= (10)::numeric))),
    CONSTRAINT an_event_has_a_title CHECK (((char_length(title) >= 1) AND (char_length(title) <= 160))),
    CONSTRAINT an_event_is_a_film_a_concert_or_a_match CHECK ((kind = ANY (ARRAY['film'::text, 'concert'::text, 'match'::text]))),
    CONSTRAINT an_event_lasts_a_day_at_most CHECK (((duration_min >= 1) AND (duration_min <= 1440)))
);

CREATE TABLE hall (
    id bigint NOT NULL,
    venue_id bigint NOT NULL,
    name text NOT NULL,
    layout_hash text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT a_hall_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120)))
);

CREATE TABLE layout (
    hash text NOT NULL,
    name text NOT NULL,
    body jsonb NOT NULL,
    seats integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_layout_has_seats CHECK ((seats > 0))
);

CREATE TABLE price (
    show_id bigint NOT NULL,
    category text NOT NULL,
    price_minor bigint NOT NULL,
    CONSTRAINT a_price_is_not_negative CHECK (((price_minor >= 0) AND (price_minor <= 1000000000)))
);

CREATE TABLE queue (
    show_id bigint NOT NULL,
    opening integer NOT NULL,
    state text DEFAULT 'scheduled'::text NOT NULL,
    opened_by text DEFAULT ''::text NOT NULL,
    seed bytea,
    commitment bytea,
    beacon text DEFAULT ''::text NOT NULL,
    beacon_value text,
    key bytea,
    entrants integer,
    joined integer DEFAULT 0 NOT NULL,
    serving integer DEFAULT 0 NOT NULL,
    rate real DEFAULT 0 NOT NULL,
    opened_at timestamp with time zone,
    drawn_at timestamp with time zone,
    called_at timestamp with time zone,
    ended_at timestamp with time zone,
    held_back_by text DEFAULT ''::text NOT NULL,
    beacon_until timestamp with time zone,
    CONSTRAINT a_drawn_order_has_its_inputs CHECK (((key IS NULL) OR ((seed IS NOT NULL) AND (entrants IS NOT NULL)))),
    CONSTRAINT known_room_states CHECK ((state = ANY (ARRAY['scheduled'::text, 'open'::text, 'admitting'::text, 'overridden'::text, 'drained'::text, 'closed'::text]))),
    CONSTRAINT people_join_before_they_are_called CHECK ((serving <= joined))
)
WITH (fillfactor='50');

CREATE TABLE show (
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    hall_id bigint NOT NULL,
    layout_hash text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    closes_at timestamp with time zone NOT NULL,
    currency text NOT NULL,
    hold_ttl_s integer NOT NULL,
    owner_seats_max integer NOT NULL,
    order_seats_max integer NOT NULL,
    orphan_rule text NOT NULL,
    cancelled boolean DEFAULT false NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    published boolean DEFAULT true NOT NULL,
    deleted_at timestamp with time zone,
    hidden boolean DEFAULT false NOT NULL,
    CONSTRAINT a_currency_is_three_letters CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT a_hold_lasts_seconds_to_an_hour CHECK (((hold_ttl_s >= 1) AND (hold_ttl_s <= 3600))),
    CONSTRAINT a_sale_closes_after_it_opens CHECK ((opens_at < closes_at)),
    CONSTRAINT a_sale_closes_before_the_show_ends CHECK ((closes_at <= ends_at)),
    CONSTRAINT a_show_ends_after_it_starts CHECK ((starts_at < ends_at)),
    CONSTRAINT an_order_has_one_to_ten_seats CHECK (((order_seats_max >= 1) AND (order_seats_max <= 10))),
    CONSTRAINT an_orphan_rule_is_known CHECK ((orphan_rule = ANY (ARRAY['off'::text, 'warn'::text, 'refuse'::text]))),
    CONSTRAINT an_owner_may_have_a_seat CHECK (((owner_seats_max >= 1) AND (owner_seats_max <= 1000)))
);

CREATE TABLE venue (
    id bigint NOT NULL,
    city_id bigint NOT NULL,
    organiser_id bigint,
    name text NOT NULL,
    address text NOT NULL,
    postal_code text NOT NULL,
    lat double precision NOT NULL,
    lon double precision NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    published boolean DEFAULT true NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT a_postal_code_is_short CHECK ((char_length(postal_code) <= 16)),
    CONSTRAINT a_venue_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120))),
    CONSTRAINT a_venue_is_on_earth CHECK (((lat >= ('-90'::integer)::double precision) AND (lat <= (90)::double precision) AND (lon >= ('-180'::integer)::double precision) AND (lon <= (180)::double precision))),
    CONSTRAINT an_address_fits_an_envelope CHECK ((char_length(address) <= 300))
);

CREATE VIEW show_detail AS
 SELECT show.id AS show_id,
    show.event_id,
    show.hall_id,
    hall.venue_id,
    venue.city_id,
    event.organiser_id,
    event.kind,
    event.title,
    hall.name AS hall,
    venue.name AS venue,
    city.slug AS city,
    city.timezone,
    show.starts_at,
    show.ends_at,
    show.opens_at,
    show.closes_at,
    ((show.starts_at AT TIME ZONE city.timezone))::date AS local_date,
    show.currency,
    show.cancelled,
    show.published,
    show.hidden,
    show.deleted_at,
    show.layout_hash,
    layout.seats,
    show.hold_ttl_s,
    show.owner_seats_max,
    show.order_seats_max,
    show.orphan_rule,
    show.revision,
    ( SELECT min(price.price_minor) AS min
           FROM price
          WHERE (price.show_id = show.id)) AS from_price_minor,
    terms.fee_minor,
    terms.fee_bp,
    terms.tax_bp,
    terms.refund_policy,
    terms.card_seats_max
   FROM ((((((show
     JOIN event ON ((event.id = show.event_id)))
     JOIN hall ON ((hall.id = show.hall_id)))
     JOIN venue ON ((venue.id = hall.venue_id)))
     JOIN city ON ((city.id = venue.city_id)))
     JOIN layout ON ((layout.hash = show.layout_hash)))
     LEFT JOIN show_terms terms ON (((terms.show_id = show.id) AND (terms.revision = show.revision))));

CREATE TABLE waiting_room (
    show_id bigint NOT NULL,
    opens_at timestamp with time zone,
    draw_at timestamp with time zone,
    inside_max integer NOT NULL,
    per_minute_max integer NOT NULL,
    turn_s integer NOT NULL,
    window_s integer NOT NULL,
    beacon text NOT NULL,
    opens_above_holds_per_second integer NOT NULL,
    opening integer DEFAULT 1 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    opens_above_viewers integer DEFAULT 0 NOT NULL,
    beacon_until timestamp with time zone,
    CONSTRAINT limits_are_positive CHECK ((LEAST(inside_max, per_minute_max, turn_s, window_s) >= 1))
);

CREATE VIEW current_queue AS
 SELECT room.show_id,
    room.opens_at,
    COALESCE(room.draw_at, show_detail.opens_at) AS draw_at,
    room.inside_max,
    room.per_minute_max,
    room.turn_s,
    room.window_s,
    room.opens_above_holds_per_second,
    room.opens_above_viewers,
    show_detail.seats,
    (show_detail.cancelled OR (show_detail.closes_at <= now())) AS is_over,
    queue.opening,
    queue.state,
    queue.opened_by,
    queue.commitment,
    queue.beacon,
    queue.beacon_value,
    queue.beacon_until,
    queue.key,
    queue.entrants,
    queue.joined,
    queue.serving,
    queue.rate,
    queue.opened_at,
    queue.drawn_at,
    queue.called_at,
    queue.ended_at
   FROM ((waiting_room room
     JOIN queue ON (((queue.show_id = room.show_id) AND (queue.opening = room.opening))))
     JOIN show_detail ON ((show_detail.show_id = room.show_id)));

CREATE VIEW decided_refund AS
 SELECT show_id,
    number,
    attempt,
    id,
    seats,
    amount_minor,
    fee_minor,
    tax_minor,
    state,
    (settled_note IS NOT NULL) AS is_settled_by_hand
   FROM refund;

CREATE TABLE erasure_due (
    id bigint NOT NULL,
    account_ids bigint[] NOT NULL,
    addresses text[] NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE erasure_due ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME erasure_due_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW event_summary AS
 SELECT id AS event_id,
    organiser_id,
    kind,
    title
   FROM event;

CREATE TABLE fact_log (
    is_only boolean DEFAULT true NOT NULL,
    name text DEFAULT ('facts-'::text || "left"(replace((gen_random_uuid())::text, '-'::text, ''::text), 12)) NOT NULL,
    settled_id bigint DEFAULT 0 NOT NULL,
    purged_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT there_is_one_log CHECK (is_only)
);

CREATE TABLE gate_pass (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    organiser_id bigint,
    gate text NOT NULL,
    name text NOT NULL,
    code_hash bytea,
    device_key bytea,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_gate_has_a_name CHECK (((char_length(gate) >= 1) AND (char_length(gate) <= 60))),
    CONSTRAINT a_pass_ends_after_it_starts CHECK ((starts_at < ends_at))
);

ALTER TABLE gate_pass ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gate_pass_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE gate_pass_show (
    show_id bigint NOT NULL,
    pass_id bigint NOT NULL
);

CREATE VIEW gate_scan AS
 SELECT show_id,
    gate,
    verdict,
    scanned_at
   FROM check_in scan
  WHERE ((verdict = ANY (ARRAY['admitted'::text, 'left'::text])) AND (NOT (EXISTS ( SELECT
           FROM check_in undo
          WHERE ((undo.show_id = scan.show_id) AND (undo.verdict = 'undone'::text) AND (undo.undoes = scan.id))))));

CREATE TABLE gate_search (
    pass_id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE gateway_budget (
    gateway text NOT NULL,
    full_at timestamp with time zone NOT NULL
);

CREATE TABLE gateway_webhook (
    gateway text NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL,
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    reference text,
    body bytea NOT NULL,
    copies integer DEFAULT 1 NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    dead boolean DEFAULT false NOT NULL,
    reason text,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    done_at timestamp with time zone,
    CONSTRAINT due_done_or_dead CHECK (((num_nonnulls(due_at, done_at) + (dead)::integer) = 1))
);

CREATE TABLE membership (
    organisation_id bigint NOT NULL,
    account_id bigint NOT NULL,
    rights text[] NOT NULL,
    joined_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT known_rights CHECK ((rights <@ ARRAY['catalogue'::text, 'prices'::text, 'counter'::text, 'refund'::text, 'money'::text, 'door'::text, 'messages'::text, 'settings'::text, 'owner'::text]))
);

CREATE VIEW organisation_member AS
 SELECT organisation_id,
    account_id,
    rights
   FROM membership;

CREATE VIEW good_pass AS
 SELECT id,
    account_id,
    organiser_id,
    gate,
    name,
    code_hash,
    device_key,
    starts_at,
    ends_at,
    revoked_at,
    made_at
   FROM gate_pass
  WHERE ((revoked_at IS NULL) AND ((code_hash IS NOT NULL) OR (EXISTS ( SELECT
           FROM organisation_member member
          WHERE ((member.organisation_id = gate_pass.organiser_id) AND (member.account_id = gate_pass.account_id) AND (member.rights && '{door,owner}'::text[]))))));

ALTER TABLE hall ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hall_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE house (
    is_only boolean DEFAULT true NOT NULL,
    name text NOT NULL,
    currency text NOT NULL,
    timezone text NOT NULL,
    gateway text NOT NULL,
    begun_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_house_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120))),
    CONSTRAINT currencies_have_three_letters CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT known_gateways CHECK ((gateway = ANY (ARRAY['sandbox'::text, 'stripe'::text, 'razorpay'::text, 'none'::text]))),
    CONSTRAINT there_is_one_house CHECK (is_only)
);

CREATE VIEW house_profile AS
 SELECT name,
    currency,
    timezone
   FROM house;

CREATE TABLE house_rule (
    is_only boolean DEFAULT true NOT NULL,
    second_factor_for text NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT known_groups CHECK ((second_factor_for = ANY (ARRAY['none'::text, 'admins'::text, 'staff'::text]))),
    CONSTRAINT there_is_one_set_of_rules CHECK (is_only)
);

CREATE VIEW house_second_factor AS
 SELECT second_factor_for AS who
   FROM house_rule;

CREATE SEQUENCE idempotent_response_attempt
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE idempotent_response (
    caller text NOT NULL,
    route text NOT NULL,
    key_hash bytea NOT NULL,
    body_hash bytea NOT NULL,
    attempt bigint DEFAULT nextval('idempotent_response_attempt'::regclass) NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    answer bytea
);

CREATE TABLE invitation (
    id bigint NOT NULL,
    organisation_id bigint NOT NULL,
    email text NOT NULL,
    rights text[] NOT NULL,
    token_hash bytea,
    invited_by bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended_as text,
    accepted_by bigint,
    CONSTRAINT an_end_has_a_reason CHECK (((ended_at IS NULL) = (ended_as IS NULL))),
    CONSTRAINT the_reasons_to_end CHECK ((ended_as = ANY (ARRAY['accepted'::text, 'declined'::text, 'withdrawn'::text, 'replaced'::text])))
);

ALTER TABLE invitation ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME invitation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE invoice (
    organiser_id bigint NOT NULL,
    serial bigint NOT NULL,
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    refund_id integer DEFAULT 0 NOT NULL,
    credits bigint,
    seats integer[] NOT NULL,
    amount_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    tax_minor bigint NOT NULL,
    currency text NOT NULL,
    seller_name text CONSTRAINT invoice_seller_name_not_null1 NOT NULL,
    seller_address text CONSTRAINT invoice_seller_address_not_null1 NOT NULL,
    seller_tax text NOT NULL,
    issued_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_credit_note_names_its_invoice CHECK (((refund_id = 0) = (credits IS NULL))),
    CONSTRAINT lines_are_part_of_it CHECK (((fee_minor >= 0) AND (tax_minor >= 0) AND ((fee_minor + tax_minor) <= amount_minor)))
);

CREATE TABLE invoice_count (
    organiser_id bigint NOT NULL,
    last_number bigint DEFAULT 0 NOT NULL
);

CREATE TABLE invoice_seller (
    organiser_id bigint NOT NULL,
    name text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    tax_number text DEFAULT ''::text NOT NULL,
    CONSTRAINT a_seller_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200)))
);

CREATE VIEW ticket_detail AS
 SELECT ticket.show_id,
    ticket.number,
    ticket.seat,
    ticket.serial,
    ticket.edition,
    ticket.binding,
    COALESCE(entry_policy.codes, 'fixed'::text) AS codes,
    booking.owner_id AS booked_by,
    ticket.owner_id,
    ticket.owner_email,
    ticket.issued_at,
    COALESCE(ticket.voided_at, ticket.suspended_at) AS voided_at,
    ticket.used_at,
    ticket.is_inside,
    oldest_ticket_key(ticket.show_id) AS oldest_key
   FROM ((ticket
     LEFT JOIN payable_booking booking USING (show_id, number))
     LEFT JOIN entry_policy USING (show_id));

CREATE VIEW issued_ticket AS
 SELECT show_id,
    number,
    seat,
    serial,
    edition,
    binding,
    codes,
    booked_by,
    owner_id,
    owner_email,
    issued_at,
    voided_at,
    used_at,
    is_inside,
    oldest_key
   FROM ticket_detail;

CREATE TABLE job_turn (
    name text NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    turn integer DEFAULT 0 NOT NULL
);

CREATE TABLE journal (
    show_id bigint NOT NULL,
    entry bigint NOT NULL,
    account text NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    kind text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT no_empty_lines CHECK ((amount_minor <> 0))
);

CREATE TABLE layout_organiser (
    hash text NOT NULL,
    organiser_id bigint NOT NULL
);

CREATE TABLE ledger_mark (
    is_only boolean DEFAULT true NOT NULL,
    ledger_id uuid DEFAULT gen_random_uuid() NOT NULL,
    beat bigint DEFAULT 0 NOT NULL,
    restored_at timestamp with time zone,
    CONSTRAINT a_ledger_has_one_mark CHECK (is_only)
);

CREATE TABLE legal_text (
    organisation_id bigint NOT NULL,
    kind text NOT NULL,
    version integer NOT NULL,
    texts jsonb NOT NULL,
    published_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT known_kinds CHECK ((kind = ANY (ARRAY['terms'::text, 'privacy'::text, 'imprint'::text, 'refunds'::text]))),
    CONSTRAINT versions_count_from_one CHECK ((version >= 1))
);

CREATE TABLE listing_due (
    what text NOT NULL,
    id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    CONSTRAINT an_event_or_the_counts_of_a_show CHECK ((what = ANY (ARRAY['event'::text, 'counts'::text])))
);

CREATE TABLE listing_tally (
    kind text NOT NULL,
    tally text NOT NULL,
    counted_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE listing_venue (
    venue_id bigint NOT NULL,
    name text NOT NULL,
    city text NOT NULL,
    postal_code text NOT NULL,
    lat double precision NOT NULL,
    lon double precision NOT NULL,
    doc tsvector NOT NULL,
    written_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE listing_word (
    word text NOT NULL COLLATE pg_catalog."C",
    uses integer NOT NULL,
    keys text[] NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE mail_token (
    hash bytea NOT NULL,
    purpose text NOT NULL,
    account_id bigint,
    email text NOT NULL,
    show_id bigint,
    number bigint,
    edition integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);

CREATE TABLE show_time_change (
    show_id bigint NOT NULL,
    revision bigint NOT NULL,
    starts_before timestamp with time zone NOT NULL,
    starts_at timestamp with time zone NOT NULL
);

CREATE VIEW moved_show AS
 SELECT show_id,
    revision,
    starts_before,
    starts_at
   FROM show_time_change;

CREATE TABLE notice (
    id bigint NOT NULL,
    fact_id bigint,
    kind text NOT NULL,
    channel text NOT NULL,
    account_id bigint,
    address text NOT NULL,
    name text NOT NULL,
    locale text NOT NULL,
    show_id bigint NOT NULL,
    number bigint,
    body jsonb DEFAULT '{}'::jsonb NOT NULL,
    state notice_state DEFAULT 'queued'::notice_state NOT NULL,
    round integer DEFAULT 1 NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    turn integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    reason text,
    written_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT channels_to_people CHECK ((channel = ANY (ARRAY['mail'::text, 'sms'::text, 'push'::text]))),
    CONSTRAINT queued_is_due CHECK (((state = 'queued'::notice_state) = (due_at IS NOT NULL))),
    CONSTRAINT queued_or_ended CHECK (((state = 'queued'::notice_state) = (ended_at IS NULL)))
);

ALTER TABLE notice ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME notice_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW notice_to_person AS
 SELECT address,
    kind,
    channel,
    locale,
    show_id,
    number,
    state,
    written_at,
    ended_at
   FROM notice;

CREATE VIEW offer_booking AS
 SELECT show_id,
    number,
    state,
    seats
   FROM booking
  WHERE (state <> 'blocked'::booking_state);

CREATE TABLE oidc_identity (
    issuer text NOT NULL,
    subject text NOT NULL,
    account_id bigint NOT NULL,
    email text NOT NULL,
    linked_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE organisation (
    id bigint NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    needs_second_factor boolean DEFAULT false NOT NULL,
    CONSTRAINT an_organisation_has_a_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120)))
);

CREATE VIEW organisation_profile AS
 SELECT id,
    name
   FROM organisation;

CREATE TABLE organiser_sender (
    organiser_id bigint NOT NULL,
    from_name text NOT NULL,
    reply_to text DEFAULT ''::text NOT NULL,
    CONSTRAINT a_sender_has_a_short_name CHECK (((char_length(from_name) >= 1) AND (char_length(from_name) <= 80)))
);

CREATE TABLE outbox (
    id bigint NOT NULL,
    show_id bigint NOT NULL,
    number bigint,
    kind text NOT NULL,
    ends_at timestamp with time zone,
    body jsonb,
    at timestamp with time zone DEFAULT now() NOT NULL,
    trace text DEFAULT NULLIF(current_setting('holdfast.trace'::text, true), ''::text)
);

ALTER TABLE outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE owner_count (
    show_id bigint NOT NULL,
    owner_id bigint NOT NULL,
    seats integer NOT NULL,
    seats_max integer NOT NULL,
    holds integer DEFAULT 0 NOT NULL,
    lapses integer DEFAULT 0 NOT NULL,
    lapses_since timestamp with time zone,
    lapsed_at timestamp with time zone,
    guest_seats integer DEFAULT 0 NOT NULL,
    counts_for bigint,
    CONSTRAINT no_owner_has_more_seats_than_allowed CHECK (((seats >= 0) AND (seats <= seats_max)))
);

CREATE TABLE parked_fact (
    group_name text NOT NULL,
    fact_id bigint NOT NULL,
    key text NOT NULL,
    fact bytea NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    dead_at timestamp with time zone
);

CREATE TABLE party_count (
    show_id bigint NOT NULL,
    party text NOT NULL,
    seats integer NOT NULL,
    lapses integer DEFAULT 0 NOT NULL,
    lapses_since timestamp with time zone,
    lapsed_at timestamp with time zone,
    CONSTRAINT no_party_has_negative_seats CHECK ((seats >= 0))
);

ALTER TABLE passkey ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME passkey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW payer AS
 SELECT owner_id,
    requested_at
   FROM payment
  WHERE (step = ANY (ARRAY['paid'::payment_step, 'late'::payment_step, 'returned'::payment_step]));

CREATE TABLE payment_difference (
    gateway text NOT NULL,
    key text NOT NULL,
    kind text NOT NULL,
    reference text NOT NULL,
    ours text NOT NULL,
    theirs text NOT NULL,
    found_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE pod (
    name text NOT NULL,
    number integer NOT NULL,
    takes_new_shows boolean DEFAULT true NOT NULL,
    added_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT home_is_number_0 CHECK ((number > 0))
);

CREATE TABLE pod_identity (
    is_only boolean DEFAULT true NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    CONSTRAINT a_database_is_one_pod CHECK (is_only)
);

CREATE TABLE pod_mark (
    pod text NOT NULL,
    number bigint NOT NULL
);

CREATE TABLE poster_image (
    event_id bigint NOT NULL,
    width integer NOT NULL,
    hash text NOT NULL,
    image bytea NOT NULL,
    stored_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY poster_image ALTER COLUMN image SET STORAGE EXTERNAL;

CREATE TABLE price_change (
    show_id bigint NOT NULL,
    revision bigint NOT NULL,
    category text NOT NULL,
    was_minor bigint,
    price_minor bigint NOT NULL,
    why text NOT NULL,
    sold integer,
    seats integer,
    actor_id bigint,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_change_has_a_known_reason CHECK ((why = ANY (ARRAY['organiser'::text, 'rules'::text, 'step'::text]))),
    CONSTRAINT a_price_is_not_negative CHECK (((price_minor >= 0) AND (price_minor <= 1000000000)))
);

CREATE TABLE price_plan (
    show_id bigint NOT NULL,
    rules jsonb NOT NULL,
    coming jsonb DEFAULT '{}'::jsonb NOT NULL,
    due_at timestamp with time zone NOT NULL,
    CONSTRAINT a_plan_has_rules CHECK ((jsonb_typeof((rules -> 'rules'::text)) = 'array'::text))
);

CREATE TABLE price_rules_history (
    show_id bigint NOT NULL,
    id bigint NOT NULL,
    rules jsonb,
    actor_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE price_rules_history ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME price_rules_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue_log (
    show_id bigint NOT NULL,
    opening integer NOT NULL,
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    kind text NOT NULL,
    joined integer NOT NULL,
    serving integer NOT NULL,
    inside integer NOT NULL,
    called integer DEFAULT 0 NOT NULL,
    seats_left integer DEFAULT 0 NOT NULL
);

CREATE VIEW queue_history AS
 SELECT show_id,
    opening,
    id,
    at,
    (joined - serving) AS waiting,
    inside
   FROM queue_log;

ALTER TABLE queue_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW queue_wait AS
 SELECT turn.show_id,
    ((EXTRACT(epoch FROM (turn.called_at - queue.opened_at)))::integer - place.joined_s) AS waited_s
   FROM ((queue_turn turn
     JOIN queue USING (show_id, opening))
     JOIN queue_place place USING (show_id, opening, number))
  WHERE (turn.call = 1);

CREATE TABLE reconciliation_run (
    gateway text NOT NULL,
    since_at timestamp with time zone NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    seen bigint NOT NULL,
    settled bigint NOT NULL,
    deep_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL
);

CREATE TABLE recovery_code (
    account_id bigint NOT NULL,
    hash bytea NOT NULL,
    used_at timestamp with time zone
);

CREATE TABLE refresh_token (
    hash bytea NOT NULL,
    session_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);

CREATE TABLE refund_limit (
    organiser_id bigint NOT NULL,
    currency text NOT NULL,
    amount_minor bigint NOT NULL,
    CONSTRAINT a_limit_is_an_amount CHECK ((amount_minor >= 0))
);

CREATE TABLE refund_proposal (
    id bigint NOT NULL,
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    organiser_id bigint NOT NULL,
    why text NOT NULL,
    what text NOT NULL,
    seats integer[] NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    note text NOT NULL,
    proposed_by bigint NOT NULL,
    proposed_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    decided_by bigint,
    decided_at timestamp with time zone,
    decided_note text DEFAULT ''::text NOT NULL,
    CONSTRAINT a_decision_has_a_time CHECK (((state = 'pending'::text) = (decided_at IS NULL))),
    CONSTRAINT another_person_approves CHECK (((state <> 'approved'::text) OR (decided_by <> proposed_by))),
    CONSTRAINT the_states_of_a_proposal CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text, 'withdrawn'::text])))
);

ALTER TABLE refund_proposal ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refund_proposal_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE report_past_stage (
    show_id bigint NOT NULL,
    stage booking_state NOT NULL,
    bookings bigint NOT NULL
);

CREATE TABLE report_refund (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    attempt integer NOT NULL,
    refund integer NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    state refund_state NOT NULL,
    fact_id bigint NOT NULL
);

CREATE TABLE report_seat (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    seat integer NOT NULL,
    category text NOT NULL,
    currency text NOT NULL,
    price_minor bigint NOT NULL,
    base_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    tax_minor bigint NOT NULL,
    sold_at timestamp with time zone NOT NULL,
    returned_at timestamp with time zone,
    CONSTRAINT a_returned_seat_is_worth_nothing CHECK (((returned_at IS NULL) OR (price_minor = 0))),
    CONSTRAINT lines_sum_to_the_price CHECK ((((base_minor + fee_minor) + tax_minor) = price_minor))
);

CREATE TABLE report_stage (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    stage booking_state NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE TABLE reserved_seat (
    show_id bigint NOT NULL,
    seat integer NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE retention_pass (
    rule text NOT NULL,
    reached bigint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted bigint DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone
);

CREATE TABLE revoked_ticket_key (
    show_id bigint NOT NULL,
    key_id smallint NOT NULL,
    revoked_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE web_load (
    process text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    holds integer NOT NULL,
    slow_holds integer NOT NULL,
    refused integer NOT NULL,
    payments integer NOT NULL,
    payments_max integer NOT NULL,
    shows bigint[] NOT NULL,
    show_holds integer[] NOT NULL,
    show_viewers integer[] NOT NULL,
    CONSTRAINT figures_for_every_show CHECK (((cardinality(shows) = cardinality(show_holds)) AND (cardinality(shows) = cardinality(show_viewers))))
)
WITH (fillfactor='50');

CREATE VIEW room_in_demand AS
 SELECT room.show_id
   FROM (waiting_room room
     JOIN ( SELECT demand_1.show_id,
            sum(demand_1.holds) AS holds,
            sum(demand_1.viewers) AS viewers
           FROM (web_load
             CROSS JOIN LATERAL UNNEST(web_load.shows, web_load.show_holds, web_load.show_viewers) demand_1(show_id, holds, viewers))
          WHERE (web_load.at > (now() - '00:00:04'::interval))
          GROUP BY demand_1.show_id) demand USING (show_id))
  WHERE (((room.opens_above_holds_per_second >= 1) AND (room.opens_above_holds_per_second <= (demand.holds - 1))) OR ((room.opens_above_viewers >= 1) AND (room.opens_above_viewers <= (demand.viewers - 1))));

CREATE VIEW sale_for_waitlist AS
 SELECT show_id,
    revision,
    has_waitlist,
    opens_at,
    closes_at,
    (cancelled OR (archived_at IS NOT NULL) OR (closes_at <= now())) AS is_over,
    ((NOT cancelled) AND (NOT hidden) AND (opens_at <= now()) AND (closes_at > now())) AS is_open
   FROM sale;

CREATE TABLE schema_functions (
    name text NOT NULL,
    checksum text NOT NULL,
    program text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    works_with text
);

CREATE TABLE schema_step (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    works_with text
);

CREATE TABLE seat_block (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    release_at timestamp with time zone,
    hours_before integer,
    withdrawn boolean DEFAULT false NOT NULL,
    CONSTRAINT a_withdrawn_seat_is_not_released CHECK (((NOT withdrawn) OR (release_at IS NULL))),
    CONSTRAINT hours_before_have_a_time CHECK (((hours_before IS NULL) OR (release_at IS NOT NULL)))
);

CREATE VIEW seat_block_detail AS
 SELECT booking.show_id,
    booking.number,
    booking.owner_id,
    booking.claim_id,
    booking.seats,
    booking.note AS name,
    booking.opened_at AS made_at,
    more.release_at,
    more.hours_before,
    COALESCE(more.withdrawn, false) AS withdrawn
   FROM (booking
     LEFT JOIN seat_block more ON (((more.show_id = booking.show_id) AND (more.number = booking.number))))
  WHERE (booking.state = 'blocked'::booking_state);

CREATE TABLE seat_demand (
    show_id bigint NOT NULL,
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    refused integer NOT NULL,
    seats integer[] NOT NULL,
    times integer[] NOT NULL,
    CONSTRAINT a_count_for_every_wanted_seat CHECK ((cardinality(seats) = cardinality(times))),
    CONSTRAINT some_hold_was_refused CHECK ((refused > 0))
);

ALTER TABLE seat_demand ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME seat_demand_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW seat_for_waitlist AS
 SELECT show_id,
    seat,
    since
   FROM reserved_seat;

CREATE VIEW seat_history AS
 SELECT show_id,
    number,
    id,
    move,
    state,
    at,
    seats AS moved_seats,
    ( SELECT booking.seats
           FROM booking
          WHERE ((booking.show_id = booking_move.show_id) AND (booking.number = booking_move.number))) AS seats
   FROM booking_move;

CREATE TABLE taken_seat (
    show_id bigint NOT NULL,
    seat integer NOT NULL,
    number bigint NOT NULL
);

CREATE VIEW seat_holder AS
 SELECT show_id,
    seat,
    number
   FROM taken_seat
  WHERE (( SELECT booking.state
           FROM booking
          WHERE ((booking.show_id = taken_seat.show_id) AND (booking.number = taken_seat.number))) <> 'blocked'::booking_state);

CREATE TABLE session (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended_by text,
    device text DEFAULT ''::text NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL,
    signed_in_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT an_end_has_a_reason CHECK (((ended_at IS NULL) = (ended_by IS NULL))),
    CONSTRAINT the_reasons_to_end CHECK ((ended_by = ANY (ARRAY['logout'::text, 'password'::text, 'reuse'::text, 'surplus'::text, 'revoked'::text, 'reset'::text, 'ban'::text, 'erased'::text, 'merged'::text, 'factor'::text])))
);

CREATE TABLE session_cookie (
    hash bytea NOT NULL,
    session_id bigint NOT NULL
);

CREATE TABLE session_guest (
    session_id bigint NOT NULL,
    account_id bigint NOT NULL
);

ALTER TABLE session ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME session_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE show_copy (
    show_id bigint NOT NULL,
    epoch bigint NOT NULL,
    moves_until bigint DEFAULT 0 NOT NULL,
    facts_until bigint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE show ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME show_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW show_organiser AS
 SELECT show.id AS show_id,
    show.event_id,
    event.organiser_id
   FROM (show
     JOIN event ON ((event.id = show.event_id)));

CREATE TABLE show_pod (
    show_id bigint NOT NULL,
    pod text NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE VIEW sign_in_service AS
 SELECT account_id,
    issuer,
    subject,
    email,
    linked_at,
    last_used_at
   FROM oidc_identity;

CREATE TABLE sign_in_step (
    hash bytea NOT NULL,
    purpose text NOT NULL,
    account_id bigint,
    first text DEFAULT ''::text NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE signing_key (
    id bigint NOT NULL,
    jwk text NOT NULL,
    signs_from timestamp with time zone NOT NULL
);

ALTER TABLE signing_key ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME signing_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE stored_message (
    notice_id bigint NOT NULL,
    subject text NOT NULL,
    message bytea NOT NULL,
    stored_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE VIEW suspended_ticket AS
 SELECT show_id,
    serial
   FROM ticket
  WHERE ((suspended_at IS NOT NULL) AND (voided_at IS NULL));

CREATE VIEW ticket_for_refund AS
 SELECT show_id,
    number,
    seat,
    voided_at,
    used_at,
    owner_id,
    owner_email
   FROM ticket;

CREATE TABLE ticket_transfer (
    show_id bigint NOT NULL,
    serial bigint NOT NULL,
    edition integer NOT NULL,
    from_id bigint NOT NULL,
    to_id bigint,
    email text NOT NULL,
    taken_back boolean DEFAULT false NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE VIEW ticket_handover AS
 SELECT show_id,
    serial,
    edition,
    from_id,
    email
   FROM ticket_transfer;

CREATE TABLE ticket_key (
    id smallint NOT NULL,
    private bytea NOT NULL,
    secret bytea NOT NULL,
    signs_from timestamp with time zone NOT NULL,
    CONSTRAINT a_key_id_is_a_byte CHECK (((id >= 1) AND (id <= 255)))
);

CREATE TABLE ticket_resend (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE venue ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME venue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE waitlist (
    show_id bigint NOT NULL,
    joined bigint DEFAULT 0 NOT NULL,
    is_live boolean DEFAULT false NOT NULL,
    empty_at timestamp with time zone
);

CREATE TABLE waitlist_entry (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    owner_id bigint NOT NULL,
    seats integer NOT NULL,
    categories text[] NOT NULL,
    price_minor_max bigint,
    together boolean NOT NULL,
    queue_position bigint,
    until timestamp with time zone NOT NULL,
    joined_at timestamp with time zone DEFAULT now() NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT a_party_has_seats CHECK (((seats >= 1) AND (seats <= 6))),
    CONSTRAINT an_ended_entry_has_a_time CHECK (((ended_at IS NULL) = (state = ANY (ARRAY['waiting'::text, 'offered'::text])))),
    CONSTRAINT the_states_of_an_entry CHECK ((state = ANY (ARRAY['waiting'::text, 'offered'::text, 'taken'::text, 'declined'::text, 'lapsed'::text, 'left'::text, 'timed_out'::text, 'closed'::text])))
);

CREATE VIEW waitlist_of_person AS
 SELECT owner_id,
    show_id,
    number,
    seats,
    categories,
    price_minor_max,
    together,
    until,
    joined_at,
    state,
    ended_at
   FROM waitlist_entry;

CREATE TABLE waitlist_offer (
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    entry bigint NOT NULL,
    seats integer[] NOT NULL,
    offered_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    outcome text,
    ended_at timestamp with time zone,
    CONSTRAINT an_ended_offer_has_a_time CHECK (((outcome IS NULL) = (ended_at IS NULL))),
    CONSTRAINT the_outcomes_of_an_offer CHECK ((outcome = ANY (ARRAY['taken'::text, 'declined'::text, 'lapsed'::text])))
);

CREATE TABLE waitlist_return (
    id bigint NOT NULL,
    show_id bigint NOT NULL,
    number bigint NOT NULL,
    seats integer[] NOT NULL,
    selling integer[] DEFAULT '{}'::integer[] NOT NULL,
    returned_at timestamp with time zone DEFAULT now() NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT an_ended_return_has_a_time CHECK (((state = 'open'::text) = (ended_at IS NULL))),
    CONSTRAINT the_states_of_a_return CHECK ((state = ANY (ARRAY['open'::text, 'sold'::text, 'withdrawn'::text, 'closed'::text])))
);

ALTER TABLE waitlist_return ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME waitlist_return_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE webhook_delivery (
    endpoint_id bigint NOT NULL,
    fact_id bigint NOT NULL,
    kind text NOT NULL,
    at timestamp with time zone NOT NULL,
    payload bytea NOT NULL,
    state delivery_state NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    turn integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    written_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queued_is_due CHECK (((state = 'queued'::delivery_state) = (due_at IS NOT NULL)))
);

CREATE TABLE webhook_endpoint (
    id bigint NOT NULL,
    organiser_id bigint NOT NULL,
    url text NOT NULL,
    kinds text[] NOT NULL,
    active boolean DEFAULT true NOT NULL,
    off_reason text,
    secret bytea NOT NULL,
    old_secret bytea,
    old_until timestamp with time zone,
    failing_since timestamp with time zone,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_url_fits_a_line CHECK (((char_length(url) >= 1) AND (char_length(url) <= 2000))),
    CONSTRAINT an_old_secret_has_an_end CHECK (((old_secret IS NULL) = (old_until IS NULL))),
    CONSTRAINT off_has_a_reason_only_when_off CHECK (((off_reason IS NULL) OR (NOT active)))
);

ALTER TABLE webhook_endpoint ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_endpoint_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE webhook_try (
    endpoint_id bigint NOT NULL,
    fact_id bigint NOT NULL,
    turn integer NOT NULL,
    status integer,
    took_ms integer NOT NULL,
    reason text,
    response text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY reserved_seat
    ADD CONSTRAINT a_seat_is_reserved_once PRIMARY KEY (show_id, seat);

ALTER TABLE ONLY account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);

ALTER TABLE ONLY api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY api_key_secret
    ADD CONSTRAINT api_key_secret_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY audit_chain
    ADD CONSTRAINT audit_chain_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (chain, number);

ALTER TABLE ONLY booking_move
    ADD CONSTRAINT booking_move_pkey PRIMARY KEY (show_id, number, id);

ALTER TABLE ONLY booking
    ADD CONSTRAINT booking_pkey PRIMARY KEY (show_id, number);

ALTER TABLE ONLY chargeback
    ADD CONSTRAINT chargeback_pkey PRIMARY KEY (show_id, number, attempt, reference);

ALTER TABLE ONLY check_in_conflict
    ADD CONSTRAINT check_in_conflict_pkey PRIMARY KEY (show_id, id);

ALTER TABLE ONLY check_in
    ADD CONSTRAINT check_in_pkey PRIMARY KEY (show_id, id);

ALTER TABLE ONLY city
    ADD CONSTRAINT city_pkey PRIMARY KEY (id);

ALTER TABLE ONLY consent
    ADD CONSTRAINT consent_pkey PRIMARY KEY (account_id, organisation_id, kind, version, show_id, number);

ALTER TABLE ONLY consumed_fact
    ADD CONSTRAINT consumed_fact_pkey PRIMARY KEY (group_name, fact_id);

ALTER TABLE ONLY consumer_group
    ADD CONSTRAINT consumer_group_pkey PRIMARY KEY (name);

ALTER TABLE ONLY entry_policy
    ADD CONSTRAINT entry_policy_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY erasure_due
    ADD CONSTRAINT erasure_due_pkey PRIMARY KEY (id);

ALTER TABLE ONLY event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);

ALTER TABLE ONLY fact_log
    ADD CONSTRAINT fact_log_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY gate_pass
    ADD CONSTRAINT gate_pass_pkey PRIMARY KEY (id);

ALTER TABLE ONLY gate_pass_show
    ADD CONSTRAINT gate_pass_show_pkey PRIMARY KEY (show_id, pass_id);

ALTER TABLE ONLY gate_search
    ADD CONSTRAINT gate_search_pkey PRIMARY KEY (pass_id, at);

ALTER TABLE ONLY gateway_budget
    ADD CONSTRAINT gateway_budget_pkey PRIMARY KEY (gateway);

ALTER TABLE ONLY gateway_webhook
    ADD CONSTRAINT gateway_webhook_pkey PRIMARY KEY (gateway, event_id);

ALTER TABLE ONLY hall
    ADD CONSTRAINT hall_pkey PRIMARY KEY (id);

ALTER TABLE ONLY house
    ADD CONSTRAINT house_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY house_rule
    ADD CONSTRAINT house_rule_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY idempotent_response
    ADD CONSTRAINT idempotent_response_pkey PRIMARY KEY (caller, route, key_hash);

ALTER TABLE ONLY invitation
    ADD CONSTRAINT invitation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY invoice_count
    ADD CONSTRAINT invoice_count_pkey PRIMARY KEY (organiser_id);

ALTER TABLE ONLY invoice
    ADD CONSTRAINT invoice_pkey PRIMARY KEY (organiser_id, serial);

ALTER TABLE ONLY invoice_seller
    ADD CONSTRAINT invoice_seller_pkey PRIMARY KEY (organiser_id);

ALTER TABLE ONLY job_turn
    ADD CONSTRAINT job_turn_pkey PRIMARY KEY (name);

ALTER TABLE ONLY journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (show_id, entry, account);

ALTER TABLE ONLY layout_organiser
    ADD CONSTRAINT layout_organiser_pkey PRIMARY KEY (hash, organiser_id);

ALTER TABLE ONLY layout
    ADD CONSTRAINT layout_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY ledger_mark
    ADD CONSTRAINT ledger_mark_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY legal_text
    ADD CONSTRAINT legal_text_pkey PRIMARY KEY (organisation_id, kind, version);

ALTER TABLE ONLY listing_due
    ADD CONSTRAINT listing_due_pkey PRIMARY KEY (what, id);

ALTER TABLE ONLY listing
    ADD CONSTRAINT listing_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY listing_show
    ADD CONSTRAINT listing_show_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY listing_tally
    ADD CONSTRAINT listing_tally_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY listing_venue
    ADD CONSTRAINT listing_venue_pkey PRIMARY KEY (venue_id);

ALTER TABLE ONLY listing_word
    ADD CONSTRAINT listing_word_pkey PRIMARY KEY (word);

ALTER TABLE ONLY mail_token
    ADD CONSTRAINT mail_token_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY membership
    ADD CONSTRAINT membership_pkey PRIMARY KEY (organisation_id, account_id);

ALTER TABLE ONLY account
    ADD CONSTRAINT no_two_accounts_share_an_email UNIQUE (email);

ALTER TABLE ONLY city
    ADD CONSTRAINT no_two_cities_share_a_slug UNIQUE (slug);

ALTER TABLE ONLY hall
    ADD CONSTRAINT no_two_halls_of_a_venue_share_a_name UNIQUE (venue_id, name);

ALTER TABLE ONLY notice
    ADD CONSTRAINT notice_pkey PRIMARY KEY (id);

ALTER TABLE ONLY oidc_identity
    ADD CONSTRAINT oidc_identity_pkey PRIMARY KEY (issuer, subject);

ALTER TABLE ONLY passkey
    ADD CONSTRAINT one_account_per_passkey UNIQUE (credential_id);

ALTER TABLE ONLY booking
    ADD CONSTRAINT one_booking_per_request UNIQUE (owner_id, show_id, request_id);

ALTER TABLE ONLY check_in_conflict
    ADD CONSTRAINT one_conflict_per_check_in UNIQUE (show_id, second_id);

ALTER TABLE ONLY webhook_delivery
    ADD CONSTRAINT one_delivery_per_fact_and_endpoint PRIMARY KEY (endpoint_id, fact_id);

ALTER TABLE ONLY invoice
    ADD CONSTRAINT one_document_per_payment_and_refund UNIQUE (show_id, number, attempt, refund_id);

ALTER TABLE ONLY invitation
    ADD CONSTRAINT one_invitation_per_token UNIQUE (token_hash);

ALTER TABLE ONLY taken_seat
    ADD CONSTRAINT one_live_booking_per_seat PRIMARY KEY (show_id, seat);

ALTER TABLE ONLY notice
    ADD CONSTRAINT one_notice_per_fact_and_person UNIQUE (fact_id, kind, channel, address);

ALTER TABLE ONLY waitlist_offer
    ADD CONSTRAINT one_offer_per_entry UNIQUE (show_id, entry);

ALTER TABLE ONLY queue_place
    ADD CONSTRAINT one_place_per_person UNIQUE (account_id, show_id, opening, rejoined);

ALTER TABLE ONLY refund_proposal
    ADD CONSTRAINT one_proposal_per_reason UNIQUE (show_id, number, why);

ALTER TABLE ONLY refund
    ADD CONSTRAINT one_refund_per_reason UNIQUE (show_id, number, attempt, why);

ALTER TABLE ONLY check_in
    ADD CONSTRAINT one_row_per_scan UNIQUE (show_id, pass_id, scan_id);

ALTER TABLE ONLY organisation
    ADD CONSTRAINT organisation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY organiser_sender
    ADD CONSTRAINT organiser_sender_pkey PRIMARY KEY (organiser_id);

ALTER TABLE ONLY outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id, show_id);

ALTER TABLE ONLY owner_count
    ADD CONSTRAINT owner_count_pkey PRIMARY KEY (show_id, owner_id);

ALTER TABLE ONLY parked_fact
    ADD CONSTRAINT parked_fact_pkey PRIMARY KEY (group_name, fact_id);

ALTER TABLE ONLY party_count
    ADD CONSTRAINT party_count_pkey PRIMARY KEY (show_id, party);

ALTER TABLE ONLY passkey
    ADD CONSTRAINT passkey_pkey PRIMARY KEY (id);

ALTER TABLE ONLY payment_difference
    ADD CONSTRAINT payment_difference_pkey PRIMARY KEY (gateway, key, kind);

ALTER TABLE ONLY payment
    ADD CONSTRAINT payment_pkey PRIMARY KEY (show_id, number, attempt);

ALTER TABLE ONLY pod_identity
    ADD CONSTRAINT pod_identity_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY pod_mark
    ADD CONSTRAINT pod_mark_pkey PRIMARY KEY (pod);

ALTER TABLE ONLY pod
    ADD CONSTRAINT pod_number_key UNIQUE (number);

ALTER TABLE ONLY pod
    ADD CONSTRAINT pod_pkey PRIMARY KEY (name);

ALTER TABLE ONLY poster_image
    ADD CONSTRAINT poster_image_pkey PRIMARY KEY (event_id, width);

ALTER TABLE ONLY price_change
    ADD CONSTRAINT price_change_pkey PRIMARY KEY (show_id, revision, category);

ALTER TABLE ONLY price
    ADD CONSTRAINT price_pkey PRIMARY KEY (show_id, category);

ALTER TABLE ONLY price_plan
    ADD CONSTRAINT price_plan_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY price_rules_history
    ADD CONSTRAINT price_rules_history_pkey PRIMARY KEY (show_id, id);

ALTER TABLE ONLY queue_log
    ADD CONSTRAINT queue_log_pkey PRIMARY KEY (show_id, opening, id);

ALTER TABLE ONLY queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (show_id, opening);

ALTER TABLE ONLY queue_place
    ADD CONSTRAINT queue_place_pkey PRIMARY KEY (show_id, opening, number);

ALTER TABLE ONLY queue_turn
    ADD CONSTRAINT queue_turn_pkey PRIMARY KEY (show_id, opening, number, call);

ALTER TABLE ONLY reconciliation_run
    ADD CONSTRAINT reconciliation_run_pkey PRIMARY KEY (gateway);

ALTER TABLE ONLY recovery_code
    ADD CONSTRAINT recovery_code_pkey PRIMARY KEY (account_id, hash);

ALTER TABLE ONLY refresh_token
    ADD CONSTRAINT refresh_token_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY refund_limit
    ADD CONSTRAINT refund_limit_pkey PRIMARY KEY (organiser_id, currency);

ALTER TABLE ONLY refund
    ADD CONSTRAINT refund_pkey PRIMARY KEY (show_id, number, attempt, id);

ALTER TABLE ONLY refund_proposal
    ADD CONSTRAINT refund_proposal_pkey PRIMARY KEY (id);

ALTER TABLE ONLY report_past_stage
    ADD CONSTRAINT report_past_stage_pkey PRIMARY KEY (show_id, stage);

ALTER TABLE ONLY report_refund
    ADD CONSTRAINT report_refund_pkey PRIMARY KEY (show_id, number, attempt, refund);

ALTER TABLE ONLY report_seat
    ADD CONSTRAINT report_seat_pkey PRIMARY KEY (show_id, number, seat);

ALTER TABLE ONLY report_stage
    ADD CONSTRAINT report_stage_pkey PRIMARY KEY (show_id, number, stage);

ALTER TABLE ONLY retention_pass
    ADD CONSTRAINT retention_pass_pkey PRIMARY KEY (rule);

ALTER TABLE ONLY revoked_ticket_key
    ADD CONSTRAINT revoked_ticket_key_pkey PRIMARY KEY (show_id, key_id);

ALTER TABLE ONLY sale
    ADD CONSTRAINT sale_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY schema_functions
    ADD CONSTRAINT schema_functions_pkey PRIMARY KEY (name);

ALTER TABLE ONLY schema_step
    ADD CONSTRAINT schema_step_pkey PRIMARY KEY (number);

ALTER TABLE ONLY seat_block
    ADD CONSTRAINT seat_block_pkey PRIMARY KEY (show_id, number);

ALTER TABLE ONLY seat_demand
    ADD CONSTRAINT seat_demand_pkey PRIMARY KEY (show_id, id);

ALTER TABLE ONLY session_cookie
    ADD CONSTRAINT session_cookie_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY session_guest
    ADD CONSTRAINT session_guest_pkey PRIMARY KEY (session_id, account_id);

ALTER TABLE ONLY session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);

ALTER TABLE ONLY show_copy
    ADD CONSTRAINT show_copy_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY show
    ADD CONSTRAINT show_pkey PRIMARY KEY (id);

ALTER TABLE ONLY show_pod
    ADD CONSTRAINT show_pod_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY show_terms
    ADD CONSTRAINT show_terms_pkey PRIMARY KEY (show_id, revision);

ALTER TABLE ONLY show_time_change
    ADD CONSTRAINT show_time_change_pkey PRIMARY KEY (show_id, revision);

ALTER TABLE ONLY sign_in_step
    ADD CONSTRAINT sign_in_step_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY signing_key
    ADD CONSTRAINT signing_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY stored_message
    ADD CONSTRAINT stored_message_pkey PRIMARY KEY (notice_id);

ALTER TABLE ONLY ticket_key
    ADD CONSTRAINT ticket_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ticket
    ADD CONSTRAINT ticket_pkey PRIMARY KEY (show_id, number, seat);

ALTER TABLE ONLY ticket_resend
    ADD CONSTRAINT ticket_resend_pkey PRIMARY KEY (show_id, number, at);

ALTER TABLE ONLY ticket_transfer
    ADD CONSTRAINT ticket_transfer_pkey PRIMARY KEY (show_id, serial, edition);

ALTER TABLE ONLY totp
    ADD CONSTRAINT totp_pkey PRIMARY KEY (account_id);

ALTER TABLE ONLY venue
    ADD CONSTRAINT venue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY waiting_room
    ADD CONSTRAINT waiting_room_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY waitlist_entry
    ADD CONSTRAINT waitlist_entry_pkey PRIMARY KEY (show_id, number);

ALTER TABLE ONLY waitlist_offer
    ADD CONSTRAINT waitlist_offer_pkey PRIMARY KEY (show_id, number);

ALTER TABLE ONLY waitlist
    ADD CONSTRAINT waitlist_pkey PRIMARY KEY (show_id);

ALTER TABLE ONLY waitlist_return
    ADD CONSTRAINT waitlist_return_pkey PRIMARY KEY (id);

ALTER TABLE ONLY web_load
    ADD CONSTRAINT web_load_pkey PRIMARY KEY (process);

ALTER TABLE ONLY webhook_endpoint
    ADD CONSTRAINT webhook_endpoint_pkey PRIMARY KEY (id);

ALTER TABLE ONLY webhook_try
    ADD CONSTRAINT webhook_try_pkey PRIMARY KEY (endpoint_id, fact_id, turn);

CREATE INDEX accounts_by_contact ON account USING btree (contact_email) WHERE (contact_email IS NOT NULL);

CREATE INDEX accounts_by_name ON account USING gin (to_tsvector('simple'::regconfig, name)) WHERE (name <> 'Guest'::text);

CREATE INDEX audit_entries_about_a_person ON audit_entry USING btree (person_id) WHERE ((personal IS NOT NULL) AND (person_id IS NOT NULL));

CREATE INDEX audit_entries_by_a_person ON audit_entry USING btree (actor_id) WHERE (personal IS NOT NULL);

CREATE INDEX audit_entries_by_time ON audit_entry USING btree (chain, at, number);

CREATE INDEX audit_entries_of_a_subject ON audit_entry USING btree (chain, subject_kind, subject_id, number);

CREATE INDEX audit_entries_of_an_action ON audit_entry USING btree (chain, action, number);

CREATE INDEX audit_entries_of_an_actor ON audit_entry USING btree (chain, actor_id, number);

CREATE INDEX audit_entries_to_erase ON audit_entry USING btree (at) WHERE (personal IS NOT NULL);

CREATE INDEX blocks_to_release ON seat_block USING btree (release_at) WHERE (release_at IS NOT NULL);

CREATE INDEX chargebacks_by_time ON chargeback USING btree (changed_at);

CREATE INDEX check_ins_of_a_ticket ON check_in USING btree (show_id, serial, id) WHERE (serial IS NOT NULL);

CREATE INDEX cookies_of_a_session ON session_cookie USING btree (session_id);

CREATE INDEX deliveries_by_age ON webhook_delivery USING btree (written_at);

CREATE INDEX deliveries_dead ON webhook_delivery USING btree (endpoint_id) WHERE (state = 'dead'::delivery_state);

CREATE INDEX deliveries_due ON webhook_delivery USING btree (endpoint_id, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ended_bookings ON booking USING btree (expires_at) WHERE (state = ANY (ARRAY['expired'::booking_state, 'cancelled'::booking_state]));

CREATE INDEX ended_sessions ON session USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX endpoints_of_an_organiser ON webhook_endpoint USING btree (organiser_id);

CREATE INDEX entries_of_owner ON waitlist_entry USING btree (owner_id, show_id, number);

CREATE INDEX events_of_an_organiser ON event USING btree (organiser_id);

CREATE INDEX expiring_refresh_tokens ON refresh_token USING btree (expires_at);

CREATE INDEX expiring_sessions ON session USING btree (expires_at);

CREATE INDEX facts_of_a_booking ON outbox USING btree (show_id, number) WHERE (number IS NOT NULL);

CREATE INDEX featured_events ON event USING btree (id) WHERE featured;

CREATE INDEX guests ON account USING btree (id) WHERE (password_hash IS NULL);

CREATE INDEX guests_of_an_account ON account USING btree (guest_of) WHERE (guest_of IS NOT NULL);

CREATE INDEX holds_by_expiry ON booking USING btree (expires_at) WHERE (state = 'held'::booking_state);

CREATE INDEX idempotent_responses_by_age ON idempotent_response USING btree (started_at);

CREATE INDEX identities_of_an_account ON oidc_identity USING btree (account_id);

CREATE INDEX invitations_by_age ON invitation USING btree (created_at);

CREATE INDEX invitations_to_an_address ON invitation USING btree (email, created_at);

CREATE INDEX journal_of_a_booking ON journal USING btree (show_id, number);

CREATE INDEX keys_by_their_maker ON api_key USING btree (created_by);

CREATE INDEX keys_of_an_organisation ON api_key USING btree (organisation_id, id);

CREATE INDEX listed_shows_by_date ON listing_show USING btree (local_date);

CREATE INDEX listed_shows_by_end ON listing_show USING btree (ends_at);

CREATE INDEX listed_shows_by_start ON listing_show USING btree (starts_at);

CREATE INDEX listed_shows_of_a_city ON listing_show USING btree (city, local_date);

CREATE INDEX listed_shows_of_a_venue ON listing_show USING btree (venue_id, local_date);

CREATE INDEX listed_shows_of_an_event ON listing_show USING btree (event_id, starts_at);

CREATE INDEX listed_venues_by_latitude ON listing_venue USING btree (lat);

CREATE INDEX listed_venues_by_postal_code ON listing_venue USING btree (postal_code COLLATE "C");

CREATE INDEX listed_venues_by_word ON listing_venue USING gin (doc);

CREATE INDEX listings_by_brief_word ON listing USING gin (brief) WITH (fastupdate=off);

CREATE INDEX listings_by_end ON listing USING btree (ends_at);

CREATE INDEX listings_by_popularity ON listing USING btree (unpopular, event_id);

CREATE INDEX listings_by_price ON listing USING btree (COALESCE((from_price_minor)::double precision, 'Infinity'::double precision), event_id);

CREATE INDEX listings_by_rating ON listing USING btree (unrated, event_id);

CREATE INDEX listings_by_time ON listing USING btree (soonest_s, event_id);

CREATE INDEX listings_by_word ON listing USING gin (doc) WITH (fastupdate=off);

CREATE INDEX live_waitlists ON waitlist USING btree (show_id) WHERE is_live;

CREATE INDEX made_up_accounts ON account USING btree (id) WHERE (email ~~ '%@guest.invalid'::text);

CREATE INDEX mail_tokens_by_end ON mail_token USING btree (expires_at);

CREATE INDEX mail_tokens_of_an_account ON mail_token USING btree (account_id);

CREATE INDEX mail_tokens_of_an_address ON mail_token USING btree (email, purpose) WHERE (used_at IS NULL);

CREATE INDEX memberships_of_an_account ON membership USING btree (account_id);

CREATE INDEX missed_turns ON queue_turn USING btree (show_id, opening, recall_at) WHERE (state = 'missed'::text);

CREATE INDEX moves_by_time ON booking_move USING brin (at) WITH (autosummarize='on');

CREATE INDEX notices_by_end ON notice USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX notices_dead ON notice USING btree (id) WHERE (state = 'dead'::notice_state);

CREATE INDEX notices_due ON notice USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX notices_to_an_address ON notice USING btree (address, written_at);

CREATE UNIQUE INDEX one_live_entry_per_account ON waitlist_entry USING btree (show_id, owner_id) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_open_invitation_per_address ON invitation USING btree (organisation_id, email) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_open_return_per_booking ON waitlist_return USING btree (show_id, number) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX one_pass_per_code ON gate_pass USING btree (code_hash) WHERE (code_hash IS NOT NULL);

CREATE UNIQUE INDEX one_payment_per_request ON payment USING btree (owner_id, show_id, request_id) WHERE (step <> ALL (ARRAY['declined'::payment_step, 'called_off'::payment_step, 'expired'::payment_step]));

CREATE UNIQUE INDEX one_ticket_per_serial ON ticket USING btree (show_id, serial);

CREATE UNIQUE INDEX one_warning_per_booking ON notice USING btree (show_id, number, channel) WHERE (kind = 'hold_lapsing'::text);

CREATE INDEX open_offers ON waitlist_offer USING btree (show_id, number) WHERE (outcome IS NULL);

CREATE INDEX open_sessions_of_an_account ON session USING btree (account_id, id) WHERE (ended_at IS NULL);

CREATE INDEX owners_with_lapses ON owner_count USING btree (show_id) WHERE (lapses > 0);

CREATE INDEX parked_in_order ON parked_fact USING btree (group_name, key, fact_id) WHERE (dead_at IS NULL);

CREATE INDEX parties_by_end ON waitlist_entry USING btree (until) WHERE (state = 'waiting'::text);

CREATE INDEX parties_in_order ON waitlist_entry USING btree (show_id, COALESCE(queue_position, '9223372036854775807'::bigint), number) WHERE (state = 'waiting'::text);

CREATE INDEX passes_of_an_account ON gate_pass USING btree (account_id);

CREATE INDEX passkeys_of_an_account ON passkey USING btree (account_id);

CREATE INDEX paying_or_blocked_bookings ON booking USING btree (show_id) WHERE (state = ANY (ARRAY['paying'::booking_state, 'blocked'::booking_state]));

CREATE INDEX payments_by_card ON payment USING btree (show_id, card) WHERE (card IS NOT NULL);

CREATE INDEX payments_by_reference ON payment USING btree (reference) WHERE (reference IS NOT NULL);

CREATE INDEX payments_by_time ON payment USING brin (requested_at);

CREATE INDEX payments_due ON payment USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX pending_proposals ON refund_proposal USING btree (organiser_id, id) WHERE (state = 'pending'::text);

CREATE INDEX people_inside ON queue_turn USING btree (show_id, opening, ends_at) WHERE (freed_at IS NULL);

CREATE INDEX price_plans_due ON price_plan USING btree (due_at);

CREATE INDEX proposals_of_an_organiser ON refund_proposal USING btree (organiser_id, id);

CREATE INDEX queues_at_work ON queue USING btree (show_id) WHERE (state = ANY (ARRAY['scheduled'::text, 'open'::text, 'admitting'::text, 'overridden'::text]));

CREATE INDEX raised_versions ON account USING btree (changed_at) WHERE (version > 1);

CREATE INDEX refresh_tokens_of_a_session ON refresh_token USING btree (session_id);

CREATE INDEX refunds_by_hand ON refund USING btree (requested_at) WHERE (state = 'by_hand'::refund_state);

CREATE INDEX refunds_by_time ON refund USING btree (requested_at, show_id, number, attempt, id);

CREATE INDEX refunds_due ON refund USING btree (due_at) WHERE (state = 'requested'::refund_state);

CREATE INDEX refunds_of_an_organiser ON refund USING btree (organiser_id, requested_at, show_id, number, attempt, id);

CREATE INDEX returns_of_a_booking ON waitlist_return USING btree (show_id, number, id);

CREATE INDEX sales_archived ON sale USING btree (archived_at) WHERE (archived_at IS NOT NULL);

CREATE INDEX sales_by_end ON sale USING btree (closes_at, show_id);

CREATE INDEX sales_to_archive ON sale USING btree (closes_at) WHERE (purged_at IS NULL);

CREATE INDEX sales_to_empty ON sale USING btree (show_id) WHERE (cancelled AND (emptied_at IS NULL));

CREATE INDEX sales_to_rebuild ON sale USING btree (closes_at) WHERE map_stale;

CREATE INDEX secrets_of_a_key ON api_key_secret USING btree (key_id);

CREATE INDEX sessions_that_show_a_guest ON session_guest USING btree (account_id);

CREATE INDEX shows_by_time ON show USING btree (starts_at);

CREATE INDEX shows_moved_lately ON show_pod USING btree (changed_at);

CREATE INDEX shows_of_a_hall ON show USING btree (hall_id, starts_at);

CREATE INDEX shows_of_a_pass ON gate_pass_show USING btree (pass_id);

CREATE INDEX shows_of_an_event ON show USING btree (event_id, starts_at);

CREATE INDEX sign_in_steps_by_end ON sign_in_step USING btree (expires_at);

CREATE INDEX sold_bookings ON booking USING btree (show_id, number) WHERE (state = ANY (ARRAY['confirmed'::booking_state, 'refunded'::booking_state]));

CREATE INDEX stored_messages_by_age ON stored_message USING btree (stored_at);

CREATE INDEX tickets_given_to ON ticket USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE INDEX tickets_waiting_for ON ticket USING btree (owner_email) WHERE (owner_email IS NOT NULL);

CREATE INDEX transfers_to_an_address ON ticket_transfer USING btree (email);

CREATE INDEX turns_ended_early ON queue_turn USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX venues_of_a_city ON venue USING btree (city_id);

CREATE INDEX webhooks_by_age ON gateway_webhook USING btree (received_at);

CREATE INDEX webhooks_dead ON gateway_webhook USING btree (received_at) WHERE dead;

CREATE INDEX webhooks_due ON gateway_webhook USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX words_by_key ON listing_word USING gin (keys) WITH (fastupdate=off);

CREATE TRIGGER audit_entries_stay BEFORE DELETE OR UPDATE ON audit_entry FOR EACH ROW EXECUTE FUNCTION audit_entries_stay();

CREATE TRIGGER booking_moves_as_drawn BEFORE UPDATE OF state ON booking FOR EACH ROW EXECUTE FUNCTION booking_moves_as_drawn();

CREATE TRIGGER check_ins_stay BEFORE DELETE OR UPDATE ON check_in FOR EACH ROW EXECUTE FUNCTION check_ins_stay();

CREATE TRIGGER count_for_account AFTER UPDATE OF seats ON owner_count FOR EACH ROW WHEN (((new.counts_for IS NOT NULL) AND (new.seats <> old.seats) AND (old.counts_for IS NOT NULL))) EXECUTE FUNCTION count_for_account();

CREATE TRIGGER invoices_stay BEFORE DELETE OR UPDATE ON invoice FOR EACH ROW EXECUTE FUNCTION invoices_stay();

CREATE TRIGGER journal_balances AFTER INSERT ON journal REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION journal_balances();

CREATE TRIGGER leave_to_newer_workers BEFORE INSERT OR UPDATE OF due_at ON notice FOR EACH ROW WHEN (((new.due_at <= now()) AND (new.kind <> ALL (ARRAY['hold_lapsing'::text, 'hold_lapsed'::text, 'tickets'::text, 'declined'::text, 'late_booked'::text, 'late_refunded'::text, 'refunded'::text, 'show_changed'::text, 'show_cancelled'::text, 'ticket_given'::text, 'ticket_got'::text, 'ticket_taken_back'::text])))) EXECUTE FUNCTION leave_to_newer_workers();

CREATE TRIGGER limit_proving_mails BEFORE INSERT ON notice FOR EACH ROW WHEN (((new.show_id = 0) OR (new.kind = ANY (ARRAY['ticket_got'::text, 'confirm_address'::text])))) EXECUTE FUNCTION limit_proving_mails();

CREATE TRIGGER organisers_have_an_organisation AFTER INSERT OR UPDATE OF role ON account FOR EACH ROW WHEN ((new.role = 'organiser'::account_role)) EXECUTE FUNCTION organisers_have_an_organisation();

CREATE TRIGGER owners_are_organisations BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();

CREATE TRIGGER owners_are_organisations BEFORE INSERT ON invoice_seller FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();

CREATE TRIGGER owners_are_organisations BEFORE INSERT ON organiser_sender FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();

CREATE TRIGGER owners_are_organisations BEFORE INSERT ON webhook_endpoint FOR EACH ROW EXECUTE FUNCTION owners_are_organisations();

CREATE TRIGGER price_changes_are_never_changed BEFORE DELETE OR UPDATE ON price_change FOR EACH ROW EXECUTE FUNCTION price_changes_are_never_changed();

CREATE TRIGGER publish_cancelled_sale AFTER UPDATE OF cancelled ON sale FOR EACH ROW WHEN ((new.cancelled AND (NOT old.cancelled))) EXECUTE FUNCTION publish_cancelled_sale();

ALTER TABLE sale ENABLE ALWAYS TRIGGER publish_cancelled_sale;

CREATE TRIGGER publish_changed_city AFTER UPDATE ON city FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION publish_change();

CREATE TRIGGER publish_changed_event AFTER UPDATE ON event FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION publish_change();

CREATE TRIGGER publish_changed_sale AFTER UPDATE OF revision ON sale FOR EACH ROW WHEN (((new.revision <> old.revision) AND (NOT new.cancelled))) EXECUTE FUNCTION publish_sale();

ALTER TABLE sale ENABLE ALWAYS TRIGGER publish_changed_sale;

CREATE TRIGGER publish_changed_venue AFTER UPDATE ON venue FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION publish_change();

CREATE TRIGGER publish_new_sale AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION publish_sale();

CREATE TRIGGER publish_prices AFTER INSERT ON price_change REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION publish_prices();

CREATE TRIGGER record_time_change AFTER UPDATE OF starts_at ON show FOR EACH ROW WHEN (((new.starts_at <> old.starts_at) AND (new.revision <> old.revision) AND (NOT new.cancelled))) EXECUTE FUNCTION record_time_change();

CREATE TRIGGER refuse_filed_sale BEFORE UPDATE OF opens_at, closes_at ON sale FOR EACH ROW WHEN (((old.filed_at IS NOT NULL) AND ((new.closes_at <> old.closes_at) OR (new.opens_at <> old.opens_at)))) EXECUTE FUNCTION refuse_filed_sale();

CREATE TRIGGER restore_archived_sale BEFORE UPDATE OF closes_at ON sale FOR EACH ROW WHEN (((old.archived_at IS NOT NULL) AND (new.closes_at <> old.closes_at))) EXECUTE FUNCTION restore_archived_sale();

ALTER TABLE sale ENABLE ALWAYS TRIGGER restore_archived_sale;

CREATE TRIGGER set_refund_organiser BEFORE INSERT ON refund FOR EACH ROW EXECUTE FUNCTION set_refund_organiser();

CREATE TRIGGER terms_are_never_changed BEFORE DELETE OR UPDATE ON show_terms FOR EACH ROW EXECUTE FUNCTION terms_are_never_changed();

ALTER TABLE ONLY webhook_try
    ADD CONSTRAINT a_try_is_of_a_delivery FOREIGN KEY (endpoint_id, fact_id) REFERENCES webhook_delivery(endpoint_id, fact_id) ON DELETE CASCADE;

ALTER TABLE ONLY account
    ADD CONSTRAINT account_guest_of_fkey FOREIGN KEY (guest_of) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY api_key
    ADD CONSTRAINT api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES account(id);

ALTER TABLE ONLY api_key
    ADD CONSTRAINT api_key_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES organisation(id);

ALTER TABLE ONLY api_key_secret
    ADD CONSTRAINT api_key_secret_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id) ON DELETE CASCADE;

ALTER TABLE ONLY consent
    ADD CONSTRAINT consent_organisation_id_kind_version_fkey FOREIGN KEY (organisation_id, kind, version) REFERENCES legal_text(organisation_id, kind, version);

ALTER TABLE ONLY gate_pass_show
    ADD CONSTRAINT gate_pass_show_pass_id_fkey FOREIGN KEY (pass_id) REFERENCES gate_pass(id);

ALTER TABLE ONLY hall
    ADD CONSTRAINT hall_layout_hash_fkey FOREIGN KEY (layout_hash) REFERENCES layout(hash);

ALTER TABLE ONLY hall
    ADD CONSTRAINT hall_venue_id_fkey FOREIGN KEY (venue_id) REFERENCES venue(id);

ALTER TABLE ONLY invitation
    ADD CONSTRAINT invitation_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES organisation(id);

ALTER TABLE ONLY layout_organiser
    ADD CONSTRAINT layout_organiser_hash_fkey FOREIGN KEY (hash) REFERENCES layout(hash);

ALTER TABLE ONLY listing_show
    ADD CONSTRAINT listing_show_event_id_fkey FOREIGN KEY (event_id) REFERENCES listing(event_id) ON DELETE CASCADE;

ALTER TABLE ONLY mail_token
    ADD CONSTRAINT mail_token_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY membership
    ADD CONSTRAINT membership_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id);

ALTER TABLE ONLY membership
    ADD CONSTRAINT membership_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES organisation(id);

ALTER TABLE ONLY oidc_identity
    ADD CONSTRAINT oidc_identity_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY parked_fact
    ADD CONSTRAINT parked_fact_group_name_fkey FOREIGN KEY (group_name) REFERENCES consumer_group(name) ON DELETE CASCADE;

ALTER TABLE ONLY passkey
    ADD CONSTRAINT passkey_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY poster_image
    ADD CONSTRAINT poster_image_event_id_fkey FOREIGN KEY (event_id) REFERENCES event(id) ON DELETE CASCADE;

ALTER TABLE ONLY price_change
    ADD CONSTRAINT price_change_show_id_fkey FOREIGN KEY (show_id) REFERENCES show(id);

ALTER TABLE ONLY price_plan
    ADD CONSTRAINT price_plan_show_id_fkey FOREIGN KEY (show_id) REFERENCES show(id);

ALTER TABLE ONLY price_rules_history
    ADD CONSTRAINT price_rules_history_show_id_fkey FOREIGN KEY (show_id) REFERENCES show(id);

ALTER TABLE ONLY price
    ADD CONSTRAINT price_show_id_fkey FOREIGN KEY (show_id) REFERENCES show(id);

ALTER TABLE ONLY recovery_code
    ADD CONSTRAINT recovery_code_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY refresh_token
    ADD CONSTRAINT refresh_token_session_id_fkey FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE;

ALTER TABLE ONLY revoked_ticket_key
    ADD CONSTRAINT revoked_ticket_key_key_id_fkey FOREIGN KEY (key_id) REFERENCES ticket_key(id);

ALTER TABLE ONLY session
    ADD CONSTRAINT session_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY session_cookie
    ADD CONSTRAINT session_cookie_session_id_fkey FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE;

ALTER TABLE ONLY session_guest
    ADD CONSTRAINT session_guest_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY session_guest
    ADD CONSTRAINT session_guest_session_id_fkey FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE;

ALTER TABLE ONLY show
    ADD CONSTRAINT show_event_id_fkey FOREIGN KEY (event_id) REFERENCES event(id);

ALTER TABLE ONLY show
    ADD CONSTRAINT show_hall_id_fkey FOREIGN KEY (hall_id) REFERENCES hall(id);

ALTER TABLE ONLY show
    ADD CONSTRAINT show_layout_hash_fkey FOREIGN KEY (layout_hash) REFERENCES layout(hash);

ALTER TABLE ONLY show_terms
    ADD CONSTRAINT show_terms_show_id_fkey FOREIGN KEY (show_id) REFERENCES show(id);

ALTER TABLE ONLY sign_in_step
    ADD CONSTRAINT sign_in_step_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY stored_message
    ADD CONSTRAINT stored_message_notice_id_fkey FOREIGN KEY (notice_id) REFERENCES notice(id) ON DELETE CASCADE;

ALTER TABLE ONLY totp
    ADD CONSTRAINT totp_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE;

ALTER TABLE ONLY venue
    ADD CONSTRAINT venue_city_id_fkey FOREIGN KEY (city_id) REFERENCES city(id);

ALTER TABLE ONLY webhook_delivery
    ADD CONSTRAINT webhook_delivery_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoint(id) ON DELETE CASCADE;
