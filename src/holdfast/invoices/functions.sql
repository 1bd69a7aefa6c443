-- invoices/functions.sql: an invoice that was issued never changes.

CREATE OR REPLACE FUNCTION invoices_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an invoice is never changed: issue a credit note';
END $$;

CREATE OR REPLACE TRIGGER invoices_stay BEFORE UPDATE OR DELETE ON invoice
    FOR EACH ROW EXECUTE FUNCTION invoices_stay();
