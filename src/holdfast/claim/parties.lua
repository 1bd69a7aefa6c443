-- Counters beside the units of a pool; included by pool.lua, never run alone. All are fields of `owners`:
--
--   owner            units that the owner has, claimed or committed
--   @party           units of live claims whose id ends in "@party": a range of network addresses, say
--   !owner           live claims of the owner whose ids name a party
--   -owner, -@party  "count:first:last": claims that ended unused within an hour, and when (ms)

local HOUR_MS = 3600000

local function count(field, by)
  if redis.call("HINCRBY", owners_key, field, by) <= 0 then redis.call("HDEL", owners_key, field) end
end

local function party_of(id)
  return string.match(id, "@(.+)$")
end

-- The same request may come again from another party: its id is compared without it.
local function entry_of(id)
  return "#" .. string.match(id, "^[^@]*")
end

-- A claim begins (1) or ends (-1). Committed units are no longer live.
local function count_live(id, owner, n, by)
  local party = party_of(id)
  if not party then return end
  count("@" .. party, n * by)
  count("!" .. owner, by)
end

local function note_lapse(who)
  local lapses, first = string.match(redis.call("HGET", owners_key, "-" .. who) or "", "^(%d+):(%d+):")
  if not lapses or now_ms - first >= HOUR_MS then lapses, first = 0, now_ms end
  redis.call("HSET", owners_key, "-" .. who, string.format("%d:%.0f:%.0f", lapses + 1, first, now_ms))
end

-- Not if meta has the field `forgets_lapses`: an entry per owner would stay as long as the map.
-- Read at the first lapse of a call, so that all other calls cost the same as without it.
local forgets_lapses

local function note_lapses(id, owner)
  if forgets_lapses == nil then forgets_lapses = redis.call("HGET", meta_key, "forgets_lapses") end
  if forgets_lapses then return end
  local party = party_of(id)
  note_lapse(owner)
  if party then note_lapse("@" .. party) end
end

-- How long until an owner or a party may claim again: its last claim beyond the budget ended a moment ago.
-- `noted`: the value of its field "-owner" or "-@party".
local function cooling_ms(noted, lapses_max, cooldown_ms)
  if not noted then return 0 end
  local lapses, last = string.match(noted, "^(%d+):%d+:(%d+)$")
  if tonumber(lapses) < lapses_max then return 0 end
  return math.max(0, last + cooldown_ms - now_ms)
end
