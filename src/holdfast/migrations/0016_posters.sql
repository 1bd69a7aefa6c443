-- 0016_posters.sql: posters that organisers upload, in the database that all machines share.

ALTER TABLE event ADD COLUMN poster_alt text NOT NULL DEFAULT '';  -- what the poster shows, in words
ALTER TABLE event ADD CONSTRAINT a_poster_is_described_in_a_sentence CHECK (char_length(poster_alt) <= 300);

-- A poster in one width. The address has the hash: a new poster has a new address.
-- owner: organisers
CREATE TABLE poster_image (
    event_id  bigint      NOT NULL REFERENCES event ON DELETE CASCADE,
    width     int         NOT NULL,
    hash      text        NOT NULL,
    image     bytea       NOT NULL,                     -- WebP
    stored_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event_id, width)
);
ALTER TABLE poster_image ALTER COLUMN image SET STORAGE EXTERNAL;  -- compressed already
