-- Lets KEYS[1] live for ARGV[2] more milliseconds if its value is ARGV[1]: for no less than it did
-- before, or with an ARGV[3] for exactly that long. A value that was revoked, as revoke.lua has it,
-- lives no longer by it, and less long with an ARGV[3] alone.
--
-- Answers 1 when it did, 0 when there is no such key, -1 when it holds something else, -2 when it
-- did not because the value was revoked. Never makes a key. Reads first and writes last: a script
-- is not undone by its own error. A user that may not ask for the life left sets it blindly.
local held = redis.pcall('GET', KEYS[1])
local is_revoked = held == ARGV[1] .. '!'
if held == ARGV[1] or is_revoked then
  local left = redis.pcall('PTTL', KEYS[1])
  local is_short = type(left) ~= 'number' or left < tonumber(ARGV[2])
  if is_revoked and (is_short or not ARGV[3]) then
    return -2
  end
  if ARGV[3] or is_short then
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
return -1
