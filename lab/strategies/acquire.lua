-- Take a lock, and a number that grows with every owner.
-- KEYS[1] the lock
-- KEYS[2] the counter of all locks of the show
-- ARGV    token of the owner, time to live in ms
-- Returns the number, or 0 if another client has the lock.
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 0
end
return redis.call('INCR', KEYS[2])
