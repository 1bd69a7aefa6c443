-- May this process rebuild the map? One process at a time, and only with what it loads after this call.
--
-- KEYS[1] meta:{pool}  hash  see pool.lua; here also `rebuilder` and `rebuild_until`
-- ARGV    run id, token of this attempt, ms for which no other process may begin, and one of
--         "begin"    if there is no map
--         "replace"  if there is one, too: it is withdrawn, as if it had been lost
--         "renew"    the permit of this attempt, if it is still there; 0 ms: give it back
--
-- Returns "begun" · "built": there is a map · "lost": not to be renewed · ms to wait for another process
--
-- The permit is stored in the map's own header. So it is lost with every map that is lost, and a process
-- that loaded before a second loss cannot publish what it has: rebuild.lua finds no permit. It contains the
-- run id, because a header that came back from a disk may contain a permit that was used before.

local permit = ARGV[1] .. " " .. ARGV[2]
local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local meta = redis.pcall("HMGET", KEYS[1], "epoch", "run_id", "rebuilder", "rebuild_until")
if meta.err then  -- not a hash: it cannot be the header of a map
  redis.call("UNLINK", KEYS[1])
  meta = {false, false, false, false}
end
-- Renewing never begins: what this attempt has loaded would be older than the permit.
if ARGV[4] == "renew" and meta[3] ~= permit then return "lost" end
local is_built = meta[1] and meta[2] == ARGV[1]
if is_built and ARGV[4] == "begin" then return "built" end

local is_other = meta[3] and meta[3] ~= permit and string.sub(meta[3], 1, #ARGV[1]) == ARGV[1]
if is_other and now_ms < tonumber(meta[4]) then return tonumber(meta[4]) - now_ms end

-- From now on the scripts report a missing map. Its epoch and n stay: the next version is above them.
redis.call("HSET", KEYS[1], "run_id", "", "rebuilder", permit,
  "rebuild_until", string.format("%.0f", now_ms + tonumber(ARGV[3])))
if not meta[1] then redis.call("PEXPIRE", KEYS[1], 10 * tonumber(ARGV[3])) end
return "begun"
