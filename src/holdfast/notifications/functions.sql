-- notifications/functions.sql: whom we write to, and what one person was sent.
-- needs: accounts, house, payments

CREATE OR REPLACE VIEW notice_to_person AS
SELECT address, kind, channel, locale, show_id, number, state, written_at, ended_at FROM notice;

-- What was sent to these addresses, with the stored messages.
CREATE OR REPLACE FUNCTION erase_notices(p_addresses text[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM notice WHERE address = ANY (p_addresses);
$$;

-- The same some time later, when the addresses may be those of other accounts: what was written before then,
-- or for one of the accounts that were erased.
CREATE OR REPLACE FUNCTION erase_earlier_notices(
    p_accounts bigint[], p_addresses text[], p_before timestamptz
) RETURNS void LANGUAGE sql AS $$
    DELETE FROM notice
     WHERE address = ANY (p_addresses) AND (written_at <= p_before OR account_id = ANY (p_accounts));
$$;

-- The release before this one cannot read other kinds than these, and its workers do not look at rows that
-- are due in the infinite future. `lease_due` does: the newer workers send them at once.
CREATE OR REPLACE FUNCTION leave_to_newer_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.due_at := 'infinity';
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER leave_to_newer_workers BEFORE INSERT OR UPDATE OF due_at ON notice
    FOR EACH ROW WHEN (NEW.due_at <= now() AND NEW.kind NOT IN (
        'hold_lapsing', 'hold_lapsed', 'tickets', 'declined', 'late_booked', 'late_refunded', 'refunded',
        'show_changed', 'show_cancelled', 'ticket_given', 'ticket_got', 'ticket_taken_back'))
    EXECUTE FUNCTION leave_to_newer_workers();

-- At most six mails per hour prove an address: links, invitations, and tickets that were given to it.
-- Whichever query writes them, and however many write at once: the lock is there until the transaction ends,
-- so the next one sees what it has written. Writers of several mails write in the order of their addresses.
--
-- What a proved account did itself is always announced: otherwise a thief of a password could first request
-- links, and then change the password unnoticed.
CREATE OR REPLACE FUNCTION limit_proving_mails() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE TRIGGER limit_proving_mails BEFORE INSERT ON notice
    FOR EACH ROW WHEN (NEW.show_id = 0 OR NEW.kind IN ('ticket_got', 'confirm_address'))
    EXECUTE FUNCTION limit_proving_mails();

-- An address is written to when a mailed link has proved it, or when its owner paid after naming it:
-- otherwise anyone could have us write to anyone. The mails that prove an address are the exception; their
-- number is limited. Addresses from before this rule (no time is known) are written to as ever: their owners
-- may have tickets.
CREATE OR REPLACE FUNCTION may_be_written_to(p_account bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT account.is_verified OR account.contact_at = '-infinity'
           OR EXISTS (SELECT FROM payer
                       WHERE payer.owner_id = account.id AND payer.requested_at >= account.contact_at)
      FROM account_profile AS account
     WHERE account.id = p_account;
$$;
