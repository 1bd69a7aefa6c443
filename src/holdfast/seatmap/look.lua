-- Let lapsed claims go now, though nobody asks for anything: whoever watches the pool is to see it.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, ms
--
-- Returns -1 (no map), or in how many ms the next claim ends: at most the `ms` asked for.

-- include holdfast.claim/pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id")
if not meta[1] or meta[2] ~= ARGV[1] then return -1 end
lapse()
publish(tonumber(meta[1]))
local first = redis.call("ZRANGE", ends_key, 0, 0, "WITHSCORES")
return math.min(tonumber(first[2] or "inf") - now_ms, tonumber(ARGV[2]))
