-- legal/functions.sql: what one person agreed to.

CREATE OR REPLACE VIEW consent_of_person AS
SELECT account_id, organisation_id, kind, version, show_id, number, agreed_at FROM consent;
