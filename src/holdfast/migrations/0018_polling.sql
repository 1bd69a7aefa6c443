-- 0018_polling.sql: look-ups at the gateway share a budget, and reconciliation reads only what is new.

ALTER TABLE payment ADD COLUMN looked_at timestamptz;           -- when its payer last had it looked up

-- Look-ups per second that all processes together may spend on polls. The row is locked for one statement.
-- owner: payments
CREATE TABLE gateway_budget (
    gateway text        PRIMARY KEY,
    full_at timestamptz NOT NULL                          -- when the bucket would be full again
);

-- The last comparison that also read payments which were under way during the one before.
ALTER TABLE reconciliation_run ADD COLUMN deep_at timestamptz NOT NULL DEFAULT 'epoch';
