-- Requests of accounts that are signed in, with the next token each time. A line of the file is a token, or a
-- token and a pass of a waiting room.
-- wrk -s holds.lua URL -- tokens-file first-show shows pairs-per-show pairs-per-row mode ranges pause-ms
-- Modes:
--   hold      hold the next pair of seats: all connections on one show until it is full, then on the next
--   sold_out  the same pairs of the first show again and again: all but the first requests are refused
--   warm      GET the seat map of every show eight times, so that every worker has loaded it
--   seats     GET the seat map of the first show
--   bare      POST /bare: authentication and JSON as for a hold, nothing else
--   bytesN    GET N bytes that are in memory
local tokens, show, shows, pairs_per_show, pairs_per_row, mode, count = {}, 0, 0, 0, 0, "hold", 0
local bodies, headers = {}, {}

function init(args)
  for line in io.lines(args[1]) do tokens[#tokens + 1] = line end
  show, shows = tonumber(args[2]), tonumber(args[3])
  pairs_per_show, pairs_per_row = tonumber(args[4]), tonumber(args[5])
  mode = args[6]
  local ranges, pause_ms = tonumber(args[7]), tonumber(args[8])
  if pause_ms > 0 then
    function delay() return pause_ms end
  end
  wrk.method = "POST"
  for i = 1, #tokens do
    local token, pass = string.match(tokens[i], "^(%S+) ?(%S*)$")
    headers[i] = {["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json"}
    if pass ~= "" then headers[i]["Admission"] = pass end
    if ranges > 0 then headers[i]["X-Forwarded-For"] = "198.18." .. i % ranges .. ".7" end
  end
  for i = 0, pairs_per_show - 1 do
    local row, seat = math.floor(i / pairs_per_row), (i % pairs_per_row) * 2 + 1
    local label = row < 26 and string.char(65 + row)
      or string.char(64 + math.floor(row / 26)) .. string.char(65 + row % 26)
    bodies[i] = string.format('{"seats":["%s-%d","%s-%d"]}', label, seat, label, seat + 1)
  end
end

function request()
  local i = count
  count = count + 1
  local header = headers[i % #tokens + 1]
  if mode == "warm" then
    return wrk.format("GET", "/api/v1/shows/" .. (show + math.floor(i / 8) % shows) .. "/seats", header)
  end
  if mode == "seats" then return wrk.format("GET", "/api/v1/shows/" .. show .. "/seats", header) end
  if string.sub(mode, 1, 5) == "bytes" then
    return wrk.format("GET", "/api/v1/bare/" .. string.sub(mode, 6), header)
  end
  if mode == "bare" then return wrk.format("POST", "/api/v1/bare", header, bodies[i % pairs_per_show]) end
  local nth = mode == "sold_out" and 0 or math.floor(i / pairs_per_show) % shows
  local body = bodies[i % pairs_per_show]
  return wrk.format("POST", "/api/v1/shows/" .. (show + nth) .. "/holds", header, body)
end

statuses = {}
function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

local threads = {}
function setup(thread) threads[#threads + 1] = thread end

function done(summary, latency)
  local total = {}
  for _, thread in ipairs(threads) do
    for status, n in pairs(thread:get("statuses") or {}) do total[status] = (total[status] or 0) + n end
  end
  io.write(string.format('{"requests":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"errors":%d,"statuses":{',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
  local first = true
  for status, n in pairs(total) do
    io.write((first and "" or ",") .. string.format('"%d":%d', status, n))
    first = false
  end
  io.write("}}\n")
end
