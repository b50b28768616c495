-- Lets KEYS live for ARGV[2] more milliseconds if each of them holds ARGV[1]: for no less than they
-- did before, or with an ARGV[3] for exactly that long.
--
-- Answers 1 when it did, 0 when there is no such key, -1 when one holds something else, -2 when
-- that is ARGV[1], revoked: the first in whose way something stands says which. Never makes a key.
-- Reads first and writes last: a script is not undone by its own error. A user that may not ask for
-- the life left sets it blindly.
for n = 1, #KEYS do
  local held = redis.pcall('GET', KEYS[n])
  if not held then
    return 0
  end
  if held ~= ARGV[1] then
    if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
      return held
    end
    return held == ARGV[1] .. '!' and -2 or -1
  end
end
for n = 1, #KEYS do
  local left = redis.pcall('PTTL', KEYS[n])
  if ARGV[3] or type(left) ~= 'number' or left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[n], ARGV[2])
  end
end
return 1
