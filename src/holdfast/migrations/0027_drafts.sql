-- 0027_drafts.sql: events, shows and venues that are not public yet, or not any more.
-- works with: 0.1.0

ALTER TABLE event ADD COLUMN published  boolean NOT NULL DEFAULT true;
ALTER TABLE event ADD COLUMN deleted_at timestamptz;     -- the row stays: other rows refer to it
ALTER TABLE venue ADD COLUMN published  boolean NOT NULL DEFAULT true;
ALTER TABLE venue ADD COLUMN deleted_at timestamptz;
ALTER TABLE hall  ADD COLUMN deleted_at timestamptz;     -- with its venue
ALTER TABLE show  ADD COLUMN published  boolean NOT NULL DEFAULT true;
ALTER TABLE show  ADD COLUMN deleted_at timestamptz;

-- The show, its event or its venue is a draft or deleted. Written by refresh_visibility(), so that listings
-- and holds read one column.
ALTER TABLE show ADD COLUMN hidden boolean NOT NULL DEFAULT false;
ALTER TABLE sale ADD COLUMN hidden boolean NOT NULL DEFAULT false;
