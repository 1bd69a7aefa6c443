-- name: issue
-- The papers of a booking, those that were missing included; no row when it has none.
SELECT * FROM issue_invoices($1, $2);

-- name: seller
SELECT name, address, tax_number FROM invoice_seller WHERE organiser_id = $1;

-- name: set_seller
-- Invoices that are out keep what they say.
INSERT INTO invoice_seller (organiser_id, name, address, tax_number) VALUES ($1, $2, $3, $4)
    ON CONFLICT (organiser_id) DO UPDATE
   SET name = excluded.name, address = excluded.address, tax_number = excluded.tax_number;
