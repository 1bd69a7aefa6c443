-- Remove the end of a seat's key after the sale, but only if it is still its owner's.
-- KEYS[1] the key of the seat
-- ARGV    token of the owner
-- Returns 1, or 0 if it was not.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PERSIST', KEYS[1])
end
return 0
