-- Publish a map, if this process still has the permit of begin_rebuild.lua.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, token, lowest first version, then the map: see write_map.lua
--
-- Returns the first version of the map as text; or nothing: the permit is gone, what was loaded is outdated.
--
-- The first version is the server's clock in microseconds, so that versions grow even if Redis lost all it
-- had: a map changes less than once per microsecond, and the next one begins above it. The version of the
-- map before and the caller's lowest one count too: clocks are set back, and those of two servers differ.

-- include write_map

local meta = redis.pcall("HMGET", KEYS[4], "rebuilder", "epoch", "n")
if meta.err or meta[1] ~= ARGV[1] .. " " .. ARGV[2] then return false end
local before = (tonumber(meta[2]) or 0) * 1000000000 + (tonumber(meta[3]) or 0)
local version = math.max(time[1] * 1000000 + time[2], before + 1, tonumber(ARGV[3]))
local epoch = math.floor(version / 1000000000)
write_map(ARGV[1], epoch, version - epoch * 1000000000, 4)
return string.format("%.0f", version)
