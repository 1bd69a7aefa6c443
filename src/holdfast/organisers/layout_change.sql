-- name: add_withdrawn
INSERT INTO seat_block (show_id, number, withdrawn) VALUES ($1, $2, true);
