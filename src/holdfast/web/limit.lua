-- Take one from each of several buckets that refill steadily, or from none of them.
--
-- KEYS[1] limit:{limits}:…  string  when the bucket would be full again without further requests, epoch ms
-- KEYS[2] limit:{limits}:…  string  the same
-- KEYS[3] limit:{limits}:…  string  the same
-- KEYS[4] limit:{limits}:…  string  the same
-- KEYS[5] limit:{limits}:…  string  the same, and there as long as the client is known
-- ARGV    1 to take, -1 to give back; how long the client is known when it is given back, ms (0: not at all);
--         then quota, window_ms, whom it counts of each bucket: all, new or known clients; quota 0: no bucket
--
-- Returns {which, wait in ms, left in it, 1 if known}: the bucket that has to be waited for longest, or that
-- has the least left. The same arithmetic as Buckets in guards.py, which stands in for this while Redis
-- cannot be reached. A key ends when its bucket is full, or when the client is forgotten: nothing to sweep.

local by, known_for_ms, known_key = tonumber(ARGV[1]), tonumber(ARGV[2]), KEYS[5]
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + time[2] / 1000
local known = known_for_ms > 0 and redis.call("EXISTS", known_key) or 0
local others = known == 1 and "new" or "known"
local buckets, longest, least = {}, nil, nil

for i, key in ipairs(KEYS) do
  local quota, window_ms, counts = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), ARGV[3 * i + 2]
  -- Only what was taken is given back: the caller has left the others out.
  if quota > 0 and (by < 0 or counts ~= others) then
    local step_ms = window_ms / quota
    local full_at_ms = math.max(tonumber(redis.call("GET", key) or "0"), now_ms)
    local one = {
      i = i, key = key, full_at_ms = math.max(now_ms, full_at_ms + by * step_ms),
      wait_ms = full_at_ms + step_ms - window_ms - now_ms,
    }
    one.left = math.max(0, math.floor((now_ms + window_ms - one.full_at_ms) / step_ms + 0.001))
    buckets[#buckets + 1] = one
    if not longest or one.wait_ms > longest.wait_ms then longest = one end
    if not least or one.left / quota < least.left / least.quota then least, one.quota = one, quota end
  end
end
if by > 0 and longest and longest.wait_ms > 0.001 then
  return {longest.i, math.ceil(longest.wait_ms), 0, known}
end

for _, one in ipairs(buckets) do
  local left_ms, text = math.ceil(one.full_at_ms - now_ms), string.format("%.3f", one.full_at_ms)
  if one.key == known_key then
    redis.call("SET", one.key, text, "XX", "KEEPTTL")
  elseif left_ms > 0 then
    redis.call("SET", one.key, text, "PX", left_ms)
  else
    redis.call("DEL", one.key)
  end
end
if by < 0 and known_for_ms > 0 and redis.call("PEXPIRE", known_key, known_for_ms) == 0 then
  redis.call("SET", known_key, "0", "PX", known_for_ms)
end
if not least then return {0, 0, 0, known} end
return {least.i, 0, least.left, known}
