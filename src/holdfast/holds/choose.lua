-- Best available, chosen where it is held. Included by hold.lua. The rule is written down in holds/choice.py, in the
-- same words; a property test holds the two together.
--
-- Runs are searched in the order of their lowest cost (precomputed, in meta), until no later run can win. What is found
-- out for one wish of a batch serves the next: wishes only take seats away, so a run without a window stays without,
-- and the best window of a run stays the best until somebody gets a seat of that run.

local SPOTLESS = 131072  -- ranks below have no mark against them

local plans, searches, letters_now, runs_now = {}, {}, nil, {}

local function plan_of(prefer)
  if prefer == "aisle" then prefer = "best" end
  if not plans[prefer] then
    local fields = redis.call("HMGET", meta_key, "runs:" .. prefer, "costs:" .. prefer, "categories", "traits")
    plans[prefer] = {runs = fields[1], costs = fields[2], categories = fields[3], traits = fields[4]}
  end
  return plans[prefer]
end

-- A run's letters as this script has left them.
local function run_letters(start, length)
  return runs_now[start] or string.sub(letters_now, start + 1, start + length)
end

local function note_taken(window)
  local letters, i = run_letters(window.run, window.length), window.first - window.run + 1
  runs_now[window.run] = string.sub(letters, 1, i - 1) .. string.rep("H", window.count) .. string.sub(letters, i + window.count)
end

-- Seats were noted that nobody got: nothing found out since is true.
local function forget_taken()
  searches, letters_now, runs_now = {}, nil, {}
end

-- What seats from..to of a run have against them, in traits and category; nil if they do not fit the wish.
local function marks_of(wish, traits, categories)
  if wish.category >= 0 and categories ~= string.rep(string.char(wish.category), #categories) then return nil end
  local restricted = string.find(traits, "r", 1, true) and 2 or 0
  if not wish.accessible then return not string.find(traits, "[wc]") and restricted or nil end
  local spaces = select(2, string.gsub(traits, "w", ""))
  local companions = select(2, string.gsub(traits, "c", ""))
  if spaces == 0 then return nil end
  return (spaces - 1 + math.abs(companions - (#traits > 1 and 1 or 0))) * 8 + restricted
end

-- The best window of n seats in one run, or nil. A rank is the rule's spare, single, restricted, inner, cost and odd in
-- one number; of equals the lower seat wins.
local function best_in_run(wish, n, plan, run)
  local letters, best, best_rank, at = run_letters(run.start, run.length), nil, nil, 1
  local traits = string.sub(plan.traits, run.start + 1, run.start + run.length)
  local is_plain = wish.category < 0 and not wish.accessible and not string.find(traits, "[rwc]")
  while true do
    local a = string.find(letters, "A", at, true)
    if not a then break end
    local b = (string.find(letters, "[^A]", a) or run.length + 1) - 1
    for i = a, b - n + 1 do
      local first = run.start + i - 1
      local marks = is_plain and 0
        or marks_of(wish, string.sub(traits, i, i + n - 1), string.sub(plan.categories, first + 1, first + n))
      if marks then
        if i - a == 1 or b - i - n + 1 == 1 then marks = marks + 4 end
        if wish.prefer == "aisle" and i ~= 1 and i + n - 1 ~= run.length then marks = marks + 1 end
        local low, high = string.byte(plan.costs, (first + math.floor(n / 2)) * 2 + 1, (first + math.floor(n / 2)) * 2 + 2)
        local rank = (marks * 65536 + high * 256 + low) * 2 + (i - a) % 2
        if not best_rank or rank < best_rank then best, best_rank = first, rank end
      end
    end
    at = b + 2
  end
  return best and {rank = best_rank, first = best, count = n, run = run.start, length = run.length}
end

-- The next run of the plan that has n free seats side by side.
local function read_run(search, plan, n)
  while search.at <= #plan.runs do
    local lowest, length, start = struct.unpack("<HHI", plan.runs, search.at)
    search.at = search.at + 8
    if length >= n and string.find(run_letters(start, length), search.free, 1, true) then
      return {lowest = lowest, length = length, start = start}
    end
  end
end

-- A search is a chain of the runs read so far that may still have a window, with the best one each has.
local function best_window(wish, n)
  letters_now = letters_now or redis.call("GET", units_key)
  local key = table.concat({n, wish.category, wish.prefer, wish.accessible and "accessible" or ""}, " ")
  local search = searches[key] or {at = 1, free = string.rep("A", n)}
  if not string.find(letters_now, search.free, 1, true) then return nil end
  searches[key] = search
  local plan, before, best = plan_of(wish.prefer), search, nil
  while true do
    before.next = before.next or read_run(search, plan, n)
    local run = before.next
    if not run or best and best.rank < SPOTLESS and run.lowest > math.floor(best.rank / 2) then return best end
    if not run.window or run.seen ~= runs_now[run.start] then
      run.window, run.seen = best_in_run(wish, n, plan, run), runs_now[run.start]
    end
    local window = run.window
    if not window then
      before.next = run.next
    else
      if not best or window.rank < best.rank or window.rank == best.rank and window.first < best.first then best = window end
      before = run
    end
  end
end
