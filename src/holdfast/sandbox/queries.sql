-- name: add_payment
INSERT INTO payment (id, reference, amount_minor, currency, state, method, card, code, reason, description,
                     return_url, page, refunded_minor, is_firm, webhooks, due_at, created_at, metadata)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?);

-- name: move_payment
-- Rows in another state stay as they are.
UPDATE payment
SET state = ?, method = ?, card = ?, code = ?, reason = ?, is_firm = ?, webhooks = ?, due_at = ?
WHERE id = ? AND state = ?;

-- name: payment_by_id
SELECT * FROM payment WHERE id = ?;

-- name: payment_by_page
SELECT * FROM payment WHERE page = ? AND page != '';

-- name: payments_by_reference
SELECT * FROM payment WHERE reference = ? ORDER BY seq DESC LIMIT 100;

-- name: payments_since
-- Oldest first, so that what is new meanwhile comes at the end and no page misses it.
SELECT * FROM payment
WHERE created_at >= ? AND (created_at, seq) > (?, ?)
ORDER BY created_at, seq
LIMIT ?;

-- name: payments_due
SELECT * FROM payment WHERE due_at <= ? ORDER BY due_at LIMIT ?;

-- name: next_payment_due
SELECT min(due_at) FROM payment WHERE due_at IS NOT NULL;

-- name: totals
SELECT state, currency, count(*), sum(amount_minor), sum(refunded_minor)
FROM payment
GROUP BY state, currency;

-- name: add_refund
INSERT INTO refund (id, payment_id, amount_minor, state, reason, created_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: count_refund
-- Beyond what was captured, the table's check refuses.
UPDATE payment SET refunded_minor = refunded_minor + ? WHERE id = ? AND state = 'captured';

-- name: refund_by_id
SELECT * FROM refund WHERE id = ?;

-- name: fail_refund
UPDATE refund SET state = 'failed', reason = ? WHERE id = ?;

-- name: put_dispute
INSERT INTO dispute (id, payment_id, amount_minor, state, reason, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (payment_id) DO UPDATE SET state = excluded.state;

-- name: dispute_by_payment
SELECT * FROM dispute WHERE payment_id = ?;

-- name: refunds_by_payment
SELECT * FROM refund WHERE payment_id = ? ORDER BY seq;

-- name: add_webhook
INSERT INTO webhook (id, kind, payment_id, body, created_at, due_at, copies, attempts)
VALUES (?, ?, ?, ?, ?, ?, ?, 0);

-- name: webhooks_due
SELECT * FROM webhook WHERE due_at <= ? ORDER BY due_at, seq LIMIT ?;

-- name: next_webhook_due
SELECT min(due_at) FROM webhook WHERE due_at > ?;

-- name: webhooks_after
SELECT * FROM webhook WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: webhooks_waiting
SELECT count(*) FROM webhook WHERE due_at IS NOT NULL;

-- name: webhook_delivered
UPDATE webhook SET due_at = NULL, copies = 0, delivered_at = ? WHERE seq = ?;

-- name: webhook_failed
-- With no due_at, it is given up.
UPDATE webhook SET due_at = ?, copies = ?, attempts = ? WHERE seq = ?;

-- name: answer_by_key
SELECT print, made, status, body FROM answer WHERE key = ?;

-- name: begin_answer
INSERT INTO answer (key, print, made, created_at) VALUES (?, ?, ?, ?);

-- name: add_answer
INSERT INTO answer (key, print, made, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: end_answer
UPDATE answer SET status = ?, body = ? WHERE key = ?;

-- name: forget_answers
-- Younger ones stay.
DELETE FROM answer
WHERE created_at < ? AND seq IN (SELECT seq FROM answer ORDER BY seq LIMIT ?);

-- name: read_note
SELECT text FROM note WHERE name = ?;

-- name: write_note
INSERT INTO note (name, text) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text;

-- name: forget_answers_since
DELETE FROM answer WHERE made IN (SELECT id FROM payment WHERE created_at > ?);

-- name: forget_webhooks_since
DELETE FROM webhook WHERE payment_id IN (SELECT id FROM payment WHERE created_at > ?);

-- name: forget_refunds_since
DELETE FROM refund WHERE payment_id IN (SELECT id FROM payment WHERE created_at > ?);

-- name: forget_payments_since
DELETE FROM payment WHERE created_at > ?;
