-- Adds ARGV[1] to a set of names, unless it is empty or ARGV[2] is there, and answers with 1 and
-- each name that is in the set then. Runs behind standing.lua where servers may forget.
--
-- The last of KEYS: the set. What is added stays for at least ARGV[3] milliseconds, and so does
-- ARGV[2] where it keeps it out. What is there already, and stays for as long, is not touched: a
-- repetition wakes none of those who watch the set. A sorted set that never ends is another's: it
-- gets an error. Reads and checks first and writes last: a script is not undone by its own error.
if not string.match(ARGV[3], '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
local set, ttl = KEYS[#KEYS], tonumber(ARGV[3])
-- By `pcall`, for some servers tell a script's own error in other words.
local found, left = redis.pcall('ZRANGE', set, 0, -1), redis.call('PTTL', set)
if found.err then
  return found
end
if left == -1 then
  return redis.error_reply('WRONGTYPE the key holds a sorted set that never ends')
end
local stays, is_there = ARGV[1], ARGV[1] == ''
for n = 1, #found do
  if found[n] == ARGV[1] or found[n] == ARGV[2] then
    stays, is_there = found[n], is_there or left >= ttl
  end
end
if not is_there then
  local life = string.format('%.0f', math.max(left, ttl * 1.5))
  -- Without the right to it nothing is made that would stay.
  redis.call('PEXPIRE', set, life)
  if redis.call('ZADD', set, 0, stays) == 1 then
    table.insert(found, stays)
  end
  redis.call('PEXPIRE', set, life)
end
table.insert(found, 1, 1)
return found
