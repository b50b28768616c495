-- Sets ARGV[3] free slots to ARGV[1] for ARGV[5] milliseconds, all of them or none, if that is next
-- in the queue for them. If not, it is put there where ARGV[2] is `wait`. Runs behind hand_on.lua,
-- and both behind standing.lua where servers may forget.
--
-- KEYS, behind those of standing.lua: the slots, each of which is the key of a lock; their queue,
-- and its beats, as turn_ask.lua has them. The search for free ones begins behind slot ARGV[4].
--
-- Answers {1, n, ...} with the numbers of those that it has then, counted from 1; {-1, ms} when
-- they are too few: the first in the queue is told when there may be enough, or -2 where no end is
-- known; the others -1. Never makes a key without an end. Reads and checks first and writes last: a
-- script is not undone by its own error.
local before = #ARGV > 5 and 2 or 0
local count, queue, beats = #KEYS - before - 2, KEYS[#KEYS - 1], KEYS[#KEYS]
local own, weight, beat = ARGV[1], tonumber(ARGV[3]), 1500
local held = redis.call('MGET', unpack(KEYS, before + 1, before + count))
local time, chosen, is_left = redis.call('TIME'), {}, false
for n = 1, count do
  if held[n] == own then
    chosen[#chosen + 1] = n
  end
end
local is_again = #chosen > 0
for step = 0, count - 1 do
  local n = (ARGV[4] + step) % count + 1
  -- What is of another type is told as if there were nothing.
  if not held[n] and redis.call('EXISTS', KEYS[before + n]) == 0 then
    is_left = #chosen >= weight
    if is_left then
      break
    end
    chosen[#chosen + 1] = n
  end
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = next_in(queue, beats, '', now)[1]
if #chosen >= weight and (is_again or not first or first == own) then
  for n = 1, #chosen do
    redis.call('SET', KEYS[before + chosen[n]], own, 'PX', ARGV[5])
  end
  redis.pcall('ZREM', queue, own)
  redis.pcall('ZREM', beats, own)
  -- Several may have become free at once, and the first alone was told.
  if is_left and first == own then
    tell(next_in(queue, beats, own, now), 'yours')
  end
  return {1, unpack(chosen)}
end
if ARGV[2] == 'wait' then
  local latest = now + 2 * beat
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
  local oldest = redis.call('ZRANGE', beats, 0, 7, 'WITHSCORES')
  local until_last = redis.call('ZRANGE', beats, -1, -1, 'WITHSCORES')
  local ends = math.max(now + beat, math.min(latest, until_last[2] or 0))
  ends = string.format('%.0f', ends)
  -- Without the right to it nothing is made that would stay.
  redis.call('PEXPIREAT', beats, ends)
  for n = 1, #oldest, 2 do
    if tonumber(oldest[n + 1]) < now and oldest[n] ~= own then
      redis.call('ZREM', queue, oldest[n])
      redis.call('ZREM', beats, oldest[n])
    end
  end
  redis.call('ZADD', beats, string.format('%.0f', now + beat), own)
  redis.call('PEXPIREAT', beats, ends)
  redis.call('ZADD', queue, 'NX', string.format('%.0f', tonumber(last[2] or 0) + 1), own)
  redis.call('PEXPIREAT', queue, ends)
end
local left, lefts = -1, {}
if not first or first == own then
  for n = 1, count do
    local lives = redis.pcall('PTTL', KEYS[before + n])
    if held[n] ~= own and type(lives) == 'number' and lives >= 0 then
      lefts[#lefts + 1] = lives
    end
  end
  table.sort(lefts)
  left = lefts[weight - #chosen] or -2
end
return {-1, left}
