-- Hold seats by name, by wish or by number of places: all asked for, or none; for many callers at once.
--
-- KEYS[1] units:{show}    string  see claim/pool.lua for all five
-- KEYS[2] ends:{show}     zset
-- KEYS[3] owners:{show}   hash
-- KEYS[4] meta:{show}     hash    also: categories, traits, runs:<prefer>, costs:<prefer>
-- KEYS[5] changes:{show}  stream
-- ARGV    run id, msgpack of {{kind, id, owner, ttl_ms, limit, …}, …}
--         "seats"   …, seats, orphan rule (off, warn, refuse), {start, length, …} of the runs they are in
--         "places"  …, from, to, count
--         "best"    …, count, category or -1, prefer, accessible, together
--
-- Returns "map_missing", or msgpack of {epoch, version, outcomes}; an outcome is
--   {"held", seats, better seats or false, together, single left} · {"already_held", seats} ·
--   {"taken", seats} ·
--   {"orphan", better seats} · {"over_limit", has} · {"not_enough", free} · {"closed"}
-- Same id, same seats again: what it asks for now is compared with the ledger's first answer, not here.

-- include holdfast.claim/pool
-- include orphan
-- include window
-- include choose

local meta = redis.call("HMGET", meta_key, "epoch", "run_id", "opens", "closes")
if not meta[1] or meta[2] ~= ARGV[1] then return "map_missing" end
lapse()

local function hold(ask, seats, better, together, single)
  if not take(ask[2], ask[3], seats, ask[4], ask[5]) then return {"over_limit", has(ask[3])} end
  return {"held", seats, better or false, together, single or false}
end

local function hold_seats(ask)
  local seats, rule = ask[6], ask[7]
  local taken = not_free(seats)
  if taken then return {"taken", taken} end
  local better = rule ~= "off" and orphan_better(seats, ask[8])
  if better and rule == "refuse" then return {"orphan", better} end
  return hold(ask, seats, better, true)
end

local function hold_places(ask)
  local found, letters, at = {}, redis.call("GETRANGE", units_key, ask[6], ask[7] - 1), 0
  while #found < ask[8] do
    at = string.find(letters, "A", at + 1, true)
    if not at then return {"not_enough", #found} end
    found[#found + 1] = ask[6] + at - 1
  end
  return hold(ask, found, false, true)
end

-- One window; or, if the wish allows, as few and as large ones as there are.
local function hold_best(ask)
  local wish = {category = ask[7], prefer = ask[8], accessible = ask[9]}
  local seats, left, size, groups, single, last = {}, ask[6], ask[6], 0, false, nil
  while left > 0 do
    if last then note_taken(last) end
    local window = best_window(wish, size)
    if window then
      for seat = window.first, window.first + size - 1 do seats[#seats + 1] = seat end
      left, groups, single, last = left - size, groups + 1, single or window.leaves_single, window
      size = wish.accessible and left or math.min(size, left)
      wish.accessible = false
    elseif ask[10] or size == 1 then
      break
    else
      size = size - 1
    end
  end
  if left > 0 then
    if last then forget_taken() end
    return {"not_enough", free_count()}
  end
  table.sort(seats)
  local outcome = hold(ask, seats, false, groups == 1, single)
  if outcome[1] == "held" then note_taken(last) elseif groups > 1 then forget_taken() end
  return outcome
end

local asked, outcomes = cmsgpack.unpack(ARGV[2]), {}
local by_kind = {seats = hold_seats, places = hold_places, best = hold_best}
local shut = now_ms < tonumber(meta[3]) or now_ms >= tonumber(meta[4])
-- Named seats first: what best available reads afterwards it alone changes.
for _, kind in ipairs({"seats", "places", "best"}) do
  for i, ask in ipairs(asked) do
    if ask[1] == kind then
      local before = claimed_before(ask[2])
      outcomes[i] = before and {"already_held", before} or shut and {"closed"} or by_kind[kind](ask)
    end
  end
end
local epoch = tonumber(meta[1])
return cmsgpack.pack({epoch, publish(epoch), outcomes})
