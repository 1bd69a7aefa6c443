-- Writes a whole map in place of the one before; included by build.lua and rebuild.lua, never run alone.
--
-- ARGV from `first`: units, opens in ms, closes in ms, keep for ms,
--         msgpack of {{claim, left_ms}, …}, msgpack of {owner, units, …},
--         msgpack of {{owner or @party, lapses, ms since the first, ms since the last}, …},
--         then field, value, … to store in meta
-- Durations come in, never instants: the two engines' clocks may differ.

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Many pairs per command: a call each would stop the whole server for the 50 000 entries of a stadium.
local function write(command, key, entries)
  for i = 1, #entries, 1000 do
    redis.call(command, key, unpack(entries, i, math.min(i + 999, #entries)))
  end
end

local function write_map(run_id, epoch, n, first)
  redis.call("UNLINK", KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
  redis.call("SET", KEYS[1], ARGV[first])
  local ends = {}
  for _, one in ipairs(cmsgpack.unpack(ARGV[first + 4])) do
    ends[#ends + 1] = one[2] < 0 and "+inf" or now_ms + one[2]
    ends[#ends + 1] = one[1]
  end
  write("ZADD", KEYS[2], ends)
  write("HSET", KEYS[3], cmsgpack.unpack(ARGV[first + 5]))
  local lapses = {}
  for _, one in ipairs(cmsgpack.unpack(ARGV[first + 6])) do
    lapses[#lapses + 1] = "-" .. one[1]
    lapses[#lapses + 1] = string.format("%d:%.0f:%.0f", one[2], now_ms - one[3], now_ms - one[4])
  end
  write("HSET", KEYS[3], lapses)
  redis.call("HSET", KEYS[4], "epoch", string.format("%.0f", epoch), "n", string.format("%.0f", n),
    "run_id", run_id, "opens", now_ms + tonumber(ARGV[first + 1]),
    "closes", now_ms + tonumber(ARGV[first + 2]), unpack(ARGV, first + 7))
  -- The first version of a map has no changes before it: viewers that are behind take a snapshot.
  redis.call("XADD", KEYS[5], string.format("%.0f-0", epoch * 1000000000 + n), "c", "")
  -- A placeholder: Redis deletes a key that becomes empty, and with it the time at which the key expires.
  redis.call("ZADD", KEYS[2], "+inf", "||")
  redis.call("HSET", KEYS[3], "#", "")
  for i = 1, 5 do redis.call("PEXPIRE", KEYS[i], ARGV[first + 3]) end
end
