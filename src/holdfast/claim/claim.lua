-- Claim every unit asked for, or none; for many callers at once.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id of the server as the caller knows it,
--         msgpack of {{id, owner, ttl_ms, limit, units, from, to, count}, …}
--         units: these; or, if empty, any `count` free ones between `from` and `to`
--
-- Returns "map_missing", or msgpack of {epoch, version, outcomes}; an outcome is
--   {"claimed", units} · {"taken", units} · {"over_limit", has} · {"not_enough", free} · {"closed"}
-- Same id, same answer: a retry never takes a second set.

-- include pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id", "opens", "closes")
if not meta[1] or meta[2] ~= ARGV[1] then return "map_missing" end
lapse()

local function any_free(from, to, want)
  local found, letters = {}, redis.call("GETRANGE", units_key, from, to - 1)
  local at = 0
  while #found < want do
    at = string.find(letters, "A", at + 1, true)
    if not at then break end
    found[#found + 1] = from + at - 1
  end
  return found
end

local function claim_one(wish)
  local id, owner, ttl_ms, limit, units = wish[1], wish[2], wish[3], wish[4], wish[5]
  if now_ms < tonumber(meta[3]) or now_ms >= tonumber(meta[4]) then return {"closed"} end
  local before = claimed_before(id)
  if before then return {"claimed", before} end
  if #units == 0 then
    units = any_free(wish[6], wish[7], wish[8])
    if #units < wish[8] then return {"not_enough", #units} end
  end
  local taken = not_free(units)
  if taken then return {"taken", taken} end
  if not take(id, owner, units, ttl_ms, limit) then return {"over_limit", has(owner)} end
  return {"claimed", units}
end

local outcomes = {}
for i, wish in ipairs(cmsgpack.unpack(ARGV[2])) do outcomes[i] = claim_one(wish) end
local epoch = tonumber(meta[1])
return cmsgpack.pack({epoch, publish(epoch), outcomes})
