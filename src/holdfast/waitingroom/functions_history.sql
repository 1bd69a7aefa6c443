-- waitingroom/functions_history.sql: how queues went, for the replay of a sale.

-- How the queues of a show moved, at most a row per second.
CREATE OR REPLACE VIEW queue_history AS
SELECT show_id, opening, id, at, joined - serving AS waiting, inside FROM queue_log;

-- How long people waited until they were called for the first time.
CREATE OR REPLACE VIEW queue_wait AS
SELECT turn.show_id,
       extract(epoch FROM turn.called_at - queue.opened_at)::int - place.joined_s AS waited_s
  FROM queue_turn AS turn
  JOIN queue USING (show_id, opening)
  JOIN queue_place AS place USING (show_id, opening, number)
 WHERE turn.call = 1;
