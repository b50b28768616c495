-- Lets the reader ARGV[1] have the lock for ARGV[2] more milliseconds: for no less than it had
-- before, or with an ARGV[3] for exactly that long.
--
-- KEYS: the lock and its readers, as read.lua has them, and others that are left alone.
--
-- Answers 1 when it did, 0 when it is no reader of the lock any more, -1 when another has the lock.
-- Never makes a key. Reads and checks first and writes last: a script is not undone by its own
-- error.
if not string.match(ARGV[2], '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
local lock, readers = KEYS[1], KEYS[2]
local held, time = redis.pcall('GET', lock), redis.call('TIME')
if not held then
  return 0
end
if held ~= 'quorlock:readers' then
  if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  return -1
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local own = redis.call('ZSCORE', readers, ARGV[1])
if not own or tonumber(own) < now then
  return 0
end
local ends = now + ARGV[2]
if not ARGV[3] then
  ends = math.max(ends, own)
end
local last, latest = ends, redis.call('ZRANGE', readers, -2, -1, 'WITHSCORES')
for n = 1, #latest, 2 do
  if latest[n] ~= ARGV[1] then
    last = math.max(last, latest[n + 1])
  end
end
-- The lock first: what is left of it, if the next is refused, only outlasts the readers.
if ARGV[3] or redis.call('PTTL', lock) < last - now then
  redis.call('PEXPIREAT', lock, string.format('%.0f', last))
end
-- This may have deleted them, where the time has come meanwhile: they are not made anew.
redis.call('PEXPIREAT', readers, string.format('%.0f', last))
redis.call('ZADD', readers, 'XX', string.format('%.0f', ends), ARGV[1])
return 1
