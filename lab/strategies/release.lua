-- Delete a key, but only if it is still its owner's: after its time to live it may be another client's.
-- KEYS[1] the lock, or the key of the seat
-- ARGV    token of the owner
-- Returns 1, or 0 if it was not.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
