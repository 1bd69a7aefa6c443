-- 0042_archive.sql: sales of long past shows whose rows are in files, and no longer in the ledger.
-- works with: 0.1.0

ALTER TABLE sale ADD COLUMN filed_at timestamptz;        -- when `holdfast archive` had verified its files
ALTER TABLE sale ADD COLUMN filed_as text;               -- SHA-256 of their manifest
