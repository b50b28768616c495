-- Makes a reader of the writer ARGV[1], under the same value, for ARGV[2] milliseconds or what is
-- left of its lock, whichever is longer; and takes it out of the queue, in which one with a ticket
-- stands while it has the lock. Runs behind hand_on.lua.
--
-- KEYS: the lock, its readers, its gate, its queue, its beats, as read.lua has them. Readers that
-- are next in the queue are told.
--
-- Answers 1 when it is a reader of the lock now and a writer no more, 0 when there is no such key,
-- -1 when another has the lock. Never makes a key without an end. Reads and checks first and writes
-- last: a script is not undone by its own error.
if not string.match(ARGV[2], '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
local lock, readers = KEYS[1], KEYS[2]
local held, time = redis.pcall('GET', lock), redis.call('TIME')
if held ~= ARGV[1] then
  if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  return held and -1 or 0
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local left = math.max(ARGV[2], redis.call('PTTL', lock))
local ends = string.format('%.0f', now + left)
local found = next_in(KEYS[4], KEYS[5], ARGV[1], now)
-- Without the right to it nothing is made that would stay.
redis.call('PEXPIREAT', readers, ends)
redis.call('DEL', readers)
redis.call('ZADD', readers, ends, ARGV[1])
redis.call('PEXPIREAT', readers, ends)
redis.call('SET', lock, 'quorlock:readers', 'PX', string.format('%.0f', left))
-- Another type under these names is not ours to touch.
redis.pcall('ZREM', KEYS[4], ARGV[1])
redis.pcall('ZREM', KEYS[5], ARGV[1])
if found[1] and string.sub(found[1], 1, 1) == 'r' then
  tell(found, 'yours')
end
return 1
