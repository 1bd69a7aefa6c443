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
  local party = party_of(id)
  if not party then
    local wait_ms = cooling_ms(redis.call("HGET", owners_key, "-" .. owner), lapses_max, cooldown_ms)
    return wait_ms > 0 and {"cooling", wait_ms} or nil
  end
  -- In one command: each costs a microsecond of the server's only thread.
  local noted = redis.call("HMGET", owners_key, "-" .. owner, "-@" .. party, "!" .. owner, "@" .. party)
  local wait_ms = math.max(cooling_ms(noted[1], lapses_max, cooldown_ms),
    cooling_ms(noted[2], party_lapses_max, cooldown_ms))
  if wait_ms > 0 then return {"cooling", wait_ms} end
  if is_guest and tonumber(noted[3] or 0) >= guest_holds_max then return {"has_hold"} end
  if tonumber(noted[4] or 0) + n > party_seats_max then return {"range_full"} end
end
