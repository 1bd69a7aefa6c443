-- Every request takes the next pair of seats: all callers are on one show until it is full, then on the next.
-- wrk -s holds.lua URL -- tokens-file first-show shows pairs-a-show pairs-a-row mode pause-ms
local tokens, show, shows, pairs_a_show, pairs_a_row, mode, at = {}, 0, 0, 0, 0, "win", 0
local path_of, body_of, head_of = {}, {}, {}

function init(args)
  for line in io.lines(args[1]) do tokens[#tokens + 1] = line end
  show, shows = tonumber(args[2]), tonumber(args[3])
  pairs_a_show, pairs_a_row = tonumber(args[4]), tonumber(args[5])
  mode = args[6]
  local pause_ms = tonumber(args[7])
  if pause_ms > 0 then
    function delay() return pause_ms end
  end
  wrk.method = "POST"
  for i = 1, #tokens do
    head_of[i] = {["Authorization"] = "Bearer " .. tokens[i], ["Content-Type"] = "application/json"}
  end
  for i = 0, pairs_a_show - 1 do
    local row, seat = math.floor(i / pairs_a_row), (i % pairs_a_row) * 2 + 1
    local label = row < 26 and string.char(65 + row)
      or string.char(64 + math.floor(row / 26)) .. string.char(65 + row % 26)
    body_of[i] = string.format('{"seats":["%s-%d","%s-%d"]}', label, seat, label, seat + 1)
  end
end

function request()
  local i = at
  at = at + 1
  local head = head_of[i % #tokens + 1]
  -- Everybody has looked at the map before the sale: eight times, so that every worker has.
  if mode == "warm" then
    return wrk.format("GET", "/api/v1/shows/" .. (show + math.floor(i / 8) % shows) .. "/seats", head)
  end
  if mode == "seats" then return wrk.format("GET", "/api/v1/shows/" .. show .. "/seats", head) end
  if string.sub(mode, 1, 5) == "bytes" then
    return wrk.format("GET", "/api/v1/bare/" .. string.sub(mode, 6), head)
  end
  if mode == "bare" then return wrk.format("POST", "/api/v1/bare", head, body_of[i % pairs_a_show]) end
  local nth = mode == "lose" and 0 or math.floor(i / pairs_a_show) % shows
  local body = body_of[i % pairs_a_show]
  return wrk.format("POST", "/api/v1/shows/" .. (show + nth) .. "/holds", head, body)
end

answers = {}
function response(status)
  answers[status] = (answers[status] or 0) + 1
end

local threads = {}
function setup(thread) threads[#threads + 1] = thread end

function done(summary, latency)
  local total = {}
  for _, thread in ipairs(threads) do
    for status, n in pairs(thread:get("answers") or {}) do total[status] = (total[status] or 0) + n end
  end
  io.write(string.format('{"requests":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"errors":%d,"answers":{',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
  local first = true
  for status, n in pairs(total) do
    io.write((first and "" or ",") .. string.format('"%d":%d', status, n))
    first = false
  end
  io.write("}}\n")
end
