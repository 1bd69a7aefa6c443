-- Best available, chosen where it is held. Included by hold.lua. The rule is written down in holds/choice.py,
-- in the same words; a property test holds the two together.
--
-- Runs are searched in the order of their lowest cost (precomputed, in meta), until no later run can win.
-- What is found out for one wish of a batch serves the next: wishes only take seats away, so a run without a
-- window stays without one, and a run's best window stays its best until a buyer gets a seat of that run.

local plans, searches, states_now, runs_now, free_now = {}, {}, nil, {}, nil

local function plan_of(prefer)
  if prefer == "aisle" then prefer = "best" end
  if not plans[prefer] then
    local names = {"runs:" .. prefer, "costs:" .. prefer, "categories", "traits"}
    local fields = redis.call("HMGET", meta_key, unpack(names))
    plans[prefer] = {runs = fields[1], costs = fields[2], categories = fields[3], traits = fields[4]}
  end
  return plans[prefer]
end

-- A run's states as this script has left them.
local function run_states(start, length)
  return runs_now[start] or string.sub(states_now, start + 1, start + length)
end

local function note_taken(window)
  local states, before = run_states(window.run, window.length), window.first - window.run
  local after = string.sub(states, before + window.count + 1)
  runs_now[window.run] = string.sub(states, 1, before) .. string.rep("H", window.count) .. after
  free_now = nil
end

-- Seats were noted as taken, but the request got none: what was found since then is wrong.
local function forget_taken()
  searches, states_now, runs_now = {}, nil, {}
end

-- For requests that got nothing: most of the batch when a show is sold out.
local function free_count()
  free_now = free_now or select(2, string.gsub(redis.call("GET", units_key), "A", ""))
  return free_now
end

-- The next run of the plan with n free seats side by side.
local function read_run(search, plan, n)
  while search.at <= #plan.runs do
    local lowest, length, start = struct.unpack("<HHI", plan.runs, search.at)
    search.at = search.at + 8
    if length >= n and string.find(run_states(start, length), search.free, 1, true) then
      return {lowest = lowest, length = length, start = start}
    end
  end
end

local function comes_before(one, other)
  if not other or one.rank ~= other.rank then return not other or one.rank < other.rank end
  return one.first < other.first
end

-- A search is a chain of the runs read so far that may have a window, each with the best one found in it.
local function best_window(wish, n)
  states_now = states_now or redis.call("GET", units_key)
  local key = table.concat({n, wish.category, wish.prefer, wish.accessible and "accessible" or ""}, " ")
  searches[key] = searches[key] or {at = 1, free = string.rep("A", n)}
  local search, plan = searches[key], plan_of(wish.prefer)
  if not string.find(states_now, search.free, 1, true) then return nil end
  local before, best = search, nil
  while true do
    before.next = before.next or read_run(search, plan, n)
    local run = before.next
    if not run or best and best.is_spotless and run.lowest > best.cost then return best end
    if not run.window or run.seen ~= runs_now[run.start] then
      run.window = best_in_run(wish, n, plan, run, run_states(run.start, run.length))
      run.seen = runs_now[run.start]
    end
    if run.window then
      if comes_before(run.window, best) then best = run.window end
      before = run
    else
      before.next = run.next
    end
  end
end
