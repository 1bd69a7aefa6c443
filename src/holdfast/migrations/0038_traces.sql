-- 0038_traces.sql: facts carry the trace of the request that wrote them.
-- works with: 0.1.0

-- The traceparent of W3C Trace Context, if the request was sampled. By default from a setting of the
-- transaction: the functions that write facts need not know of it. No existing row is rewritten.
ALTER TABLE outbox ADD COLUMN trace text DEFAULT nullif(current_setting('holdfast.trace', true), '');
