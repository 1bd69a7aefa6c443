-- Release expired claims now, without waiting for the next request: viewers of the pool must see it.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, ms
--
-- Returns -1 (no map), or in how many ms the next claim ends: at most the given `ms`.

-- include holdfast.claim/pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id")
if not meta[1] or meta[2] ~= ARGV[1] then return -1 end
release_expired()
publish(tonumber(meta[1]))
local first = redis.call("ZRANGE", ends_key, 0, 0, "WITHSCORES")
return math.min(tonumber(first[2] or "inf") - now_ms, tonumber(ARGV[2]))
