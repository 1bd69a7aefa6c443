-- What every script of a pool shares; included, never run alone.
--
--   units    string  one byte per unit: A free, H claimed, B committed, X blocked or reserved
--   ends     zset    claim -> end in ms; a claim is "id|owner|unit,unit,…", so that it can free its own units
--   owners   hash    "#id" -> claim: the same id gives the same claim; counters: see parties.lua
--   meta     hash    epoch, n, run_id, opens, closes and whatever the pool's owner keeps beside them
--   changes  stream  what changed, by version
--
-- Only the server's clock counts; only the call that removes a claim's entry frees its units; expired claims
-- are released before any decision.

local units_key, ends_key, owners_key, meta_key, changes_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local time = redis.call("TIME")
local now_ms, changed = time[1] * 1000 + math.floor(time[2] / 1000), {}

-- include parties
-- include freed

local function put(units, code)
  local first = 1
  changed[#changed + 1] = table.concat(units, code .. ",") .. code
  for i, unit in ipairs(units) do
    if units[i + 1] ~= unit + 1 then  -- the last of a stretch side by side: one write for all of it
      redis.call("SETRANGE", units_key, units[first], string.rep(code, i - first + 1))
      first = i + 1
    end
  end
end

local function parts(claim)
  local id, owner, list = string.match(claim, "^([^|]*)|([^|]*)|(.*)$")
  local units = {}
  for unit in string.gmatch(list, "%d+") do units[#units + 1] = tonumber(unit) end
  return owner, units, id
end

local function release(claim, code)
  if redis.call("ZREM", ends_key, claim) == 0 then return false end
  local owner, units, id = parts(claim)
  put(units, code or freed_code())
  count(owner, -#units)
  count_live(id, owner, #units, -1)
  redis.call("HDEL", owners_key, entry_of(id))
  return id, owner
end

local function release_expired()
  for _, claim in ipairs(redis.call("ZRANGEBYSCORE", ends_key, "-inf", now_ms)) do
    note_lapses(release(claim))
  end
end

-- The units of these that are not free.
local function not_free(units)
  local n, taken = #units, nil
  if units[n] - units[1] + 1 == n  -- side by side, as most are: one look for all
    and redis.call("GETRANGE", units_key, units[1], units[n]) == string.rep("A", n) then return nil end
  for _, unit in ipairs(units) do
    if redis.call("GETRANGE", units_key, unit, unit) ~= "A" then
      taken = taken or {}
      taken[#taken + 1] = unit
    end
  end
  return taken
end

-- All units are free: the caller has looked. False, and nothing taken, if the owner would be over the limit.
local function take(id, owner, units, ttl_ms, limit)
  if redis.call("HINCRBY", owners_key, owner, #units) > limit then
    count(owner, -#units)
    return false
  end
  local claim = id .. "|" .. owner .. "|" .. table.concat(units, ",")
  put(units, "H")
  count_live(id, owner, #units, 1)
  redis.call("ZADD", ends_key, now_ms + ttl_ms, claim)
  if string.sub(id, 1, 1) ~= "~" then redis.call("HSET", owners_key, entry_of(id), claim) end
  return true
end

-- The units this id has claimed before, or nil. An id that starts with ~ is unique:
-- it is never sent again, so it needs no lookup and no entry.
local function claimed_before(id)
  local claim = string.sub(id, 1, 1) ~= "~" and redis.call("HGET", owners_key, entry_of(id))
  return claim and select(2, parts(claim)) or nil
end

local function has(owner)
  return tonumber(redis.call("HGET", owners_key, owner) or 0)
end

-- Call last: makes the changes of this run one step of the version, and tells them.
local function publish(epoch)
  local version = epoch * 1000000000 + redis.call("HINCRBY", meta_key, "n", #changed > 0 and 1 or 0)
  if #changed > 0 then
    local id = string.format("%.0f-0", version)
    redis.call("XADD", changes_key, "MAXLEN", "~", 2000, id, "c", table.concat(changed, ","))
  end
  return version
end
