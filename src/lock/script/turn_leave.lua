-- Lets go of a lock that holds ARGV[1], also where that was revoked, for the next in its queue, and
-- takes ARGV[1] out of the queue. For a release, for an undo, and for one that waits no longer.
-- Runs behind hand_on.lua.
--
-- KEYS: the lock, its queue, its beats, as turn_ask.lua has them. A writer that is next is handed
-- the key for a second: until then it has set it anew; it stays in the queue until it has. For
-- readers the key is deleted. Where readers hold it, others join them; a writer hears it is first.
--
-- Answers 1 when the lock was held by it and is not any more, 0 when there is no such key, -1 when
-- it holds something else. Reads and checks first and writes last: a script is not undone by its
-- own error.
local lock, queue, beats = KEYS[1], KEYS[2], KEYS[3]
local held, time = redis.pcall('GET', lock), redis.pcall('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local is_own = held == ARGV[1] or held == ARGV[1] .. '!'
local found, is_read = {}, held == 'quorlock:readers'
if time[1] and (not held or is_own or is_read) then
  found = next_in(queue, beats, ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000))
end
local writer = found[1] and string.sub(found[1], 1, 1) ~= 'r' and found[1]
-- A server without memory hands nothing over; the first one is told all the same.
if is_own and not (writer and redis.pcall('SET', lock, writer, 'PX', 1000).ok) then
  redis.call('DEL', lock)
end
-- Another type under these names is not ours to touch.
redis.pcall('ZREM', queue, ARGV[1])
redis.pcall('ZREM', beats, ARGV[1])
tell(found, is_read and writer and 'first' or 'yours')
if is_own then
  return 1
end
return held and -1 or 0
