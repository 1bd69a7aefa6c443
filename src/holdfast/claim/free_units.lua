-- Free committed units by number, whichever claims committed them.
--
-- KEYS[1] units:{pool}    string  see pool.lua for all five
-- KEYS[2] ends:{pool}     zset
-- KEYS[3] owners:{pool}   hash
-- KEYS[4] meta:{pool}     hash
-- KEYS[5] changes:{pool}  stream
-- ARGV    run id, msgpack of {unit, …}
--
-- Returns "map_missing", or msgpack of {epoch, version, how many units it freed}
-- Looks through all entries of the pool: a caller that has the claim frees it with settle.lua.

-- include pool

local meta = redis.call("HMGET", meta_key, "epoch", "run_id")
if not meta[1] or meta[2] ~= ARGV[1] then return "map_missing" end
release_expired()

local wanted = {}
for _, unit in ipairs(cmsgpack.unpack(ARGV[2])) do
  if redis.call("GETRANGE", units_key, unit, unit) == "B" then wanted[unit] = true end
end

local freed_count, entries = 0, redis.call("HGETALL", owners_key)
for i = 1, #entries, 2 do
  if string.find(entries[i], "^#.") then
    local owner, units, id = parts(entries[i + 1])
    local stay, go = {}, {}
    for _, unit in ipairs(units) do
      local list = wanted[unit] and go or stay
      list[#list + 1] = unit
    end
    if #go > 0 then  -- the claim goes on with the units that stay: they can be freed by its new name
      local rest = id .. "|" .. owner .. "|" .. table.concat(stay, ",")
      if #stay > 0 then redis.call("HSET", owners_key, entries[i], rest)
      else redis.call("HDEL", owners_key, entries[i]) end
      put(go, freed_code())
      count(owner, -#go)
      freed_count = freed_count + #go
    end
  end
end
local epoch = tonumber(meta[1])
return cmsgpack.pack({epoch, publish(epoch), freed_count})
