-- Deletes those slots that hold ARGV[1], also where it was revoked, and takes ARGV[1] out of their
-- queue. Where that changes something for the next there, it is told. For a release, for an undo,
-- and for one that waits no longer. Runs behind hand_on.lua.
--
-- KEYS: some of the slots, or all; their queue and its beats, as slot_ask.lua has them.
--
-- Answers 1 when all of the slots held it, -1 when one holds something else, 0 when one is missing
-- and none holds anything else. Reads and checks first and writes last: a script is not undone by
-- its own error.
local queue, beats, own, answer = KEYS[#KEYS - 1], KEYS[#KEYS], {}, 1
for n = 1, #KEYS - 2 do
  local held = redis.pcall('GET', KEYS[n])
  if held == ARGV[1] or held == ARGV[1] .. '!' then
    own[#own + 1] = KEYS[n]
  elseif not held then
    answer = math.min(answer, 0)
  elseif type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  else
    answer = -1
  end
end
local time, found = redis.pcall('TIME'), {}
if time[1] then
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if #own > 0 or next_in(queue, beats, '', now)[1] == ARGV[1] then
    found = next_in(queue, beats, ARGV[1], now)
  end
end
if #own > 0 then
  redis.call('DEL', unpack(own))
end
-- Another type under these names is not ours to touch.
redis.pcall('ZREM', queue, ARGV[1])
redis.pcall('ZREM', beats, ARGV[1])
tell(found, 'yours')
return answer
