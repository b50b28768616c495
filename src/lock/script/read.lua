-- Makes ARGV[1] one of a lock's readers for ARGV[3] milliseconds, unless a writer holds the lock,
-- or waits for its readers to end. One whose turn has come in a queue names that by ARGV[2], which
-- is 0 for others: a writer that waits in the same queue came later, and does not keep it out. Runs
-- behind hand_on.lua, and both behind standing.lua where servers may forget.
--
-- The last five of KEYS: the lock, which holds `quorlock:readers` while readers have it, and lives
-- until the last of them ends; its readers, each by the time of the server at which it ends; its
-- gate, which a writer that waits keeps shut, by its queue's name, a colon and its own; its queue
-- and its beats, which it leaves if it stands there: a writer behind it is told that it is the
-- first. Readers that are found while the lock holds no such word had it before, and lost it.
--
-- Answers 1 when it did, -1 when the lock is held, or the gate is shut. What a reader has left is
-- never made less. Never makes a key without an end. Reads and checks first and writes last: a
-- script is not undone by its own error.
if not string.match(ARGV[3], '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
local at = #KEYS - 4
local lock, readers, word = KEYS[at], KEYS[at + 1], 'quorlock:readers'
local held, time = redis.pcall('GET', lock), redis.call('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if held and held ~= word then
  return -1
end
local own = redis.call('ZSCORE', readers, ARGV[1])
-- A gate that stays shut for too long was shut before the server's clock was set back.
local shut = redis.call('PTTL', KEYS[at + 2])
if shut ~= -2 and shut <= 3000 and not (held and own) then
  local by = redis.pcall('GET', KEYS[at + 2])
  if type(by) ~= 'string' or string.match(by, '^(%d+):') ~= ARGV[2] then
    return -1
  end
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = now + ARGV[3]
if held and own then
  ends = math.max(ends, own)
end
local last = ends
if held then
  last = math.max(ends, redis.call('ZRANGE', readers, -1, -1, 'WITHSCORES')[2] or ends)
end
-- Without the right to it nothing is made that would stay.
redis.call('PEXPIREAT', readers, string.format('%.0f', last))
if held then
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', string.format('(%.0f', now))
else
  redis.call('DEL', readers)
end
redis.call('ZADD', readers, string.format('%.0f', ends), ARGV[1])
redis.call('PEXPIREAT', readers, string.format('%.0f', last))
-- Who waits for the lock is told of each change, and need not know of readers that others outlast.
if redis.call('PTTL', lock) < last - now then
  redis.call('SET', lock, word, 'PX', string.format('%.0f', last - now))
end
if redis.pcall('ZREM', KEYS[at + 3], 'r' .. ARGV[1]) == 1 then
  tell_first(KEYS[at + 3], KEYS[at + 4], now)
end
redis.pcall('ZREM', KEYS[at + 4], 'r' .. ARGV[1])
return 1
