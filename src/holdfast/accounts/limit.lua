-- Take one from a bucket that refills steadily.
--
-- KEYS[1] limit:{…}   string  when the bucket would be full again without further requests, epoch ms
-- ARGV    quota, window_ms
--
-- Returns {"taken"} or {"wait", ms}. The same arithmetic as Buckets.take in limits.py, which stands in
-- for this while Redis cannot be reached. A key ends when its bucket is full: nothing to sweep.

local quota, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local step_ms = window_ms / quota

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + time[2] / 1000

local full_at_ms = math.max(tonumber(redis.call("GET", KEYS[1]) or "0"), now_ms)
local wait_ms = full_at_ms + step_ms - window_ms - now_ms
if wait_ms > 0.001 then return {"wait", math.ceil(wait_ms)} end

full_at_ms = full_at_ms + step_ms
redis.call("SET", KEYS[1], string.format("%.3f", full_at_ms), "PX", math.ceil(full_at_ms - now_ms))
return {"taken"}
