-- Sets KEYS[3] to ARGV[1] for ARGV[2] milliseconds if it is not there. Runs behind standing.lua.
--
-- Answers 1 when it did, -1 when the lock is held.
if redis.call('SET', KEYS[3], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return -1
