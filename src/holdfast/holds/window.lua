-- The best window of one run. Included by hold.lua, ahead of choose.lua. The rule is written down in
-- holds/choice.py, in the same words; a property test holds the two together.

-- What n seats have against them in traits and category; nil if they do not fit the wish.
local function marks_of(wish, traits, categories)
  if wish.category >= 0 and categories ~= string.rep(string.char(wish.category), #categories) then
    return nil
  end
  local restricted = string.find(traits, "r", 1, true) and 2 or 0
  if not wish.accessible then return not string.find(traits, "[wc]") and restricted or nil end
  local spaces = select(2, string.gsub(traits, "w", ""))
  local companions = select(2, string.gsub(traits, "c", ""))
  if spaces == 0 then return nil end
  return (spaces - 1 + math.abs(companions - (#traits > 1 and 1 or 0))) * 8 + restricted
end

-- nil if no n free seats side by side fit. A rank is spare, single, restricted, inner, cost and odd in one
-- number, so that windows are compared without a table each; of equals the lower seat wins.
local function best_in_run(wish, n, plan, run, states)
  local best, best_rank, middle, at = nil, nil, math.floor((n - 1) / 2), 1
  local traits = string.sub(plan.traits, run.start + 1, run.start + run.length)
  local is_plain = wish.category < 0 and not wish.accessible and not string.find(traits, "[rwc]")
  while true do
    local a = string.find(states, "A", at, true)
    if not a then break end
    local b = (string.find(states, "[^A]", a) or run.length + 1) - 1
    for i = a, b - n + 1 do
      local first = run.start + i - 1
      local marks = is_plain and 0
        or marks_of(wish, string.sub(traits, i, i + n - 1), string.sub(plan.categories, first + 1, first + n))
      if marks then
        if i - a == 1 or b - i - n + 1 == 1 then marks = marks + 4 end
        if wish.prefer == "aisle" and i ~= 1 and i + n - 1 ~= run.length then marks = marks + 1 end
        local low, high = string.byte(plan.costs, (first + middle) * 2 + 1, (first + middle) * 2 + 2)
        local rank = (marks * 65536 + high * 256 + low) * 2 + (i - a) % 2
        if not best_rank or rank < best_rank then best, best_rank = first, rank end
      end
    end
    at = b + 2
  end
  if not best then return nil end
  local marks = math.floor(best_rank / 131072)
  return {
    rank = best_rank, first = best, count = n, run = run.start, length = run.length,
    cost = math.floor(best_rank / 2) % 65536,
    is_spotless = marks == 0, leaves_single = math.floor(marks / 4) % 2 == 1}
end
