-- Takes the reader ARGV[1] from a lock, and out of its queue; also where it still has the lock, or
-- a place there, as the writer that it was. With the last of its readers the lock is let go, for
-- the next in the queue. For a release, for an undo, and for one that waits no longer. Runs behind
-- hand_on.lua.
--
-- KEYS: the lock, its readers, its gate, its queue, its beats, as read.lua has them. As in
-- turn_leave.lua, a writer that is next is handed the key for a second; one that others still keep
-- out is told that it is the first.
--
-- Answers 1 when it had the lock and has it no more, 0 when it had not, -1 when another has it.
-- Reads and checks first and writes last: a script is not undone by its own error.
local lock, readers, queue, beats = KEYS[1], KEYS[2], KEYS[4], KEYS[5]
local held, time = redis.pcall('GET', lock), redis.pcall('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local is_writer = held == ARGV[1] or held == ARGV[1] .. '!'
-- A writer may have no right to ask for it; then it hands nothing over.
if not (time[1] or is_writer) then
  return time
end
local now = time[1] and time[1] * 1000 + math.floor(time[2] / 1000)
local own, last, found = nil, 0, {}
if held == 'quorlock:readers' then
  own = tonumber(redis.call('ZSCORE', readers, ARGV[1]) or nil)
  local latest = redis.call('ZRANGE', readers, -2, -1, 'WITHSCORES')
  for n = 1, #latest, 2 do
    if latest[n] ~= ARGV[1] then
      last = math.max(last, latest[n + 1])
    end
  end
end
local place = type(redis.pcall('ZSCORE', queue, ARGV[1])) == 'string' and ARGV[1] or 'r' .. ARGV[1]
local is_free = not held or is_writer or (own and last <= now)
if is_free and now then
  found = next_in(queue, beats, place, now)
end
if is_free and held then
  local writer = found[1] and string.sub(found[1], 1, 1) ~= 'r' and found[1]
  -- A server without memory hands nothing over; the first one is told all the same.
  if not (writer and redis.pcall('SET', lock, writer, 'PX', 1000).ok) then
    redis.call('DEL', lock)
  end
  redis.call('DEL', readers)
elseif own then
  if redis.call('PTTL', lock) > last - now then
    redis.call('PEXPIREAT', lock, string.format('%.0f', last))
    redis.call('PEXPIREAT', readers, string.format('%.0f', last))
  end
  redis.call('ZREM', readers, ARGV[1])
end
-- Another type under these names is not ours to touch.
if redis.pcall('ZREM', queue, place) == 1 and not is_free then
  tell_first(queue, beats, now)
end
redis.pcall('ZREM', beats, place)
tell(found, 'yours')
if is_writer or (own and own >= now) then
  return 1
end
return (held and held ~= 'quorlock:readers') and -1 or 0
