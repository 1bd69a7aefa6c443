-- Claim all requested units, or none; many requests in one call.
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
-- Same id, same answer: a retry never takes a second set. An id of another owner's claim gets "taken".

-- include pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id", "opens", "closes")
if not meta[1] or meta[2] ~= ARGV[1] then return "map_missing" end
release_expired()

local function any_free(from, to, want)
  local found, states = {}, redis.call("GETRANGE", units_key, from, to - 1)
  local at = 0
  while #found < want do
    at = string.find(states, "A", at + 1, true)
    if not at then break end
    found[#found + 1] = from + at - 1
  end
  return found
end

local function claim_one(request)
  local id, owner, ttl_ms, limit, units = request[1], request[2], request[3], request[4], request[5]
  if now_ms < tonumber(meta[3]) or now_ms >= tonumber(meta[4]) then return {"closed"} end
  local before = string.sub(id, 1, 1) ~= "~" and redis.call("HGET", owners_key, entry_of(id))
  if before then
    local whose, theirs = parts(before)
    return {whose == tostring(owner) and "claimed" or "taken", theirs}
  end
  if #units == 0 then
    units = any_free(request[6], request[7], request[8])
    if #units < request[8] then return {"not_enough", #units} end
  end
  local taken = not_free(units)
  if taken then return {"taken", taken} end
  if not take(id, owner, units, ttl_ms, limit) then return {"over_limit", has(owner)} end
  return {"claimed", units}
end

local outcomes = {}
for i, request in ipairs(cmsgpack.unpack(ARGV[2])) do outcomes[i] = claim_one(request) end
local epoch = tonumber(meta[1])
return cmsgpack.pack({epoch, publish(epoch), outcomes})
