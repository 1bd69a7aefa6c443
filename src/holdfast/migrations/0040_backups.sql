-- 0040_backups.sql: when backups were made, so that an old one is noticed from any machine.
-- works with: 0.1.0

-- owner: backup
CREATE TABLE backup_made (
    made_at timestamptz NOT NULL DEFAULT now(),
    made_by text        NOT NULL                         -- holdfast, or the tool that a person named
);
