-- Replace a pool's map with one built from the durable store; nothing of the old one stays.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, epoch, units, opens in ms, closes in ms, keep for ms,
--         msgpack of {{claim, left_ms}, …}, msgpack of {owner, units, …},
--         msgpack of {{owner or @party, lapses, ms since the first, ms since the last}, …},
--         then field, value, … to store in meta
--
-- Returns 1, or 0 if the map has this epoch or a later one: another process was faster.
-- Durations come in, never instants: the two engines' clocks may differ.

local epoch = tonumber(ARGV[2])
-- A broken header (another type of key, no number) counts as none: the map is replaced all the same.
local found = redis.pcall("HGET", KEYS[4], "epoch")
local before = type(found) == "string" and tonumber(found) or 0
if before >= epoch then return 0 end

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("UNLINK", KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
redis.call("SET", KEYS[1], ARGV[3])
-- Many pairs per command: a call each would stop the whole server for the 50 000 entries of a stadium.
local function write(command, key, entries)
  for i = 1, #entries, 1000 do
    redis.call(command, key, unpack(entries, i, math.min(i + 999, #entries)))
  end
end
local ends = {}
for _, one in ipairs(cmsgpack.unpack(ARGV[7])) do
  ends[#ends + 1] = one[2] < 0 and "+inf" or now_ms + one[2]
  ends[#ends + 1] = one[1]
end
write("ZADD", KEYS[2], ends)
write("HSET", KEYS[3], cmsgpack.unpack(ARGV[8]))
local lapses = {}
for _, one in ipairs(cmsgpack.unpack(ARGV[9])) do
  lapses[#lapses + 1] = "-" .. one[1]
  lapses[#lapses + 1] = string.format("%d:%.0f:%.0f", one[2], now_ms - one[3], now_ms - one[4])
end
write("HSET", KEYS[3], lapses)
redis.call("HSET", KEYS[4], "epoch", ARGV[2], "n", 0, "run_id", ARGV[1],
  "opens", now_ms + tonumber(ARGV[4]), "closes", now_ms + tonumber(ARGV[5]), unpack(ARGV, 10))
-- The first version of an epoch has no changes before it: viewers that are behind take a snapshot.
redis.call("XADD", KEYS[5], string.format("%.0f-0", epoch * 1000000000), "c", "")
-- A placeholder: Redis deletes a key that becomes empty, and with it the time at which the key expires.
redis.call("ZADD", KEYS[2], "+inf", "||")
redis.call("HSET", KEYS[3], "#", "")
for i = 1, 5 do redis.call("PEXPIRE", KEYS[i], ARGV[6]) end
return 1
