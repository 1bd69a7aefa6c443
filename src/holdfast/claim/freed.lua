-- What units become that come free; included by pool.lua, never run alone.
--
-- A; or X if meta has the field `reserves`: parties wait for freed units, and the durable store decides who
-- gets them. Read when the first unit comes free, so that all other calls cost the same as without it.

local freed

local function freed_code()
  freed = freed or (redis.call("HGET", meta_key, "reserves") and "X" or "A")
  return freed
end
