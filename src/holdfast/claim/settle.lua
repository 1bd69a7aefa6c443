-- Settle claims, many at once: release, commit, extend them, or write them into a map that lost them.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, msgpack of {{action, claim, ms}, …}; a claim is "id|owner|unit,unit,…"
--         "release"   its units are free again, if the claim is still there
--         "lapse"     the same, and it counts as a claim that ended unused
--         "drop"     as release, and its units are not reserved: the durable store never had a row for it
--         "commit"   its units are committed, even if the claim has ended: the durable store decided
--         "extend"   it ends `ms` from now, if it is still there; 0: it does not end (pinned)
--         "adopt"    the ledger has a live row for it: written into the map, to end `ms` from now; 0: pinned
--         "free"     its units are free: the durable store has given back a committed row
--         "block"    its units are blocked, and "unblock" frees them: no owner's count changes
--         "reserve"  its units are blocked, and "unreserve" frees them: it is not a claim and has no entry
--
-- Returns "map_missing", or msgpack of {epoch, version, {true or false, …}}: was there anything to do?

-- include pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id")
if not meta[1] or meta[2] ~= ARGV[1] then return "map_missing" end
release_expired()

-- Another claim that stands on these units without a row in the ledger is in the wrong: it goes.
local function clear(units)
  local wrong = not_free(units)
  if not wrong then return end
  local on = {}
  for _, unit in ipairs(wrong) do on[unit] = true end
  for _, other in ipairs(redis.call("ZRANGE", ends_key, 0, -1)) do
    local _, theirs = parts(other)
    for _, unit in ipairs(theirs) do
      if on[unit] then release(other) break end
    end
  end
end

local function settle(action, claim, ms)
  local owner, units, id = parts(claim)
  if action == "drop" then return release(claim, "A") and true or false end
  if action == "reserve" then clear(units) put(units, "X") return true end
  if action == "unreserve" then
    for _, unit in ipairs(units) do
      if redis.call("GETRANGE", units_key, unit, unit) == "X" then put({unit}, "A") end
    end
    return true
  end
  if action == "release" or action == "lapse" then
    local released = release(claim)
    if released and action == "lapse" then note_lapses(id, owner) end
    return released and true or false
  end
  if action == "extend" then
    if not redis.call("ZSCORE", ends_key, claim) then return false end
    redis.call("ZADD", ends_key, "XX", ms == 0 and "+inf" or now_ms + ms, claim)
    return true
  end
  local known = redis.call("HGET", owners_key, entry_of(id)) == claim
  if action == "unblock" or action == "free" then
    if release(claim) then return true end
    -- Only the call that removes the entry frees the units. Without this check a late settlement of an old
    -- map would free units that another owner has claimed in the new one.
    if not known then return false end
    redis.call("HDEL", owners_key, entry_of(id))
    put(units, freed_code())
    if action == "free" then count(owner, -#units) end
    return true
  end
  local there = redis.call("ZSCORE", ends_key, claim)
  if action == "adopt" then
    if there then return false end
    clear(units)
    take(id, owner, units, ms, math.huge)
    if ms == 0 then redis.call("ZADD", ends_key, "XX", "+inf", claim) end
    return true
  end
  if there then
    redis.call("ZREM", ends_key, claim)
    count_live(id, owner, #units, -1)
  else
    if known then return false end  -- settled before: counting again would charge the owner twice
    clear(units)
    if action == "commit" then redis.call("HINCRBY", owners_key, owner, #units) end
  end
  redis.call("HSET", owners_key, entry_of(id), claim)  -- its entry from now on
  put(units, action == "commit" and "B" or "X")
  return true
end

local done = {}
for i, one in ipairs(cmsgpack.unpack(ARGV[2])) do done[i] = settle(one[1], one[2], one[3]) end
local epoch = tonumber(meta[1])
return cmsgpack.pack({epoch, publish(epoch), done})
