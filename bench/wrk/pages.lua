-- Pages in turn, as many as can be had; with a pause after each, connections * 1000 / pause a second.
-- wrk -s pages.lua URL -- paths-file pause-ms
function init(args)
  local asked, at = {}, 0
  for path in io.lines(args[1]) do asked[#asked + 1] = wrk.format("GET", path) end
  if #asked == 1 then
    wrk.path = string.match(asked[1], "GET (%S+)")  -- one and the same: wrk need not ask us again
  else
    function request()
      at = at + 1
      return asked[at % #asked + 1]
    end
  end
  local pause_ms = tonumber(args[2])
  if pause_ms > 0 then
    function delay() return pause_ms end
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"errors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
