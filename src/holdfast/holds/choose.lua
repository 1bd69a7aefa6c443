-- Best available, chosen where it is held. Included by hold.lua. The rule is written down in holds/choice.py, in the
-- same words; a property test holds the two together.
--
-- Runs are searched in the order of their lowest cost (precomputed, in meta), until no later run can win.

local plan, letters_now, runs_now, too_short = {}, nil, {}, {}

local function plan_of(prefer)
  if prefer == "aisle" then prefer = "best" end
  if not plan[prefer] then
    local fields = redis.call("HMGET", meta_key, "runs:" .. prefer, "costs:" .. prefer, "categories", "traits")
    plan[prefer] = {runs = fields[1], costs = fields[2], categories = fields[3], traits = fields[4]}
  end
  return plan[prefer]
end

-- A run's letters as this script has left them.
local function run_letters(start, length)
  letters_now = letters_now or redis.call("GET", units_key)
  return runs_now[start] or string.sub(letters_now, start + 1, start + length)
end

local function note_taken(start, length, seats)
  local letters = run_letters(start, length)
  for _, seat in ipairs(seats) do
    local i = seat - start + 1
    letters = string.sub(letters, 1, i - 1) .. "H" .. string.sub(letters, i + 1)
  end
  runs_now[start], too_short[start] = letters, nil
end

local function comes_before(a, b)
  if not b then return true end
  for k = 1, 7 do
    if a[k] ~= b[k] then return a[k] < b[k] end
  end
  return false
end

local function fits(wish, traits, categories)
  if wish.category >= 0 and categories ~= string.rep(string.char(wish.category), #categories) then return false end
  if wish.accessible then return string.find(traits, "w", 1, true) ~= nil end
  return not string.find(traits, "[wc]")
end

local function spare(wish, traits)
  if not wish.accessible then return 0 end
  local spaces = select(2, string.gsub(traits, "w", ""))
  local companions = select(2, string.gsub(traits, "c", ""))
  return spaces - 1 + math.abs(companions - (#traits > 1 and 1 or 0))
end

-- The best window of n seats in one run, or nil: {spare, single, restricted, inner, cost, odd, start; run}.
local function best_in_run(wish, n, the_plan, start, length)
  local letters, best, at = run_letters(start, length), nil, 1
  while true do
    local a = string.find(letters, "A", at, true)
    if not a then break end
    local b = (string.find(letters, "[^A]", a) or length + 1) - 1
    for i = a, b - n + 1 do
      local first = start + i - 1
      local traits = string.sub(the_plan.traits, first + 1, first + n)
      if fits(wish, traits, string.sub(the_plan.categories, first + 1, first + n)) then
        local inner = wish.prefer == "aisle" and i ~= 1 and i + n - 1 ~= length
        local one = {
          spare(wish, traits), (i - a == 1 or b - i - n + 1 == 1) and 1 or 0, string.find(traits, "r", 1, true) and 1 or 0,
          inner and 1 or 0, struct.unpack("<H", the_plan.costs, (first + math.floor(n / 2)) * 2 + 1),
          (i - a) % 2, first, run = start, length = length}
        if comes_before(one, best) then best = one end
      end
    end
    at = b + 2
  end
  return best
end

local function best_window(wish, n)
  local the_plan, best = plan_of(wish.prefer), nil
  for at = 1, #the_plan.runs, 8 do
    local lowest, length, start = struct.unpack("<HHI", the_plan.runs, at)
    if best and best[1] + best[2] + best[3] + best[4] == 0 and lowest > best[5] then break end
    if length >= n and not (too_short[start] and too_short[start] <= n) then
      if not string.find(run_letters(start, length), string.rep("A", n), 1, true) then
        too_short[start] = math.min(too_short[start] or n, n)
      else
        local one = best_in_run(wish, n, the_plan, start, length)
        if one and comes_before(one, best) then best = one end
      end
    end
  end
  return best
end
