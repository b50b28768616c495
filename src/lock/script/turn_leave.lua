-- Hands a lock that holds ARGV[1] to the first in its queue that lives, or deletes it where there
-- is none; and takes ARGV[1] out of the queue. For a release, for an undo, and for one that waits
-- no longer.
--
-- KEYS: the lock, its queue, its beats, as turn_ask.lua has them. The key that is handed over lives
-- for a second: until then the one that it is handed to has set it anew. That one is told by its
-- channel, with the first eight digits of its value, and stays in the queue until it has.
--
-- Answers 1 when the lock was held by it and is not any more, 0 when there is no such key, -1 when
-- it holds something else. Reads and checks first and writes last: a script is not undone by its
-- own error.
local lock, queue, beats = KEYS[1], KEYS[2], KEYS[3]
local held, time = redis.pcall('GET', lock), redis.pcall('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local first
if time[1] and (not held or held == ARGV[1]) then
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local latest = now + 3000
  for n = 0, 127 do
    local found = redis.pcall('ZRANGE', queue, n, n)
    if not found[1] then
      break
    end
    local ends = redis.pcall('ZSCORE', beats, found[1])
    ends = found[1] ~= ARGV[1] and type(ends) == 'string' and tonumber(ends)
    if ends and ends >= now and ends <= latest then
      first = found[1]
      break
    end
  end
end
-- A server without memory hands nothing over; the first one is told all the same.
if held == ARGV[1] and not (first and redis.pcall('SET', lock, first, 'PX', 1000).ok) then
  redis.call('DEL', lock)
end
-- Another type under these names is not ours to touch.
redis.pcall('ZREM', queue, ARGV[1])
redis.pcall('ZREM', beats, ARGV[1])
local owner = first and string.match(first, '^%x+@(.*)$')
if owner then
  redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, 'yours ' .. string.sub(first, 1, 8))
end
if held == ARGV[1] then
  return 1
end
return held and -1 or 0
