-- Would this choice leave a single seat that is hard to sell? Included by hold.lua.
--
-- The rule is written down in holds/orphans.py, in the same words.

local function is_single(states, i)
  return string.sub(states, i, i) == "A" and string.sub(states, i - 1, i - 1) ~= "A"
    and string.sub(states, i + 1, i + 1) ~= "A"
end

-- A run's states now, and after some seats are taken: is there a single that was none before?
local function leaves_single(states, after)
  -- One search instead of a comparison per seat: nearly always no seat is left single.
  if not string.find("-" .. after .. "-", "[^A]A[^A]") then return false end
  for i = 1, #states do
    if is_single(after, i) and not is_single(states, i) then return true end
  end
  return false
end

local function is_special(traits, i, n)
  return string.find(string.sub(traits, i, i + n - 1), "[wc]") ~= nil
end

-- The nearest stretch of n free seats in this run that leaves no single; nil if there is none.
local function better_stretch(states, traits, near, n)
  local best, best_far
  for i = 1, #states - n + 1 do
    if string.sub(states, i, i + n - 1) == string.rep("A", n) and not is_special(traits, i, n) then
      local after = string.sub(states, 1, i - 1) .. string.rep("H", n) .. string.sub(states, i + n)
      local far = math.abs(i - near)
      if (not best or far < best_far) and not leaves_single(states, after) then best, best_far = i, far end
    end
  end
  return best
end

-- nil if the choice is fine, else the seats that would be better. `runs`: {start, length, …} of all touched.
local function orphan_better(seats, runs)
  local better, found, in_no_run = {}, false, {}
  for _, seat in ipairs(seats) do in_no_run[seat] = true end
  for r = 1, #runs, 2 do
    local start, length = runs[r], runs[r + 1]
    local states = redis.call("GETRANGE", units_key, start, start + length - 1)
    local after, picked = states, {}
    for _, seat in ipairs(seats) do
      local i = seat - start + 1
      if i >= 1 and i <= length then
        picked[#picked + 1], in_no_run[seat] = i, nil
        after = string.sub(after, 1, i - 1) .. "H" .. string.sub(after, i + 1)
      end
    end
    local at
    if leaves_single(states, after) then
      local traits = string.sub(redis.call("HGET", meta_key, "traits"), start + 1, start + length)
      local special = false
      for _, i in ipairs(picked) do special = special or is_special(traits, i, 1) end
      at = not special and better_stretch(states, traits, picked[1], #picked)
    end
    for k, i in ipairs(picked) do better[#better + 1] = start + (at and at + k - 1 or i) - 1 end
    found = found or at
  end
  for seat in pairs(in_no_run) do better[#better + 1] = seat end  -- standing places are fine where they are
  table.sort(better)
  return found and better or nil
end
