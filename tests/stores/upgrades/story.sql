-- story.sql: a small sale with a row in every table, for the states that upgrades are tested from.
-- tools/write_upgrade_state.py runs it on a new database and dumps the result. Nothing in it expires: an
-- audit of the dump finds no violations years later.

INSERT INTO account (email, name, password_hash, role, locale, contact_email, guest_of) VALUES
    ('organiser@example.com', 'Omar', 'x', 'organiser', 'en', NULL, NULL),
    ('ann@example.com', 'Ann', 'x', 'fan', 'de', NULL, NULL),
    ('bob@example.com', 'Bob', 'x', 'fan', 'hi', NULL, NULL),
    ('gate@example.com', 'Gita', 'x', 'gate', 'en', NULL, NULL),
    ('1@guest.invalid', 'Guest', NULL, 'fan', 'en', 'guest@example.com', 2);
INSERT INTO session (account_id, expires_at) VALUES (2, '2099-01-01Z');
INSERT INTO refresh_token (hash, session_id, expires_at) VALUES ('\x01', 1, '2099-01-01Z');
INSERT INTO session_cookie (hash, session_id) VALUES ('\x02', 1);
-- The key is the example of RFC 8037: it has signed nothing.
INSERT INTO signing_key (jwk, signs_from)
VALUES (json_build_object('kty', 'OKP', 'crv', 'Ed25519', 'x', '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIYPMLWGcA',
                          'd', 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A'), '2026-01-01Z');

INSERT INTO city (slug, name, country, timezone, lat, lon)
VALUES ('pune', 'Pune', 'IN', 'Asia/Kolkata', 18, 73);
INSERT INTO venue (city_id, name, address, postal_code, lat, lon)
VALUES (1, 'Hall One', 'Main St', '411', 18, 73);
INSERT INTO layout (hash, name, body, seats) VALUES ('abc', 'Ten seats', '{"sections": []}', 10);
INSERT INTO layout_organiser (hash, organiser_id) VALUES ('abc', 1);
INSERT INTO hall (venue_id, name, layout_hash) VALUES (1, 'Large', 'abc');
INSERT INTO event (organiser_id, kind, title, duration_min) VALUES (1, 'concert', 'A concert', 120);
INSERT INTO show (event_id, hall_id, layout_hash, starts_at, ends_at, opens_at, closes_at, currency,
                  hold_ttl_s, owner_seats_max, order_seats_max, orphan_rule)
VALUES (1, 1, 'abc', '2099-06-01 18:00Z', '2099-06-01 20:00Z', '2026-01-01Z', '2099-06-01 18:00Z', 'EUR',
        600, 10, 10, 'off');
INSERT INTO price (show_id, category, price_minor) VALUES (1, 'Standard', 1500);
INSERT INTO show_terms (show_id, revision, fee_minor, fee_bp, tax_bp, refund_policy, card_seats_max)
VALUES (1, 1, 100, 0, 0, '{"steps": [], "keep_fee": false}', 8);
INSERT INTO price_plan (show_id, rules, due_at) VALUES (1, '{"rules": []}', 'infinity');
INSERT INTO price_rules_history (show_id, rules, actor_id) VALUES (1, '{"rules": []}', 1);
INSERT INTO price_change (show_id, revision, category, price_minor, why)
VALUES (1, 1, 'Standard', 1500, 'organiser');
INSERT INTO sale (show_id, opens_at, closes_at, owner_seats_max, revision)
VALUES (1, '2026-01-01Z', '2099-06-01 18:00Z', 10, 1);
UPDATE show SET starts_at = '2099-06-01 17:00Z', revision = 1 WHERE id = 1;
INSERT INTO show_time_change VALUES (1, 1, '2099-06-01 18:00Z', '2099-06-01 17:00Z');

-- Seats 0 and 1: paid, one of them refunded. 2: paid and refunded. 3: free of charge. 4: cancelled.
-- 5: expired. 6: paid too late, and the money went back. 7: blocked.
DO $$
DECLARE
    n bigint[];
    k int;
BEGIN
    SELECT numbers INTO STRICT n FROM open_holds(
        '{1,1,1,1,1,1}', '{2,3,2,3,2,3}', '{r1,r2,r3,r4,r5,r6}', '{1,2,3,4,5,6}', '{c1,c2,c3,c4,c5,c6}',
        '{"","","","","",""}', array_fill(600000, '{6}'), array_fill(1::bigint, '{6}'),
        array_fill('EUR'::text, '{6}'), ARRAY['{0,1}', '{2}', '{3}', '{4}', '{5}', '{6}'],
        ARRAY['{1500,1500}', '{1500}', '{0}', '{1500}', '{1500}', '{1500}'],
        '{3000,1500,0,1500,1500,1500}', false);
    PERFORM cancel_holds('{1}', ARRAY[n[4]], ARRAY[n[4]], 'held', 3);
    UPDATE booking SET expires_at = now() - interval '1 s' WHERE number = n[5];
    PERFORM expire_lapsed('{1}', ARRAY[n[5]]);
    FOREACH k IN ARRAY '{1,2,6}'::int[] LOOP
        PERFORM start_payments(
            '{1}', ARRAY[n[k]], (SELECT array_agg(owner_id) FROM booking WHERE number = n[k]),
            ARRAY['p' || k], '{1}', ARRAY['key' || k], '{tok}', '{""}', ARRAY['card' || k],
            'sandbox', 60, 1000);
    END LOOP;
    PERFORM expire_payments('{1}', ARRAY[n[6]], '{1}', 'watch', 1000);
    PERFORM confirm_payments('{1,1,1}', ARRAY[n[1], n[2], n[6]], '{1,1,1}', '{ref1,ref2,ref6}',
                             '{card1,card2,card6}', '{3000,1500,1500}', '{EUR,EUR,EUR}', '{200,100,100}',
                             '{0,0,0}');
    PERFORM settle_late_payment(1, n[6], 1, false);
    PERFORM record_refund(1, n[1], 1, 1, 'owner', '{1}', 1500, 1500, 100, 0, 'EUR', '', 2, 1000);
    PERFORM record_refund(1, n[2], 1, 1, 'owner', '{2}', 1500, 1500, 100, 0, 'EUR', '', 3, 1000);
    PERFORM count_owners_down('{1,1}', ARRAY[n[1], n[2]], '{1,1}');
    PERFORM settle_refund(1, r.number, r.attempt, r.id, 'done', 'refund' || r.number, NULL, NULL)
       FROM (SELECT * FROM refund ORDER BY number) AS r;
    PERFORM record_chargeback(1, n[1], 1, 'dp_1', 'open', 1500, 'fraudulent', false);
    PERFORM take_gateway_looks('sandbox', 1, 20);
    PERFORM block_seats(1, '{7}', 'House seats', 1);
    INSERT INTO seat_block (show_id, number, release_at, hours_before)
    SELECT 1, number, '2099-05-31 17:00Z', 24 FROM booking WHERE state = 'blocked';

    INSERT INTO gate_pass (account_id, organiser_id, gate, name, starts_at, ends_at)
    VALUES (4, 1, 'North', 'Phone', '2026-01-01Z', '2099-12-31Z');
    INSERT INTO gate_pass_show (show_id, pass_id) VALUES (1, 1);
    PERFORM check_in_now(4, 's1', 'entry', 1, serial, 1, NULL) FROM ticket WHERE seat = 0;
    INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, serial, edition, offline, scanned_at)
    SELECT 1, 1, 's2', 'North', 'entry', 'admitted', serial, 1, true, now() FROM ticket WHERE seat = 0;
    INSERT INTO check_in_conflict (show_id, serial, why, first_id, second_id)
    SELECT 1, serial, 'used', 1, 2 FROM ticket WHERE seat = 0;
    UPDATE ticket SET edition = 2, owner_id = 3 WHERE seat = 3;
    INSERT INTO ticket_transfer (show_id, serial, edition, from_id, to_id, email)
    SELECT 1, serial, 2, 2, 3, 'bob@example.com' FROM ticket WHERE seat = 3;
    INSERT INTO invoice (organiser_id, serial, show_id, number, attempt, seats, amount_minor, fee_minor,
                         tax_minor, currency, seller_name, seller_address, seller_tax)
    VALUES (1, 1, 1, n[1], 1, '{0,1}', 3000, 200, 0, 'EUR', 'Omar', '', '');
    INSERT INTO invoice_count (organiser_id, last_number) VALUES (1, 1);
    INSERT INTO ticket_resend (show_id, number) VALUES (1, n[1]);
    INSERT INTO report_seat VALUES (1, n[1], 0, 'Standard', 'EUR', 1500, 1400, 100, 0, now(), NULL);
    INSERT INTO report_stage VALUES (1, n[1], 'confirmed', now());
    INSERT INTO report_refund SELECT 1, number, attempt, id, amount_minor, 'EUR', state, 0 FROM refund;
    INSERT INTO notice (kind, channel, address, name, locale, show_id, number, state, due_at, ended_at)
    VALUES ('tickets', 'mail', 'ann@example.com', 'Ann', 'de', 1, n[1], 'stored', NULL, now());
    INSERT INTO gateway_webhook (gateway, event_id, kind, show_id, number, attempt, body, done_at)
    VALUES ('sandbox', 'evt_1', 'payment.captured', 1, n[1], 1, '{}', now());
END $$;

INSERT INTO invoice_seller (organiser_id, name) VALUES (1, 'Omar Ltd');
INSERT INTO ticket_key (id, private, secret, signs_from)
VALUES (1, sha256('private'), sha256('secret'), '2026-01-01Z');
INSERT INTO entry_policy (show_id, codes, reentry) VALUES (1, 'live_or_paper', false);
INSERT INTO gate_search (pass_id) VALUES (1);
INSERT INTO stored_message (notice_id, subject, message) VALUES (1, 'Your tickets', 'Hello');
INSERT INTO organiser_sender (organiser_id, from_name) VALUES (1, 'Omar Concerts');
INSERT INTO webhook_endpoint (organiser_id, url, kinds, secret)
VALUES (1, 'https://example.com', '{}', '\x03');
INSERT INTO webhook_delivery (endpoint_id, fact_id, kind, at, payload, state)
VALUES (1, 1, 'x', now(), '{}', 'done');
INSERT INTO webhook_try (endpoint_id, fact_id, turn, status, took_ms, response)
VALUES (1, 1, 1, 200, 5, 'ok');
INSERT INTO reconciliation_run VALUES ('sandbox', now(), now(), now(), 3, 0);
INSERT INTO payment_difference (gateway, key, kind, reference, ours, theirs)
VALUES ('sandbox', 'key9', 'missing', '', 'paid', '');
INSERT INTO consumer_group (name, checkpoint) VALUES ('relay', 1);
INSERT INTO parked_fact (group_name, fact_id, key, fact) VALUES ('relay', 2, 'show:1', '{}');
INSERT INTO consumed_fact (group_name, fact_id) VALUES ('relay', 1);
INSERT INTO listing (event_id, title, kind, language, genre, language_name, genre_name, cities, dates,
                     currency, from_price_minor, ends_at, soonest_s, unrated, brief, doc, words)
VALUES (1, 'A concert', 'concert', '', '', '', '', '{pune}', '{2099-06-01}', 'EUR', 1500,
        '2099-06-01 20:00Z', 0, 10, 'concert:1A', 'concert:1A', '{concert}');
INSERT INTO listing_venue (venue_id, name, city, postal_code, lat, lon, doc)
VALUES (1, 'Hall One', 'pune', '411', 18, 73, 'hall:1');
INSERT INTO listing_show VALUES (1, 1, 1, 'pune', '2099-06-01', '2099-06-01 17:00Z', '2099-06-01 20:00Z',
                                 '2026-01-01Z', '2099-06-01 17:00Z', 'EUR', 1500, 10, 3, 2, false);
INSERT INTO listing_word (word, uses, keys) VALUES ('concert', 1, '{concert}');
INSERT INTO listing_due (what, id, due_at) VALUES ('event', 1, 'infinity');
INSERT INTO listing_tally (kind, tally) VALUES ('', '{}');
INSERT INTO idempotent_response (caller, route, key_hash, body_hash, answer)
VALUES ('account 2', '/', '\x01', '\x02', '\x03');
