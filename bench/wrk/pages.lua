-- GET the pages in turn as fast as possible; with a pause, connections * 1000 / pause-ms per second.
-- wrk -s pages.lua URL -- paths-file pause-ms
function init(args)
  local requests, count = {}, 0
  for path in io.lines(args[1]) do requests[#requests + 1] = wrk.format("GET", path) end
  if #requests == 1 then
    wrk.path = string.match(requests[1], "GET (%S+)")  -- faster: wrk does not call request()
  else
    function request()
      count = count + 1
      return requests[count % #requests + 1]
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
