-- Sets a lock to ARGV[1] for ARGV[2] milliseconds if that is first in its queue, or puts it into
-- the queue. Runs behind standing.lua where servers may forget.
--
-- The last three of KEYS: the lock; its queue, with each waiting value by the order of its arrival;
-- its beats, with the time by which each of them will have asked again if it lives. (A time that is
-- too far away was told before the server's clock was set back: no one is known to live by it.)
--
-- Answers {1, 1} when it set the lock and others wait, {1, 0} when none does; {-1, ms} when it is
-- to wait: the first is told what the lock has left to live, the others -1, or 0 for "ask again":
-- too many before it were dead. The first has the holder told, by its channel, that it is waited
-- for; {-2, ms} says that no one heard: it has to watch the lock itself. Never makes a key without
-- an end. Reads and checks first and writes last: a script is not undone by its own error.
local lock, queue, beats = KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS]
local beat, looks = 1500, 128
local held, time = redis.pcall('GET', lock), redis.call('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = now + 2 * beat
local first, dead = nil, {}
for n = 0, looks - 1 do
  local found = redis.call('ZRANGE', queue, n, n)[1]
  if not found then
    break
  end
  local ends = redis.call('ZSCORE', beats, found)
  if found == ARGV[1] or (ends and tonumber(ends) >= now and tonumber(ends) <= latest) then
    first = found
    break
  end
  dead[n + 1] = found
end
local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
local until_last = redis.call('ZRANGE', beats, -1, -1, 'WITHSCORES')
local is_turn = #dead < looks and (not first or first == ARGV[1])
if held == ARGV[1] or (not held and is_turn) then
  redis.call('SET', lock, ARGV[1], 'PX', ARGV[2])
  redis.pcall('ZREM', queue, ARGV[1])
  redis.pcall('ZREM', beats, ARGV[1])
  return {1, redis.call('ZRANGE', queue, 0, 0)[1] and 1 or 0}
end
local own = now + beat
local ends = string.format('%.0f', math.max(own, math.min(latest, tonumber(until_last[2] or 0))))
-- Without the right to it nothing is made that would stay.
redis.call('PEXPIREAT', beats, ends)
if #dead > 0 then
  redis.call('ZREM', queue, unpack(dead))
  redis.call('ZREM', beats, unpack(dead))
end
redis.call('ZADD', beats, string.format('%.0f', own), ARGV[1])
redis.call('PEXPIREAT', beats, ends)
redis.call('ZADD', queue, 'NX', string.format('%.0f', tonumber(last[2] or 0) + 1), ARGV[1])
redis.call('PEXPIREAT', queue, ends)
if not is_turn then
  return {-1, #dead < looks and -1 or 0}
end
local owner, heard = type(held) == 'string' and string.match(held, '^%x+@(.*)$'), 0
if owner then
  heard = redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, 'wanted ' .. lock)
end
local left = redis.pcall('PTTL', lock)
return {type(heard) == 'number' and heard > 0 and -1 or -2, type(left) == 'number' and left or -1}
