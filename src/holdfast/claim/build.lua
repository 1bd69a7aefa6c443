-- Replace a pool's map with one built from the durable store; nothing of the old one stays.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, epoch, then the map: see write_map.lua
--
-- Returns 1, or 0 if the map has this epoch or a later one: another process was faster.

-- include write_map

local epoch = tonumber(ARGV[2])
-- A broken header (another type of key, no number) counts as none: the map is replaced all the same.
local found = redis.pcall("HGET", KEYS[4], "epoch")
local before = type(found) == "string" and tonumber(found) or 0
if before >= epoch then return 0 end

write_map(ARGV[1], epoch, 0, 3)
return 1
