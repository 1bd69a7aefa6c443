-- invoices/functions.sql: invoices and credit notes, numbered without gaps per organiser.
-- needs: accounts, organisers, payments, refunds

CREATE OR REPLACE FUNCTION invoices_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an invoice is never changed: issue a credit note';
END $$;

CREATE OR REPLACE TRIGGER invoices_stay BEFORE UPDATE OR DELETE ON invoice
    FOR EACH ROW EXECUTE FUNCTION invoices_stay();

-- Issues what a paid booking has no document for yet: its invoice, and a credit note for every refund that is
-- done. Returns all documents of the booking; none if it was not confirmed, or nothing was to pay. The
-- organiser's row in invoice_count is locked until the commit, so that numbers have no gaps and follow time.
CREATE OR REPLACE FUNCTION issue_invoices(p_show bigint, p_number bigint) RETURNS SETOF invoice
LANGUAGE plpgsql AS $$
DECLARE
    v_seller  record;
    v_last    bigint;
    v_payment payment_for_refund;
    v_paper   record;
BEGIN
    SELECT payment.* INTO v_payment
      FROM payment_for_refund AS payment
      JOIN payable_booking AS booking USING (show_id, number)
     WHERE show_id = p_show AND number = p_number AND step = 'paid' AND confirmed_at IS NOT NULL
     ORDER BY attempt DESC
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT event.organiser_id, coalesce(seller.name, account.name, 'The organiser') AS name,
           coalesce(seller.address, '') AS address, coalesce(seller.tax_number, '') AS tax_number
      INTO STRICT v_seller
      FROM show_organiser AS event
      LEFT JOIN invoice_seller seller ON seller.organiser_id = event.organiser_id
      LEFT JOIN account_profile AS account ON account.id = event.organiser_id
     WHERE event.show_id = p_show;

    INSERT INTO invoice_count AS counted (organiser_id) VALUES (v_seller.organiser_id)
        ON CONFLICT (organiser_id) DO UPDATE SET last_number = counted.last_number
        RETURNING last_number INTO v_last;
    FOR v_paper IN
        SELECT 0 AS refund_id, v_payment.amount_minor, v_payment.fee_minor, v_payment.tax_minor,
               ARRAY(SELECT unnest(seats) FROM payable_booking WHERE show_id = p_show AND number = p_number
                      UNION
                     SELECT unnest(seats) FROM decided_refund
                      WHERE show_id = p_show AND number = p_number AND attempt = v_payment.attempt
                      ORDER BY 1) AS seats
         UNION ALL
        SELECT id, amount_minor, fee_minor, tax_minor, seats
          FROM decided_refund
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
