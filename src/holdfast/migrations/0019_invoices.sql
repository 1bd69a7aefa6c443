-- 0019_invoices.sql: invoices and credit notes, numbered without gaps for each organiser.
--
-- A number is drawn from a row, not from a sequence: what is undone leaves no gap. Who draws one has the row
-- to the end of the transaction, so that numbers follow time.

-- Who sells, as it is printed; without a row the organiser's account has its name there.
CREATE TABLE invoice_seller (
    organiser_id bigint PRIMARY KEY,
    name         text   NOT NULL,
    address      text   NOT NULL DEFAULT '',             -- several lines
    tax_number   text   NOT NULL DEFAULT '',
    CONSTRAINT a_seller_has_a_name CHECK (char_length(name) BETWEEN 1 AND 200)
);

CREATE TABLE invoice_count (
    organiser_id bigint PRIMARY KEY,
    last_number  bigint NOT NULL DEFAULT 0
);

-- Never changed: what was sold, or given back, by whom, as of then.
CREATE TABLE invoice (
    organiser_id   bigint      NOT NULL,
    serial         bigint      NOT NULL,                 -- 1, 2, … of the organiser
    show_id        bigint      NOT NULL,
    number         bigint      NOT NULL,                 -- of the booking
    attempt        int         NOT NULL,                 -- the payment it is for
    refund_id      int         NOT NULL DEFAULT 0,       -- 0: the invoice; else what a credit note is for
    credits        bigint,                               -- of a credit note: the serial of its invoice
    seats          int[]       NOT NULL,                 -- sold, or given back; empty: money alone
    amount_minor   bigint      NOT NULL,
    fee_minor      bigint      NOT NULL,
    tax_minor      bigint      NOT NULL,
    currency       text        NOT NULL,
    seller_name    text        NOT NULL,
    seller_address text        NOT NULL,
    seller_tax     text        NOT NULL,
    issued_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organiser_id, serial),
    CONSTRAINT one_paper_a_payment_and_refund UNIQUE (show_id, number, attempt, refund_id),
    CONSTRAINT a_credit_note_names_its_invoice CHECK ((refund_id = 0) = (credits IS NULL)),
    CONSTRAINT lines_are_part_of_it CHECK (fee_minor >= 0 AND tax_minor >= 0
                                           AND fee_minor + tax_minor <= amount_minor)
);

CREATE FUNCTION invoices_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an invoice is never changed: a credit note takes it back';
END $$;

CREATE TRIGGER invoices_stay BEFORE UPDATE OR DELETE ON invoice
    FOR EACH ROW EXECUTE FUNCTION invoices_stay();

-- What a booking that was paid for has no paper for yet: its invoice, and a credit note for every refund that
-- has been made. All papers of the booking; none when it was not confirmed, or nothing was to pay.
CREATE FUNCTION issue_invoices(p_show bigint, p_number bigint) RETURNS SETOF invoice LANGUAGE plpgsql AS $$
DECLARE
    v_seller  record;
    v_last    bigint;
    v_payment payment;
    v_paper   record;
BEGIN
    SELECT payment.* INTO v_payment
      FROM payment
      JOIN booking USING (show_id, number)
     WHERE show_id = p_show AND number = p_number AND step = 'paid' AND confirmed_at IS NOT NULL
     ORDER BY attempt DESC
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT event.organiser_id, coalesce(seller.name, account.name, 'The organiser') AS name,
           coalesce(seller.address, '') AS address, coalesce(seller.tax_number, '') AS tax_number
      INTO STRICT v_seller
      FROM show
      JOIN event ON event.id = show.event_id
      LEFT JOIN invoice_seller seller ON seller.organiser_id = event.organiser_id
      LEFT JOIN account ON account.id = event.organiser_id
     WHERE show.id = p_show;

    INSERT INTO invoice_count AS counted (organiser_id) VALUES (v_seller.organiser_id)
        ON CONFLICT (organiser_id) DO UPDATE SET last_number = counted.last_number
        RETURNING last_number INTO v_last;
    FOR v_paper IN
        SELECT 0 AS refund_id, v_payment.amount_minor, v_payment.fee_minor, v_payment.tax_minor,
               ARRAY(SELECT unnest(seats) FROM booking WHERE show_id = p_show AND number = p_number
                      UNION
                     SELECT unnest(seats) FROM refund
                      WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
                      ORDER BY 1) AS seats
         UNION ALL
        SELECT id, amount_minor, fee_minor, tax_minor, seats
          FROM refund
         WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
           AND state = 'done' AND amount_minor > 0
         ORDER BY refund_id
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM invoice
             WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
               AND refund_id = v_paper.refund_id
        );
        v_last := v_last + 1;
        INSERT INTO invoice (organiser_id, serial, show_id, number, attempt, refund_id, credits, seats,
                             amount_minor, fee_minor, tax_minor, currency,
                             seller_name, seller_address, seller_tax)
        VALUES (v_seller.organiser_id, v_last, p_show, p_number, v_payment.attempt, v_paper.refund_id,
                (SELECT serial FROM invoice
                  WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
                    AND refund_id = 0 AND v_paper.refund_id <> 0),
                v_paper.seats, v_paper.amount_minor, v_paper.fee_minor, v_paper.tax_minor, v_payment.currency,
                v_seller.name, v_seller.address, v_seller.tax_number);
    END LOOP;
    UPDATE invoice_count SET last_number = v_last WHERE organiser_id = v_seller.organiser_id;
    RETURN QUERY SELECT * FROM invoice WHERE show_id = p_show AND number = p_number ORDER BY serial;
END $$;
