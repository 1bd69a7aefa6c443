-- name: create_tables
-- The same tables for all strategies. `sale` has no unique key on purpose: only the strategy stands between a
-- seat and its second buyer. `claim` is the table with the key, for the strategies that rely on one.
CREATE SCHEMA lab;
CREATE TABLE lab.seat (
    show_id    bigint  NOT NULL,
    seat       int     NOT NULL,
    state      text    NOT NULL DEFAULT 'free',
    hold_id    text,
    client     int,
    held_until timestamptz,
    version    int     NOT NULL DEFAULT 0,
    fence      bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (show_id, seat)
);
CREATE TABLE lab.sale (
    show_id bigint NOT NULL,
    seat    int    NOT NULL,
    hold_id text   NOT NULL,
    client  int    NOT NULL
);
CREATE TABLE lab.claim (
    show_id    bigint NOT NULL,
    seat       int    NOT NULL,
    hold_id    text   NOT NULL,
    client     int    NOT NULL,
    held_until timestamptz,  -- NULL: sold
    CONSTRAINT one_claim_per_seat PRIMARY KEY (show_id, seat)
);
CREATE VIEW lab.sold AS
SELECT show_id, seat FROM lab.sale
 UNION ALL
SELECT show_id, unnest(seats) FROM booking WHERE state = 'confirmed';

-- name: empty_tables
TRUNCATE lab.seat, lab.sale, lab.claim;

-- name: add_seats
INSERT INTO lab.seat (show_id, seat) SELECT $1, generate_series(0, $2 - 1);

-- name: sold_rows
-- What the oracle reads: how often each seat was sold according to the ledger.
SELECT seat, count(*)::int AS "rows" FROM lab.sold WHERE show_id = $1 GROUP BY seat;

-- name: read_seat
SELECT state, hold_id, version, fence, held_until > clock_timestamp() AS is_current
  FROM lab.seat
 WHERE show_id = $1 AND seat = $2;

-- name: lock_seat
-- Waits for the transaction that has the row, up to lock_timeout.
SELECT state, hold_id, version, fence, held_until > clock_timestamp() AS is_current
  FROM lab.seat
 WHERE show_id = $1 AND seat = $2
   FOR UPDATE;

-- name: lock_seat_nowait
-- An error if another transaction has the row.
SELECT state, hold_id, version, fence, held_until > clock_timestamp() AS is_current
  FROM lab.seat
 WHERE show_id = $1 AND seat = $2
   FOR UPDATE NOWAIT;

-- name: lock_seat_skip_locked
-- No row if another transaction has it.
SELECT state, hold_id, version, fence, held_until > clock_timestamp() AS is_current
  FROM lab.seat
 WHERE show_id = $1 AND seat = $2
   FOR UPDATE SKIP LOCKED;

-- name: write_held
-- Whatever the row has become since it was read: the caller has to be sure.
UPDATE lab.seat
   SET state = 'held', hold_id = $3, client = $4, version = version + 1,
       held_until = clock_timestamp() + $5::int * interval '1 ms'
 WHERE show_id = $1 AND seat = $2;

-- name: write_sold
-- As write_held, with the row of the sale.
WITH sold AS (
    UPDATE lab.seat
       SET state = 'sold', hold_id = $3, client = $4, version = version + 1
     WHERE show_id = $1 AND seat = $2)
INSERT INTO lab.sale (show_id, seat, hold_id, client) VALUES ($1, $2, $3, $4);

-- name: free_seat
-- Nothing if the hold has lapsed and another client has the seat.
UPDATE lab.seat
   SET state = 'free', hold_id = NULL, version = version + 1
 WHERE show_id = $1 AND seat = $2 AND hold_id = $3 AND state = 'held';

-- name: write_held_version
-- Nothing if the row has changed since it was read.
UPDATE lab.seat
   SET state = 'held', hold_id = $3, client = $4, version = version + 1,
       held_until = clock_timestamp() + $5::int * interval '1 ms'
 WHERE show_id = $1 AND seat = $2 AND version = $6;

-- name: write_sold_version
-- Nothing if the row has changed since it was read.
WITH sold AS (
    UPDATE lab.seat
       SET state = 'sold', version = version + 1
     WHERE show_id = $1 AND seat = $2 AND version = $5
 RETURNING seat)
INSERT INTO lab.sale (show_id, seat, hold_id, client) SELECT $1, seat, $3, $4 FROM sold;

-- name: write_held_fence
-- Nothing if a later owner of the lock has written.
UPDATE lab.seat
   SET state = 'held', hold_id = $3, client = $4, version = version + 1, fence = $6,
       held_until = clock_timestamp() + $5::int * interval '1 ms'
 WHERE show_id = $1 AND seat = $2 AND fence < $6;

-- name: write_sold_fence
-- Nothing if a later owner of the lock has written.
WITH sold AS (
    UPDATE lab.seat
       SET state = 'sold', version = version + 1, fence = $5
     WHERE show_id = $1 AND seat = $2 AND fence < $5
 RETURNING seat)
INSERT INTO lab.sale (show_id, seat, hold_id, client) SELECT $1, seat, $3, $4 FROM sold;

-- name: advisory_lock
-- Until the end of the transaction. pretix takes its locks in the same way, by a number of what is sold.
SELECT pg_advisory_xact_lock($1::int, $2::int);

-- name: insert_claim
-- Nothing if the seat is sold, or held by a claim that has not lapsed.
INSERT INTO lab.claim (show_id, seat, hold_id, client, held_until)
VALUES ($1, $2, $3, $4, clock_timestamp() + $5::int * interval '1 ms')
    ON CONFLICT ON CONSTRAINT one_claim_per_seat DO UPDATE
   SET hold_id = excluded.hold_id, client = excluded.client, held_until = excluded.held_until
 WHERE claim.held_until < clock_timestamp();

-- name: confirm_claim
-- Nothing if the claim has lapsed, or is another client's by now.
WITH sold AS (
    UPDATE lab.claim
       SET held_until = NULL
     WHERE show_id = $1 AND seat = $2 AND hold_id = $3 AND held_until > clock_timestamp()
 RETURNING seat)
INSERT INTO lab.sale (show_id, seat, hold_id, client) SELECT $1, seat, $3, $4 FROM sold;

-- name: release_claim
DELETE FROM lab.claim WHERE show_id = $1 AND seat = $2 AND hold_id = $3 AND held_until IS NOT NULL;

-- name: insert_sale
-- Without any check.
INSERT INTO lab.sale (show_id, seat, hold_id, client) VALUES ($1, $2, $3, $4);

-- name: insert_sale_once
-- Nothing if the seat was sold before: the unique key is the last line of defence.
WITH sold AS (
    INSERT INTO lab.claim (show_id, seat, hold_id, client)
    VALUES ($1, $2, $3, $4)
        ON CONFLICT ON CONSTRAINT one_claim_per_seat DO NOTHING
 RETURNING seat)
INSERT INTO lab.sale (show_id, seat, hold_id, client) SELECT $1, seat, $3, $4 FROM sold;
