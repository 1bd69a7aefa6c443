-- The map as it is now, without expired claims.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, version the caller has (0: none), "claims" to get the claims too
--
-- Returns {"map_missing"} · {"same", version} · {"map", epoch, version, units[, {claim, end_ms, …}]}
-- with versions as text.

-- include pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id")
if not meta[1] or meta[2] ~= ARGV[1] then return {"map_missing"} end
release_expired()
local version = string.format("%.0f", publish(tonumber(meta[1])))
if version == ARGV[2] then return {"same", version} end
local map = {"map", meta[1], version, redis.call("GET", units_key)}
if ARGV[3] == "claims" then map[5] = redis.call("ZRANGE", ends_key, 0, -1, "WITHSCORES") end
return map
