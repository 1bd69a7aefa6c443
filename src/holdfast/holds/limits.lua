-- Whether the limits leave room for a request; included by hold.lua, never run alone.
--
-- ARGV[3] … ARGV[7]  seats per party · holds per guest · lapsed holds per owner · per party · cool-down in ms
--
-- Before seats are chosen: a flood of requests that end here costs no search for seats. Nothing else runs
-- between this look and the claim.

local party_seats_max, guest_holds_max = tonumber(ARGV[3]), tonumber(ARGV[4])
local lapses_max, party_lapses_max, cooldown_ms = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local function over_a_limit(request)
  local id, owner, is_guest, n = request[2], request[3], request[6], request[7]
  local wait_ms, party = cooling_ms(owner, lapses_max, cooldown_ms), party_of(id)
  if party then wait_ms = math.max(wait_ms, cooling_ms("@" .. party, party_lapses_max, cooldown_ms)) end
  if wait_ms > 0 then return {"cooling", wait_ms} end
  if not party then return nil end
  local live = redis.call("HMGET", owners_key, "!" .. owner, "@" .. party)
  if is_guest and tonumber(live[1] or 0) >= guest_holds_max then return {"has_hold"} end
  if tonumber(live[2] or 0) + n > party_seats_max then return {"range_full"} end
end
