-- Sets a lock to ARGV[1] for ARGV[2] milliseconds if that is next in its queue, or puts it into the
-- queue. Runs behind standing.lua where servers may forget.
--
-- KEYS, behind those of standing.lua: the lock; for a reader its readers and its gate, as read.lua
-- has them; its queue, with each waiting value by the order of its arrival, as hand_on.lua has it;
-- its beats, with the time by which each of them will have asked again if it lives. (A time that is
-- too far away was told before the server's clock was set back: no one is known to live by it.) A
-- reader is only told that it is next, and stays in the queue until it has the lock. So does one to
-- which the lock was handed over, until it asks: who stands behind it is the first that waits.
--
-- Answers {1, 1} when it is next and others wait, {1, 0} when none does; {-1, ms} when it is to
-- wait: the first is told what the lock has left to live, the others -1, or 0 for "ask again": too
-- many before it were dead. The first has the holder told, by its channel, that it is waited for;
-- {-2, ms} says that no one heard, {-3, ms} that readers hold it: it has to watch the lock itself.
-- Never makes a key without an end. Reads and checks first and writes last: a script is not undone
-- by its own error.

-- Behind standing.lua there are two keys more before the lock, and two arguments more. A reader
-- gives five keys of its own, a writer three.
local before = #ARGV > 2 and 2 or 0
local lock, queue, beats = KEYS[before + 1], KEYS[#KEYS - 1], KEYS[#KEYS]
local beat, looks, reads = 1500, 128, #KEYS - before > 3
local own = reads and 'r' .. ARGV[1] or ARGV[1]
local held, time = redis.pcall('GET', lock), redis.call('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = now + 2 * beat
local first, dead = nil, {}
-- A reader does not wait for others. There may be many before it, so it asks for all at once, and
-- looks for dead ones among the first eight alone.
local all = reads and redis.call('ZRANGE', queue, 0, looks - 1)
for n = 0, looks - 1 do
  local found = all and all[n + 1] or redis.call('ZRANGE', queue, n, n)[1]
  if not found or found == own then
    first = own
    break
  end
  local waits = not reads or string.sub(found, 1, 1) ~= 'r'
  if waits or n < 8 then
    local ends = redis.call('ZSCORE', beats, found)
    if not ends or tonumber(ends) < now or tonumber(ends) > latest then
      dead[#dead + 1] = found
    elseif waits and found ~= held then
      first = found
      break
    end
  end
end
local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
local until_last = redis.call('ZRANGE', beats, -1, -1, 'WITHSCORES')
local is_read = held == 'quorlock:readers'
if first == own and reads and (not held or is_read) then
  return {1, 0}
end
if held == own or (first == own and not held) then
  redis.call('SET', lock, own, 'PX', ARGV[2])
  redis.pcall('ZREM', queue, own)
  redis.pcall('ZREM', beats, own)
  return {1, redis.call('ZRANGE', queue, 0, 0)[1] and 1 or 0}
end
local next_beat = now + beat
local ends = string.format('%.0f', math.max(next_beat, math.min(latest, until_last[2] or 0)))
-- Without the right to it nothing is made that would stay.
redis.call('PEXPIREAT', beats, ends)
if #dead > 0 then
  redis.call('ZREM', queue, unpack(dead))
  redis.call('ZREM', beats, unpack(dead))
end
redis.call('ZADD', beats, string.format('%.0f', next_beat), own)
redis.call('PEXPIREAT', beats, ends)
redis.call('ZADD', queue, 'NX', string.format('%.0f', tonumber(last[2] or 0) + 1), own)
redis.call('PEXPIREAT', queue, ends)
if first ~= own then
  return {-1, (first or not dead[1]) and -1 or 0}
end
local owner, heard = type(held) == 'string' and string.match(held, '^%x+@(.-)!?$'), 0
if owner then
  heard = redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, 'wanted ' .. lock)
end
local left = redis.pcall('PTTL', lock)
left = type(left) == 'number' and left or -1
if is_read then
  return {-3, left}
end
return {type(heard) == 'number' and heard > 0 and -1 or -2, left}
