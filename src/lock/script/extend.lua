-- Lets KEYS[1] live for ARGV[2] more milliseconds if its value is ARGV[1]: for no less than it did
-- before, or with an ARGV[3] for exactly that long.
--
-- Answers 1 when it did, 0 when there is no such key, -1 when it holds something else, -2 when that
-- is ARGV[1], revoked. Never makes a key. Reads first and writes last: a script is not undone by
-- its own error. A user that may not ask for the life left sets it blindly.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
  local left = redis.pcall('PTTL', KEYS[1])
  if ARGV[3] or type(left) ~= 'number' or left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return 1
end
if not held then
  return 0
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
return held == ARGV[1] .. '!' and -2 or -1
