-- 0020_outbox_indexes.sql: two questions that read whole tables. Measured with a million rows in each.

-- A booking that gives some seats back writes into its own facts how it was before (give_up_seats), and
-- holds its locks meanwhile: 360 ms before, 0.2 ms now. Adding a fact costs what it did, within noise.
CREATE INDEX facts_of_a_booking ON outbox (show_id, number) WHERE number IS NOT NULL;

-- Which shows something happened in lately (shows_with_moves): asked every few seconds by every worker, 470
-- ms before. Rows are only ever added, in the order of their times: a range of pages has an entry, not a row.
CREATE INDEX moves_by_time ON booking_move USING brin (at) WITH (autosummarize = on);
