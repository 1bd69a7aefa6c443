-- name: add_withdrawn
SELECT withdraw_block($1, $2);
