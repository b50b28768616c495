-- Deletes KEYS[1] if its value is ARGV[1], or gives it the value ARGV[2] if there is one. A value
-- that was revoked, as revoke.lua has it, counts as what it was, and one that is put back in its
-- place is revoked as well.
--
-- Answers 1 when it did, 0 when there is no such key, -1 when it holds something else. A value that
-- is put back leaves the key's life as it is. Reads first and writes last: a script is not undone
-- by its own error.
local held = redis.pcall('GET', KEYS[1])
local is_revoked = held == ARGV[1] .. '!'
if held == ARGV[1] or is_revoked then
  if ARGV[2] then
    redis.call('SET', KEYS[1], is_revoked and ARGV[2] .. '!' or ARGV[2], 'KEEPTTL')
    return 1
  end
  return redis.call('DEL', KEYS[1])
end
if not held then
  return 0
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
return -1
