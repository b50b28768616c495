-- Lets KEYS live for ARGV[2] more milliseconds if each of them holds ARGV[1]: for no less than they
-- did before, or with an ARGV[3] for exactly that long. A value that was revoked, as revoke.lua has
-- it, lives no longer by it, and less long with an ARGV[3] alone.
--
-- Answers 1 when it did, 0 when there is no such key, -1 when one holds something else, -2 when it
-- did not because one was revoked: the first in whose way something stands says which. Never makes
-- a key. Reads first and writes last: a script is not undone by its own error. A user that may not
-- ask for the life left sets it blindly.
for n = 1, #KEYS do
  local held = redis.pcall('GET', KEYS[n])
  if not held then
    return 0
  end
  if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  if held == ARGV[1] .. '!' then
    local left = redis.pcall('PTTL', KEYS[n])
    if not ARGV[3] or type(left) ~= 'number' or left < tonumber(ARGV[2]) then
      return -2
    end
  elseif held ~= ARGV[1] then
    return -1
  end
end
for n = 1, #KEYS do
  local left = redis.pcall('PTTL', KEYS[n])
  if ARGV[3] or type(left) ~= 'number' or left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[n], ARGV[2])
  end
end
return 1
