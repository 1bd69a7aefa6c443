-- Append to a log that ends where the writer thinks, or not at all.
--
-- KEYS[1] the log    stream  one entry a message; its id is the position
-- ARGV    end, messages_max, then for each message: position, after, body
--
-- Returns {"appended"}, or {"last", position}: the log ends elsewhere, and nothing was written. An empty log
-- ends at 0. Trimmed to about messages_max, the oldest first.

local last = "0"
if redis.call("EXISTS", KEYS[1]) == 1 then
    local info = redis.call("XINFO", "STREAM", KEYS[1])
    for i = 1, #info, 2 do
        if info[i] == "last-generated-id" then last = string.match(info[i + 1], "^%d+") end
    end
end
if last ~= ARGV[1] then return {"last", last} end

for i = 3, #ARGV, 3 do
    local id, after, body = ARGV[i] .. "-0", ARGV[i + 1], ARGV[i + 2]
    redis.call("XADD", KEYS[1], "MAXLEN", "~", ARGV[2], id, "after", after, "body", body)
end
return {"appended"}
