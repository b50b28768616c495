-- Sets KEYS to ARGV[1] for ARGV[2] milliseconds if none of them holds anything else. Behind
-- standing.lua the first two of KEYS are the node's own.
--
-- Answers 1 when it did, -n when the n-th of the lock's keys holds something else. Keys that hold
-- the value already are set again: a node that has lost some of them is given all. Reads first and
-- writes last: a script is not undone by its own error.
local before = 0
if #ARGV > 2 then
  before = 2
end
for n = before + 1, #KEYS do
  local held = redis.pcall('GET', KEYS[n])
  if held and held ~= ARGV[1] then
    if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
      return held
    end
    return before - n
  end
end
for n = before + 1, #KEYS do
  redis.call('SET', KEYS[n], ARGV[1], 'PX', ARGV[2])
end
return 1
