-- 0033_indexes.sql: indexes of tables that are large in an old house, built while it sells.
-- works with: 0.1.0
-- outside a transaction

-- For a rebuild of the map.
DROP INDEX CONCURRENTLY IF EXISTS owners_with_lapses;
CREATE INDEX CONCURRENTLY owners_with_lapses ON owner_count (show_id) WHERE lapses > 0;

DROP INDEX CONCURRENTLY IF EXISTS made_up_accounts;
CREATE INDEX CONCURRENTLY made_up_accounts ON account (id) WHERE email LIKE '%@guest.invalid';

-- How many mails an address got lately, and what to delete with a person.
DROP INDEX CONCURRENTLY IF EXISTS notices_to_an_address;
CREATE INDEX CONCURRENTLY notices_to_an_address ON notice (address, written_at);
DROP INDEX CONCURRENTLY IF EXISTS transfers_to_an_address;
CREATE INDEX CONCURRENTLY transfers_to_an_address ON ticket_transfer (email);
