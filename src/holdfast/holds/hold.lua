-- Hold seats by name, best available or by number of places: all or none; many requests in one call.
--
-- KEYS[1] units:{show}    string  see claim/pool.lua for all five
-- KEYS[2] ends:{show}     zset
-- KEYS[3] owners:{show}   hash
-- KEYS[4] meta:{show}     hash    also: categories, traits, runs:<prefer>, costs:<prefer>
-- KEYS[5] changes:{show}  stream
-- ARGV    run id, msgpack of {{kind, id, owner, ttl_ms, limit, is a guest, count, …}, …}, limits (limits.lua)
--         "seats"   …, seats, orphan rule (off, warn, refuse), {start, length, …} of the runs they are in
--         "places"  …, from, to
--         "best"    …, category or -1, prefer, accessible, together
--
-- Returns "map_missing", or msgpack of {epoch, version, outcomes}; an outcome is
--   {"held", seats, better seats or false, together, single left} · {"already_held", seats} ·
--   {"taken", seats} · {"orphan", better seats} · {"over_limit", has} · {"not_enough", free} · {"closed"} ·
--   {"cooling", ms} · {"has_hold"} · {"range_full"}
-- Same id, same seats again. PostgreSQL compares the request with the first one; this script does not.

-- include holdfast.claim/pool
-- include orphan
-- include window
-- include choose
-- include limits

local meta = redis.call("HMGET", meta_key, "epoch", "run_id", "opens", "closes")
if not meta[1] or meta[2] ~= ARGV[1] then return "map_missing" end
release_expired()

local function hold(request, seats, better, together, single)
  local id, owner, ttl_ms, limit = request[2], request[3], request[4], request[5]
  if not take(id, owner, seats, ttl_ms, limit) then return {"over_limit", has(owner)} end
  return {"held", seats, better or false, together, single or false}
end

local function hold_seats(request)
  local seats, rule = request[8], request[9]
  local taken = not_free(seats)
  if taken then return {"taken", taken} end
  local better = rule ~= "off" and orphan_better(seats, request[10])
  if better and rule == "refuse" then return {"orphan", better} end
  return hold(request, seats, better, true)
end

local function hold_places(request)
  local found, states, at = {}, redis.call("GETRANGE", units_key, request[8], request[9] - 1), 0
  while #found < request[7] do
    at = string.find(states, "A", at + 1, true)
    if not at then return {"not_enough", #found} end
    found[#found + 1] = request[8] + at - 1
  end
  return hold(request, found, false, true)
end

-- One window; or, if the wish allows, as few and as large ones as there are.
local function hold_best(request)
  local wish = {category = request[8], prefer = request[9], accessible = request[10]}
  local seats, left, size, groups, single, last = {}, request[7], request[7], 0, false, nil
  while left > 0 do
    if last then note_taken(last) end
    local window = best_window(wish, size)
    if window then
      for seat = window.first, window.first + size - 1 do seats[#seats + 1] = seat end
      left, groups, single, last = left - size, groups + 1, single or window.leaves_single, window
      size = wish.accessible and left or math.min(size, left)
      wish.accessible = false
    elseif request[11] or size == 1 then
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
  local outcome = hold(request, seats, false, groups == 1, single)
  if outcome[1] == "held" then note_taken(last) elseif groups > 1 then forget_taken() end
  return outcome
end

local requests, outcomes = cmsgpack.unpack(ARGV[2]), {}
local by_kind = {seats = hold_seats, places = hold_places, best = hold_best}
local is_closed = now_ms < tonumber(meta[3]) or now_ms >= tonumber(meta[4])
-- Named seats first: best available caches the states it has read, so nothing else may change them after.
for _, kind in ipairs({"seats", "places", "best"}) do
  for i, request in ipairs(requests) do
    if request[1] == kind then
      local before = claimed_before(request[2])
      outcomes[i] = before and {"already_held", before} or is_closed and {"closed"}
        or over_a_limit(request) or by_kind[kind](request)
    end
  end
end
local epoch = tonumber(meta[1])
return cmsgpack.pack({epoch, publish(epoch), outcomes})
