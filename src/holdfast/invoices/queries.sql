-- Issuing: `sold` and `refunds` in the database that sells the show; then one transaction at home:
-- seller_of_show, lock_numbers, issued, add, set_numbers.

-- name: seller_of_show
SELECT whose.organiser_id, coalesce(seller.name, organisation.name, 'The organiser') AS name,
       coalesce(seller.address, '') AS address, coalesce(seller.tax_number, '') AS tax_number
  FROM show_organiser AS whose
  LEFT JOIN invoice_seller AS seller ON seller.organiser_id = whose.organiser_id
  LEFT JOIN organisation_profile AS organisation ON organisation.id = whose.organiser_id
 WHERE whose.show_id = $1;

-- name: lock_numbers
-- The last number of the organiser. The row stays locked until the commit: two transactions never draw the
-- same number, and one that is rolled back leaves no gap.
INSERT INTO invoice_count AS counted (organiser_id) VALUES ($1)
ON CONFLICT (organiser_id) DO UPDATE SET last_number = counted.last_number
  RETURNING last_number;

-- name: sold
-- Of a booking that was paid for and confirmed; no row: there is nothing to invoice.
  SELECT show_id, number, payment.attempt, payment.amount_minor, payment.fee_minor, payment.tax_minor,
         payment.currency, booking.seats
    FROM payment_for_refund AS payment
    JOIN payable_booking AS booking USING (show_id, number)
   WHERE payment.show_id = $1 AND payment.number = $2 AND payment.step = 'paid'
     AND booking.confirmed_at IS NOT NULL
ORDER BY payment.attempt DESC
   LIMIT 1;

-- name: refunds
  SELECT id, seats, amount_minor, fee_minor, tax_minor, state = 'done' AS is_done
    FROM decided_refund
   WHERE show_id = $1 AND number = $2 AND attempt = $3
ORDER BY id;

-- name: add
INSERT INTO invoice (show_id, number, attempt, organiser_id, seller_name, seller_address, seller_tax,
                     currency, serial, credits, refund_id, seats, amount_minor, fee_minor, tax_minor)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

-- name: set_numbers
UPDATE invoice_count SET last_number = $2 WHERE organiser_id = $1;

-- name: issued
  SELECT *
    FROM invoice
   WHERE show_id = $1 AND number = $2
ORDER BY serial;

-- name: seller
SELECT name, address, tax_number FROM invoice_seller WHERE organiser_id = $1;

-- name: set_seller
-- Invoices that were issued stay as they are.
INSERT INTO invoice_seller (organiser_id, name, address, tax_number) VALUES ($1, $2, $3, $4)
    ON CONFLICT (organiser_id) DO UPDATE
   SET name = excluded.name, address = excluded.address, tax_number = excluded.tax_number;
