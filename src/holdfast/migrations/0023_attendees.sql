-- 0023_attendees.sql: indexes by which organisers find bookings.
-- works with: 0.1.0
-- outside a transaction

-- Sold bookings of a show, newest first. In place of the index of confirmed ones, which had no order: a HELD
-- booking enters neither.
DROP INDEX CONCURRENTLY IF EXISTS sold_bookings;
CREATE INDEX CONCURRENTLY sold_bookings ON booking (show_id, number) WHERE state IN ('confirmed', 'refunded');
DROP INDEX CONCURRENTLY IF EXISTS confirmed_bookings;

-- People by the words of their names, and guests by the address they gave. Guests have neither at first.
DROP INDEX CONCURRENTLY IF EXISTS accounts_by_name;
CREATE INDEX CONCURRENTLY accounts_by_name ON account USING gin (to_tsvector('simple', name))
    WHERE name <> 'Guest';
DROP INDEX CONCURRENTLY IF EXISTS accounts_by_contact;
CREATE INDEX CONCURRENTLY accounts_by_contact ON account (contact_email) WHERE contact_email IS NOT NULL;
